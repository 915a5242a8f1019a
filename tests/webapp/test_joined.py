"""Joined frames: the changes of a batch in all answers of a connection come in one message, and say the same."""

import asyncio
import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.live import PATIENCE_S
from streaming.results import (
    ANSWER_NUMBERS,
    ENTERED,
    HANDOFF,
    LEFT,
    MOVED,
    STAYED,
    json_rows,
    read_frame,
    result_schema,
)
from streaming.spaces import EARTH
from tests.draws import examples
from tests.webapp.conftest import INSIDE, OUTSIDE, PLAN
from tests.webapp.test_hub import Wire, fragment, poisoned, whole_batch
from tests.webapp.test_shipping import published
from webapp.consumers.outbox import Outbox
from webapp.hub import AnswerSubscription, Hub, ResumePoint
from webapp.hub.encoding import left_out

QUERIES = range(1, 7)


def filled(rows):
    """Return rows of a joined frame with the columns that it leaves out."""
    columns = [
        rows[field.name]
        if field.name in rows.schema.names
        else pa.array([0 if "hash" in field.name else None] * len(rows), field.type)
        for field in result_schema(EARTH)
    ]
    return pa.Table.from_arrays(columns, schema=result_schema(EARTH))


def changes_of(frame):
    """Return the changes in a frame, joined or not, as (query, head, rows)."""
    if isinstance(frame, str):
        message = json.loads(frame)
        parts = message.pop("changes", None) or [{"query": message.pop("query"), "rows": message.pop("rows")}]
        del message["type"]
        return [(part["query"], message, part["rows"]) for part in parts]
    head, rows = read_frame(frame)
    joined = head.pop("type") == "answer.changes"
    head.pop("query", None)
    found = []
    for query in dict.fromkeys(rows["query"].to_pylist()):
        mine = rows.filter(pa.compute.equal(rows["query"], query))
        found.append((query, head, json_rows(filled(mine) if joined else mine)[0]))
    return found


class Receiver:
    """A connection that notes what it is told."""

    owner = "ann"

    def __init__(self):
        self.frames = []

    def deliver(self, subscription, frame):
        assert not subscription.joined or "snapshot" in str(frame)
        self.frames.append(frame)

    def deliver_joined(self, subscriptions, frame):
        assert all(subscription.joined for subscription in subscriptions)
        self.frames.append(frame)

    @property
    def told(self):
        """What each query was told, in order."""
        told = {}
        for query, head, rows in (change for frame in self.frames for change in changes_of(frame)):
            told.setdefault(query, []).append((head, rows))
        return told


numbers = st.sampled_from([*QUERIES, ANSWER_NUMBERS])
rows = st.lists(
    st.tuples(
        numbers, st.sampled_from("abc"), st.sampled_from([LEFT, STAYED, ENTERED]), st.sampled_from([MOVED, HANDOFF])
    )
)
clients = st.lists(
    st.lists(
        st.tuples(st.sampled_from(QUERIES), st.booleans(), st.integers(-1, 3)),
        unique_by=lambda each: each[0],
        max_size=6,
    ),
    min_size=1,
    max_size=4,
)


