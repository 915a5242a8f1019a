"""docs/layers.md tells of every suffix, option and limit, and its examples are what the site answers."""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings

from streaming.layers import Job
from streaming.layers.looking import look
from streaming.layers.tables import FileTable
from streaming.layers.unpack import ARCHIVES, SUFFIXES, ZIPPED_ONLY
from tests.layers.files import frame, write
from tests.webapp.conftest import earth as earth
from tests.webapp.conftest import project as project
from tests.webapp.conftest import user as user
from tests.webapp.test_layers import changed, edit, folder, site, squares, upload  # noqa: F401
from webapp.layers import drawing
from webapp.management.commands.import_layer import Command

TEXT = (Path(__file__).parents[2] / "docs" / "layers.md").read_text()
EXAMPLES = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", TEXT, re.M | re.S)]
SEEN, LISTED, DRAWN, EDIT, EDITED = EXAMPLES


@pytest.mark.parametrize("suffix", [s for s in (*SUFFIXES, *ARCHIVES) if s not in ZIPPED_ONLY])
def test_every_suffix_is_described(suffix):
    assert f"`{suffix}`" in TEXT


def test_every_option_of_the_command_is_described():
    parser = Command().create_parser("manage.py", "import_layer")
    ours = {"--name", "--title", "--space", "--crs", "--key", "--table", "--encoding", "--edges"}
    assert ours <= {option for action in parser._actions for option in action.option_strings}
    assert set(re.findall(r"^\| `(--\w+)` \|", TEXT, re.M)) == ours


def test_the_limits_are_those_of_the_settings():
    limits = {
        "LOOKOUT_LAYER_UPLOAD_BYTES": (settings.LAYER_UPLOAD_BYTES, "1 GiB", 1 << 30),
        "LOOKOUT_LAYER_UNPACKED_BYTES": (settings.LAYER_UNPACKED_BYTES, "4 GiB", 4 << 30),
        "LOOKOUT_LAYER_MAX_FEATURES": (settings.LAYER_MAX_FEATURES, "5,000,000", 5_000_000),
        "LOOKOUT_LAYER_MEMORY_BYTES": (settings.LAYER_IMPORT_MEMORY_BYTES, "4 GiB", 4 << 30),
        "LOOKOUT_LAYER_WAITING_BYTES": (settings.LAYER_WAITING_BYTES, "2 GiB", 2 << 30),
        "LOOKOUT_LAYERS_WAITING_BYTES": (settings.LAYERS_WAITING_BYTES, "8 GiB", 8 << 30),
        "LOOKOUT_LAYER_WORK_BYTES": (settings.LAYER_WORK_BYTES, "16 GiB", 16 << 30),
        "LOOKOUT_DISK_RESERVE": (settings.DISK_RESERVE, "1 GiB", 1 << 30),
        "LOOKOUT_LAYER_SHARED_S": (settings.LAYER_SHARED_S, "300 s", 300.0),
        "LOOKOUT_LAYER_IMPORT_S": (settings.LAYER_IMPORT_S, "900 s", 900.0),
    }
    for name, (value, words, expected) in limits.items():
        assert value == expected
        assert re.search(rf"\| {words} \| `{name}` \|", TEXT)
    rows = {"features of one edit": settings.LAYER_EDIT_FEATURES, "layers of one user": settings.MAX_LAYERS_PER_USER}
    for row, value in rows.items():
        assert f"| {row} | {value:,} | |" in TEXT
    assert f"At most {drawing.MAX_FEATURES:,} features" in TEXT


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_the_site_answers_what_the_examples_say(site):  # noqa: F811
    document = json.loads(squares())
    document["features"].append({"type": "Feature", "id": "s9", "properties": {}, "geometry": None})
    for feature in document["features"]:
        feature["properties"].pop("id", None)
    assert upload(site, json.dumps(document).encode(), title="Squares").status_code == 202
    listed = site.get("/layers/").json()
    assert listed == LISTED
    drawn = site.get("/layers/squares/features?key=s0").json()
    drawn["features"][0]["properties"].pop("id")
    assert drawn == DRAWN
    answer = edit(site, **EDIT)
    assert answer.json() == EDITED


def test_a_look_is_answered_as_described(tmp_path):
    seen = look(Job(write(tmp_path, frame(), "geojson"), tmp_path))
    assert list(seen) == list(SEEN)
    assert list(FileTable.__dataclass_fields__) == list(SEEN["tables"][0])
