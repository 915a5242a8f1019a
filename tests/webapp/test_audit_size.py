"""What the audit log keeps of large and of many changes: bounded, readable, and nothing left out silently."""

import hashlib
import json
import re
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from tests.webapp.teamwork import scene
from webapp import tasks
from webapp.audit.joining import tell_joined
from webapp.audit.origin import acting
from webapp.models import AuditEntry, JoinedChange, Query
from webapp.models.audit_values import VALUE_BYTES, recorded

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(2, 10**9) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=30,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


# What is kept of a value.


@given(JSON, JSON)
def test_whatever_changes_is_kept_in_bounded_space(old, new):
    kept = recorded({"field": [old, new]})
    assert kept
    assert len(json.dumps(kept, ensure_ascii=False).encode()) <= 2 * VALUE_BYTES + 50 * len(kept) + 600


@given(DOCUMENTS, DOCUMENTS)
def test_the_parts_that_are_kept_make_the_old_document_the_new_one(old, new):
    parts = recorded({"f": [old, new]})
    if "f" in parts:  # too long, or nothing differs
        return
    document = json.loads(json.dumps({"f": old}))
    for path, (before, after) in parts.items():
        steps = re.findall(r"\w+|\[\d+:?\]", path)
        place = document
        for step in steps[:-1]:
            place = place[int(step[1:-1])] if step[0] == "[" else place[step]
        put(place, steps[-1], before, after)
    assert without_none(document["f"]) == without_none(new)


def put(place, step, before, after):
    if step.endswith(":]"):
        at = int(step[1:-2])
        assert place[at : at + len(before)] == before
        place[at : at + len(before)] = after
    elif step[0] == "[":
        place[int(step[1:-1])] = after
    else:
        assert place.get(step) == before
        place[step] = after


def without_none(value):
    if isinstance(value, dict):
        return {key: without_none(one) for key, one in value.items() if one is not None}
    return [without_none(one) for one in value] if isinstance(value, list) else value


def test_of_a_long_value_the_beginning_the_length_and_the_digest_are_kept():
    old, new = ring(0), ring(1)
    kept = recorded({"plan": [{"area": old}, {"area": new}]})["plan"][1]
    written = json.dumps({"area": new}, ensure_ascii=False).encode()
    assert written.decode().startswith(kept["begins"]) and kept["bytes"] == len(written)
    assert kept["sha256"] == hashlib.sha256(written).hexdigest()


def test_of_a_large_document_a_small_change_is_kept_as_it_is():
    moved = ring(0)
    moved[7] = [1.5, 2.5]
    kept = recorded({"plan": [{"kind": "range", "area": ring(0)}, {"kind": "range", "area": moved}]})
    assert kept == {"plan.area[7][0:]": [ring(0)[7], [1.5, 2.5]]}


def ring(by):
    """A ring of many corners, moved by some degrees."""
    return [[round(10 + by + at / 1000, 6), round(50 + by - at / 1000, 6)] for at in range(500)]


# Many changes.


@pytest.fixture
def harbour(streams):
    return scene()


def plan(by):
    return {"stream": "ships", "kind": "range", "area": {"type": "Polygon", "coordinates": [ring(by)]}}


def edit(query, user, address="10.0.0.1", **changes):
    with acting(user, AuditEntry.WEBSOCKET, address):
        for name, value in changes.items():
            setattr(query, name, value)
        query.save()


def size():
    return sum(len(json.dumps(entry, default=str)) for entry in AuditEntry.objects.values())


@pytest.mark.django_db(transaction=True)
def test_ninety_edits_of_a_large_plan_take_less_than_200_kb_and_each_is_told(harbour):
    query, owner = harbour.queries["private"], harbour.users["owner"]
    before, count = size(), AuditEntry.objects.count()
    for turn in range(90):
        edit(query, owner, plan=plan(turn / 10))
    assert len(json.dumps(plan(0))) > 8_000
    assert size() - before < 200_000
    rows = AuditEntry.objects.order_by("pk")[count:]
    assert len(rows) == 90 and {row.user_name for row in rows} == {"owner"}
    # Each row tells by its digest from which document it goes on.
    digests = [[value["sha256"] for value in row.changes["plan"]] for row in rows[1:]]
    assert [old for old, _ in digests[1:]] == [new for _, new in digests[:-1]]


