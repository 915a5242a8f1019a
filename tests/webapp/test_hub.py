"""From fragments to frames: netting, order of snapshot and changes, repeats, losses; and slow clients."""

import asyncio
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.live import PATIENCE_S
from streaming.elements import bounds_array
from streaming.results import ANSWER_NUMBERS, ENTERED, HANDOFF, LEFT, MOVED, SNAPSHOT, STAYED, Fragment, result_schema
from streaming.spaces import EARTH
from tests.draws import examples
from webapp.consumers.outbox import MAX_REPLIES, MAX_STATUSES, Outbox, Unread
from webapp.hub import AnswerSubscription, Hub
from webapp.hub.assembly import Assembly
from webapp.hub.encoding import encode
from webapp.hub.subscriptions import all_due

REGIONS = 2
KEYS = "abcd"


def table(rows):
    """Return result tuples of (query, key, sign, reason)."""
    query, key, sign, reason = ([row[i] for row in rows] for i in range(4))
    bounds = np.tile([1.0, 2.0, -np.inf, 1.0, 2.0, np.inf], (len(rows), 1))
    hashes = [ord(k[0]) if k else 0 for k in key]
    nothing, zeros, empty = [None] * len(rows), [0] * len(rows), ["{}"] * len(rows)
    columns = [
        query,
        sign,
        reason,
        key,
        hashes,
        zeros,
        bounds_array(bounds),
        empty,
        nothing,
        zeros,
        nothing,
        nothing,
        nothing,
    ]
    schema = result_schema(EARTH)
    columns += [nothing] * (len(schema) - len(columns))
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def fragment(batch, region, changes=(), snapshots=(), queries=(), epoch="e", newest_us=0):
    return Fragment(
        epoch, batch, region, REGIONS, table(changes), table(snapshots), tuple(queries), newest_us=newest_us
    )


class Screen:
    """A client that keeps answers as the frames make them, and minds their grammar."""

    owner = "ann"

    def __init__(self):
        self.answers, self.frames = {}, []

    def deliver(self, subscription, text):
        message = json.loads(text)
        self.frames.append(message)
        query, rows = message["query"], message["rows"]
        if message["type"] == "answer.snapshot":
            self.answers[query] = {row["key"] for row in rows}
            return
        for row in rows:
            assert (row["key"] in self.answers[query]) == (row["sign"] != "+")
            (self.answers[query].discard if row["sign"] == "-" else self.answers[query].add)(row["key"])

    def broadcast(self, slot, text):
        pass

    report = broadcast

    def waiting(self):
        return 0, 0.0


def distribute(batch, subscriptions):
    """Hand a batch to subscriptions as the hub does."""
    snapshots = batch.snapshot_queries
    due = all_due(subscriptions, batch.number, snapshots).alone
    encoded = encode(batch, {frame for frames in due.values() for frame in frames}, 0, EARTH)
    for subscription, frames in due.items():
        Hub(EARTH)._deliver(subscription, encoded, frames)


def test_subscribers_of_a_shared_answer_have_it_under_the_numbers_of_their_queries():
    answer, told = ANSWER_NUMBERS + 7, [(ANSWER_NUMBERS + 7, "a", ENTERED, MOVED), (4, "b", ENTERED, MOVED)]
    parts = [replace(fragment(0, 0, told), shared={answer: (1, 2, 3)}), fragment(0, 1)]
    assembly = Assembly()
    batch = next(batch for part in parts if (batch := assembly.add(part)) is not None)
    screens = {query: Screen() for query in (1, 3, 4, 5)}
    for query, screen in screens.items():
        screen.answers[query] = set()
    distribute(batch, [AnswerSubscription(screen, query, "json", live=True) for query, screen in screens.items()])
    assert [screen.answers for screen in screens.values()] == [{1: {"a"}}, {3: {"a"}}, {4: {"b"}}, {5: set()}]


