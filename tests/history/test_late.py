"""Reports that come too late change no answer, and are stored, reported and replayed at their times."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming.backtest import BacktestRequest
from streaming.backtest.reading import StoredElements
from streaming.decoders import make_decoder
from streaming.elements import STORED_ONLY, from_ipc, to_ipc
from streaming.history import History, StoredTables, stored, writer
from streaming.history.files import parts_of, pending_of
from streaming.history.upkeep import compact
from streaming.replay.elements import PageRequest, heard_times, read_page
from streaming.reports.fixes import read_fixes
from streaming.spaces import EARTH
from tests.gateway.scenes import elements, feature
from tests.history.test_writer import run_each
from tests.servers.harness import Client, Engine

S = 1_000_000
# The newest report comes first, then four that a device has buffered, and is heard two seconds after its time.
NEWEST_S, BUFFERED_S, LAG_S = 1_795_751_000, [1_795_750_730 + 30 * number for number in range(4)], 2
TIMES_S = [*BUFFERED_S, NEWEST_S]
WORLD = EARTH.box([-180, -90], [180, 90])
NEAR = {"stream": "s", "compare": {"lo": [10.001, 40], "hi": [10.01, 41]}}  # where the buffered ones lie
ON = {"op": "stream", "stream": "s", "stored": True}
START = [ON, {"op": "register", "query": 1, "revision": 1, "plan": NEAR}]


def buffered():
    """Return the elements of a feed whose newest report comes first."""
    lines = [feature("buf", NEWEST_S, lon=10.02, lat=40.005)]
    lines += [
        feature("buf", time_s, lon=10.0021 + number / 1e4, lat=40.005) for number, time_s in enumerate(BUFFERED_S)
    ]
    decoder = make_decoder({"kind": "geojson", "key": "id", "time": "time"}, "s")
    return decoder.feed(b"".join(lines), 0).elements


def found(engine):
    """Return the times of stored elements, as the history, reports and a replay tell them, in seconds."""
    root = engine.root / "history"
    rows = StoredTables(engine.root / "layers", root).query_by_box(stored("s")).rows
    fixes = read_fixes(History(root, EARTH), "s", (None, None)).frame
    wanted = PageRequest("s", WORLD, (BUFFERED_S[0] - 10) * S, (NEWEST_S + 60) * S, 3600 * S)
    page = read_page(History(root, EARTH), wanted).rows
    assert page["time_us"].to_pylist() == sorted(page["time_us"].to_pylist())
    times = [rows["time_us"].to_pylist(), fixes["time"].to_list(), page["time_us"].to_pylist()]
    return [sorted(time_us // S for time_us in column) for column in times], page["at_us"].to_pylist()


@pytest.mark.parametrize("cuts", [[5], [1, 5], [1, 2, 3, 5]], ids=str)
@pytest.mark.parametrize("merged", [False, True])
def test_buffered_reports_change_no_answer_and_are_told_at_their_times(tmp_path, monkeypatch, cuts, merged):
    monkeypatch.setattr(writer, "MERGE_ROWS", 1 if merged else 1000)
    engine, client, rows = Engine(tmp_path, saved_every=1), Client(), buffered()
    begins = [0, *cuts[:-1]]
    for number, (begin, end) in enumerate(zip(begins, cuts, strict=True)):
        heard_us = (NEWEST_S + LAG_S + number) * S
        control = START if number == 0 else []
        for again in (False, True):  # as after a kill
            if again:
                engine.rewind()
                engine.forget()
            fragments = engine.run([("s", heard_us, rows.slice(begin, end - begin))], control)
        client.receive(fragments)
    assert client.told == [] and not client.answers[1]
    for _ in range(2):
        times, heard_us = found(engine)
        assert times == [TIMES_S] * 3
        assert heard_us == [(time_s + LAG_S) * S for time_s in TIMES_S]
        run_each(engine)
        engine.restart()


def test_a_back_test_plays_what_was_live_and_a_replay_begins_with_it(tmp_path):
    engine = Engine(tmp_path)
    heard_us = (NEWEST_S + LAG_S) * S
    engine.run([("s", heard_us, buffered())], START)
    history = History(tmp_path / "history", EARTH)
    played = StoredElements(
        history, BacktestRequest({1: NEAR | {"compare": {"lo": [0, 0], "hi": [20, 60]}}}, (0, 2 * heard_us))
    )
    assert played.stored == 1 and [table["time_us"].to_pylist() for table in played] == [[NEWEST_S * S]]
    assert heard_times(history, "s") == (heard_us, heard_us)


def test_what_is_stored_only_is_in_no_answer_although_its_object_is_not_known(tmp_path):
    engine, client, rows = Engine(tmp_path), Client(), buffered().slice(1)
    version = pa.array(np.full(4, STORED_ONLY))
    old = rows.set_column(rows.schema.get_field_index("version"), rows.schema.field("version"), version)
    client.receive(engine.run([("s", NEWEST_S * S, old)], START))
    assert client.told == []
    times, heard_us = found(engine)
    assert times == [BUFFERED_S] * 3 and heard_us == [time_s * S for time_s in BUFFERED_S]
    client.receive(engine.run([("s", NEWEST_S * S, rows)], []))
    assert len(client.answers[1]) == 1


def test_a_stream_that_is_not_stored_keeps_no_late_report(tmp_path):
    engine = Engine(tmp_path)
    engine.run([("s", NEWEST_S * S, buffered())], START[1:])
    assert not (tmp_path / "history").exists()


def test_late_reports_that_come_again_and_again_are_stored_once(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MERGE_ROWS", 1)
    engine, repeats = Engine(tmp_path, regions=1, saved_every=1, rescaled=0.0), 20
    for number in range(repeats):
        engine.run([("s", (NEWEST_S + LAG_S + number) * S, buffered())], START if number == 0 else [])
    run_each(engine)
    run_each(engine)
    folder = tmp_path / "history" / "earth"
    assert not pending_of(folder) and compact(folder / "s", EARTH)
    rows = StoredTables(tmp_path / "layers", tmp_path / "history").query_by_box(stored("s")).rows
    times = Counter(time_us // S for time_us in rows["time_us"].to_pylist())
    assert times[NEWEST_S] == repeats  # as always: what is not late is stored as often as it comes
    assert all(times[time_s] < 6 for time_s in BUFFERED_S)


def test_what_was_stored_before_late_reports_were_is_read_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MERGE_ROWS", 1)
    engine = Engine(tmp_path, regions=1, saved_every=1, rescaled=0.0)
    for number in range(3):
        engine.run([("s", number, elements(["a", "b"], [number * S, number * S]))], [ON])
    folder = tmp_path / "history" / "earth"
    for part in parts_of(folder / "s"):
        pq.write_table(pq.read_table(part.path).drop_columns("late"), part.path)
    for one in pending_of(folder):
        one.path.write_bytes(to_ipc(from_ipc(one.path.read_bytes()).drop_columns("late_us")))
    assert parts_of(folder / "s") and pending_of(folder)
    fixes = read_fixes(History(tmp_path / "history", EARTH), "s", (None, None)).frame
    assert sorted(fixes["time"].to_list()) == [0, 0, S, S, 2 * S, 2 * S]
    run_each(engine)
    run_each(engine)
    assert not pending_of(folder)
    assert read_fixes(History(tmp_path / "history", EARTH), "s", (None, None)).frame.height == 6
