"""Joins over event time by hand: what is late, what silence does, what is told when, and what is kept."""

import random

import numpy as np
import pytest

from streaming.elements import box_elements, key_hashes, partition_of
from streaming.results.netting import net
from streaming.spaces import EARTH, Dimension, Space
from tests.servers.harness import Engine

SECOND_US = 1_000_000
WINDOW = {"kind": "window_join", "window_s": 10}
INTERVAL = {"kind": "interval_join", "lower_s": -2, "upper_s": 5, "bin_s": 2}
ROOM = Space("room", tuple(Dimension(name, "m", -100.0, 100.0) for name in "xyz"))


class Feed:
    """An engine with one query that joins a with b within 1 km, and what it has told: key, time, partner, time."""

    def __init__(self, folder, document, space=EARTH, partitions=1, **join):
        self.engine, self.space, self.told = Engine(folder, partitions, 4, space), space, []
        self.counters, self.warnings = [], []
        join = {"stream": "b", "predicate": "dwithin", "distance": 1000} | join
        plan = {"stream": "a", "join": join, "lateness_s": 5, "idle_s": 30} | document
        self.control = [{"op": "register", "query": 1, "revision": 1, "plan": plan}]

    def run(self, *reports, now_s=None):
        """Run a batch of (stream, key, seconds) at one place or another; return what it tells."""
        blocks = [(stream, 0, self.table(stream, *report)) for stream, *report in reports]
        self.control += [] if now_s is None else [{"op": "tick", "now_us": now_s * SECOND_US}]
        fragments, self.control = self.engine.run(blocks, self.control), []
        self.counters.append({name: sum(f.counters[name] for f in fragments) for name in ("late", "reports")})
        self.warnings += [one["error"] for fragment in fragments for one in fragment.failures]
        rows = net(fragments).to_pylist()
        told = sorted(
            (r["key"], r["time_us"] // SECOND_US, r["partner"], r["partner_time_us"] // SECOND_US) for r in rows
        )
        self.told += told
        return told

    def table(self, stream, key, time_s, place=(1.0, 1.0)):
        low, high = (
            [*place, *[end] * (self.space.n - len(place))] if self.space is EARTH else list(place)
            for end in (-np.inf, np.inf)
        )
        return box_elements(stream, [key], [time_s * SECOND_US], [low + high], [{}])


def test_a_window_is_told_once_both_streams_have_passed_its_end_by_the_lateness(tmp_path):
    feed = Feed(tmp_path, WINDOW)
    assert feed.run(("a", "a1", 101), ("b", "b1", 109), ("b", "b2", 110)) == []
    assert feed.run(("a", "a1", 130)) == []
    assert feed.run(("b", "b1", 114)) == []
    assert feed.run(("b", "b1", 115)) == [("a1", 101, "b1", 109)]
    assert feed.run(("b", "b1", 116)) == []


def test_a_report_is_late_once_its_stream_has_passed_the_end_of_its_window_and_is_counted(tmp_path):
    feed = Feed(tmp_path, WINDOW)
    feed.run(("a", "a1", 101), ("b", "b1", 102))
    # Ten seconds out of order, but the window is not complete.
    feed.run(("a", "a1", 114), ("a", "a2", 104))
    feed.run(("a", "a1", 115), ("a", "a3", 105))
    assert feed.run(("b", "b1", 120)) == [("a1", 101, "b1", 102), ("a2", 104, "b1", 102)]
    assert [counted["late"] for counted in feed.counters] == [0, 0, 1, 0]
    assert feed.warnings == [
        "reports came too late to be joined, up to 10 s behind the newest of their stream; "
        "lateness_s is 5, idle_s is 30"
    ]


def test_an_interval_join_tells_a_pair_with_the_second_report_whichever_side_that_is(tmp_path):
    feed = Feed(tmp_path, INTERVAL)
    feed.run(("a", "a1", 100))
    assert feed.run(("b", "b1", 105), ("b", "b2", 106)) == [("a1", 100, "b1", 105)]
    assert feed.run(("a", "a2", 107)) == [("a2", 107, "b1", 105), ("a2", 107, "b2", 106)]
    # Five seconds late is not late, six are.
    assert feed.run(("b", "b3", 101), ("b", "b4", 100)) == [("a1", 100, "b3", 101)]
    assert feed.counters[-1]["late"] == 1


def test_a_stream_that_is_silent_holds_windows_only_for_as_long_as_the_plan_says(tmp_path):
    feed = Feed(tmp_path, WINDOW)
    feed.run(("a", "a1", 101), ("b", "b1", 102), now_s=1000)
    feed.run(("a", "a1", 125), now_s=1020)
    assert feed.run(now_s=1030) == []
    assert feed.run(("a", "a1", 126), now_s=1031) == [("a1", 101, "b1", 102)]


def test_the_last_window_before_a_silence_of_both_is_told_by_the_clock(tmp_path):
    feed = Feed(tmp_path, WINDOW)
    feed.run(("a", "a1", 101), ("b", "b1", 102), now_s=1000)
    assert feed.run(now_s=1012) == []
    assert feed.run(now_s=1032) == [("a1", 101, "b1", 102)]
    # What comes now for that window is late.
    assert feed.run(("a", "a2", 103), now_s=1033) == []
    assert feed.counters[-1]["late"] == 1


@pytest.mark.parametrize("document", [WINDOW, INTERVAL])
def test_a_report_that_comes_twice_counts_once_and_one_of_another_place_is_another(tmp_path, document):
    feed, place = Feed(tmp_path, document), (1.001, 1.0)
    feed.run(("a", "a1", 101), ("a", "a1", 101), ("b", "b1", 102))
    feed.run(("a", "a1", 101), ("a", "a1", 101, place), ("b", "b1", 102))
    feed.run(("a", "a1", 200), ("b", "b1", 200, (5.0, 5.0)))
    assert feed.told == 2 * [("a1", 101, "b1", 102)]


@pytest.mark.long
@pytest.mark.parametrize("document", [WINDOW, {**WINDOW, "slide_s": 3}, INTERVAL])
def test_however_the_feed_is_cut_and_wherever_the_engine_restarts_the_same_is_told(tmp_path, document):
    rng = random.Random(5)
    log = [(rng.choice("ab"), rng.choice("xyz"), 100 + n // 4 - rng.choice((0, 0, 1, 4, 9, 18))) for n in range(120)]
    log += [("a", "x", 900), ("b", "x", 900)]
    told, late = [], []
    for number, size in enumerate((1, 7, 50, len(log))):
        feed = Feed(tmp_path / str(number), document)
        for start in range(0, len(log), size):
            feed.run(*log[start : start + size])
            if rng.random() < 0.1:
                feed.engine.restart()
        while feed.run():  # what a batch had no room for
            pass
        told.append(sorted(feed.told))
        late.append(sum(counted["late"] for counted in feed.counters))
    assert len(told[0]) > 100
    assert late[0] > 3
    assert [told[0]] * 4 == told
    assert [late[0]] * 4 == late


@pytest.mark.long
@pytest.mark.parametrize(("document", "most"), [(WINDOW, 60), (INTERVAL, 40)])
def test_what_is_kept_does_not_grow_with_the_time_that_passes(tmp_path, document, most):
    feed = Feed(tmp_path, document)
    for second in range(100, 220):
        feed.run(("a", "a1", second), ("b", "b1", second, (5.0, 5.0)))
    kept = [counted["reports"] for counted in feed.counters[50:]]
    assert 0 < max(kept) <= most


def test_the_home_server_that_is_slower_holds_a_window(tmp_path):
    feed = Feed(tmp_path, WINDOW, partitions=2)
    one, other = (first_of(number, "a") for number in (0, 1))
    feed.run(("a", one, 101), ("a", other, 101), ("b", first_of(0, "b"), 102))
    feed.run(*(("b", first_of(number, "b"), 120, (5.0, 5.0)) for number in (0, 1)))
    assert feed.run(("a", one, 130)) == []
    assert [row[0] for row in feed.run(("a", other, 115))] == sorted([one, other])


def first_of(number, stream):
    """Return a key of which the home server with a number keeps the object."""
    keys = [f"{stream}{n}" for n in range(20)]
    return keys[int(np.flatnonzero(partition_of(key_hashes(stream, keys), 2) == number)[0])]


@pytest.mark.parametrize("document", [WINDOW, INTERVAL])
def test_in_a_space_of_three_dimensions_all_of_them_count(tmp_path, document):
    feed = Feed(tmp_path, document, ROOM, distance=2.0)
    feed.run(("a", "a1", 101, (0.0, 0.0, 0.0)), ("b", "b1", 102, (0.0, 1.0, 0.0)), ("b", "b2", 102, (0.0, 1.0, 9.0)))
    feed.run(("a", "a1", 200, (0.0, 0.0, 50.0)), ("b", "b1", 200, (0.0, 0.0, 90.0)))
    assert feed.told == [("a1", 101, "b1", 102)]


@pytest.mark.parametrize("document", [WINDOW, INTERVAL])
@pytest.mark.parametrize("by_partner", [False, True])
def test_a_pair_across_a_border_is_told_once_whichever_stream_drives_and_only_that_stream_crosses_it(
    tmp_path, document, by_partner
):
    feed, west, east = Feed(tmp_path, document), (-0.001, 1.0), (0.001, 1.0)
    feed.control.append({"op": "drive", "query": 1, "revision": 1, "by_partner": by_partner})
    feed.engine._rescaled = 0.0
    feed.run(("a", "a1", 101, west))
    feed.run(("b", "b1", 102, east))
    feed.run(("a", "a2", 102, east), ("b", "b2", 101, west))
    kept = [counted["reports"] for counted in feed.counters]
    assert kept == ([1, 3, 6] if by_partner else [2, 3, 6])
    feed.run(("a", "a1", 200, (9.0, 9.0)), ("b", "b1", 200, (-9.0, -9.0)))
    told = [("a1", 101, "b1", 102), ("a1", 101, "b2", 101), ("a2", 102, "b1", 102), ("a2", 102, "b2", 101)]
    assert sorted(feed.told) == told


@pytest.mark.parametrize("document", [WINDOW, INTERVAL])
def test_reports_that_wait_cross_a_border_once_their_stream_drives(tmp_path, document):
    feed, west, east = Feed(tmp_path, document), (-0.001, 1.0), (0.001, 1.0)
    feed.engine._rescaled = 0.0
    feed.run(("b", "b1", 101, east))
    feed.control.append({"op": "drive", "query": 1, "revision": 1, "by_partner": True})
    feed.run()
    feed.run(("a", "a1", 102, west))
    feed.run(("a", "a1", 200, (9.0, 9.0)), ("b", "b1", 200, (-9.0, -9.0)))
    assert [counted["reports"] for counted in feed.counters[:3]] == [1, 2, 3]
    assert feed.told == [("a1", 102, "b1", 101)]


def test_of_two_of_the_same_stream_each_pair_is_told_once_or_both_ways(tmp_path):
    for name, mirrored, count in (("once", False, 1), ("both", True, 2)):
        feed = Feed(tmp_path / name, {**WINDOW, "mirrored": mirrored}, stream="a")
        feed.run(("a", "a1", 101), ("a", "a2", 102))
        assert len(feed.run(("a", "a1", 115))) == count
