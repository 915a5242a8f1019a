"""Encounters by hand: when they begin and end, what is late, what silence does, and what an edited layer does."""

import numpy as np
import pytest
import shapely

from streaming.elements import box_elements
from streaming.layers.features import feature_table
from streaming.results import REASONS, SIGNS, SNAPSHOT
from streaming.results.netting import net
from streaming.spaces import EARTH, Dimension, Space
from tests.servers.harness import Engine

SECOND_US = 1_000_000
ROOM = Space("room", tuple(Dimension(name, "m", -100.0, 100.0) for name in "xyz"))
HERE, BESIDE, FAR = (1.0, 1.0), (1.0, 1.0005), (1.0, 1.1)


class Feed:
    """An engine with one query: a within 1 km of b for 10 s."""

    def __init__(self, folder, space=EARTH, partitions=1, control=(), rescaled=0.0, **document):
        self.engine, self.space = Engine(folder, partitions, 4, space, rescaled=rescaled), space
        self.warnings, self.late = [], 0
        join = {"stream": "b", "predicate": "dwithin", "distance": 1000}
        plan = {"stream": "a", "kind": "encounter", "join": join, "for_s": 10, "gap_s": 60, "lateness_s": 5}
        plan |= {"idle_s": 30} | document
        self.control = [*control, {"op": "register", "query": 1, "revision": 1, "plan": plan}]

    def run(self, *reports, now_s=None, control=()):
        """Run a batch of (stream, key, seconds, place); return what it tells: sign, pair, since, until, reason."""
        blocks = [(stream, (now_s or 0) * SECOND_US, self.table(stream, *report)) for stream, *report in reports]
        ticks = [] if now_s is None else [{"op": "tick", "now_us": now_s * SECOND_US}]
        fragments, self.control = self.engine.run(blocks, [*self.control, *ticks, *control]), []
        self.late += sum(fragment.counters.get("late", 0) for fragment in fragments)
        self.warnings += [one["error"] for fragment in fragments for one in fragment.failures]
        self.rows, self.fragments = net(fragments).to_pylist(), fragments
        return [
            (
                SIGNS[row["sign"]],
                row["key"] + row["partner"],
                row["since_us"] // SECOND_US,
                row["until_us"] and row["until_us"] // SECOND_US,
                REASONS[row["reason"]],
            )
            for row in self.rows
        ]

    def table(self, stream, key, time_s, place=HERE, speed=0):
        low, high = (
            [*place, *[end] * (self.space.n - len(place))] if self.space is EARTH else list(place)
            for end in (-np.inf, np.inf)
        )
        box = [low + high]
        return box_elements(stream, [key], [time_s * SECOND_US], box, [{"speed": speed}], space=self.space)


def both(time_s):
    """Reports that only let event time go on to `time_s`, 5 s before them."""
    return ("a", "z", time_s + 5, (50, 50)), ("b", "z", time_s + 5, (60, 60))


def test_an_encounter_is_told_once_event_time_has_passed_its_beginning_by_so_long(tmp_path):
    feed = Feed(tmp_path)
    assert feed.run(("a", "x", 100), ("b", "y", 103, BESIDE), *both(112)) == []
    assert feed.run(*both(113)) == [("+", "xy", 103, None, "moved")]
    assert feed.run(*both(140)) == []


def test_it_ends_when_one_of_the_two_goes_away_and_tells_when_and_where_they_were_nearest(tmp_path):
    feed = Feed(tmp_path)
    feed.run(("a", "x", 100), ("b", "y", 103, (1.0, 1.005)), *both(113))
    assert feed.run(("b", "y", 120, BESIDE), *both(121)) == [("~", "xy", 103, None, "moved")]
    assert feed.run(("b", "y", 130, (1.0, 1.003)), *both(131)) == []
    assert feed.run(("a", "x", 140, FAR), *both(140)) == []
    assert feed.run(*both(141)) == [("-", "xy", 103, 140, "moved")]
    (row,) = feed.rows
    assert row["distance"] == pytest.approx(55.3, abs=0.1)
    assert (row["time_us"], row["partner_time_us"]) == (100 * SECOND_US, 120 * SECOND_US)
    assert (row["bounds"][:2], row["partner_bounds"][:2]) == (list(HERE), list(BESIDE))


