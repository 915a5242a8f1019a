"""Rules in the web application: which queries they may name, and what they say when one of them ends."""

import pytest

from tests.webapp.conftest import NO_QUERY, PLAN, settled
from webapp.queries import queries
from webapp.words.refusals import Refused

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def rule(*numbers, **more):
    when = {"query": numbers[0]} if len(numbers) == 1 else {"all": [{"query": number} for number in numbers]}
    return {"stream": "ships", "kind": "rule", "when": when, **more}


@pytest.fixture
def watched(engine, streams, user):
    """A query that a rule can watch."""
    return queries.register(user, "near", PLAN)


def test_a_rule_tells_the_objects_of_the_query_that_it_watches(engine, watched, user):
    alarm = queries.register(user, "alarm", rule(watched.pk))
    assert {query.status for query in settled(watched, alarm)} == {"running"}


def test_a_rule_names_only_queries_that_its_user_sees(watched, django_user_model):
    other = django_user_model.objects.create_user("other")
    refused = f"a rule must name queries that you may see; got {watched.pk}"
    with pytest.raises(Refused, match=refused):
        queries.register(other, "alarm", rule(watched.pk))
    queries.edit(watched.owner, watched.pk, shared=True)
    assert queries.register(other, "alarm", rule(watched.pk)).pk
    with pytest.raises(Refused, match=f"got {NO_QUERY}"):
        queries.register(other, "alarm", rule(watched.pk, NO_QUERY))


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        ({**PLAN, "aggregate": {"function": "count"}}, "a range query"),
        ({**PLAN, "emit": "all"}, "one that emits all"),
        ({"stream": "ships", "kind": "window_join", "window_s": 60, "join": {"stream": "ships"}}, "one that emits all"),
    ],
)
def test_a_rule_watches_only_answers_that_objects_enter_and_leave(engine, streams, user, plan, what):
    query = queries.register(user, "one", plan)
    with pytest.raises(Refused, match=f"whose answers objects enter and leave; got {query.pk}, {what}"):
        queries.register(user, "alarm", rule(query.pk))


def test_a_rule_about_a_value_names_an_aggregate_and_its_group(engine, watched, streams, user):
    def value(query, **more):
        return {"stream": "ships", "kind": "rule", "when": {"value": {"query": query.pk, "below": 1} | more}}

    aggregate = {"function": "avg", "property": "speed_mps"}
    mean = queries.register(user, "mean", {**PLAN, "aggregate": aggregate})
    by_type = queries.register(user, "by type", {**PLAN, "aggregate": aggregate | {"group_by": "ship_type"}})
    alarms = [
        queries.register(user, "slow", value(mean)),
        queries.register(user, "slow", value(by_type, group="tanker")),
    ]
    assert {query.status for query in settled(*alarms)} == {"running"}
    for plan, words in [
        (value(watched), f"value must name a query with aggregate; got {watched.pk}, without one"),
        (value(by_type), f"value must have a group for a query with group_by; got none for {by_type.pk}"),
        (value(mean, group="x"), f"value must have no group for a query without group_by; got x for {mean.pk}"),
    ]:
        with pytest.raises(Refused, match=words):
            queries.register(user, "wrong", plan)


def test_a_rule_watches_no_rule(watched, user):
    alarm = queries.register(user, "alarm", rule(watched.pk))
    with pytest.raises(Refused, match=f"got {alarm.pk}, a rule query"):
        queries.register(user, "alarm of alarms", rule(alarm.pk))


def test_an_edit_is_checked_too(watched, user):
    alarm = queries.register(user, "alarm", rule(watched.pk))
    with pytest.raises(Refused, match=f"got {NO_QUERY}"):
        queries.edit(user, alarm.pk, plan=rule(NO_QUERY))


def test_a_rule_warns_when_a_query_that_it_watches_ends(engine, watched, user):
    alarm, other = (queries.register(user, name, rule(watched.pk)) for name in ("alarm", "other"))
    queries.edit(user, other.pk, plan=rule(queries.register(user, "second", PLAN).pk))
    queries.cancel(user, watched.pk)
    alarm, other = settled(alarm, other)
    assert alarm.warning == f"watches query {watched.pk}, near, which has ended"
    assert other.warning == ""
