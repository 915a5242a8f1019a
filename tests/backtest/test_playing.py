"""How elements are cut, left out and read; limits; and what a summary makes of what is told."""

import gc
import itertools
import tempfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.backtest import BacktestLimits, BacktestRequest, InvalidBacktest, Playing, QuerySummary
from streaming.backtest.cuts import Nearby, micro_batches
from streaming.elements import box_elements, stream_number
from streaming.servers.elements import tracked_schema
from streaming.spaces import EARTH
from tests.draws import examples

US = 1_000_000
BEGIN_US = 1_700_000_000 * US
BOX = {"lo": [0, 0], "hi": [10, 10]}
PLAN = {"stream": "a", "compare": BOX}
RULE = {"stream": "a", "kind": "rule", "when": {"query": 1}, "for_s": 5}
# An object, when it is heard in quarters of a second, and whether it is inside.
REPORTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.booleans()), max_size=25)


def tracked(reports):
    """Return elements of (key, quarter of a second, inside), in the order in which they are heard."""
    reports = sorted(reports, key=lambda report: report[1])
    heard = np.array([BEGIN_US + quarter * US // 4 for _, quarter, _ in reports], dtype=np.int64)
    boxes = np.array([[5.0 if inside else 50.0] * 6 for _, _, inside in reports]).reshape(-1, 6)
    table = box_elements("a", [key for key, *_ in reports], heard, boxes, [{}] * len(reports))
    stream = pa.array(np.full(len(reports), stream_number("a")))
    table = table.append_column("stream", stream).append_column("heard_us", pa.array(heard))
    return table.cast(tracked_schema(EARTH))


def asked(seconds=30, plans=None, **options):
    return BacktestRequest(plans or {1: PLAN}, (BEGIN_US, BEGIN_US + seconds * US), {"a": 8.0}, **options)


def told(playing, tables):
    """Return (query, sign, key, time in seconds) of all that is told."""
    columns = ("query", "sign", "key", "time_us")
    rows = [row for played in playing.play(tables) for row in played.rows.select(columns).to_pylist()]
    return sorted((r["query"], r["key"], (r["time_us"] - BEGIN_US) / US, r["sign"]) for r in rows if r["sign"])


def test_a_back_test_that_nobody_goes_on_with_takes_its_folder_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cycle = [Playing(asked()).play([tracked([("a", 1, True)])])]
    next(cycle[0])
    assert list(tmp_path.iterdir())
    cycle.append(cycle)  # only the collector finds it
    del cycle
    gc.collect()
    assert not list(tmp_path.iterdir())


@examples(60)
@given(REPORTS)
def test_a_micro_batch_has_one_second_and_of_an_object_one_moment_in_their_order(reports):
    table = tracked(reports)
    cut = list(micro_batches(table))
    seen = [
        row for _, some, _ in cut for row in zip(some["key"].to_pylist(), some["heard_us"].to_pylist(), strict=True)
    ]
    every = list(zip(table["key"].to_pylist(), table["heard_us"].to_pylist(), strict=True))
    for key in "abc":
        assert [row for row in seen if row[0] == key] == [row for row in every if row[0] == key]
    for second, some, _ in cut:
        heard, keys = some["heard_us"].to_pylist(), some["key"].to_pylist()
        assert {at // US for at in heard} == {second}
        assert len(set(zip(keys, heard, strict=True))) == len(set(keys))
    seconds = [second for second, *_ in cut]
    assert seconds == sorted(seconds)
    assert [last for *_, last in cut] == [a != b for a, b in itertools.pairwise([*seconds, None])]


@examples(40)
@given(REPORTS, st.integers(0, 25))
def test_what_is_left_out_changes_no_answer(reports, cut):
    table = tracked(reports)
    nearby = Nearby([asked().parsed(1)], EARTH)
    kept = pa.concat_tables([nearby.of(table.slice(0, cut)), nearby.of(table.slice(cut))])
    inside, expected = dict.fromkeys("abc", False), []
    for row, (key, _, now) in enumerate(sorted(reports, key=lambda report: report[1])):
        if now or inside[key]:
            expected.append(row)
        inside[key] = now
    assert kept.equals(table.take(pa.array(expected, pa.int64())))


def test_silence_and_a_dwell_are_told_although_nothing_is_heard():
    tables = [tracked([("a", 0, True), ("b", 0, True), ("b", 30, True)])]
    found = told(Playing(asked(plans={1: PLAN, 2: RULE})), tables)
    # a falls silent after eight seconds, b after another eight.
    assert found == [
        *((1, "a", 0.0, -1), (1, "a", 0.0, 1), (1, "b", 0.0, 1), (1, "b", 7.5, -1)),
        *((2, "a", 5.0, 1), (2, "a", 8.0, -1), (2, "b", 5.0, 1), (2, "b", 15.5, -1)),
    ]


def test_who_was_heard_before_the_span_is_inside_at_its_beginning():
    tables = [tracked([("a", -8, True), ("b", -20, True), ("b", -4, False), ("c", 4, True)])]
    playing, summary = Playing(asked()), QuerySummary(1, EARTH)
    for played in playing.play(tables):
        summary.take(played.rows)
    document = summary.document(10)
    assert [(span["key"], span["before"]) for span in document["spans"]] == [("a", True), ("c", False)]
    assert (document["entered"], document["left"], document["total"]) == (1, 2, 2)


def test_limits_end_it_and_are_told():
    table = tracked([("a", 4 * second, True) for second in range(20)])
    playing = Playing(asked(limits=BacktestLimits(elements=10)))
    assert told(playing, [table])
    assert playing.stopped == "after 10 elements, the most that a back-test plays"
    assert playing.clock_us == BEGIN_US + 10 * US and playing.share == pytest.approx(1 / 3)
    seconds = iter([0.0, *[1.0] * 12, *[99.0] * 100])
    playing = Playing(asked(limits=BacktestLimits(seconds=60)), now_s=lambda: next(seconds))
    told(playing, [table])
    assert playing.stopped == "after 60 s, the longest that a back-test takes" and playing.share < 1


def test_what_cannot_be_played_is_refused():
    with pytest.raises(InvalidBacktest, match="must begin before it ends"):
        asked(0)
    stored = {"stream": "a", "kind": "join", "join": {"stored": "a", "predicate": "intersects"}}
    with pytest.raises(InvalidBacktest, match="no partners of former times"):
        asked(plans={1: stored})
