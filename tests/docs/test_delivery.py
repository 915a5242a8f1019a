"""What docs/delivery.md says of alarms is so."""

import json
import re
import time
from pathlib import Path

from tests.webapp.test_channels import INCIDENT
from webapp.delivery.channels import BUILT_IN, channel_class
from webapp.delivery.channels.webhook import signature
from webapp.models import Delivery, IncidentChange

DOCUMENT = (Path(__file__).parents[2] / "docs" / "delivery.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```", DOCUMENT, re.M | re.S)


def test_the_example_tells_genuine_requests_from_others():
    told = {}
    exec(PROGRAMS[0], told)
    is_genuine, now_s = told["is_genuine"], int(time.time())
    assert is_genuine(signature("key", b"{}", now_s), b"{}", b"key")
    for wrong in (("other", b"{}", now_s), ("key", b"[]", now_s), ("key", b"{}", now_s - 301)):
        assert not is_genuine(signature(*wrong), b"{}", b"key")


def test_the_example_of_a_channel_is_one():
    told = {"__name__": "webapp.delivery.example"}
    exec(PROGRAMS[1], told)
    options = told["PagerOptions"].parse({"service": "night", "token": "t"})
    assert told["PagerChannel"](options).options.service == "night"
    assert told["PagerOptions"].secret_names() == ["token"]


def test_the_example_of_a_document_has_all_fields():
    (example,) = (json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", DOCUMENT, re.M | re.S))
    assert set(example) == {"id", *INCIDENT}
    for part in ("change", "incident", "query"):
        assert set(example[part]) == set(INCIDENT[part])


def test_every_kind_option_change_and_state_is_documented():
    for kind in BUILT_IN:
        section = DOCUMENT.split(f"### `{kind}`")[1].split("\n### ")[0]
        names = [option.name for option in channel_class(kind).options_class.describe()]
        assert kind == "push" or not [name for name in names if f"`{name}`" not in section], kind
    named = [what for what, _ in IncidentChange.WHAT] + [state for state, _ in Delivery.STATES]
    assert not [name for name in named if f"`{name}`" not in DOCUMENT]
