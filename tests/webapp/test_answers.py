"""What a websocket client is told of answers."""

import asyncio
import time

import pytest
from asgiref.sync import sync_to_async

from bench.live import PATIENCE_S
from tests.entries import control_entries
from tests.webapp.conftest import BOX, INSIDE, OUTSIDE, PLAN, settled
from webapp.bus.control import tell_engine
from webapp.bus.redis import waiting_client
from webapp.models import Query
from webapp.queries.queries import checked_plan

pytestmark = pytest.mark.django_db(transaction=True)


async def registered(socket, plan=PLAN, **fields):
    """Register a query and return its number once it runs."""
    await socket.tell("query.register", id="r", name="harbour", plan=plan, **fields)
    number = (await socket.hear("query.status", id="r"))["query"]
    await socket.hear_or_heard("query.status", query=number, status="running")
    return number


async def next_answer(socket):
    """Return the next message that carries an answer, or the word that one goes on."""
    while (message := await socket.hear_any())["type"] not in ("answer.snapshot", "answer.change", "answer.resumed"):
        pass
    return message


async def test_a_subscriber_gets_the_answer_and_then_its_changes(engine, streams, user, connect):
    engine.move({"near": INSIDE, "far": OUTSIDE})
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        snapshot = await socket.hear("answer.snapshot", query=number)
        assert [row["key"] for row in snapshot["rows"]] == ["near"]
        assert snapshot["resync"] is False
        engine.move({"far": INSIDE, "near": OUTSIDE})
        signs = {}
        while len(signs) < 2:
            change = await socket.hear("answer.change", query=number)
            assert change["batch"] > snapshot["batch"]
            signs |= {row["key"]: (row["sign"], row["reason"]) for row in change["rows"]}
        assert signs == {"far": ("+", "moved"), "near": ("-", "moved")}


async def test_an_arrow_client_gets_the_same_rows_as_a_json_client(engine, streams, user, connect):
    engine.move({"near": INSIDE}, properties={"speed_mps": 3.5})
    async with connect(user) as text, connect(user) as binary:
        number = await registered(text)
        await text.tell("query.subscribe", query=number)
        await binary.tell("query.subscribe", query=number, format="arrow")
        (row,) = (await text.hear("answer.snapshot", query=number))["rows"]
        table = (await binary.hear("answer.snapshot", query=number))["table"]
        assert table["key"].to_pylist() == [row["key"]]
        assert table["bounds"].to_pylist()[0][:2] == [row["lon"], row["lat"]]
        assert row["properties"] == {"speed_mps": 3.5}


async def test_a_new_rectangle_makes_those_left_outside_leave(engine, streams, user, connect):
    engine.move({"near": INSIDE})
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
        elsewhere = {"stream": "ships", "compare": {"lo": [0, 0], "hi": [1, 1]}}
        await socket.tell("query.edit", query=number, plan=elsewhere)
        change = await socket.hear("answer.change", query=number)
        assert [(row["sign"], row["reason"]) for row in change["rows"]] == [("-", "edited")]
        await socket.hear_or_heard("query.status", query=number, status="running", revision=2)


async def test_a_paused_query_empties_and_a_resumed_one_fills_again(engine, streams, user, connect):
    engine.move({"near": INSIDE})
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
        await socket.tell("query.edit", query=number, paused=True)
        assert [r["sign"] for r in (await socket.hear("answer.change", query=number))["rows"]] == ["-"]
        await socket.tell("query.edit", query=number, paused=False)
        assert [r["sign"] for r in (await socket.hear("answer.change", query=number))["rows"]] == ["+"]


async def test_a_cancelled_query_empties_and_cannot_be_edited(engine, streams, user, connect):
    engine.move({"near": INSIDE})
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
        await socket.tell("query.cancel", id=5, query=number)
        change = await socket.hear("answer.change", query=number)
        assert [(row["sign"], row["reason"]) for row in change["rows"]] == [("-", "cancelled")]
        await socket.tell("query.edit", id=6, query=number, name="again")
        assert (await socket.hear("error", id=6))["code"] == "query"


