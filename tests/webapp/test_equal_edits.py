"""What an edit means to the engine: one that it need not know of leaves a query of any kind as it is."""

from datetime import timedelta

import pytest
from django.utils import timezone

from streaming.kinds.registry import KINDS
from tests.engine.test_admission import PLANS
from webapp.models import Membership, Query, Stream, Team
from webapp.models.queries import Cause
from webapp.queries import queries

pytestmark = pytest.mark.django_db(transaction=True)

UNHEARD = {
    "name": {"name": "Another name"},
    "sharing": {"shared": True},
    "severity": {"severity": "critical"},
    "look": {"look": 9},
    "everything but the plan": {"name": "Another name", "shared": True, "severity": "info", "paused": False},
}


@pytest.fixture
def saved(user, streams, redis_client):
    """Return a function that saves a query of a kind that runs, and has a warning."""
    Stream.objects.filter(name="ships").update(sketch={"features": ["speed"]})
    first = queries.register(user, "Everything", PLANS["range"])

    def saved(kind, **fields):
        plan = PLANS[kind] | ({"when": {"query": first.pk}} if kind == "rule" else {})
        query = queries.register(user, kind, plan, confirmed=True)
        fields = {"status": Query.RUNNING, "acknowledged": query.revision, "warning": "why"} | fields
        Query.objects.filter(pk=query.pk).update(**fields)
        return Query.objects.get(pk=query.pk)

    return saved


def stands(query):
    """Return what an edit changes of which the engine is told."""
    return query.revision, query.acknowledged, query.status, query.warning, query.warnings, query.left_out


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS if kind.name != "join"])
def test_whatever_the_kind_an_edit_that_the_engine_need_not_know_of_leaves_the_query_alone(kind, saved, user):
    query = saved(kind)
    for edit in UNHEARD.values():
        if kind == "sketch":
            edit = {field: value for field, value in edit.items() if field != "severity"}
        edited = queries.edit(user, query.pk, plan=query.plan, **edit)
        assert {field: getattr(edited, field) for field in edit} == edit
        assert stands(edited) == stands(query)


def test_a_new_query_has_a_look_that_few_others_have_unless_one_is_chosen(saved, user):
    looks = [queries.register(user, f"Box {n}", PLANS["range"]).look for n in range(31)]  # the fixture saved one, too
    assert sorted(looks) == list(range(1, 32))
    assert queries.register(user, "Chosen", PLANS["range"], look=9).document()["look"] == 9
    assert queries.register(user, "Next", PLANS["range"]).look == 0


def test_another_plan_a_pause_and_whom_it_counts_for_concern_the_engine(saved, user):
    query, team = saved("range"), Team.objects.create(name="Pilots")
    Membership.objects.create(team=team, user=user, role="analyst")
    edits = {"team": team.pk}, {"paused": True}, {"paused": False}, {"plan": PLANS["knn"]}
    assert [queries.edit(user, query.pk, **edit).revision for edit in edits] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("fields", "again"),
    [
        ({"status": Query.FAILED, "error": "it did not end"}, True),
        ({"left_out": "no room", "left_out_cause": Cause.ROOM}, True),
        ({"left_out": "no room", "left_out_cause": Cause.WATCHED}, False),
    ],
)
def test_a_plan_that_is_saved_as_it_was_has_a_query_tried_again_that_failed_itself(saved, user, fields, again):
    query = saved("range", left_out_until=timezone.now() + timedelta(minutes=1), **fields)
    assert queries.edit(user, query.pk, name="Another name").revision == query.revision
    edited = queries.edit(user, query.pk, plan=query.plan)
    assert edited.revision == query.revision + again
    assert (edited.status == Query.PENDING) == again