def test_an_answer_of_which_a_region_lost_its_part_begins_anew_and_the_others_go_on():
    told = [(1, "a", ENTERED, MOVED), (2, "a", ENTERED, MOVED)]
    failures = ({"error": "ValueError: no", "queries": [[1, 7]], "lost": True},)
    batch = [*map(Assembly().add, [fragment(0, 0, told), replace(fragment(0, 1), failures=failures)])][-1]
    subscriptions = [AnswerSubscription(Screen(), query, "json", live=True) for query in (1, 2)]
    for subscription in subscriptions:
        subscription.subscriber.answers[subscription.query] = {"z"}
    distribute(batch, subscriptions)
    assert [subscription.subscriber.answers for subscription in subscriptions] == [{1: {"z"}}, {2: {"a", "z"}}]
    assert [(s.live, s.waiting, s.resync) for s in subscriptions] == [(False, True, True), (True, False, False)]


steps = st.lists(
    st.tuples(
        st.dictionaries(st.tuples(st.sampled_from([1, 2]), st.sampled_from(KEYS)), st.sampled_from([None, 0, 1])),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@examples(60)
@given(steps, st.randoms(use_true_random=False))
def test_a_client_holds_the_answer_after_every_batch_from_its_snapshot_on(history, random):
    """Objects enter, leave, stay and change region; clients join at any time; fragments are repeated."""
    assembly, where, subscriptions, log = Assembly(), {}, [], []
    for number, (moves, joins, repeats, resync) in enumerate(history):
        if joins:
            subscriptions += [AnswerSubscription(Screen(), query, "json", waiting=True) for query in (1, 2)]
        if resync and subscriptions:
            random.choice(subscriptions).lose()
        for subscription in subscriptions:
            subscription.waiting = not subscription.live
        changes = [[], []]
        for (query, key), region in moves.items():
            before = where.get((query, key))
            if region is None and before is not None:
                changes[before].append((query, key, LEFT, MOVED))
            elif region is not None:
                sign = STAYED if before == region else ENTERED
                changes[region].append((query, key, sign, MOVED))
                if before not in (None, region):
                    changes[before].append((query, key, LEFT, HANDOFF))
            where[query, key] = region
        asked = sorted({s.query for s in subscriptions if s.waiting})
        held = [[(q, k, ENTERED, SNAPSHOT) for (q, k), r in where.items() if r == n and q in asked] for n in range(2)]
        fragments = [fragment(number, n, changes[n], held[n], asked) for n in range(REGIONS)]
        random.shuffle(fragments)
        log += fragments
        arriving = fragments + (random.sample(log, min(3, len(log))) if repeats else [])
        completed = [batch for batch in map(assembly.add, arriving) if batch is not None]
        assert [batch.number for batch in completed] == [number]
        distribute(completed[0], subscriptions)
        for subscription in subscriptions:
            truth = {k for (q, k), region in where.items() if q == subscription.query and region is not None}
            assert subscription.subscriber.answers[subscription.query] == truth


def test_an_object_handed_between_regions_never_leaves_the_answer():
    assembly = Assembly()
    assembly.add(fragment(0, 0, [(1, "a", LEFT, HANDOFF)]))
    batch = assembly.add(fragment(0, 1, [(1, "a", ENTERED, MOVED)]))
    assert batch.changes([1])["sign"].to_pylist() == [STAYED]


def test_only_the_rows_of_subscribed_queries_are_cut_out():
    assembly = Assembly()
    assembly.add(fragment(0, 0, [(3, "a", ENTERED, MOVED), (1, "b", ENTERED, MOVED)]))
    batch = assembly.add(fragment(0, 1, [(2, "c", ENTERED, MOVED), (1, "d", ENTERED, MOVED)]))
    rows = batch.changes([1, 3])
    assert rows["query"].to_pylist() == [1, 1, 3]
    assert batch.changes([2]).num_rows == 1
    assert sorted(rows["key"].to_pylist()[:2]) == ["b", "d"]


def test_the_frame_of_a_query_is_encoded_once_for_all_its_subscribers():
    assembly, screens = Assembly(), [Screen(), Screen()]
    subscriptions = [AnswerSubscription(screen, 1, "json", live=True) for screen in screens]
    assembly.add(fragment(0, 0, [(1, "a", ENTERED, MOVED)]))
    batch = assembly.add(fragment(0, 1))
    frames = [subscription.change for subscription in subscriptions]
    assert len(set(frames)) == 1
    assert len(encode(batch, set(frames), 0, EARTH).frames) == 1


def test_a_batch_that_never_ends_is_a_gap():
    assembly = Assembly()
    assert assembly.add(fragment(0, 0)) is None
    assert assembly.add(fragment(1, 0)) is None
    batch = assembly.add(fragment(1, 1))
    assert (batch.number, batch.gap) == (1, True)
    assert assembly.add(fragment(0, 1)) is None
    assembly.add(fragment(2, 0))
    assert not assembly.add(fragment(2, 1)).gap


def complete(assembly, number, epoch="e"):
    """Give an assembly the fragments of a batch; return the batch, or None where it is a repeat."""
    *_, batch = [assembly.add(fragment(number, region, epoch=epoch)) for region in range(REGIONS)]
    return batch


def test_a_batch_that_does_not_follow_is_a_gap_whatever_was_repeated_in_between():
    assembly = Assembly()
    assert not complete(assembly, 7).gap
    assert complete(assembly, 7) is None
    assert not complete(assembly, 8).gap
    assert complete(assembly, 10).gap
    assert not complete(assembly, 11).gap


def test_a_new_epoch_begins_with_its_first_batch_and_one_that_does_not_is_a_gap():
    assembly = Assembly()
    complete(assembly, 7)
    first = complete(assembly, 0, epoch="f")
    assert (first.new_epoch, first.gap) == (True, False)
    late = complete(assembly, 3, epoch="g")
    assert (late.new_epoch, late.gap) == (True, True)


def test_a_batch_begun_before_a_restart_of_the_engine_and_repeated_after_it_is_whole():
    assembly = Assembly()
    complete(assembly, 7)
    assembly.add(fragment(8, 1))
    batch = assembly.add(fragment(8, 0))
    assert assembly.add(fragment(8, 1)) is None
    assert (batch.number, batch.gap) == (8, False)
    assert not complete(assembly, 9).gap


def test_an_engine_that_starts_afresh_is_noticed_once():
    assembly = Assembly()
    for region in range(REGIONS):
        first = assembly.add(fragment(7, region))
    assert not first.new_epoch
    for region in range(REGIONS):
        second = assembly.add(fragment(0, region, epoch="f"))
    assert (second.number, second.new_epoch) == (0, True)
    for region in range(REGIONS):
        third = assembly.add(fragment(1, region, epoch="f"))
    assert not third.new_epoch


def test_lag_is_the_age_of_the_newest_element():
    assembly, screen = Assembly(), Screen()
    assembly.add(fragment(0, 0, [(1, "a", ENTERED, MOVED)], newest_us=5_000))
    batch = assembly.add(fragment(0, 1, newest_us=7_000))
    frame = AnswerSubscription(screen, 1, "json", live=True).change
    assert json.loads(encode(batch, [frame], 10_000, EARTH).frames[frame])["lag_ms"] == 3


class Wire:
    """A connection whose client reads only when told."""

    def __init__(self, room=0):
        self.sent, self.recovered, self.open = [], asyncio.Queue(), asyncio.Semaphore(room)

    async def send(self, frame):
        await self.open.acquire()
        self.sent.append(frame)

    async def look_up(self, queries):
        return [f"{query} looked up" for query in queries]

    async def recover(self, lost):
        self.recovered.put_nowait(lost)

    async def go_on(self, late):
        """Called for no answer of these tests: none is told once."""
        raise AssertionError(late)


async def test_a_slow_client_loses_answers_in_whole_and_is_resynchronised_once_it_reads():
    wire = Wire()
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=100)
    sender = asyncio.create_task(outbox.run())
    one, two, idle = (AnswerSubscription(None, query, "json", live=True) for query in (1, 2, 3))
    outbox.answer(one, "first" + "." * 55)
    outbox.answer(two, "second" + "." * 24)
    outbox.reply("reply")
    outbox.answer(one, "third" + "." * 55)
    assert [s.live for s in (one, two, idle)] == [False, False, True]
    outbox.answer(two, "a change that carries nothing on")
    for _ in range(3):
        wire.open.release()
    async with asyncio.timeout(PATIENCE_S):
        assert await wire.recovered.get() == [one]
        assert wire.sent == ["reply"]
        outbox.answer(one, "the snapshot")
        assert await wire.recovered.get() == [two]
    assert wire.sent == ["reply", "the snapshot"]
    sender.cancel()


async def test_large_answers_that_come_together_are_asked_for_until_all_have_come():
    wire = Wire(room=99)
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=100)
    sender = asyncio.create_task(outbox.run())
    wanted = [AnswerSubscription(None, query, "json") for query in range(9)]
    for subscription in wanted:
        outbox.answer(subscription, f"{subscription.query}" + "." * 40)
    async with asyncio.timeout(PATIENCE_S):
        while len(set(wire.sent)) < len(wanted):
            for subscription in await wire.recovered.get():  # the engine answers all that it is asked for at once
                outbox.answer(subscription, f"{subscription.query}" + "." * 40)
            while outbox._items:
                await asyncio.sleep(0)
    assert len(wire.sent) == len(wanted)
    sender.cancel()


