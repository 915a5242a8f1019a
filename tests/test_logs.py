"""How far logs are read, and how much those of results and events keep."""

import threading
from dataclasses import replace

import pytest

from bench.live import PATIENCE_S
from streaming import logs
from streaming.logs import FIRST, Log, next_positions, read_fragment
from streaming.results import ENTERED, MOVED
from streaming.spaces import EARTH
from tests.webapp.test_hub import fragment

BOUND = 400_000


@pytest.fixture
def log(redis_client):
    return Log(redis_client, EARTH.name, 2)


def large(batch):
    """Return a fragment of some 10 kB, in results and events alike."""
    return fragment(batch, 0, [(1, f"k{batch} {n}", ENTERED, MOVED) for n in range(60)])


def batches(log, name):
    """Return the batches that a log holds."""
    return [read_fragment(fields, EARTH).batch for _, fields in log.client.xrange(name)]


def test_results_and_events_take_bounded_room_of_which_the_newest_fill_most(log, monkeypatch):
    monkeypatch.setattr(logs, "RESULTS_KEPT_BYTES", BOUND)
    monkeypatch.setattr(logs, "EVENTS_KEPT_BYTES", BOUND)
    monkeypatch.setattr(logs, "RESULTS_KEPT_LEAST", 1)
    for batch in range(100):
        log.publish([large(batch)])
        for name in (log.names.results, log.names.events):
            assert log.client.memory_usage(name, samples=0) <= BOUND
    for name in (log.names.results, log.names.events):
        held = batches(log, name)
        assert held == list(range(held[0], 100))
        assert log.client.memory_usage(name, samples=0) > BOUND / 2


def test_the_newest_results_are_kept_however_large_they_are(log, monkeypatch):
    monkeypatch.setattr(logs, "RESULTS_KEPT_BYTES", 10_000)
    monkeypatch.setattr(logs, "RESULTS_KEPT_LEAST", 5)
    for batch in range(10):
        log.publish([large(batch)])
    assert batches(log, log.names.results) == list(range(5, 10))


def test_the_logs_are_weighed_by_what_was_written_not_at_every_batch(log):
    log.client.config_resetstat()
    for batch in range(50):
        log.publish([fragment(batch, region) for region in range(2)])
    assert "cmdstat_memory" not in log.client.info("commandstats")
    log.client.set(log.names.written, logs.RESULTS_KEPT_BYTES)
    log.publish([replace(fragment(50, 0), regions=1)])
    assert log.client.info("commandstats")["cmdstat_memory"]["calls"] == 2


def test_a_log_is_read_up_to_its_newest_entry_or_as_far_as_is_read_at_once(redis_client):
    ids = [redis_client.xadd("full", {"a": 1}).decode() for _ in range(5)]
    after, most = {"empty": FIRST, "full": FIRST}, {"empty": 9, "full": 3}
    found = next_positions(redis_client, after, most, PATIENCE_S)
    assert found == {"empty": FIRST, "full": ids[2]}
    assert next_positions(redis_client, found, most, PATIENCE_S) == {"empty": FIRST, "full": ids[4]}
    assert next_positions(redis_client, after, dict.fromkeys(after, 2**53), PATIENCE_S)["full"] == ids[4]
    redis_client.xtrim("full", 0)
    assert next_positions(redis_client, {"full": ids[4]}, {"full": 3}, 0.001) == {"full": ids[4]}


def test_an_entry_is_waited_for_where_there_is_none(redis_client):
    found = []
    after = {"one": FIRST, "other": FIRST}
    arguments = (redis_client, after, dict.fromkeys(after, 3), PATIENCE_S)
    waiting = threading.Thread(target=lambda: found.append(next_positions(*arguments)))
    waiting.start()
    while not redis_client.info("clients")["blocked_clients"]:
        pass
    entry = redis_client.xadd("other", {"a": 1}).decode()
    waiting.join(PATIENCE_S)
    assert found == [{"one": FIRST, "other": entry}]
