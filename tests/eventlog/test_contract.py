"""What every implementation of `EventLog` must do. A new one is added to `IMPLEMENTATIONS`."""

import asyncio
import threading
import time
import uuid

import pytest
import redis.asyncio
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from bench.live import PATIENCE_S
from streaming.eventlog import (
    FIRST,
    AsyncRedisEventLog,
    Bound,
    BoundedEntry,
    EventLog,
    RedisEventLog,
    Stamp,
    next_ends,
)
from streaming.eventlog.kafka import AsyncKafkaEventLog, KafkaEventLog
from tests.draws import examples

ALWAYS = Bound(most_bytes=10**9, most_ms=10**9)
LOGS = "one", "other"


class Waiting:
    """Calls the methods of an event log for asyncio, and waits for them."""

    def __init__(self, url):
        self.url = url

    def __getattr__(self, name):
        async def call(arguments, options):
            async with redis.asyncio.Redis.from_url(self.url) as client:
                return await getattr(AsyncRedisEventLog(client), name)(*arguments, **options)

        return lambda *arguments, **options: asyncio.run(call(arguments, options))


class InThreads:
    """Calls the methods of an event log on Kafka for asyncio, and waits for them."""

    def __init__(self, event_log):
        self._event_log = event_log

    def __getattr__(self, name):
        async def call(arguments, options):
            return await getattr(AsyncKafkaEventLog(self._event_log), name)(*arguments, **options)

        return lambda *arguments, **options: asyncio.run(call(arguments, options))

    def polling(self):
        return self._event_log.polling()


def on_kafka(request):
    """Return an event log on Kafka whose topics no other test has used."""
    return KafkaEventLog(request.getfixturevalue("kafka_servers"), uuid.uuid4().hex)


IMPLEMENTATIONS = {
    "redis": lambda request: RedisEventLog(request.getfixturevalue("redis_client")),
    "asyncio": lambda request: Waiting(request.getfixturevalue("redis_server")),
    "kafka": on_kafka,
    "kafka asyncio": lambda request: InThreads(on_kafka(request)),
}


@pytest.fixture(params=IMPLEMENTATIONS)
def log(request, redis_client) -> EventLog:
    """Return an event log that has no entries."""
    return IMPLEMENTATIONS[request.param](request)


def numbers(entries):
    """Return what `fill` has written into entries."""
    return [int(entry.fields[b"n"]) for entry in entries]


def fill(log, name, count, start=0):
    """Append entries with rising numbers; return their positions."""
    return log.append_all([(name, {"n": number, "block": b"x" * 10}) for number in range(start, start + count)])


def bounded(log, number, bound, name="one", size=100):
    """Append an entry to a bounded log."""
    return log.append_once(Stamp("p", "e", number), [BoundedEntry(name, {"n": number, "block": b"x" * size}, bound)])


def test_entries_are_read_in_the_order_in_which_they_were_appended(log):
    before_ms = time.time() * 1000
    at = [log.append("one", {"n": 0, "text": "é", "bytes": b"\0\xff"}), *fill(log, "one", 4, 1)]
    fill(log, "other", 2, 100)
    entries = log.read("one")
    assert numbers(entries) == [0, 1, 2, 3, 4]
    assert [entry.position for entry in entries] == at
    assert entries[0].fields == {b"n": b"0", b"text": "é".encode(), b"bytes": b"\0\xff"}
    assert all(before_ms - 1000 < entry.appended_ms < time.time() * 1000 + 1000 for entry in entries)


def test_a_span_of_a_log_is_read_forwards_and_backwards(log):
    at = fill(log, "one", 6)
    assert numbers(log.read("one", at[1])) == [2, 3, 4, 5]
    assert numbers(log.read("one", at[1], at[3])) == [2, 3]
    assert numbers(log.read("one", at[1], limit=1)) == [2]
    assert log.read("one", at[5]) == []
    assert numbers(log.read_back("one")) == [5, 4, 3, 2, 1, 0]
    assert numbers(log.read_back("one", limit=2)) == [5, 4]
    assert numbers(log.read_back("one", at[4], 2)) == [3, 2]
    assert log.read_back("one", at[0]) == []


def test_only_the_fields_that_are_asked_for_are_read(log):
    at = fill(log, "one", 3)
    some = log.read("one", at[0], only=("n", "none"))
    assert [(entry.position, entry.fields) for entry in some] == [(at[1], {b"n": b"1"}), (at[2], {b"n": b"2"})]
    assert numbers(log.read("one", FIRST, at[1], 1, only=("n",))) == [0]


def test_an_empty_log_is_nothing_to_read(log):
    assert (log.read("one"), log.read_back("one"), log.length("one"), log.size("one")) == ([], [], 0, 0)
    assert log.newest("one") == FIRST
    assert log.append_all([]) == []
    assert log.poll({"one": FIRST}, 1, 0.001) == {}
    log.trim({"one": FIRST})
    log.delete(["one"])


