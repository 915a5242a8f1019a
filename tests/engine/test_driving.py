"""The smaller of two joined streams drives their join over event time; the decision is an entry of the control log."""

import itertools

import orjson
import pytest

from streaming.elements import stream_number
from streaming.engine.driving import (
    COOL_DOWN_S,
    OBSERVATIONS,
    DrivenJoin,
    JoinWatch,
    Optimiser,
    joins_of,
    told_joins,
)
from streaming.logs import Log
from streaming.operators.region_map import RegionMap
from streaming.operators.watermarks import Progress
from streaming.servers.control.registry import Registry
from streaming.servers.home import Home
from streaming.servers.ways.time_joins.home import PROGRESS, reports_read
from streaming.spaces import EARTH

JOIN = DrivenJoin(7, 3, "buses", "trams", by_partner=False, either=True)
PLAN = {"stream": "buses", "kind": "window_join", "window_s": 10, "join": {"stream": "trams"}}


class Streets:
    """Joins under the eyes of an optimiser, which gets what it asks for."""

    def __init__(self, *joins):
        self.optimiser, self.joins, self.changes = Optimiser(), list(joins), []
        self.counts, self.now_s = {"buses": 0, "trams": 0}, 0.0

    def run(self, seconds, buses, trams):
        for _ in range(seconds):
            self.now_s += 1.0
            self.counts = {"buses": self.counts["buses"] + buses, "trams": self.counts["trams"] + trams}
            for join in self.optimiser.observed(self.joins, self.counts, self.now_s):
                self.changes.append((self.now_s, join.query, join.driver))
                self.joins = [join if join.query == known.query else known for known in self.joins]


def test_the_smaller_stream_drives_after_some_observations():
    streets = Streets(JOIN)
    streets.run(30, buses=1_000, trams=100)
    assert streets.changes == [(OBSERVATIONS + 1.0, 7, "trams")]


def test_streams_of_about_the_same_size_stay_as_they_are_and_so_does_a_join_without_a_choice():
    streets = Streets(JOIN, JOIN._replace(query=8, either=False))
    streets.run(100, buses=130, trams=100)
    streets.run(100, buses=100, trams=130)
    assert streets.changes == []
    streets.run(30, buses=200, trams=100)
    assert [query for _, query, _ in streets.changes] == [7]


def test_a_join_that_was_changed_stays_for_a_while_however_the_streams_swing():
    streets = Streets(JOIN)
    for _ in range(10):
        streets.run(15, buses=1_000, trams=100)
        streets.run(15, buses=100, trams=1_000)
    times = [at_s for at_s, _, _ in streets.changes]
    assert len(times) > 1
    assert min(later - at_s for at_s, later in itertools.pairwise(times)) >= COOL_DOWN_S


def test_an_engine_that_starts_anew_is_no_flood_of_reports():
    streets = Streets(JOIN)
    streets.run(20, buses=100, trams=100)
    streets.counts = {"buses": 0, "trams": 0}
    streets.run(20, buses=100, trams=100)
    assert streets.changes == []


def registered(**plan):
    entry = {"op": "register", "query": 7, "revision": 3, "plan": PLAN | plan}
    return Registry(EARTH).apply([entry])[0]


@pytest.mark.parametrize(("regions", "driver"), [(2, "trams"), (1, "buses")])
def test_what_the_tasks_report_becomes_an_entry_that_the_registry_applies_if_there_are_several_regions(
    redis_client, regions, driver
):
    log, registry = Log(redis_client, "earth", 2), registered()
    watch = JoinWatch(log)
    watch.look(0.0)  # nothing is reported yet
    log.send("tick", now_us=0)
    for second in range(OBSERVATIONS + 2):
        heard = {
            stream_number("buses"): Progress(0, 0, 900 * second),
            stream_number("trams"): Progress(0, 0, 5 * second),
        }
        for task in (0, 1):
            known = {"joins": told_joins(registry), "map": RegionMap.grid(EARTH, regions).document()}
            log.report_regions(
                {},
                **(known if task == 0 else {}),
                **{f"reports:{task}": reports_read([Home.empty(), Home(None, parts={PROGRESS: heard})], registry)},
            )
        watch.look(1.0 + second)
    entries = [orjson.loads(entry.fields[b"entry"]) for entry in log.event_log.read(log.names.control)]
    driven, _ = registry.apply(entries)
    assert [entry["op"] for entry in entries] == ["tick", "drive"][:regions]
    (join,) = joins_of(told_joins(driven))
    assert join.driver == driver


@pytest.mark.parametrize(
    ("entry", "plan"),
    [
        ({"revision": 2}, {}),
        ({"query": 8}, {}),
        ({}, {"transform": [{"enlarge_m": 5.0}]}),
        ({}, {"join": {"stream": "buses"}}),
        ({}, {"kind": "range", "window_s": None, "join": None}),
    ],
)
def test_a_driver_that_is_asked_for_too_late_or_where_there_is_no_choice_changes_nothing(entry, plan):
    known = (
        registered(**plan)
        if plan.get("kind") != "range"
        else Registry(EARTH).apply([{"op": "register", "query": 7, "revision": 3, "plan": {"stream": "buses"}}])[0]
    )
    after, _ = known.apply([{"op": "drive", "query": 7, "revision": 3, "by_partner": True} | entry])
    assert not after.by_partner


def test_a_driver_is_kept_with_the_registry_and_given_up_when_the_query_is_edited_or_ends():
    driven, _ = registered().apply([{"op": "drive", "query": 7, "revision": 3, "by_partner": True}])
    restored = Registry(EARTH).restored(driven.head(), driven.registrations.levels)
    assert driven.by_partner == restored.by_partner == {7}
    edited, _ = driven.apply([{"op": "register", "query": 7, "revision": 4, "plan": PLAN | {"window_s": 20}}])
    cancelled, _ = driven.apply([{"op": "cancel", "query": 7, "revision": 4}])
    assert not edited.by_partner and not cancelled.by_partner
    back, _ = driven.apply([{"op": "drive", "query": 7, "revision": 3, "by_partner": False}])
    assert not back.by_partner