async def test_an_unsubscribed_client_hears_no_more(engine, streams, user, connect):
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
        await socket.tell("query.unsubscribe", query=number)
        await socket.tell("query.snapshot", id=1, query=number)
        await socket.hear("error", id=1, code="query")
        engine.move({"near": INSIDE})
        await socket.silence("answer.change")


async def test_a_snapshot_can_be_had_again_without_a_break_in_the_changes(engine, streams, user, connect):
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
        engine.move({"near": INSIDE})
        await socket.hear("answer.change", query=number)
        await socket.tell("query.snapshot", query=number)
        assert len((await socket.hear("answer.snapshot", query=number))["rows"]) == 1


async def test_a_view_shows_what_is_in_it_and_follows_the_map(engine, streams, user, connect):
    engine.move({"near": INSIDE, "far": OUTSIDE})
    async with connect(user) as socket:
        await socket.tell("view.subscribe", id="v", streams=["ships", "buses"], area=BOX)
        views = (await socket.hear("view.status", id="v"))["views"]
        assert set(views) == {"ships", "buses"}
        assert views["ships"] >= 2**40
        snapshot = await socket.hear("answer.snapshot", query=views["ships"])
        assert [row["key"] for row in snapshot["rows"]] == ["near"]
        await socket.tell("view.subscribe", id="w", streams=["ships"], area={"lo": [25, 50], "hi": [35, 60]})
        assert (await socket.hear("view.status", id="w"))["views"] == {"ships": views["ships"]}
        change = await socket.hear("answer.change", query=views["ships"])
        assert {row["key"]: row["sign"] for row in change["rows"]} == {"near": "-", "far": "+"}


async def test_a_view_of_the_whole_space_has_all_objects_and_shrinks_to_the_map_again(engine, streams, user, connect):
    engine.move({"near": INSIDE, "far": OUTSIDE})
    async with connect(user) as socket:
        await socket.tell("view.subscribe", id="v", streams=["ships"], area=BOX, whole=["ships"])
        view = (await socket.hear("view.status", id="v"))["views"]["ships"]
        assert {row["key"] for row in (await socket.hear("answer.snapshot", query=view))["rows"]} == {"near", "far"}
        await socket.tell("view.subscribe", id="w", streams=["ships"], area=BOX)
        change = await socket.hear("answer.change", query=view)
        assert {row["key"]: row["sign"] for row in change["rows"]} == {"far": "-"}


async def test_watched_objects_are_heard_of_wherever_they_are(engine, streams, user, connect):
    engine.move({"near": INSIDE, "far": OUTSIDE, "other": OUTSIDE})
    async with connect(user) as socket:
        asked = {"streams": [], "area": BOX}
        await socket.tell("view.subscribe", id="v", **asked, watched={"ships": ["far", "near", "absent"]})
        view = (await socket.hear("view.status", id="v"))["watched"]["ships"]
        assert {row["key"] for row in (await socket.hear("answer.snapshot", query=view))["rows"]} == {"near", "far"}
        await socket.tell("view.subscribe", id="w", **asked, watched={"ships": ["other", "near"]})
        change = await socket.hear("answer.change", query=view)
        assert {row["key"]: row["sign"] for row in change["rows"]} == {"far": "-", "other": "+"}
        await socket.tell("view.subscribe", id="x", **asked, watched={"ships": []})
        assert "keys must be a list of 1 to 1,000 keys" in (await socket.hear("error", id="x"))["message"]


async def test_views_end_with_their_connection(engine, streams, user, connect):
    async with connect(user) as socket:
        await socket.tell("view.subscribe", streams=["ships"], area=BOX)
        view = (await socket.hear("view.status"))["views"]["ships"]
        await socket.hear("answer.snapshot", query=view)
    ended = [entry["query"] for entry in control_entries(engine.log.client) if entry["op"] == "cancel"]
    assert ended.count(view) == 1
    assert not list(engine.log.client.scan_iter("lookout:web:*"))


