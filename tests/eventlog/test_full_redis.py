"""A full Redis refuses entries as a whole, so that they can be appended again, and a patient log waits for room."""

import threading

import pytest
import redis

from bench.live import PATIENCE_S
from streaming import redis_memory
from streaming.eventlog import Bound, BoundedEntry, PatientRedisEventLog, RedisEventLog, Stamp
from streaming.keys import LogNames
from streaming.logs import RESULT_BATCHES_KEPT, Log, write_report
from streaming.redis_memory import is_full
from streaming.results import ENTERED, MOVED
from tests.full_redis import full
from tests.test_logs import batches
from tests.webapp.test_hub import REGIONS, fragment

STAMP, KEPT = Stamp("p", "e", 1), Bound(10**9, 10**9)
LARGE = {"block": b"x" * 200_000}


def once(name):
    return [BoundedEntry(name, {"n": 1}, KEPT)]


APPENDS = {
    "append": lambda log: log.append("one", {"n": 1}),
    "append_all": lambda log: log.append_all([("one", {"n": 1}), ("other", {"n": 2})]),
    "append_once": lambda log: log.append_once(STAMP, once("one")),
    "append_once_all": lambda log: log.append_once_all([(STAMP, once("one")), (Stamp("q", "e", 1), once("other"))]),
}


@pytest.mark.parametrize("append", APPENDS.values(), ids=APPENDS)
def test_what_a_full_redis_refuses_is_appended_once_when_it_is_repeated(redis_client, append):
    log = RedisEventLog(redis_client)
    with full(redis_client):
        with pytest.raises(redis.ResponseError) as refused:
            append(log)
        assert is_full(refused.value) and not redis_client.keys("o*")
    append(log)
    assert log.length("one") == 1


def test_entries_of_several_logs_are_appended_all_or_none_wherever_the_room_ends(redis_client):
    log, outcomes = RedisEventLog(redis_client), set()
    for room in range(0, 2_000_000, 40_000):
        redis_client.flushall()
        redis_client.config_set("maxmemory", redis_client.info("memory")["used_memory"] + room)
        try:
            log.append_all([("one", LARGE), ("other", LARGE), ("third", LARGE)])
        except redis.exceptions.OutOfMemoryError:
            pass
        finally:
            redis_client.config_set("maxmemory", 0)
        outcomes.add(tuple(log.length(name) for name in ("one", "other", "third")))
    assert outcomes == {(0, 0, 0), (1, 1, 1)}


@pytest.mark.parametrize("append", APPENDS.values(), ids=APPENDS)
def test_a_patient_log_waits_for_room_and_says_so_once(redis_client, append, monkeypatch, caplog):
    waits, tried = threading.Event(), []
    monkeypatch.setattr(redis_memory, "_warned_s", -redis_memory.WARN_EVERY_S)
    monkeypatch.setattr(redis_memory, "pause", lambda _: tried.append(1) or len(tried) < 3 or waits.set())
    log = PatientRedisEventLog(redis_client)
    appending = threading.Thread(target=append, args=[log])
    with full(redis_client):
        appending.start()
        assert waits.wait(PATIENCE_S) and appending.is_alive()
        assert not redis_client.keys("o*")
    appending.join(PATIENCE_S)
    assert log.length("one") == 1
    assert [record.getMessage()[:13] for record in caplog.records] == ["Redis is full"]


def test_an_error_that_is_not_for_lack_of_room_is_raised(redis_client):
    redis_client.set("one", "no log")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        PatientRedisEventLog(redis_client).append("one", {"n": 1})


def test_reports_and_counts_are_written_also_while_redis_is_full(redis_client):
    log, names = Log(redis_client, "earth", 2), LogNames("earth")
    log.send("tick", now_us=1)
    with full(redis_client):
        write_report(redis_client, names.gateway, {"at_us": 7})
        log.report_read({0: 3, 1: 4}, batch=9)
        log.report_removed({0: 1, 1: 1})
        assert redis_client.hgetall(names.gateway) == {b"at_us": b"7"}
        assert redis_client.hget(names.engine, "batch") == b"9"
        assert log.kept() == {names.ingest(0): 2, names.ingest(1): 3}


def test_results_are_removed_down_to_the_newest_batches_while_redis_is_full(redis_client):
    log = Log(redis_client, "earth", 2)
    for batch in range(40):
        log.publish([fragment(batch, region, [(1, f"k{batch}", ENTERED, MOVED)]) for region in range(REGIONS)])
    with full(redis_client):
        log.shorten_results()
    newest = range(40 - RESULT_BATCHES_KEPT, 40)
    assert batches(log, log.names.results) == [batch for batch in newest for _ in range(REGIONS)]
    assert len(batches(log, log.names.events)) == 40 * REGIONS
    assert log.newest_whole_batch("e") == 39
    log.shorten_results()
    assert len(batches(log, log.names.results)) == RESULT_BATCHES_KEPT * REGIONS