async def test_an_answer_that_is_closed_keeps_no_other_from_being_asked_for():
    wire = Wire(room=99)
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    sender = asyncio.create_task(outbox.run())
    one, two = (AnswerSubscription(None, query, "json") for query in (1, 2))
    outbox.answer(one, "x" * 10)
    outbox.answer(two, "x" * 10)
    async with asyncio.timeout(PATIENCE_S):
        assert await wire.recovered.get() == [one]
        one.closed = True
        outbox.broadcast("engine.status", "a second later")
        assert await wire.recovered.get() == [two]
    sender.cancel()


async def test_an_answer_larger_than_the_queue_still_goes_through():
    wire = Wire(room=9)
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    sender = asyncio.create_task(outbox.run())
    outbox.answer(AnswerSubscription(None, 1, "json", live=True), "x" * 100)
    while not wire.sent:
        await asyncio.sleep(0)
    sender.cancel()


async def test_who_wants_to_know_when_an_answer_is_sent_learns_it_and_nothing_of_one_that_is_dropped():
    wire, told = Wire(), []
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    sender = asyncio.create_task(outbox.run())
    one = AnswerSubscription(None, 1, "json", live=True)
    for name in ("dropped", "dropped as well"):
        outbox.answer(one, "x" * 10)
        outbox.when_sent(lambda name=name: told.append((name, list(wire.sent))))
    outbox.reply("reply")
    wire.open.release()
    async with asyncio.timeout(PATIENCE_S):
        assert await wire.recovered.get() == [one]
        outbox.answer(one, "a snapshot")
        outbox.when_sent(lambda: told.append(("sent", list(wire.sent))))
        outbox.broadcast("engine.status", "later")
        assert told == []
        wire.open.release()
        while not told:
            await asyncio.sleep(0)
    assert told == [("sent", ["reply", "a snapshot"])]
    sender.cancel()