@pytest.mark.django_db(transaction=True)
def test_edits_beyond_the_bound_are_one_row_of_the_object_and_the_hour_that_says_how_many(harbour, settings, client):
    settings.AUDIT_EDITS_AN_HOUR = 3
    query, owner = harbour.queries["team"], harbour.users["owner"]
    count = AuditEntry.objects.count()
    for turn in range(8):
        edit(query, owner, name=f"name {turn}")
    assert AuditEntry.objects.count() == count + 3
    assert tell_joined() == 0  # the hour is not over
    assert tell_joined(timezone.now() + timedelta(hours=1)) == 1 and not JoinedChange.objects.exists()
    row = AuditEntry.objects.first()
    assert (row.user_name, row.address, row.key, row.count) == ("owner", "10.0.0.1", str(query.pk), 5)
    assert row.changes == {"name": ["name 2", "name 7"]} and row.since < row.at
    client.force_login(harbour.users["admin"])
    assert f"5 times since {row.since:%H:%M:%S}" in client.get(f"/teams/{harbour.team.pk}/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_only_equal_origins_and_objects_are_joined_and_rights_never_are(harbour, settings):
    settings.AUDIT_EDITS_AN_HOUR = 1
    query, other = harbour.queries["private"], harbour.queries["team"]
    owner, admin = harbour.users["owner"], harbour.users["admin"]
    edit(query, owner, name="first")
    count = AuditEntry.objects.count()
    for shared in (True, False, True):
        edit(query, owner, shared=shared, name=f"with {shared}")
    assert AuditEntry.objects.count() == count + 3
    edit(query, owner, name="a")
    edit(query, owner, address="10.0.0.2", name="b")
    edit(query, owner, name="c")
    edit(other, owner, name="d")
    edit(other, admin, name="e")  # the first of this user
    edit(other, admin, name="f")
    edit(query, owner, plan=plan(1))
    told = {(row.user_name, row.address, row.key): (row.count, set(row.changes)) for row in JoinedChange.objects.all()}
    assert told == {
        ("owner", "10.0.0.1", str(query.pk)): (3, {"name", "plan"}),
        ("owner", "10.0.0.2", str(query.pk)): (1, {"name"}),
        ("owner", "10.0.0.1", str(other.pk)): (1, {"name"}),
        ("admin", "10.0.0.1", str(other.pk)): (1, {"name"}),
    }
    with acting(owner, AuditEntry.WEBSOCKET):
        query.delete()
    assert AuditEntry.objects.first().action == "deleted"


@pytest.mark.django_db(transaction=True)
def test_a_statement_for_many_rows_has_rows_up_to_the_bound_and_joins_the_others(harbour, settings):
    settings.AUDIT_EDITS_AN_HOUR = 2 + AuditEntry.objects.filter(action="changed").count()
    count, every = AuditEntry.objects.count(), Query.objects.count()
    Query.objects.update(paused=True)
    assert every > 2
    assert AuditEntry.objects.count() == count + 2 and JoinedChange.objects.count() == every - 2
    settings.AUDIT_EDITS_AN_HOUR = 0
    Query.objects.update(paused=False)
    assert AuditEntry.objects.count() == count + 2 + every


@pytest.mark.django_db(transaction=True)
def test_a_joined_change_that_is_undone_is_not_counted(harbour, settings):
    settings.AUDIT_EDITS_AN_HOUR = 1
    query, owner = harbour.queries["private"], harbour.users["owner"]
    edit(query, owner, name="a")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        edit(query, owner, name="b")
        raise ZeroDivisionError
    assert not JoinedChange.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_task_that_runs_each_few_minutes_tells_joined_changes(harbour, settings):
    settings.AUDIT_EDITS_AN_HOUR = 1
    query, owner = harbour.queries["private"], harbour.users["owner"]
    edit(query, owner, name="a")
    edit(query, owner, name="b")
    JoinedChange.objects.update(hour=timezone.now() - timedelta(hours=2))
    assert tasks.tell_joined_changes() == 1 and AuditEntry.objects.first().changes == {"name": ["a", "b"]}
    assert "webapp.tasks.tell_joined_changes" in {job["task"] for job in settings.CELERY_BEAT_SCHEDULE.values()}
