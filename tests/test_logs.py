"""What is published, and how much the logs of results and events keep."""

import uuid
from dataclasses import replace

import pytest

from streaming import logs
from streaming.engine.report import report
from streaming.eventlog import Bound
from streaming.logs import Log, read_fragment
from streaming.results import ENTERED, MOVED
from streaming.spaces import EARTH
from tests.webapp.test_hub import fragment

BOUND = 150_000
DAY_MS = 86_400_000


@pytest.fixture
def log(redis_client):
    return Log(redis_client, EARTH.name, 2)


def large(batch):
    """Return a fragment of some 4 kB, in results and events alike."""
    return fragment(batch, 0, [(1, f"k{batch} {n}", ENTERED, MOVED) for n in range(60)])


def batches(log, name):
    """Return the batches that a log holds."""
    return [read_fragment(entry.fields, EARTH).batch for entry in log.event_log.read(name)]


def test_results_and_events_take_bounded_room_of_which_the_newest_fill_most(log, monkeypatch):
    for kept in ("RESULTS_KEPT", "EVENTS_KEPT"):
        monkeypatch.setattr(logs, kept, Bound(BOUND, DAY_MS))
    both = log.names.results, log.names.events
    for batch in range(100):
        log.publish([large(batch)])
        for name in both:
            assert log.event_log.size(name) <= BOUND
            assert log.client.memory_usage(name, samples=0) <= 1.2 * BOUND
    for name in both:
        held = batches(log, name)
        assert held == list(range(held[0], 100))
        assert log.event_log.size(name) > 0.9 * BOUND


def test_the_newest_results_are_kept_however_large_they_are(log, monkeypatch):
    monkeypatch.setattr(logs, "RESULTS_KEPT", Bound(10_000, DAY_MS))
    for batch in range(10):
        log.publish([replace(large(batch), regions=3, region=region) for region in range(3)])
    newest = range(10 - logs.RESULT_BATCHES_KEPT, 10)
    assert batches(log, log.names.results) == [batch for batch in newest for _ in range(3)]


def test_a_batch_that_is_published_again_changes_nothing(log):
    first = [replace(fragment(7, region), stale={1: 3, 2: 4} if region == 0 else {}) for region in range(2)]
    log.publish(first[:1])  # the engine is killed
    log.publish(first)
    later = replace(fragment(8, 0), stale={1: 1})
    log.publish([later])
    log.publish(first)  # an attempt that is late
    log.publish([later])
    assert batches(log, log.names.results) == batches(log, log.names.events) == [7, 7, 8]
    assert log.stale() == {1: 4, 2: 4}
    log.publish([replace(fragment(7, 0, epoch="another state"), stale={1: 1})])
    assert log.stale() == {1: 5, 2: 4}
    assert len(batches(log, log.names.results)) == 4


def test_stale_elements_are_counted_once_although_the_counts_were_reset(log):
    told = replace(fragment(7, 0), stale={1: 3})
    log.publish([told])
    log.forget_stale()
    log.publish([told])
    assert log.stale() == {}


def test_a_killed_engine_counts_what_it_had_appended_but_not_counted(log, monkeypatch):
    told = replace(fragment(7, 0), stale={1: 3})
    with monkeypatch.context() as killed, pytest.raises(ZeroDivisionError):
        killed.setattr(type(log.client), "pipeline", _failing_after(1, log.client.pipeline))
        log.publish([told])
    assert (batches(log, log.names.results), log.stale()) == ([7], {})
    log.publish([told])
    assert (batches(log, log.names.results), log.stale()) == ([7], {1: 3})


def _failing_after(calls, method):
    """Return a method that passes some calls on, then raises."""
    left = iter(range(calls))

    def call(_, *arguments, **options):
        if next(left, None) is None:
            raise ZeroDivisionError
        return method(*arguments, **options)

    return call


def test_the_fragments_of_a_task_are_published_in_one_round_trip(log, monkeypatch):
    sent, parts = [], [fragment(7, region) for region in range(4)]
    pipeline = log.client.pipeline
    monkeypatch.setattr(type(log.client), "pipeline", lambda _, **options: sent.append(1) or pipeline(**options))
    monkeypatch.setattr(type(log.client), "execute_command", lambda *_, **__: pytest.fail("another round trip"))
    log.publish(parts)
    assert len(sent) == 1
    log.publish([replace(part, batch=8, stale={1: 1}) for part in parts])
    assert len(sent) == 3
    monkeypatch.undo()
    assert batches(log, log.names.results) == [7] * 4 + [8] * 4 and log.stale() == {1: 4}


def test_a_space_that_is_cleared_begins_anew(log):
    log.publish([replace(fragment(7, 0), stale={1: 3}, acks=({"query": 1, "revision": 1, "error": None},))])
    log.clear()
    log.forget_stale()
    assert not log.client.keys("*")
    log.publish([fragment(7, 0)])
    assert batches(log, log.names.results) == [7]


@pytest.mark.parametrize("where", ["redis", "kafka"])
def test_blocks_that_are_kept_are_no_backlog_and_leave_nothing_behind_of_a_space_that_was_removed(
    redis_client, request, where
):
    url = f"kafka://{request.getfixturevalue('kafka_servers')}/{uuid.uuid4().hex}" if where == "kafka" else ""
    log = Log(redis_client, "kept", 2, url=url)
    log.report_read({0: 3, 1: 1})
    assert not redis_client.keys("lookout:kept:*")
    log.send("tick", now_us=1)
    report(log, "epoch")
    for _ in range(4):
        log.event_log.append(log.names.ingest(0), {"block": b"elements"})
    assert log.backlog() == 4
    log.report_read({0: 5, 1: 0})
    log.report_removed({0: 2, 1: 0})
    assert log.backlog() == 1
    log.clear()
    log.report_read({0: 5, 1: 0})
    log.report_removed({0: 2, 1: 0})
    assert not redis_client.keys("lookout:kept:*")
