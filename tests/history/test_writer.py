"""What is stored is what came, once, however batches are cut, run again, merged, and cut off while merging."""

import contextlib
import math
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.live import PATIENCE_S
from streaming.elements import bounds_of, box_elements
from streaming.history import StoredTables, stored, writer
from streaming.history.files import PENDING, parts_of, pending_of
from streaming.spaces import EARTH, Dimension, Space
from streaming.state.manifest import MANIFESTS, PARTS, RECEIPTS
from tests.draws import examples
from tests.servers.harness import Engine

DAY_US = 24 * 3600 * 1_000_000
SPACES = [
    EARTH,
    Space("line", (Dimension("price", "EUR", 0.0, 1000.0),)),
    Space("four", tuple(Dimension(name, "m", 0.0, 100.0) for name in "abcd")),
]
ON, OFF = {"op": "stream", "stream": "ships", "stored": True}, {"op": "stream", "stream": "ships", "stored": False}


class Killed(Exception):
    """What ends a task in the middle."""


def elements_of(rows, space=EARTH, stream="ships"):
    """Return elements of (key, version, place): a place is a number from 0 to 9, which makes the box."""
    boxes = np.array([[place] * (2 * space.n) for _, _, place in rows], dtype=float).reshape(-1, 2 * space.n)
    versions = [version * DAY_US // 3 for _, version, _ in rows]
    properties = [{"place": place} for _, _, place in rows]
    return box_elements(stream, [key for key, _, _ in rows], versions, boxes * 10, properties, space=space)


def heard(batches):
    """Return what a table by key would accept, versions that are not older than the newest known, and what not."""
    newest, rows, late = {}, Counter(), Counter()
    for key, version, place in (row for batch in batches for row in batch):
        in_time = version >= newest.get(key, -1)
        newest[key] = max(version, newest.get(key, -1))
        (rows if in_time else late)[key, version * DAY_US // 3, place] += 1
    return rows, late


def accepted(batches):
    """Return what is stored of batches without late elements."""
    rows, late = heard(batches)
    assert not late
    return rows


def are_stored(rows, batches):
    """Tell whether rows are all elements of batches, each once; some late ones that repeat another may be missing."""
    in_time, late = heard(batches)
    return rows.keys() == (in_time + late).keys() and in_time <= rows <= in_time + late


def run_each(engine, now_us=0):
    """Run empty batches, so that each region has had the turn to merge."""
    for _ in range(engine.region_map.regions):
        engine.run([], [{"op": "tick", "now_us": now_us}])


def told(engine, stream="ships"):
    """Return what the history has of a stream, as `accepted` does, once it says the same in every way."""
    tables = StoredTables(engine.root / "layers", engine.root / "history", engine.space)
    found = tables.query_by_box(stored(stream)).rows
    rows = Counter()
    for key, time_us, box, text in zip(
        found["key"].to_pylist(),
        found["time_us"].to_pylist(),
        bounds_of(found["bounds"]).tolist() if found.num_rows else [],
        found["properties"].to_pylist(),
        strict=True,
    ):
        place = orjson.loads(text)["place"]
        assert set(box) == {place * 10.0}
        rows[key, time_us, place] += 1
    for key in {key for key, _, _ in rows}:
        assert tables.get(stored(stream), key).rows.num_rows == sum(n for (k, _, _), n in rows.items() if k == key)
    return rows


rows = st.tuples(st.sampled_from("abcde"), st.integers(0, 12), st.integers(0, 9))
batches_of_rows = st.lists(st.lists(rows, max_size=6), max_size=8)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
@given(
    batches=batches_of_rows,
    again=st.sets(st.integers(0, 8)),
    most=st.sampled_from([1, 5, 1000]),
    apart=st.booleans(),
)
@examples(20)
def test_every_element_is_stored_once_however_the_input_is_cut(tmp_path_factory, space, batches, again, most, apart):
    merger = ThreadPoolExecutor(1) if apart else None
    engine = Engine(tmp_path_factory.mktemp("engine"), space=space, saved_every=1, merger=merger)
    before, writer.MERGE_ROWS = writer.MERGE_ROWS, most
    try:
        for number, batch in enumerate(batches):
            entries = [ON] if number == 0 else []
            engine.run([("ships", number, elements_of(batch, space))], entries)
            if number in again:
                engine.rewind()
                engine.forget()
                engine.run([("ships", number, elements_of(batch, space))], entries)
            assert are_stored(told(engine), batches[: number + 1])
    finally:
        writer.MERGE_ROWS = before


def test_what_waits_is_listed_once_as_long_as_one_process_stores_it(tmp_path, monkeypatch):
    engine, listed = Engine(tmp_path, regions=2, saved_every=1, rescaled=0.0), []
    pending_of = writer.pending_of
    monkeypatch.setattr(writer, "pending_of", lambda *those: listed.append(those) or pending_of(*those))
    batches = [[("a", number, number), ("b", number, 9 - number)] for number in range(8)]
    for number, batch in enumerate(batches):
        engine.run([("ships", number, elements_of(batch))], [ON] if number == 0 else [])
        assert len(listed) == (4 if number > 5 else 2)
        if number == 5:
            engine.restart()
        assert told(engine) == accepted(batches[: number + 1])


class Later:
    """Runs what is submitted when the test says so."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, *arguments):
        future = Future()
        self.waiting.append((future, function, arguments))
        return future

    def run(self):
        for future, function, arguments in self.waiting:
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)
        self.waiting.clear()


def test_no_batch_waits_for_a_merge_and_what_fails_is_told_with_a_later_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MERGE_ROWS", 1)
    later = Later()
    engine = Engine(tmp_path, regions=1, saved_every=1, rescaled=0.0, merger=later)
    batches = [[("a", number, number)] for number in range(6)]
    for number, batch in enumerate(batches[:4]):
        engine.run([("ships", number, elements_of(batch))], [ON] if number == 0 else [])
        assert told(engine) == accepted(batches[: number + 1])
    assert len(later.waiting) == 1  # one at a time
    later.run()
    assert told(engine) == accepted(batches[:4])
    engine.run([("ships", 4, elements_of(batches[4]))], [])
    monkeypatch.setattr(writer, "write_rows", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
    later.run()
    with pytest.raises(OSError, match="the disk is full"):
        engine.run([("ships", 5, elements_of(batches[5]))], [])


def test_what_is_dropped_waits_for_the_merge_that_would_write_it(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MERGE_ROWS", 1)
    began, go_on = threading.Event(), threading.Event()
    write_rows = writer.write_rows

    def held(*arguments):
        began.set()
        assert go_on.wait(PATIENCE_S)
        write_rows(*arguments)

    with ThreadPoolExecutor(1) as merger:
        engine = Engine(tmp_path, regions=1, saved_every=1, rescaled=0.0, merger=merger)
        engine.run([("ships", 0, elements_of([("a", 1, 1)]))], [ON])
        monkeypatch.setattr(writer, "write_rows", held)
        engine.run([("ships", 1, elements_of([("b", 1, 1)]))], [])
        assert began.wait(PATIENCE_S)
        threading.Timer(0.1, go_on.set).start()
        engine.run([], [{"op": "drop_stream", "stream": "ships"}])
        assert go_on.is_set() and told(engine) == Counter()


# Three files are read, three parts written, three files removed.
@pytest.mark.parametrize("deadly", range(9))
def test_nothing_is_lost_or_doubled_by_a_kill_at_any_step_of_a_merge(tmp_path, monkeypatch, deadly):
    engine = Engine(tmp_path, regions=1, saved_every=1, rescaled=0.0)
    batches = [[(key, 3 * number + day, day) for day in range(3) for key in "ab"] for number in range(4)]
    steps = Steps(monkeypatch, deadly)
    for number, batch in enumerate(batches):
        entries = [ON] if number == 0 else []
        elements = [("ships", number, elements_of(batch))]
        if number == 3:
            monkeypatch.setattr(writer, "MERGE_ROWS", 1)
            with pytest.raises(Killed), steps.deadly():
                engine.run(elements, entries)
            assert told(engine) == accepted(batches[:3])
            engine.restart()
        engine.run(elements, entries)
        assert told(engine) == accepted(batches[: number + 1])
    engine.run([], [])
    engine.run([], [])
    assert told(engine) == accepted(batches)
    assert not pending_of(tmp_path / "history" / "earth")


class Steps:
    """Ends the task before the n-th step of a merge."""

    def __init__(self, monkeypatch, number):
        self.number, self.left = number, math.inf
        for name in ("read_pending", "write_rows"):
            monkeypatch.setattr(writer, name, self._step(getattr(writer, name)))
        monkeypatch.setattr(writer.Path, "unlink", self._step(writer.Path.unlink))

    @contextlib.contextmanager
    def deadly(self):
        self.left = self.number
        yield
        self.left = math.inf

    def _step(self, function):
        def step(*arguments, **names):
            path = arguments[0]
            if not isinstance(path, Path) or PENDING in path.parts or function.__name__ == "write_rows":
                if self.left == 0:
                    self.left = math.inf
                    raise Killed
                self.left -= 1
            return function(*arguments, **names)

        return step


def test_what_waits_is_merged_when_it_is_old_and_not_before(tmp_path):
    engine, second = Engine(tmp_path), 1_000_000
    folder = tmp_path / "history" / "earth"
    engine.run([("ships", 0, elements_of([("a", 1, 1)]))], [ON, {"op": "tick", "now_us": 1000 * second}])
    run_each(engine, 1059 * second)
    assert len(pending_of(folder)) == 1 and not parts_of(folder / "ships")
    run_each(engine, 1060 * second)
    assert not pending_of(folder) and len(parts_of(folder / "ships")) == 1
    assert told(engine) == accepted([[("a", 1, 1)]])


def test_a_stream_is_stored_from_the_batch_that_says_so_to_the_one_that_ends_it_and_what_is_stored_stays(tmp_path):
    engine = Engine(tmp_path)
    batches = [[("a", number, number), ("a", number, number + 1)] for number in range(4)]
    for batch, entries in zip(batches, [[], [ON], [], [OFF]], strict=True):
        engine.run([("ships", 0, elements_of(batch)), ("buses", 0, elements_of(batch, stream="buses"))], entries)
    assert told(engine) == accepted(batches[1:3])
    assert told(engine, "buses") == Counter()


def test_a_stream_that_is_not_stored_leaves_no_folder(tmp_path):
    engine = Engine(tmp_path)
    engine.run([("ships", 0, elements_of([("a", 1, 1)]))], [])
    assert not (tmp_path / "history").exists()


@pytest.mark.parametrize("most", [1, 1000])
def test_a_dropped_streams_history_goes_with_it_and_that_of_its_namesake_begins_anew(tmp_path, monkeypatch, most):
    monkeypatch.setattr(writer, "MERGE_ROWS", most)
    engine, others = Engine(tmp_path), {"op": "stream", "stream": "buses", "stored": True}
    for number in range(3):
        batch = [(key, number, place) for place, key in enumerate("abc")]
        both = [("ships", 0, elements_of(batch)), ("buses", 0, elements_of(batch, stream="buses"))]
        engine.run(both, [ON, others])
    buses = told(engine, "buses")
    fresh = [("z", 5, 5)]
    entries = [{"op": "drop_stream", "stream": "ships"}, ON]
    engine.save()
    for _ in range(2):  # and again, as after a kill
        engine.run([("ships", 0, elements_of(fresh))], entries)
        assert told(engine) == accepted([fresh])
        assert told(engine, "buses") == buses
        engine.rewind()
        engine.forget()


def test_a_new_state_takes_over_what_waits_of_the_former_one_and_numbers_do_not_collide(tmp_path):
    first = [[("a", 1, 1)], [("b", 2, 2), ("c", 1, 9)]]
    engine = Engine(tmp_path, regions=4, saved_every=1, rescaled=0.0)
    for batch in first:
        engine.run([("ships", 0, elements_of(batch))], [ON])
    for name in (MANIFESTS, RECEIPTS, PARTS):
        (tmp_path / name).rename(tmp_path / f"former {name}")
    (tmp_path / "epoch").unlink()
    anew = Engine(tmp_path, regions=2, rescaled=0.0)
    anew.run([("ships", 0, elements_of([("a", 4, 4)]))], [ON])
    run_each(anew)
    folder = tmp_path / "history" / "earth"
    assert [path.name for path in (folder / PENDING).iterdir()] == [anew.layout.store.epoch()]
    assert told(anew) == accepted([*first, [("a", 4, 4)]])


def test_an_element_without_bounds_and_one_across_the_antimeridian_come_back_as_they_were(tmp_path):
    engine, inf = Engine(tmp_path), math.inf
    boxes = np.array([[-inf, -inf, -inf, inf, inf, inf], [179.0, -1, -inf, 181.0, 1, inf]])
    table = box_elements("ships", ["every", "edge"], [5, 5], boxes, [{}, {}])
    engine.run([("ships", 7, table)], [ON])
    for _ in range(2):
        found = StoredTables(tmp_path, tmp_path / "history").query_by_box(stored("ships")).rows
        assert dict(zip(found["key"].to_pylist(), bounds_of(found["bounds"]).tolist(), strict=True)) == {
            "every": boxes[0].tolist(),
            "edge": boxes[1].tolist(),
        }
        run_each(engine, 10**12)
