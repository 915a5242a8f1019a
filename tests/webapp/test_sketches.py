"""Questions to sketches over the websocket: as plans, as text, saved as queries, and refused with a reason."""

import asyncio
import json

import pytest

from bench.live import wait_for
from tests.entries import control_entries
from tests.webapp.conftest import INSIDE, OUTSIDE
from webapp.models import Stream

pytestmark = pytest.mark.django_db(transaction=True)

SKETCH = {"features": ["speed_mps"], "sets": {"features": ["key"]}}
MEAN = {"stream": "ships", "kind": "sketch", "ask": [{"question": "mean", "features": ["speed_mps"]}]}


@pytest.fixture
def sketched(streams, engine):
    """Sketch the ships, and let two of them report."""
    stream = Stream.objects.get(name="ships")
    stream.sketch = SKETCH
    stream.save()
    client = engine.log.client
    wait_for(lambda: any(entry.get("sketch") for entry in control_entries(client)), "the engine is told of the sketch")
    engine.move({"a": INSIDE, "b": OUTSIDE}, properties={"speed_mps": 4.0})
    wait_for(engine.caught_up, "a batch has the ships")
    return stream


def cancelled(engine):
    return [entry["query"] for entry in control_entries(engine.log.client) if entry["op"] == "cancel"]


def answers(message):
    return [
        json.loads(row["properties"]) if isinstance(row["properties"], str) else row["properties"]
        for row in message["rows"]
    ]


async def test_a_question_is_answered_and_answered_again_when_the_answer_changes(engine, sketched, user, connect):
    async with connect(user) as socket:
        told = {one["name"]: one["sketch"] for one in (await socket.hear("hello"))["streams"]}
        assert told == {"buses": None, "ships": SKETCH}
        await socket.tell("sketch.ask", id=1, plan=MEAN)
        asked = await socket.hear("sketch.asked", id=1)
        assert asked["plan"]["ask"] == MEAN["ask"] and asked["plan"]["confidence"] == 0.95
        (answer,) = answers(await socket.hear("answer.snapshot", query=asked["query"]))
        assert answer["answers"] == [
            {"of": "speed_mps", "value": 4.0, "low": pytest.approx(4), "high": pytest.approx(4)}
        ]
        assert answer["basis"]["elements"] == 2
        engine.move({"a": INSIDE}, properties={"speed_mps": 10.0})
        engine.log.send("tick", now_us=10**15)
        (answer,) = answers(await socket.hear("answer.change", query=asked["query"]))
        assert answer["answers"][0]["value"] == pytest.approx(6.0)
        await socket.tell("sketch.end", query=asked["query"])
        await asyncio.to_thread(wait_for, lambda: cancelled(engine) == [asked["query"]], "the question is ended")


async def test_a_question_may_be_text(engine, sketched, user, connect):
    async with connect(user) as socket:
        await socket.tell("sketch.ask", id=1, text="SELECT distinct(key), count() FROM ships ONCE")
        asked = await socket.hear("sketch.asked", id=1)
        found = answers(await socket.hear("answer.snapshot", query=asked["query"]))
        assert [answer["answers"][0]["value"] for answer in found] == [2.0, 2.0]


async def test_questions_end_with_their_connection(engine, sketched, user, connect):
    async with connect(user) as socket:
        await socket.tell("sketch.ask", id=1, plan=MEAN)
        number = (await socket.hear("sketch.asked", id=1))["query"]
        await socket.hear("answer.snapshot", query=number)
    await asyncio.to_thread(wait_for, lambda: cancelled(engine) == [number], "its question ends")


async def test_a_question_is_saved_as_a_query(engine, sketched, user, connect):
    async with connect(user) as socket:
        await socket.tell("query.register", id=1, name="Speed", plan=MEAN)
        number = (await socket.hear("query.status", id=1))["query"]
        await socket.hear("query.status", query=number, status="running")
        await socket.tell("query.subscribe", query=number)
        (answer,) = answers(await socket.hear("answer.snapshot", query=number))
        assert answer["answers"][0]["value"] == 4.0


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ({"plan": MEAN | {"stream": "buses"}}, "sketch", "the stream buses must be sketched"),
        (
            {"plan": MEAN | {"ask": [{"question": "mean", "features": ["rain"]}]}},
            "plan",
            "one of speed_mps; got 'rain'",
        ),
        (
            {"plan": {"stream": "ships", "compare": {"lo": [0, 0], "hi": [1, 1]}}},
            "plan",
            "kind must be sketch; got None",
        ),
        (
            {"text": "SELECT mean(speed_mps) FRM ships"},
            "plan",
            "line 1, column 24: FROM or a comma is expected; got FRM",
        ),
        ({"plan": MEAN, "text": "SELECT"}, "fields", "either plan, an object, or text"),
        ({}, "fields", "either plan, an object, or text"),
    ],
)
async def test_a_question_that_breaks_a_rule_is_told_which(sketched, user, connect, asked, code, words):
    async with connect(user) as socket:
        await socket.tell("sketch.ask", id=1, **asked)
        error = await socket.hear("error", id=1)
        assert error["code"] == code and words in error["message"]