def test_a_pair_that_is_near_for_less_long_is_not_told(tmp_path):
    feed = Feed(tmp_path)
    assert feed.run(("a", "x", 100), ("b", "y", 103), ("b", "y", 112, FAR), *both(200)) == []


def test_an_encounter_that_is_over_when_it_is_known_begins_in_one_batch_and_ends_in_the_next(tmp_path):
    feed = Feed(tmp_path)
    there = [("b", "y", 103), ("b", "y", 120, FAR), ("b", "y", 130), ("b", "y", 150, FAR)]
    assert feed.run(("a", "x", 100), *there, *both(170)) == [("+", "xy", 103, None, "moved")]
    assert feed.run() == [("-", "xy", 103, 120, "partner_moved"), ("+", "xy", 130, None, "moved")]
    assert feed.run() == [("-", "xy", 130, 150, "partner_moved")]
    assert feed.run() == []


def test_reports_out_of_order_make_the_same_encounter_and_late_ones_are_counted_and_ignored(tmp_path):
    feed = Feed(tmp_path)
    feed.run(("b", "y", 107, FAR), ("a", "x", 100), ("b", "y", 103), *both(105))
    assert feed.run(("b", "y", 108), ("b", "y", 99, FAR), *both(140)) == [("+", "xy", 108, None, "moved")]
    assert feed.late == 1
    assert feed.warnings == [
        "reports came too late to be joined, up to 11 s behind the newest of their stream; "
        "lateness_s is 5, idle_s is 30"
    ]


def test_an_object_that_is_silent_for_long_is_nowhere(tmp_path):
    feed = Feed(tmp_path)
    feed.run(("a", "x", 100), ("b", "y", 103), *both(113))
    assert feed.run(("a", "x", 150), *both(163)) == []
    assert feed.run(*both(164)) == [("-", "xy", 103, 163, "expired")]


def test_a_report_that_does_not_pass_a_filter_ends_an_encounter(tmp_path):
    feed = Feed(tmp_path, where="speed < 2")
    feed.run(("a", "x", 100), ("b", "y", 103), *both(113))
    assert feed.run(("a", "x", 120, HERE, 3), *both(121)) == [("-", "xy", 103, 120, "filtered")]


def test_event_time_goes_on_with_the_clock_when_nothing_comes(tmp_path):
    feed = Feed(tmp_path)
    feed.run(("a", "x", 100), ("b", "y", 103), now_s=1000)
    assert feed.run(now_s=1030) == []
    assert feed.run(now_s=1031) == [("+", "xy", 103, None, "moved")]
    # Event time is 129; a report of before counts from then on.
    assert feed.run(("b", "y", 110, FAR), now_s=1032) == []
    assert feed.run(now_s=1064) == [("-", "xy", 103, 129, "partner_moved")]


def test_objects_near_a_layer_meet_nobody_also_after_an_edit_of_the_layer(tmp_path):
    feed = Feed(tmp_path, away_from={"layer": "ports", "distance": 10_000})
    layers, points = feed.engine.layers, [shapely.Point(1.0, 1.05), shapely.Point(40, 40)]
    version = layers.write("ports", feature_table("ports", ["p"], points[:1], [{}]))
    feed.control.insert(0, {"op": "layer", "layer": "ports", "version": version})
    assert feed.run(("a", "x", 100), ("b", "y", 103), *both(120)) == []
    version = layers.edit("ports", version, feature_table("ports", ["p"], points[1:], [{}]), set())
    edited = {"op": "layer", "layer": "ports", "version": version}
    assert feed.run(("a", "x", 130), *both(125), control=[edited]) == []
    assert feed.run(*both(131)) == [("+", "xy", 120, None, "moved")]
    version = layers.edit("ports", version, feature_table("ports", ["p"], points[:1], [{}]), set())
    assert feed.run(*both(135), control=[edited | {"version": version}]) == [("-", "xy", 120, 131, "edited")]


