"""A recorded feed goes to the history, through a ``kill -9`` of the engine: every element once, and it can be asked."""

import asyncio
import os
import signal
from collections import Counter, defaultdict

import numpy as np
import pytest

from bench.live import PATIENCE_S, wait_for
from streaming.elements import bounds_of
from streaming.history import History, StoredTables, stored
from streaming.history.files import parts_of
from streaming.spaces import EARTH
from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import AIS_CSV
from tests.live.truth import decoded, newest

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

STREAM = "kept_ships"
# A whole recording goes through.
RECORDING_S = 4 * PATIENCE_S
BOX = {"lo": [-92.0, 28.0], "hi": [-88.0, 30.0]}


def said(table):
    """Return what a table of elements says, each statement with how often it does."""
    bounds = map(tuple, bounds_of(table["bounds"]).tolist()) if table.num_rows else ()
    columns = (table[name].to_pylist() for name in ("key", "time_us", "properties"))
    return Counter(zip(*columns, bounds, strict=True))


def accepted(elements):
    """Return the elements that are not older than the newest of their object before them; the others come too late."""
    newest, rows = {}, []
    for row, (key, version) in enumerate(
        zip(elements["key"].to_pylist(), elements["version"].to_pylist(), strict=True)
    ):
        if version >= newest.get(key, version):
            newest[key] = version
            rows.append(row)
    return elements.take(rows)


def are_whole(found, expected):
    """Tell whether elements are all that are expected, each once; some late ones that repeat another may be missing."""
    told, whole = said(found), said(expected)
    return told.keys() == whole.keys() and said(accepted(expected)) <= told <= whole


def met(elements):
    """Return the pairs of objects that are last in the box with stored elements at the same place, as brute force."""
    low, high = EARTH.box(BOX["lo"], BOX["hi"])[:2], EARTH.box(BOX["lo"], BOX["hi"])[3:5]
    stored_at = defaultdict(set)
    for key, time_us, box in zip(
        elements["key"].to_pylist(),
        elements["time_us"].to_pylist(),
        bounds_of(elements["bounds"]).tolist(),
        strict=True,
    ):
        instant = np.datetime64(time_us, "us")
        stored_at[tuple(box)].add(f"{key}@{instant}Z")
    last = {key: tuple(row["bounds"]) for key, row in newest(elements).items()}
    here = {key: box for key, box in last.items() if (low <= box[:2]).all() and (box[:2] <= high).all()}
    return {(key, partner) for key, box in here.items() for partner in stored_at[box]}


@pytest.mark.long
async def test_every_element_of_a_recording_is_stored_once_through_a_kill_of_the_engine(live, shared_data):
    path = shared_data / "ais" / "AISdata.csv.gz"
    expected = decoded(AIS_CSV, STREAM, read_recording(path))
    tables = StoredTables(live.home / "layers", live.home / "history")
    file = {"kind": "file", "path": str(path), "speed": 0}
    live.add_stream(STREAM, file, AIS_CSV, enabled=False, stored=True)
    live.enable_stream(STREAM)

    def count():
        return tables.query_by_box(stored(STREAM)).rows.num_rows

    async def until(condition, words):
        await asyncio.to_thread(wait_for, condition, words, RECORDING_S)

    await until(count, lambda: "the first stored element")
    pids = live.pids()
    for program in ("engine", "java"):
        os.kill(pids[program], signal.SIGKILL)
    before = count()
    assert 0 < before < expected.num_rows, "the engine is killed in the middle of the recording"
    await until(lambda: live.pids().get("engine") not in (None, pids["engine"]), lambda: "another engine")
    await until(
        lambda: live.health(STREAM).get("state") == "finished" and live.log.backlog() == 0, lambda: f"{count()}"
    )
    found = tables.query_by_box(stored(STREAM)).rows
    assert are_whole(found, expected)
    assert (live.health(STREAM)["elements"], live.health(STREAM)["merged"]) == (100_000 - 1, 0)

    # What waits becomes parts after a minute; nothing changes for who reads.
    history = History(live.home / "history", EARTH)
    await until(lambda: not history.pending(), lambda: f"{history.pending()} wait")
    assert are_whole(found := tables.query_by_box(stored(STREAM)).rows, expected)
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
        assert len(one["rows"]) == found["key"].to_pylist().count(key) and not one["truncated"]
        pairs = met(expected)
        join = {"stored": STREAM, "predicate": "boxes"}
        query = await monitor.register("met", {"stream": STREAM, "kind": "join", "area": BOX, "join": join})
        await monitor.running(query)
        await monitor.until(
            lambda: monitor.answers.get(query, {}).keys() == pairs,
            lambda: f"{len(pairs)} pairs: {list(pairs ^ monitor.answers.get(query, {}).keys())[:5]}",
            RECORDING_S,
        )
        assert monitor.faults == []
        await monitor.request("query.cancel", query=query)
        print(len(pairs), "pairs of the last positions in the box with stored elements at the same place")
    live.remove_stream(STREAM)
    await until(lambda: not (history.folder / STREAM).exists(), lambda: "the end of the history")
