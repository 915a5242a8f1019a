"""Windows that have ended are joined in slices: how much a batch looks at, and what may happen meanwhile."""

import numpy as np
import pytest

from streaming.elements import box_elements
from streaming.operators import allowance
from streaming.operators.time_joins import compiled
from streaming.plans import parse_plan
from streaming.results.netting import net
from streaming.servers.ways.time_joins import windows
from streaming.spaces import EARTH
from tests.servers.harness import Engine

SECOND_US = 1_000_000
JOIN = {"stream": "b", "predicate": "dwithin", "distance": 100}
PLAN = {"stream": "a", "kind": "window_join", "window_s": 10, "lateness_s": 0, "join": JOIN}
PAIRS = 60
CROWDED = [0.5, 5.0, -np.inf, 0.5, 5.0, np.inf]


def reports(stream, count, time_s, east=0.0):
    """A table of reports of as many objects, a degree apart from south to north."""
    boxes = [[east, y - 30.0, -np.inf, east, y - 30.0, np.inf] for y in range(count)]
    keys = [f"{stream}{y}" for y in range(count)]
    return box_elements(stream, keys, [time_s * SECOND_US] * count, boxes, [{}] * count)


class Sea:
    """An engine with window joins, whose first window has a pair each degree."""

    def __init__(self, folder, plans=(PLAN,), regions=1, first_s=1, owners=(1, 1)):
        self.engine, self.told, self.left = Engine(folder, 1, regions, rescaled=0.0), [], 0
        self.starts = []
        entries = [
            {"op": "register", "query": number, "revision": 1, "plan": plan, "owner": owners[number]}
            for number, plan in enumerate(plans)
        ]
        self.run(entries)
        self.run([], reports("a", PAIRS, first_s), reports("b", PAIRS, first_s + 1))

    def run(self, control=(), *tables):
        """Run a batch; return the pairs that it tells."""
        blocks = [(table["key"][0].as_py()[0], 0, table) for table in tables]
        self.fragments = fragments = self.engine.run(blocks, list(control))
        self.left = sum(fragment.counters.get("unjoined", 0) for fragment in fragments)
        rows = net(fragments).to_pylist()
        pairs = [(row["query"], row["key"], row["partner"]) for row in rows]
        self.told += pairs
        self.starts += [row["window_us"] // SECOND_US for row in rows]
        return pairs

    def end(self, control=(), *more):
        """End the first window."""
        return self.run(control, reports("a", 1, 20, 50.0), reports("b", 1, 20, -50.0), *more)

    def ended_fragments(self):
        """End the first window; return the fragments of the batch."""
        self.engine.may_fail = True
        self.end()
        return self.fragments

    def drain(self):
        """Run batches until nothing is left; return how many it took."""
        for count in range(1_000):
            if not self.left:
                return count
            self.run()
        raise AssertionError("the window is never told")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Have a batch look at few reports."""
    for name, size in (("BUDGET", 30), ("AHEAD", 0), ("LEAST_SLICE", 4), ("A_SLICE", 0), ("PAIR", 3)):
        monkeypatch.setattr(windows, name, size)


EXPECTED = [(0, f"a{x}", f"b{x}") for x in range(PAIRS)]


def test_a_window_is_told_from_south_to_north_over_several_batches_and_each_pair_once(tmp_path):
    sea = Sea(tmp_path)
    sea.end()
    assert 2 < sea.drain() < 30
    assert sea.told == EXPECTED


def test_no_batch_looks_at_many_more_reports_than_it_may(tmp_path):
    sea = Sea(tmp_path)
    most = len(sea.end())
    while sea.left:
        before, _ = sea.left, sea.run()
        most = max(most, before - sea.left)
    assert 0 < most <= windows.BUDGET


def test_ships_at_a_pole_reach_over_all_longitudes_but_make_no_slice_look_at_all_reports(monkeypatch, tmp_path):
    sea = Sea(tmp_path)
    pole = [[float(x), 90.0, -np.inf, float(x), 90.0, np.inf] for x in range(0, 150, 50)]
    sea.run([], *(box_elements(s, [f"{s}p{n}" for n in range(3)], [3 * SECOND_US] * 3, pole, [{}] * 3) for s in "ab"))
    parts, part = [], windows.WindowSlices._part
    monkeypatch.setattr(windows.WindowSlices, "_part", lambda *told: parts.append(part(*told)) or parts[-1])
    sea.end()
    sea.drain()
    assert len(sea.told) == len(set(sea.told)) == PAIRS + 3 * 3
    assert max(len(part.driven.reports) for part in parts) < PAIRS // 2


def test_where_many_meet_a_batch_looks_at_fewer_reports(tmp_path):
    sea = Sea(tmp_path)
    crowd = [
        box_elements(s, [f"{s}x{n}" for n in range(40)], [3 * SECOND_US] * 40, [CROWDED] * 40, [{}] * 40) for s in "ab"
    ]
    sea.run([], *crowd)
    most = len(sea.end())
    while sea.left:
        most = max(most, len(sea.run()))
    assert len(sea.told) == len(set(sea.told)) == PAIRS + 40 * 40
    assert most <= 2 * 40


def test_a_window_in_which_everything_meets_is_refused_and_the_others_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "RUNNING", 500)
    monkeypatch.setattr(allowance, "EACH", 0)
    monkeypatch.setattr(allowance, "KNOWN", 0)
    far = {**PLAN, "join": {**JOIN, "distance": 20_000_000}}
    sea = Sea(tmp_path, [PLAN, far], owners=[1, 2])
    fragments = sea.ended_fragments()
    (failure,) = [failure for fragment in fragments for failure in fragment.failures]
    assert failure["queries"] == [[1, 1]] and failure["left_out"] == "room"
    assert "pairs in a batch; there is room for 500" in failure["error"]
    sea.drain()
    assert sea.told == EXPECTED


def test_a_query_whose_windows_end_faster_than_they_can_be_told_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(windows, "MOST_LEFT", 4)
    sea = Sea(tmp_path, [PLAN, {**PLAN, "window_s": 10, "slide_s": 1}], owners=[1, 2])
    fragments = sea.ended_fragments()
    (failure,) = [failure for fragment in fragments for failure in fragment.failures]
    assert failure["queries"] == [[1, 1]] and failure["left_out"] == "room"
    assert "its windows end faster than their pairs can be told" in failure["error"]
    sea.drain()
    assert sea.told == EXPECTED


def test_what_comes_while_a_window_is_told_does_not_belong_to_it(tmp_path):
    sea = Sea(tmp_path, [{**PLAN, "slide_s": 5, "idle_s": 1}], first_s=6)
    # Both streams are silent, so that event time goes on with the clock, to 11 s.
    sea.run([{"op": "tick", "now_us": 4 * SECOND_US}])
    assert sea.left
    before = len(sea.told)
    # These are late for the window from 0 s on, which is told now, but not for the one from 5 s on.
    sea.run([], reports("a", PAIRS, 9, 10.0), reports("b", PAIRS, 9, 10.0))
    sea.drain()
    assert before < PAIRS
    assert sea.starts == [0] * PAIRS
    assert sorted(sea.told) == sorted(EXPECTED)
    sea.end()
    sea.drain()
    assert sea.starts == [0] * PAIRS + [5] * (2 * PAIRS)


def test_the_window_that_ended_first_is_told_first_and_all_joins_share_what_a_batch_looks_at(tmp_path):
    sea = Sea(tmp_path, [{**PLAN, "window_s": 12}, PLAN])
    sea.run([], reports("a", 1, 11, 50.0), reports("b", 1, 11, -50.0))
    assert sea.left
    sea.end()
    sea.drain()
    queries = [query for query, *_ in sea.told]
    assert queries == [1] * PAIRS + [0] * PAIRS


def test_the_windows_of_owners_are_told_beside_each_other(tmp_path, monkeypatch):
    for name, size in (("BUDGET", 10_000), ("TOLD", 10), ("PAIR", 0.01)):
        monkeypatch.setattr(windows, name, size)
    sea = Sea(tmp_path, [PLAN, {**PLAN, "join": {**JOIN, "distance": 150}}], owners=[2, 1])
    batches = [sea.end()]
    while sea.left:
        batches.append(sea.run())
    assert len(batches) > 4 and sorted(query for query, *_ in sea.told) == [0] * PAIRS + [1] * PAIRS
    assert {frozenset(query for query, *_ in pairs) for pairs in batches[:-2]} == {frozenset({0, 1})}


@pytest.mark.parametrize("told", [1, 5, 1000])
def test_a_batch_tells_about_as_many_pairs_as_it_may(monkeypatch, tmp_path, told):
    monkeypatch.setattr(windows, "TOLD", told)
    monkeypatch.setattr(windows, "PAIR", 0.01)
    monkeypatch.setattr(windows, "BUDGET", 10_000)
    sea = Sea(tmp_path)
    most = len(sea.end())
    while sea.left:
        most = max(most, len(sea.run()))
    assert sea.told == EXPECTED and min(told, PAIRS) <= most <= 2 * told


@pytest.mark.parametrize("changed", ["map", "driver"])
def test_what_was_told_before_a_change_of_the_regions_or_of_the_driving_stream_is_not_told_again(tmp_path, changed):
    sea = Sea(tmp_path, regions=2)
    sea.end()
    for turn in range(3):
        entry = {"op": "drive", "query": 0, "revision": 1, "by_partner": turn % 2 == 0}
        if changed == "map":
            entry = {"op": "regions", "map": cut_at(sea.engine.region_map, -25.0 + 20.5 * turn).document()}
        sea.run([entry])
        assert sea.left
    sea.drain()
    assert sorted(sea.told) == sorted(EXPECTED)


def cut_at(known, y):
    """The next region map, in which the region with a place on the prime meridian is split there."""
    place = np.array([[0.0, y, 0.0, 0.0, y, 0.0]])
    return known.split(int(known.region_of(place)[0]), 1, y)


def test_a_batch_keeps_up_with_what_comes_however_little_it_may_look_at(monkeypatch):
    monkeypatch.setattr(windows, "AHEAD", 2)
    joins = [compiled(parse_plan(plan), EARTH) for plan in (PLAN, {**PLAN, "slide_s": 2})]
    stream = np.repeat([joins[0].stream, joins[0].partner_stream, 5], [100, 50, 1_000])
    # 150 reports are in one window of the first join, and in five of the second one.
    assert windows.budget(stream, joins, 1) == windows.SliceBound(2 * (150 + 5 * 150), windows.TOLD)
    assert windows.budget(stream[:0], joins, 3) == windows.SliceBound(windows.BUDGET // 3, windows.TOLD // 3)