def test_a_snapshot_has_the_encounters_that_last(tmp_path):
    feed = Feed(tmp_path)
    feed.run(("a", "x", 100), ("b", "y", 103), *both(113))
    feed.run(control=[{"op": "snapshot", "query": 1}])
    rows = [row for fragment in feed.fragments for row in fragment.snapshots.to_pylist()]
    assert [(row["key"], row["partner"], row["since_us"], row["reason"]) for row in rows] == [
        ("x", "y", 103 * SECOND_US, SNAPSHOT)
    ]


def test_the_spans_that_regions_sent_are_counted(tmp_path):
    feed = Feed(tmp_path)
    feed.run(("a", "x", 100), ("b", "y", 103), *both(113))
    (assembled,) = [fragment for fragment in feed.fragments if fragment.sent]
    assert sum(assembled.sent[1]) == 1
    feed.run(("a", "x", 120, FAR), *both(125))
    (assembled,) = [fragment for fragment in feed.fragments if fragment.sent]
    assert sum(assembled.sent[1]) == 1


def test_an_encounter_goes_on_when_regions_are_split_and_merged(tmp_path):
    feed = Feed(tmp_path, rescaled=1.0)
    feed.run(("a", "x", 100), ("b", "y", 103), *both(113))
    for time_s in range(115, 140, 3):
        assert feed.run(("a", "x", time_s, (1.0, 1.002)), *both(time_s)) == []
    assert feed.run(("a", "x", 150, FAR), *both(160)) == [("-", "xy", 103, 150, "moved")]


def test_encounters_are_found_in_a_space_of_three_dimensions(tmp_path):
    feed = Feed(tmp_path, space=ROOM, join={"stream": "b", "predicate": "dwithin", "distance": 2})
    aside = ("a", "z", 120, (50.0, 50.0, 5.0)), ("b", "z", 120, (-50.0, 5.0, 5.0))
    feed.run(("a", "x", 100, (1.0, 1.0, 5.0)), ("b", "y", 103, (2.0, 1.0, 5.0)), *aside)
    assert [(row["key"], row["partner"], row["distance"]) for row in feed.rows] == [("x", "y", 1.0)]


ONE_SIDED = {"join": {"stream": "a", "predicate": "dwithin", "distance": 1000}, "where": "speed > 3"}


def fast(**spans):
    """Reports of two objects beside each other, every 5 s for 110 s, each of which is fast within a span of seconds."""
    places = dict(zip(spans, (HERE, BESIDE), strict=True))
    return [
        ("a", key, 1000 + s, places[key], 5 * (low <= s < high))
        for s in range(0, 111, 5)
        for key, (low, high) in spans.items()
    ]


@pytest.mark.parametrize("keys", ["xy", "yx"])
def test_each_way_of_a_pair_has_encounters_of_its_own_if_only_the_element_is_filtered(tmp_path, keys):
    feed = Feed(tmp_path, **ONE_SIDED, for_s=60, gap_s=15)
    reports = fast(**{keys[0]: (0, 200), keys[1]: (40, 70)})
    assert feed.run(*reports, *both(1200)) == [("+", keys, 1000, None, "moved")]
    assert [row[:4] for row in feed.run()] == [("-", keys, 1000, 1125)]
    assert feed.run(*both(1300)) == []


def test_of_two_ways_that_are_due_together_the_one_is_told_whose_element_has_the_first_key(tmp_path):
    feed = Feed(tmp_path, **ONE_SIDED, for_s=60, gap_s=15)
    feed.run(*fast(**{"9": (0, 200), "10": (0, 200)}), *both(1100))
    assert [(row["key"], row["partner"]) for row in feed.rows] == [("10", "9")]


def test_the_other_way_is_told_from_when_the_first_one_ends_if_it_goes_on(tmp_path):
    feed = Feed(tmp_path, **ONE_SIDED, for_s=30, gap_s=15)
    reports = fast(x=(20, 200), y=(0, 80))
    told = [feed.run(*[one for one in reports if one[2] == s], *both(s)) for s in range(1000, 1111, 5)]
    told += [feed.run(*both(1200)), feed.run()]
    changes = [row[:4] for batch in told for row in batch if row[0] != "~"]
    assert changes == [
        ("+", "yx", 1000, None),
        ("-", "yx", 1000, 1080),
        ("+", "xy", 1020, None),
        ("-", "xy", 1020, 1125),
    ]
