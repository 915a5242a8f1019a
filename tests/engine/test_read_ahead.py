"""What tasks read ahead of the cuts: each entry is taken once, in order, however far the thread has come."""

import random
import threading

import pytest

from bench.live import PATIENCE_S
from streaming.engine.read_ahead import ReadAhead
from streaming.eventlog import FIRST, RedisEventLog

LOGS = {"0": "one", "1": "other"}


class Reports:
    """Notes how far logs are read ahead."""

    def __init__(self):
        self.upto, self.changed = {}, threading.Condition()

    def __call__(self, upto):
        with self.changed:
            self.upto |= upto
            self.changed.notify_all()

    def wait_for(self, upto):
        with self.changed:
            assert self.changed.wait_for(lambda: self.upto == upto, timeout=PATIENCE_S)


def filled(log, count):
    """Append entries to all logs; return the positions in each."""
    return {name: log.append_all([(log_name, {"n": n}) for n in range(count)]) for name, log_name in LOGS.items()}


def numbers(entries):
    return [int(entry.fields[b"n"]) for entry in entries]


@pytest.mark.parametrize("started", [False, True])
def test_each_entry_is_taken_once_and_in_order(redis_client, started):
    rng, log = random.Random(3), RedisEventLog(redis_client)
    at = filled(log, 300)
    ahead = ReadAhead(log, LOGS, dict.fromkeys(LOGS, FIRST), 20, lambda _: None)
    if started:
        ahead.start()
    taken, done = {name: [] for name in LOGS}, dict.fromkeys(LOGS, 0)
    while min(done.values()) < 300:
        name = rng.choice(list(LOGS))
        if done[name] < 300:
            done[name] = min(300, done[name] + rng.randint(1, 40))
            taken[name] += numbers(ahead.taken(name, at[name][done[name] - 1]))
    ahead.close()
    assert taken == {name: list(range(300)) for name in LOGS}


def test_no_more_is_read_than_there_is_room_for_and_how_far_is_told(redis_client):
    log, reports = RedisEventLog(redis_client), Reports()
    at = filled(log, 12)
    ahead = ReadAhead(log, LOGS, dict.fromkeys(LOGS, FIRST), 5, reports)
    ahead.start()
    reports.wait_for({name: at[name][4] for name in LOGS})
    assert numbers(ahead.taken("0", at["0"][2])) == [0, 1, 2]
    reports.wait_for({"0": at["0"][7], "1": at["1"][4]})
    more = filled(log, 1)
    assert numbers(ahead.taken("0", more["0"][0])) == [*range(3, 12), 0]
    ahead.close()


def test_entries_are_taken_although_reading_ahead_fails(redis_client, caplog):
    class Failing(RedisEventLog):
        def poll(self, *_):
            raise OSError("the connection is lost")

    log = Failing(redis_client)
    at = filled(log, 3)
    ahead = ReadAhead(log, LOGS, dict.fromkeys(LOGS, FIRST), 5, lambda _: None)
    ahead.start()
    assert numbers(ahead.taken("1", at["1"][2])) == [0, 1, 2]
