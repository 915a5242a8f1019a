"""A query that the engine leaves out says so, and when it is tried again, wherever it is shown."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.urls import reverse
from django.utils import translation

from streaming.operators.asked import TOO_MANY
from streaming.spaces import EARTH
from tests.webapp.conftest import INSIDE, PLAN
from tests.webapp.test_hub import fragment
from tests.webapp.test_rules import rule
from tests.webapp.test_why import asked, deciding, registered
from webapp.bus.redis import log as log_of
from webapp.models import Query
from webapp.queries import queries, query_warnings
from webapp.queries.query_warnings import left_out_words
from webapp.recording import recording

pytestmark = pytest.mark.django_db(transaction=True)
NO_ROOM = TOO_MANY % {"asked": "3,000,000", "most": "1,080,000", "share": "540,000"}


def made(user, plan=PLAN, **fields):
    named = {"owner": user, "name": "Roads", "stream": "ships", "status": Query.RUNNING} | fields
    return Query.objects.create(plan=plan, **named)


@pytest.fixture
def told(redis_client, monkeypatch):
    """Return a function that tells of a query in a batch that it is left out, and records it."""
    log, batches = log_of(EARTH.name), iter(range(1_000))
    monkeypatch.setattr(queries, "_send", lambda *_: None)

    def publish(query, cause="room", error=NO_ROOM, for_s=60, **more):
        until_us = int((time.time() + for_s) * 1_000_000)
        failure = {"error": error, "queries": [[query.pk, query.revision]], "left_out": cause, "until_us": until_us}
        number = next(batches)
        log.publish([replace(fragment(number, 0), failures=(failure | more,)), fragment(number, 1)])
        recording.record_events(redis_client, EARTH)
        query.refresh_from_db()
        return datetime.fromtimestamp(until_us / 1e6, UTC)

    return publish


@pytest.mark.parametrize("more", [{}, {"lost": True}])
@pytest.mark.parametrize(
    ("cause", "error", "words"),
    [
        ("room", NO_ROOM, f"left out, because {NO_ROOM}; it"),
        ("failure", "ValueError: no", "it failed: ValueError: no; it"),
    ],
)
def test_a_query_that_is_left_out_is_told_as_left_out_with_the_time_at_which_it_is_tried_again(
    told, user, monkeypatch, cause, error, words, more
):
    announced = []
    monkeypatch.setattr(
        query_warnings, "announce", lambda some: announced.extend(q.document()["left_out"] for q in some)
    )
    query = made(user)
    until = told(query, cause, error, **more)
    assert announced == [{"cause": cause, "error": error, "until": until.isoformat()}]
    assert query.warning == "" and query.document()["warning"] is None
    assert words in left_out_words(query) and f"tried again at {until:%H:%M:%S} UTC" in left_out_words(query)
    with translation.override("de"):
        assert "ausgelassen" in left_out_words(query)


def test_each_further_failure_moves_the_time_and_after_one_without_the_query_is_evaluated(told, user):
    query = made(user)
    assert told(query, for_s=60) < told(query, for_s=120) == query.left_out_until
    told(query, for_s=-9)
    assert query.lacks_answer  # a failure of that try may be on its way
    told(query, for_s=-11)
    assert (query.document()["left_out"], left_out_words(query)) == (None, "")


def test_an_edit_forgets_that_the_query_was_left_out_and_late_news_of_the_former_plan_is_ignored(told, user):
    query = made(user)
    told(query)
    edited = queries.edit(user, query.pk, paused=True)
    assert (edited.left_out, edited.left_out_cause, edited.left_out_until) == ("", "", None)
    told(query)
    query.refresh_from_db()
    former = Query(pk=query.pk, revision=query.revision)
    queries.edit(user, query.pk, paused=False)
    former.refresh_from_db = query.refresh_from_db
    told(former)
    assert query.document()["left_out"] is None


def test_a_paused_query_is_not_told_as_left_out(told, user):
    query = made(user, status=Query.PAUSED, paused=True)
    told(query)
    assert query.document()["left_out"] is None


def test_a_rule_says_that_a_query_which_it_watches_is_left_out(told, user):
    query, seen = made(user), made(user)
    rules = [made(user, rule(query.pk, seen.pk)), made(user, rule(seen.pk)), made(user, rule(seen.pk) | {"when": {}})]
    until = told(query)
    watching, other, _ = (Query.objects.get(pk=one.pk) for one in rules)
    why = f"it watches query {query.pk}, Roads, which is left out"
    assert watching.document()["left_out"] == {"cause": "watched", "error": why, "until": until.isoformat()}
    assert left_out_words(watching).startswith(f"{why}; that query is tried again at ")
    assert other.document()["left_out"] is None


def test_the_admin_and_the_page_for_operators_say_that_a_query_is_left_out(told, user, client, admin_user):
    query = made(user)
    told(query)
    client.force_login(admin_user)
    words = left_out_words(query)
    for address in (reverse("admin:webapp_query_changelist"), reverse("admin:webapp_query_change", args=[query.pk])):
        assert words in client.get(address).content.decode()
    troubles = client.get("/operations/figures").json()["troubles"]
    assert {"level": "warn", "where": f"query {query.pk}, Roads", "words": words} in troubles


async def test_why_says_of_a_query_that_is_left_out_that_it_is_not_evaluated(streams, user, engine, connect):
    query = await registered(user)
    engine.move({"a": INSIDE})
    until = datetime.fromtimestamp(time.time() + 60, UTC)
    query.leave_out("room", NO_ROOM, until)
    await query.asave()
    async with connect(user) as socket:
        told = await asked(socket, "why.object", query=query.pk, stream="ships", key="a")
    assert told["why"]["holds"] is None
    ((asks, found),) = deciding(told["why"])
    assert asks == "the query is evaluated" and found.startswith(f"left out, because {NO_ROOM}")
