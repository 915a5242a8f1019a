"""What the page asks of sketches over the websocket, and what it is answered."""

import json

import pytest

from webapp.models import Stream

pytestmark = pytest.mark.django_db(transaction=True)

SKETCH = {"features": ["speed_mps", "draught_m"], "comoments": ["speed_mps", "draught_m"], "cell_bits": 16}
FINLAND = {"lo": [20, 55], "hi": [30, 65]}
# As the page asks for an area: figures, a chart, a histogram, and a matrix.
ASK = [
    {"question": "select", "features": ["speed_mps"]},
    {"question": "series", "features": ["speed_mps"], "every": "hour"},
    {"question": "histogram", "features": ["speed_mps"], "bins": 24},
    {"question": "deciles", "features": ["speed_mps"]},
    {"question": "correlation", "features": ["speed_mps", "draught_m"]},
]


@pytest.fixture
def sketched(transactional_db):
    """A stream that is sketched."""
    stream = Stream(name="tankers", title="Tankers", icon="ship", transport="stdin", decoder="ais", sketch=SKETCH)
    stream.full_clean()
    stream.save()
    return stream


async def answers_of(socket, number, many):
    """Return the documents of all answers, in the order of their questions."""
    found = {}
    while len(found) < many:
        message = await socket.hear_any()
        if message["type"] in ("answer.snapshot", "answer.change") and message["query"] == number:
            found |= {int(row["key"].split()[0]): row["properties"] for row in message["rows"]}
    documents = [found[place] for place in sorted(found)]
    return [json.loads(document) if isinstance(document, str) else document for document in documents]


async def asked(socket, **question):
    await socket.tell("sketch.ask", id="q", **question)
    return await socket.hear("sketch.asked", id="q")


async def test_what_an_area_is_asked_is_one_plan_with_an_answer_for_each_question(engine, sketched, user, connect):
    for speed in range(1, 41):
        place = {f"s{speed}": (24.5 + speed / 100, 59.7)}
        engine.move(place, "tankers", properties={"speed_mps": speed, "draught_m": 12 - speed / 5})
    async with connect(user) as socket:
        hello = await socket.hear_or_heard("hello")
        assert next(stream["sketch"] for stream in hello["streams"] if stream["name"] == "tankers") == SKETCH
        plan = {"stream": "tankers", "kind": "sketch", "ask": ASK, "area": FINLAND, "once": True}
        reply = await asked(socket, plan=plan)
        assert reply["plan"]["ask"] == ASK and reply["text"].startswith("SELECT select(speed_mps), series(")
        select, series, histogram, _, correlation = await answers_of(socket, reply["query"], len(ASK))
        figures = {entry["statistic"]: entry["value"] for entry in select["answers"]}
        assert (figures["count"], figures["mean"], figures["max"]) == (40, pytest.approx(20.5), 40)
        assert sum(series["series"]["speed_mps"]["n"]) == 40
        assert len(histogram["answers"]) == 24
        assert correlation["answers"][0]["value"] == pytest.approx(-1)
        again = await asked(socket, text=reply["text"])
        assert again["plan"] == reply["plan"]


async def test_the_text_of_an_answer_asks_the_same_and_what_is_wrong_in_it_is_said(engine, sketched, user, connect):
    async with connect(user) as socket:
        reply = await asked(socket, plan={"stream": "tankers", "kind": "sketch", "ask": [{"question": "count"}]})
        assert reply["text"] == "SELECT count() FROM tankers"
        await socket.tell("sketch.end", query=reply["query"])
        for text, words in (
            ("SELECT count() FRM tankers", "line 1, column 16"),
            ("SELECT mean(beauty) FROM tankers", "'beauty'"),
        ):
            await socket.tell("sketch.ask", id="w", text=text)
            assert words in (await socket.hear("error", id="w"))["message"]


async def test_a_stream_without_a_sketch_is_not_asked(engine, streams, user, connect):
    async with connect(user) as socket:
        await socket.tell("sketch.ask", id="n", text="SELECT count() FROM ships")
        assert (await socket.hear("error", id="n"))["code"] == "sketch"