async def test_of_a_report_only_the_newest_waits_and_unread_replies_end_the_connection():
    wire = Wire()
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    for number in range(100):
        outbox.broadcast("engine.status", str(number))
    with pytest.raises(Unread):
        for _ in range(MAX_REPLIES + 1):
            outbox.reply("reply")
    wire.open.release()
    sender = asyncio.create_task(outbox.run())
    while not wire.sent:
        await asyncio.sleep(0)
    assert wire.sent == ["99"]
    sender.cancel()


async def test_the_first_report_goes_at_once_and_later_ones_with_a_frame_or_with_the_next_report():
    wire = Wire(room=99)
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    sender = asyncio.create_task(outbox.run())

    async def sent_after(*frames):
        while outbox._filled.is_set():
            await asyncio.sleep(0)
        assert wire.sent[-len(frames) :] == list(frames) and outbox.waits_s() == 0.0

    outbox.report("engine.status", "1")
    await sent_after("1")
    outbox.report("engine.status", "2")
    await sent_after("1")
    outbox.reply("reply")
    await sent_after("1", "reply", "2")
    outbox.report("engine.status", "3")
    outbox.report("stream.status", "first")
    await sent_after("reply", "2", "first", "3")
    outbox.report("engine.status", "4")
    outbox.report("engine.status", "5")
    await sent_after("3", "5")
    sender.cancel()


