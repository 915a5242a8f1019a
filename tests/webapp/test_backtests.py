"""Back-tests over the websocket: a plan that is not saved, tried on what the engine has stored."""

import time

import pytest
from channels.db import database_sync_to_async

from tests.webapp.conftest import BOX, INSIDE, NO_QUERY, OUTSIDE
from tests.webapp.test_history import drive, folders, storing  # noqa: F401
from webapp.models import Query
from webapp.queries import queries
from webapp.questions import backtests

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = {"stream": "buses", "compare": BOX}


def last(seconds):
    return {"from": time.time() - seconds}


async def result_of(socket, reference):
    """Return the result of a back-test; whatever comes before is about the same one."""
    return await socket.hear("backtest.result", id=reference)


async def test_a_plan_is_tried_on_what_is_stored(engine, storing, user, connect, project):  # noqa: F811
    drive(engine, [OUTSIDE, INSIDE, OUTSIDE, INSIDE])
    async with connect(user) as socket:
        await socket.hear("hello")
        await socket.tell("backtest.start", id=1, plan=PLAN, span=last(3600))
        told = await result_of(socket, 1)
        assert (told["summary"]["entered"], told["summary"]["left"], told["stopped"]) == (2, 1, "")
        first, second = told["summary"]["spans"]
        assert first["key"] == second["key"] == "bus 7" and tuple(first["bounds"][:2]) == INSIDE
        assert first["start_us"] <= first["end_us"] <= second["start_us"] and second["end_us"] is None
        assert (told["elements"], told["share"]) == (4, 1.0)
        assert await database_sync_to_async(Query.objects.count)() == 0  # nothing is saved


async def test_a_rule_is_tried_with_the_query_that_it_watches(engine, storing, user, connect, project):  # noqa: F811
    drive(engine, [INSIDE, OUTSIDE])
    async with connect(user) as socket:
        await socket.hear("hello")
        await socket.tell("query.register", id=1, name="near", plan=PLAN)
        number = (await socket.hear("query.status", id=1))["query"]
        rule = {"stream": "buses", "kind": "rule", "when": {"query": number}}
        await socket.tell("backtest.start", id=2, plan=rule, span=last(3600))
        (alarm,) = (await result_of(socket, 2))["summary"]["spans"]
        assert alarm["key"] == "bus 7" and alarm["start_us"] < alarm["end_us"]


@pytest.mark.parametrize(
    ("plan", "span", "code", "message"),
    [
        ({"stream": "ships", "compare": BOX}, last(60), "history", "the elements of ships are not stored"),
        (PLAN, {"to": 5}, "fields", "span must have a beginning"),
        (PLAN, {"from": "1999-01-01"}, "fields", "last 31 days at most"),
        (PLAN | {"emit": "all"}, last(60), "plan", "objects enter and leave; got a query that emits all"),
        (PLAN | {"compare": None, "kind": "rule", "when": {"query": NO_QUERY}}, last(60), "plan", ""),
    ],
)
async def test_what_cannot_be_tried_is_refused(engine, storing, user, connect, plan, span, code, message):  # noqa: F811
    async with connect(user) as socket:
        await socket.hear("hello")
        await socket.tell("backtest.start", id=1, plan=plan, span=span)
        told = await socket.hear("error", id=1)
        assert told["code"] == code and message in told["message"]


async def test_a_back_test_is_cancelled_and_a_limit_is_told(engine, storing, user, connect, project):  # noqa: F811
    drive(engine, [INSIDE, OUTSIDE, INSIDE])
    async with connect(user) as socket:
        await socket.hear("hello")
        await socket.tell("backtest.start", id=1, plan=PLAN, span=last(3600))
        await socket.tell("backtest.start", id=2, plan=PLAN, span=last(3600))
        assert (await socket.hear("error", id=2))["code"] == "limit"
        await socket.tell("backtest.cancel", id=3)
        await socket.hear("backtest.cancelled", id=3)
        assert not backtests._CHILDREN
        project.BACKTEST_ELEMENTS = 2
        await socket.tell("backtest.start", id=4, plan=PLAN, span=last(3600))
        told = await result_of(socket, 4)
        assert told["stopped"] == "after 2 elements, the most that a back-test plays"
        assert told["summary"]["entered"] == 1 and told["share"] < 1


async def test_a_result_is_not_told_to_somebody_who_may_not_see_what_it_is_about_any_more(
    engine,
    storing,  # noqa: F811
    user,
    other,
    connect,
    project,
    monkeypatch,
):
    drive(engine, [INSIDE, OUTSIDE])
    watched = await database_sync_to_async(queries.register)(other, "near", PLAN, shared=True)
    tried = backtests.lines

    async def lines(user, asked):
        await database_sync_to_async(queries.edit)(other, watched.pk, shared=False)
        async for line in tried(user, asked):
            yield line

    monkeypatch.setattr(backtests, "lines", lines)
    async with connect(user) as socket:
        await socket.hear("hello")
        rule = {"stream": "buses", "kind": "rule", "when": {"query": watched.pk}}
        await socket.tell("backtest.start", id=1, plan=rule, span=last(3600))
        assert "queries that you may see" in (await socket.hear("error", id=1))["message"]
        assert not [message for message in socket.skipped if message["type"] == "backtest.result"]