def test_a_log_is_read_up_to_its_newest_entry_or_as_far_as_is_read_at_once(log):
    at = fill(log, "one", 5)
    after, most = {"other": FIRST, "one": FIRST}, {"other": 9, "one": 3}
    assert log.ends(after, most) == {"other": FIRST, "one": at[2]}
    assert log.ends(after | {"one": at[2]}, most) == {"other": FIRST, "one": at[4]}
    assert log.ends(after, dict.fromkeys(after, 2**53)) == {"other": FIRST, "one": at[4]}
    assert log.ends({"one": at[4]}, {"one": 1}) == {"one": at[4]}
    assert log.ends({"one": at[0]}, {"one": 3}, {"one": 1}) == {"one": at[3]}
    assert log.ends({"one": at[1]}, {"one": 3}, {"one": 2}) == {"one": at[4]}
    # Of a log with more entries than are read at once, a position that is known serves, if it is behind the beginning.
    assert log.ends({"one": at[0]}, {"one": 3}, ahead={"one": at[1]}) == {"one": at[1]}
    assert log.ends({"one": at[1]}, {"one": 3}, ahead={"one": at[1]}) == {"one": at[4]}
    assert log.ends({"one": at[1]}, {"one": 2}, ahead={"one": at[0]}) == {"one": at[3]}
    assert log.ends({"one": at[0]}, {"one": 5}, ahead={"one": at[1]}) == {"one": at[4]}
    assert log.newest("one") == at[4]


def test_new_entries_of_several_logs_are_polled_together(log):
    at = fill(log, "one", 5)
    fill(log, "other", 2, 100)
    found = log.poll({"one": at[1], "other": FIRST, "none": FIRST}, 2, 1.0)
    assert {name: numbers(entries) for name, entries in found.items()} == {"one": [2, 3], "other": [100, 101]}
    assert log.poll({"one": at[4]}, 2, 0.001) == {}


