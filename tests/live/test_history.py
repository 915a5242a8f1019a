"""A recorded feed goes to the history, through a ``kill -9`` of the engine: every element once, and it can be asked."""

import asyncio
import os
import signal
from collections import Counter

import pytest

from bench.live import wait_for
from streaming.elements import bounds_of
from streaming.history import History, Tables, stored
from streaming.history.files import parts_of
from streaming.spaces import EARTH
from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import AIS_CSV
from tests.live.truth import decoded

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

STREAM, PATIENCE_S = "kept_ships", 120
BOX = {"lo": [-92.0, 28.0], "hi": [-88.0, 30.0]}


def said(table):
    """Return what a table of elements says, each statement with how often it does."""
    bounds = map(tuple, bounds_of(table["bounds"]).tolist()) if table.num_rows else ()
    columns = (table[name].to_pylist() for name in ("key", "time_us", "properties"))
    return Counter(zip(*columns, bounds, strict=True))


def accepted(elements):
    """Return the elements that are not older than the newest of their object before them."""
    newest, rows = {}, []
    for row, (key, version) in enumerate(
        zip(elements["key"].to_pylist(), elements["version"].to_pylist(), strict=True)
    ):
        if version >= newest.get(key, version):
            newest[key] = version
            rows.append(row)
    return elements.take(rows)


async def test_every_element_of_a_recording_is_stored_once_through_a_kill_of_the_engine(live, shared_data):
    path = shared_data / "ais" / "AISdata.csv.gz"
    expected = accepted(decoded(AIS_CSV, STREAM, read_recording(path)))
    tables = Tables(live.home / "layers", live.home / "history")
    file = {"kind": "file", "path": str(path), "speed": 0}
    live.add_stream(STREAM, file, AIS_CSV, enabled=False, stored=True)
    live.enable_stream(STREAM)

    def count():
        return tables.query_by_box(stored(STREAM)).rows.num_rows

    wait_for(count, "the first stored element", PATIENCE_S)
    pids = live.pids()
    for program in ("engine", "java"):
        os.kill(pids[program], signal.SIGKILL)
    before = count()
    assert 0 < before < expected.num_rows, "the engine is killed in the middle of the recording"
    wait_for(lambda: live.pids().get("engine") not in (None, pids["engine"]), "another engine", PATIENCE_S)
    wait_for(lambda: count() >= expected.num_rows and live.log.backlog() == 0, lambda: f"{count()}", PATIENCE_S)
    found = tables.query_by_box(stored(STREAM)).rows
    assert said(found) == said(expected)
    assert (live.health(STREAM)["elements"], live.health(STREAM)["merged"]) == (100_000 - 1, 0)

    # What waits becomes parts after a minute; nothing changes for who reads.
    history = History(live.home / "history", EARTH)
    wait_for(lambda: not history.pending(), lambda: f"{history.pending()}", 90 + PATIENCE_S)
    assert said(tables.query_by_box(stored(STREAM)).rows) == said(expected)
    parts = parts_of(history.folder / STREAM)
    size = sum(part.path.stat().st_size for part in parts)
    print(f"\n{expected.num_rows} elements, {before} before the kill, in {len(parts)} parts of {size} bytes")

    box = EARTH.box(BOX["lo"], BOX["hi"])
    here = tables.query_by_box(stored(STREAM), box).rows
    assert 0 < here.num_rows < expected.num_rows
    async with live.monitor("ann") as monitor:
        table = {"stored": STREAM}
        answer = await monitor.request("table.query", table=table, box=BOX, limit=10_000)
        assert [row["key"] for row in answer["rows"]] == here["key"].to_pylist()[:10_000]
        key = here["key"][0].as_py()
        one = await monitor.request("table.get", table=table, key=key, limit=10_000)
        assert len(one["rows"]) == expected["key"].to_pylist().count(key) and not one["truncated"]
    live.remove_stream(STREAM)
    await asyncio.to_thread(wait_for, lambda: not (history.folder / STREAM).exists(), "the end of the history")
