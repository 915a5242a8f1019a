"""docs/teams.md says which roles, ways, kinds of changes and limits there are."""

import re
from pathlib import Path

from django.conf import settings

from webapp.audit.registry import WATCHED
from webapp.consumers.shared import ENDED, FULL
from webapp.models import AuditEntry, Role
from webapp.models.teams import MAX_ADDRESS_CHARACTERS, MOST_SHOWN

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "teams.md").read_text()


def test_every_role_and_every_way_is_documented():
    assert re.findall(r"^\| (\w+) \| ", TEXT.split("## Who may do what")[0], re.M)[1:] == Role.values
    assert all(f"`{way}`" in TEXT for way, _ in AuditEntry.WAYS)


def test_every_kind_of_change_is_documented():
    log = TEXT.split("## The audit log")[1].replace("\n", " ")
    plural = {"query": "queries", "view": "saved views", "removed examples": "removed examples"}
    for watched in WATCHED.values():
        assert plural.get(watched.kind, f"{watched.kind}s") in log, watched.kind


def test_the_limits_are_those_of_the_settings():
    assert f"`LOOKOUT_AUDIT_DAYS` ({settings.AUDIT_DAYS}) days" in TEXT
    assert f"`LOOKOUT_SHARE_CONNECTIONS` ({settings.SHARE_CONNECTIONS})" in TEXT
    api = (DOCS / "websocket-api.md").read_text()
    assert f"at most {MAX_ADDRESS_CHARACTERS:,} characters" in api and f"1 to {MOST_SHOWN} numbers" in api
    assert str(ENDED) in api and str(FULL) in api