@examples(120)
@given(
    st.lists(st.tuples(rows, rows, st.booleans()), min_size=1, max_size=4), clients, st.sampled_from(["json", "arrow"])
)
def test_joined_answers_are_told_what_answers_alone_are_told_in_one_frame_a_batch(history, clients, form):
    hubs, receivers = [Hub(EARTH), Hub(EARTH)], [[Receiver() for _ in clients] for _ in range(2)]
    for joined, (hub, mine) in enumerate(zip(hubs, receivers, strict=True)):
        for receiver, wanted in zip(mine, clients, strict=True):
            for query, live, held in wanted:
                hub.subscriptions.add(
                    AnswerSubscription(receiver, query, form, live=live, held=held, joined=bool(joined))
                )
    for number, (one, other, lost) in enumerate(history):
        parts = [fragment(number, region, told) for region, told in enumerate((one, other))]
        failures = ({"error": "ValueError: no", "queries": [[1, 7]], "lost": True},) if lost else ()
        parts = [replace(part, shared={ANSWER_NUMBERS: (2, 5)}, failures=failures) for part in parts]
        for hub, mine in zip(hubs, receivers, strict=True):
            before = [len(receiver.frames) for receiver in mine]
            # Number the batches as if the epoch went on: each is whole by itself.
            asyncio.run(hub.distribute(replace(whole_batch(*[replace(p, batch=0) for p in parts]), number=number)))
            if hub is hubs[1]:
                assert all(len(r.frames) <= was + 1 for r, was in zip(mine, before, strict=True))
    alone, joined = receivers
    assert [receiver.told for receiver in joined] == [receiver.told for receiver in alone]
    states = [[(s.query, s.live, s.waiting, s.resync) for s in hub.subscriptions.everyone()] for hub in hubs]
    assert states[0] == states[1]


async def test_an_answer_that_cannot_be_read_is_left_out_of_the_joined_frame():
    hub, told = Hub(EARTH), Receiver()
    for query in (1, 2):
        hub.subscriptions.add(AnswerSubscription(told, query, "json", live=True, joined=True))
    changes = poisoned([(1, "a", ENTERED, MOVED), (2, "b", ENTERED, MOVED)])
    await hub.distribute(whole_batch(replace(fragment(0, 0), changes=changes), fragment(0, 1)))
    assert list(told.told) == [2]
    assert [(s.live, s.waiting) for s in hub.subscriptions.everyone()] == [(False, True), (True, False)]


async def test_connections_that_watch_the_same_share_the_bytes_of_their_frames():
    hub, told = Hub(EARTH), [Receiver() for _ in range(3)]
    for receiver, queries in zip(told, [(1, 2), (2, 1), (2,)], strict=True):
        for query in queries:
            hub.subscriptions.add(AnswerSubscription(receiver, query, "arrow", live=True, joined=True))
    rows = [(query, "a", STAYED, MOVED) for query in (1, 2)]
    await hub.distribute(whole_batch(fragment(0, 0, rows), fragment(0, 1)))
    (first,), (same,), (other,) = (receiver.frames for receiver in told)
    assert first is same and len(other) < len(first)


async def test_an_answer_that_ends_while_its_batch_is_encoded_is_told_nothing_more(monkeypatch):
    monkeypatch.setattr("webapp.hub.hub.ROWS_IN_LOOP", 0)
    hub, told = Hub(EARTH), Receiver()
    for query in (1, 2):
        hub.subscriptions.add(AnswerSubscription(told, query, "arrow", live=True, joined=True))
    rows = [(query, "a", STAYED, MOVED) for query in (1, 2)]
    task = asyncio.create_task(hub.distribute(whole_batch(fragment(0, 0, rows), fragment(0, 1))))
    while not hub._turn.locked():
        await asyncio.sleep(0)
    hub.unsubscribe(told, 1)
    await task
    assert list(told.told) == [2]


def joined_frame(form, *queries):
    """Return a joined frame with a row of each query."""
    hub, told = Hub(EARTH), Receiver()
    for query in queries:
        hub.subscriptions.add(AnswerSubscription(told, query, form, live=True, joined=True))
    rows = [(query, "a", STAYED, MOVED) for query in queries]
    asyncio.run(hub.distribute(whole_batch(fragment(0, 0, rows), fragment(0, 1))))
    (frame,) = told.frames
    return frame


@pytest.mark.parametrize("form", ["json", "arrow"])
def test_queries_are_left_out_of_a_joined_frame(form):
    frame = joined_frame(form, 1, 2, 3)
    assert changes_of(left_out(frame, [2])) == [change for change in changes_of(frame) if change[0] != 2]
    assert left_out(frame, [1, 2, 3]) is None