@pytest.mark.long
async def test_reports_of_engine_and_streams_come_by_themselves(engine, streams, user, connect, redis_client):
    redis_client.hset("lookout:health", "ships", '{"state": "running", "elements": 7, "bytes": 9, "malformed": {}}')
    redis_client.hset(engine.log.names.engine, mapping={"at_us": time.time_ns() // 1000, "batch": 3, "backlog": 0})
    async with connect(user) as socket:
        status = await socket.hear("engine.status")
        assert (status["alive"], status["batch"]) == (True, 3)
        engine.move({"near": INSIDE})
        while not (status := await socket.hear("engine.status"))["elements_per_s"]:
            pass
        assert status["lag_ms"] is not None
        assert abs(status["newest_us"] / 1000 + status["lag_ms"] - time.time_ns() / 1e6) < PATIENCE_S * 1000
        assert (await socket.hear("stream.status"))["streams"]["ships"]["elements"] == 7


async def test_a_client_that_does_not_read_is_resynchronised_and_others_do_not_notice(
    project, engine, streams, user, connect, gate
):
    project.MAX_QUEUED_BYTES = 1000
    async with connect(user) as fast, connect(user, query="slow") as slow:
        for socket in (fast, slow):
            await socket.tell("view.subscribe", streams=["ships"], area=PLAN["compare"])
            await socket.hear("answer.snapshot")
        gate.clear()
        for number in range(20):
            engine.move({f"ship {number}": INSIDE})
            await fast.hear("answer.change")
        gate.set()
        snapshot = await slow.hear("answer.snapshot", resync=True)
        assert {row["key"] for row in snapshot["rows"]} == {f"ship {number}" for number in range(20)}
        engine.move({"one more": INSIDE})
        assert [row["key"] for row in (await slow.hear("answer.change"))["rows"]] == ["one more"]


async def test_a_silence_in_which_the_log_was_emptied_costs_a_client_nothing(
    engine, streams, user, connect, redis_client
):
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
        engine.move({"one": INSIDE})
        await socket.hear("answer.change", query=number)
        engine.log.event_log.trim({engine.log.names.results: engine.log.event_log.newest(engine.log.names.results)})
        for key in ("two", "three"):
            engine.move({key: INSIDE})
            answer = await next_answer(socket)
            assert (answer["type"], [row["key"] for row in answer["rows"]]) == ("answer.change", [key])


async def test_a_web_process_that_fell_behind_resynchronises_its_clients(engine, streams, user, connect, monkeypatch):
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
        with monkeypatch.context() as trimmed:  # what is gone before it is read might as well not have been written
            lost = []
            trimmed.setattr(engine.log, "publish", lost.extend)
            engine.move({"missed": INSIDE})
            while not any(fragment.changes.num_rows for fragment in lost):
                await asyncio.sleep(0.01)
        engine.move({"seen": INSIDE})
        snapshot = await socket.hear("answer.snapshot", query=number, resync=True)
        assert {row["key"] for row in snapshot["rows"]} == {"missed", "seen"}


def thousand(owner):
    """Save a thousand queries of a user, and have the engine run them."""
    plan = checked_plan(PLAN)
    made = [Query(owner=owner, name=str(i), plan=plan, stream="ships", status=Query.RUNNING) for i in range(1000)]
    made = Query.objects.bulk_create(made)
    tell_engine(waiting_client(), "earth", made)
    settled(*made)
    return {query.pk for query in made}


async def test_a_thousand_queries_are_told_of_and_subscribed_in_one_message(engine, streams, user, other, connect):
    numbers = await sync_to_async(thousand)(user)
    theirs = await Query.objects.acreate(owner=other, name="theirs", plan=PLAN, stream="ships")
    async with connect(user) as socket:
        told = {(await socket.hear("query.status"))["query"] for _ in numbers}
        assert told == numbers
        await socket.tell("query.subscribe", queries=[*sorted(told)[:-1], theirs.pk])
        answers = {(await socket.hear("answer.snapshot", timeout=PATIENCE_S))["query"] for _ in range(999)}
        assert answers == numbers - {max(numbers)}  # theirs is left out