def until(condition):
    """Wait until a condition holds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s


def waits(log):
    """Return whether somebody waits for an entry."""
    if isinstance(log, Waiting):
        with redis.Redis.from_url(log.url) as client:
            return waits(RedisEventLog(client))
    if isinstance(log, RedisEventLog):
        return log.client.info("clients")["blocked_clients"]
    return log.polling()


def test_an_entry_is_waited_for_where_there_is_none(log):
    found = []
    waiting = threading.Thread(target=lambda: found.append(log.poll({"one": FIRST, "other": FIRST}, 3, PATIENCE_S)))
    waiting.start()
    until(lambda: waits(log))
    at = log.append("other", {"n": 7})
    waiting.join(PATIENCE_S)
    ((name, (entry,)),) = found[0].items()
    assert (name, entry.position, entry.fields) == ("other", at, {b"n": b"7"})


def test_whoever_asks_how_far_logs_can_be_read_waits_for_an_entry(log):
    found = []
    after = {"one": FIRST, "other": FIRST}
    arguments = log, after, dict.fromkeys(after, 3), PATIENCE_S
    waiting = threading.Thread(target=lambda: found.append(next_ends(*arguments)))
    waiting.start()
    until(lambda: waits(log))
    at = log.append("other", {"n": 1})
    waiting.join(PATIENCE_S)
    assert found == [{"one": FIRST, "other": at}]
    assert next_ends(log, {"other": at}, {"other": 3}, 0.001) == {"other": at}


def test_a_log_is_trimmed_behind_a_position_and_positions_go_on_rising(log):
    at = fill(log, "one", 5)
    kept = fill(log, "other", 2, 100)
    log.trim({"one": at[2], "other": FIRST})
    assert (numbers(log.read("one")), log.length("one")) == ([3, 4], 2)
    assert [entry.position for entry in log.read("other")] == kept
    log.trim({"one": at[2]})
    assert log.length("one") == 2
    log.trim({"one": at[4]})
    assert (log.length("one"), log.newest("one")) == (0, FIRST)
    fill(log, "one", 1, 5)
    assert numbers(log.read("one", at[4])) == [5]
    assert log.ends({"one": at[4]}, {"one": 9}) == {"one": log.newest("one")}


def test_what_is_deleted_has_gone_with_its_stamps(log):
    assert bounded(log, 1, ALWAYS)
    log.delete(["one", "other"])
    assert (log.length("one"), log.size("one")) == (0, 0)
    assert bounded(log, 1, ALWAYS)


def test_an_append_takes_effect_once_on_all_logs_or_on_none(log):
    def append(producer, epoch, number):
        both = [BoundedEntry(name, {"n": number}, ALWAYS) for name in LOGS]
        return log.append_once(Stamp(producer, epoch, number), both)

    steps = [("p", "e", 1), ("p", "e", 1), ("p", "e", 3), ("p", "e", 2), ("q", "e", 1), ("p", "f", 1), ("p", "f", 1)]
    assert [append(*step) for step in steps] == [True, False, True, False, True, True, False]
    assert [numbers(log.read(name)) for name in LOGS] == [[1, 3, 1, 1]] * 2


def test_several_appends_take_effect_once_each_in_their_order(log):
    def append(*steps):
        both = [(Stamp(p, e, n), [BoundedEntry(name, {"n": n}, ALWAYS) for name in LOGS]) for p, e, n in steps]
        return log.append_once_all(both)

    assert append(("p", "e", 1), ("q", "e", 2), ("p", "e", 1), ("p", "e", 3)) == [True, True, False, True]
    assert append(("p", "e", 3), ("q", "e", 4)) == [False, True]
    assert append() == []
    assert [numbers(log.read(name)) for name in LOGS] == [[1, 2, 3, 4]] * 2


def test_epochs_and_producers_may_have_any_name(log):
    for epoch in ("", "a b", "a 7", "% d"):
        taken = [log.append_once(Stamp("2 p", epoch, 7), [BoundedEntry("one", {"n": 7}, ALWAYS)]) for _ in range(2)]
        assert taken == [True, False]


def test_two_who_append_the_same_at_once_append_it_once(log):
    def append():
        for number in range(30):
            bounded(log, number, ALWAYS)

    both = [threading.Thread(target=append) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert numbers(log.read("one")) == list(range(30))


def test_the_bytes_of_a_log_are_bounded_and_its_newest_entries_fill_them(log):
    bound = Bound(most_bytes=5_000, most_ms=10**9)
    sizes = []
    for number in range(60):
        bounded(log, number, bound, size=100 + 10 * (number % 7))
        sizes.append(log.size("one"))
    assert max(sizes) <= 5_000 < max(sizes) + 300
    held = numbers(log.read("one"))
    assert held == list(range(held[0], 60))
    bounded(log, 60, bound, size=20_000)
    assert numbers(log.read("one")) == [60], "the newest entry stays, whatever its size"


def test_at_least_some_entries_are_kept_however_large_they_are(log):
    for number in range(9):
        bounded(log, number, Bound(most_bytes=10, most_ms=10**9, least_entries=3))
    assert numbers(log.read("one")) == [6, 7, 8]


def test_entries_that_are_too_old_are_removed(log):
    bounded(log, 0, ALWAYS)
    first_ms = log.read("one")[0].appended_ms
    while time.time() * 1000 < first_ms + 20:
        time.sleep(0.005)
    bounded(log, 1, Bound(most_bytes=10**9, most_ms=10))
    assert numbers(log.read("one")) == [1]
    assert log.size("one") < 250


def test_a_log_that_was_not_bounded_is_measured_when_it_becomes_so(log):
    fill(log, "one", 40)
    bounded(log, 40, ALWAYS, size=10)
    sizes = log.size("one")
    log.delete(["other"])
    for number in range(41):
        log.append_once(Stamp("r", "e", number), [BoundedEntry("other", {"n": number, "block": b"x" * 10}, ALWAYS)])
    assert log.size("other") == sizes


OPERATIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 400)),
    st.tuples(st.just("trim"), st.integers(0, 12)),
    st.tuples(st.just("read"), st.integers(0, 12), st.integers(1, 5)),
)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(OPERATIONS, max_size=30), most=st.integers(100, 3_000), least=st.integers(1, 4))
def test_a_bounded_log_is_a_list_whose_beginning_is_removed(redis_client, steps, most, least):
    redis_client.flushall()
    log, bound = RedisEventLog(redis_client), Bound(most, 10**9, least)
    model = []  # (number, position, bytes) of each entry that the log should hold
    all_positions = [FIRST]
    for number, (step, amount, *limit) in enumerate(steps):
        if step == "append":
            was = log.size("one")
            bounded(log, number, bound, size=amount)
            (newest,) = log.read_back("one", limit=1)
            size = 64 + len("n") + len(str(number)) + len("block") + amount
            assert log.size("one") <= was + size
            model.append((number, newest.position, size))
            all_positions.append(newest.position)
            while len(model) > least and sum(size for *_, size in model) > most:
                del model[0]
        elif step == "trim":
            behind = all_positions[min(amount, len(all_positions) - 1)]
            log.trim({"one": behind})
            gone = all_positions.index(behind)
            model = [entry for entry in model if all_positions.index(entry[1]) > gone]
        else:
            after = all_positions[min(amount, len(all_positions) - 1)]
            gone = all_positions.index(after)
            expected = [number for number, position, _ in model if all_positions.index(position) > gone]
            assert numbers(log.read("one", after, limit=limit[0])) == expected[: limit[0]]
        assert numbers(log.read("one")) == [number for number, *_ in model]
        assert (log.length("one"), log.size("one")) == (len(model), sum(size for *_, size in model))
