"""An element that was acknowledged is there after a power cut, whatever the disk had not got yet."""

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest

from bench.live import wait_for
from streaming.elements import from_ipc, point_elements
from streaming.eventlog import RedisEventLog
from streaming.eventlog.append_file import NotWritten
from streaming.gateway.config import GatewayConfig
from streaming.gateway.writer import BlockWriter
from streaming.keys import LogNames
from streaming.logs import Log
from streaming.redis_memory import Pressure
from tests.house.test_embedded_redis import running
from webapp.live.home import embedded_redis_url
from webapp.live.programs import Installation

FEEDS, MOST = 3, 2_000
ENDS = {
    "nothing more": b"",
    "half of a command": b"*5\r\n$4\r\nXADD\r\n$9\r\nlookout:e",
    "a transaction without its end": b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n",
    "zeros": bytes(5000),
    "half of a command, then zeros": b"*5\r\n$4\r\nXADD\r\n$9\r\nlookout:e" + bytes(4096),
}


def lookout_on(disk):
    """Return a Lookout whose state folder is a disk."""
    return Installation(disk.root, embedded_redis_url(disk.root), "127.0.0.1", 0)


def ship(name):
    """Return one element."""
    return point_elements("ships", [name], np.array([1]), np.zeros((1, 2)), [{}])


def there(client):
    """Return the keys of all elements in the ingest log."""
    logs = map(LogNames("earth").ingest, range(2))
    entries = (entry for log in logs for entry in RedisEventLog(client).read(log))
    return {key for entry in entries for key in from_ipc(entry.fields[b"block"])["key"].to_pylist()}


def after_a_cut(disk, place, end=b""):
    """Return the Lookout that finds what the disk has, and behind the last synced command also `end`."""
    home = disk.after_a_cut(disk.root.with_name("after"))
    with (home / "redis" / "appendonly.aof").open("ab") as file:
        file.write(end)
    return replace(place, home=home)


@pytest.mark.parametrize("end", ENDS)
def test_acknowledged_elements_survive_whatever_else_the_file_ends_with(disk, end):
    place, acknowledged, ended = lookout_on(disk), set(), threading.Event()

    def feed(client, number):
        log = Log(client, "earth", 2)
        for count in range(MOST):
            if ended.is_set():
                return
            log.ingest(ship(f"{number}:{count}"), "ships", 1)
            acknowledged.add(f"{number}:{count}")

    with running(place) as client:
        feeds = [threading.Thread(target=feed, args=(client, number)) for number in range(FEEDS)]
        for thread in feeds:
            thread.start()
        wait_for(lambda: len(acknowledged) >= 50, "acknowledgements")
        known = set(acknowledged)  # taken before the power goes
        after = after_a_cut(disk, place, ENDS[end])
        ended.set()
        for thread in feeds:
            thread.join()
    with running(after) as client:
        assert there(client) >= known
        Log(client, "earth", 2).ingest(ship("later"), "ships", 1)
        assert "later" in there(client)


def test_a_file_that_redis_has_made_anew_keeps_what_was_acknowledged_before_and_after(disk):
    place = lookout_on(disk)
    with running(place) as client:
        log = Log(client, "earth", 2)
        log.ingest(ship("before"), "ships", 1)
        client.bgrewriteaof()
        log.ingest(ship("meanwhile"), "ships", 1)
        wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the new file")
        log.ingest(ship("after"), "ships", 1)
        after = after_a_cut(disk, place)
    with running(after) as client:
        assert there(client) == {"before", "meanwhile", "after"}


def test_a_round_of_the_gateway_makes_the_blocks_of_all_streams_safe_by_one_sync(disk):
    place, syncs = lookout_on(disk), []
    with running(place) as client:
        log = Log(client, "earth", 2)
        log.ingest(ship("first"), "ships", 1)
        writer = BlockWriter(log, GatewayConfig())
        sync = log.event_log.sync
        log.event_log.sync = lambda: syncs.append(1) or sync()

        async def fill_and_write():
            for stream in ("ships", "buses", "aircraft"):
                await writer.queue(stream, live=False).put(ship(f"of {stream}"), 1)
            await writer.round(Pressure(0, 0.0))

        asyncio.run(fill_and_write())
        after = after_a_cut(disk, place)
    assert len(syncs) == 1
    with running(after) as client:
        assert there(client) == {"first", "of ships", "of buses", "of aircraft"}


def test_nothing_is_acknowledged_while_redis_cannot_write_and_a_later_round_makes_up_for_it(disk):
    with running(lookout_on(disk)) as client:
        log = Log(client, "earth", 2)
        log.ingest(ship("first"), "ships", 1)
        writer, event_log = BlockWriter(log, GatewayConfig()), log.event_log
        sync, words = event_log._file.sync, ["err", "ok"]
        event_log._file.sync = lambda told: sync([told[0] | {"aof_last_write_status": words.pop(0)}, *told[1:]])

        async def write():
            await writer.queue("ships", live=False).put(ship("late"), 1)
            with pytest.raises(NotWritten):
                await writer.round(Pressure(0, 0.0))
            await writer.round(Pressure(0, 0.0))

        asyncio.run(write())
        assert words == [] and there(client) == {"first", "late"}


def test_a_block_can_be_read_while_the_disk_syncs_it_so_no_answer_waits(disk):
    began, may_end = threading.Event(), threading.Event()
    with running(lookout_on(disk)) as client:
        log = Log(client, "earth", 2)
        real = log.event_log._file.sync

        def slow(told):
            began.set()
            may_end.wait()
            real(told)

        log.event_log._file.sync = slow
        feed = threading.Thread(target=log.ingest, args=(ship("new"), "ships", 1))
        feed.start()
        began.wait()
        assert there(client) == {"new"} and feed.is_alive()
        may_end.set()
        feed.join()