@pytest.mark.parametrize("form", ["json", "arrow"])
def test_answers_that_end_while_their_joined_frame_waits_are_not_sent(form):
    async def sent(closed):
        wire = Wire(room=9)
        outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=100_000)
        subscriptions = [AnswerSubscription(None, query, form, joined=True) for query in (1, 2)]
        outbox.changes(subscriptions, frame)
        for subscription in subscriptions:
            subscription.closed = subscription.query in closed
        outbox.reply("behind it")
        sender = asyncio.create_task(outbox.run())
        async with asyncio.timeout(PATIENCE_S):
            while "behind it" not in wire.sent:
                await asyncio.sleep(0)
        sender.cancel()
        return [query for frame in wire.sent[:-1] for query, *_ in changes_of(frame)]

    frame = joined_frame(form, 1, 2)
    assert [asyncio.run(sent(closed)) for closed in ([], [2], [1, 2])] == [[1, 2], [1], []]


async def test_all_answers_of_a_joined_frame_that_is_dropped_are_lost():
    wire = Wire()
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    one, two, three, other = (AnswerSubscription(None, query, "json", live=True, joined=True) for query in (1, 2, 3, 4))
    outbox.changes([one, two], "x" * 9)
    outbox.changes([two, three], "x" * 9)
    assert [s.live for s in (one, two, three, other)] == [False, False, False, True]
    sender = asyncio.create_task(outbox.run())
    async with asyncio.timeout(PATIENCE_S):
        assert await wire.recovered.get() == [one]
    sender.cancel()


async def test_joined_answers_go_on_where_the_client_holds_them(log, hubs):
    published(log, *range(10))
    told = Receiver()
    told.mark = told.broadcast = lambda *_: None
    told.deliver = lambda subscription, frame: told.frames.append(frame)
    await hubs[0].attach(told)
    await hubs[0].subscribe(told, [1], "arrow", ResumePoint("e", 4), joined=True)
    assert json.loads(told.frames[0])["type"] == "answer.resumed"
    found = [(query, head["batch"]) for frame in told.frames[1:] for query, head, _ in changes_of(frame)]
    assert found == [(1, batch) for batch in range(5, 10)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("form", ["json", "arrow"])
async def test_a_connection_that_asks_for_it_gets_the_changes_of_a_batch_in_one_message(
    engine, streams, user, connect, form
):
    async with connect(user) as socket:
        numbers = []
        for name in ("one", "other"):
            await socket.tell("query.register", id=name, name=name, plan=PLAN)
            numbers.append((await socket.hear("query.status", id=name))["query"])
        await socket.tell("query.subscribe", queries=numbers, format=form, joined=True)
        await socket.tell("view.subscribe", streams=["ships"], area=PLAN["compare"], format=form, joined=True)
        view = (await socket.hear("view.status"))["views"]["ships"]
        for number in (*numbers, view):
            await socket.hear_or_heard("answer.snapshot", query=number)
        socket.skipped.clear()
        for place, signs in ((INSIDE, ["+"] * 3), (OUTSIDE, ["-"] * 3)):
            engine.move({"near": place})
            message = await socket.hear("answer.changes")
            assert {"epoch", "batch", "lag_ms"} <= set(message)
            if form == "json":
                told = {change["query"]: change["rows"] for change in message["changes"]}
                assert [row["sign"] for query in sorted(told) for row in told[query]] == signs
                assert sorted(told) == sorted([*numbers, view])
            else:
                assert message["table"]["query"].to_pylist() == sorted([*numbers, view])
                assert message["table"]["sign"].to_pylist() == [1 if sign == "+" else -1 for sign in signs]
                assert not {"key_hash", "partner_hash", "partner", "rank"} & set(message["table"].schema.names)
        assert not [message for message in socket.skipped if message["type"] == "answer.change"]