async def test_of_a_query_only_the_newest_status_waits_and_of_many_queries_only_their_numbers():
    wire = Wire()
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    queries = range(MAX_STATUSES + 250)
    for status in ("pending", "running"):
        for query in queries:
            outbox.status(query, f"{query} {status}")
    outbox.reply("reply")
    assert len(outbox._items) == MAX_STATUSES + 2
    for _ in range(len(queries) + 1):
        wire.open.release()
    sender = asyncio.create_task(outbox.run())
    while len(wire.sent) <= len(queries):
        await asyncio.sleep(0)
    sender.cancel()
    assert sorted(int(frame.split()[0]) for frame in wire.sent[:-1]) == list(queries)
    assert sum(frame.endswith("looked up") for frame in wire.sent) == 250
    assert not any(frame.endswith("pending") for frame in wire.sent)
    assert wire.sent[-1] == "reply"


async def test_a_status_that_follows_is_sent_after_what_was_queued_before_it():
    wire = Wire(room=9)
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    outbox.status(7, "pending")
    outbox.reply("reply: edited")
    outbox.status(7, "running")
    sender = asyncio.create_task(outbox.run())
    while len(wire.sent) < 2:
        await asyncio.sleep(0)
    sender.cancel()
    assert wire.sent == ["reply: edited", "running"]


async def test_word_of_what_a_client_holds_stands_behind_the_answers_that_it_is_about_and_falls_with_them():
    wire = Wire()
    outbox = Outbox(wire.send, wire.look_up, wire.recover, wire.go_on, max_bytes=10)
    one = AnswerSubscription(None, 1, "json", live=True)
    outbox.mark("earth", "through 1")
    outbox.answer(one, "batch 2")
    outbox.mark("earth", "through 2")
    assert [item.frame for item in outbox._items.values()] == ["batch 2", "through 2"]
    outbox.answer(one, "batch 3, too much")
    assert not outbox._items
    outbox.mark("earth", "without 1")
    wire.open.release()
    sender = asyncio.create_task(outbox.run())
    while not wire.sent:
        await asyncio.sleep(0)
    sender.cancel()
    assert wire.sent == ["without 1"]


def poisoned(rows):
    """Return result tuples whose first key is no UTF-8."""
    good = table(rows)
    keys = good["key"].combine_chunks().cast(pa.binary()).to_pylist()
    spoilt = pa.array([b"\xff" + keys[0], *keys[1:]], pa.binary())
    spoilt = pa.Array.from_buffers(pa.string(), len(spoilt), spoilt.buffers())
    return good.set_column(good.schema.get_field_index("key"), good.schema.field("key"), spoilt)


def test_an_answer_that_cannot_be_told_keeps_no_other_from_being_told():
    screens = {query: Screen() for query in (1, 2)}
    subscriptions = [AnswerSubscription(screen, query, "json", live=True) for query, screen in screens.items()]
    for query, screen in screens.items():
        screen.answers[query] = set()
    changes = poisoned([(1, "a", ENTERED, MOVED), (2, "b", ENTERED, MOVED)])
    batch = whole_batch(replace(fragment(0, 0), changes=changes), fragment(0, 1))
    distribute(batch, subscriptions)
    assert [screen.answers for screen in screens.values()] == [{1: set()}, {2: {"b"}}]
    assert [(s.live, s.waiting, s.resync) for s in subscriptions] == [(False, True, True), (True, False, False)]
    wanted = [subscription.change for subscription in subscriptions]
    assert list(encode(batch, wanted, 0, EARTH).errors) == [1]


def whole_batch(*fragments):
    assembly = Assembly()
    return [assembly.add(part) for part in fragments][-1]
