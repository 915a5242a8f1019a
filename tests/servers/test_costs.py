"""What each query costs is measured, whatever its kind: among many that are evaluated together a huge one is found."""

import random
import statistics

import numpy as np
import pytest
import shapely

from streaming.elements import point_elements
from streaming.engine import fragments
from streaming.engine.fragments import Spent, costs_of
from streaming.layers.features import feature_table
from streaming.operators.failures import Failures
from streaming.results import result_schema
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.spaces import EARTH
from tests.servers.harness import Engine

HUGE, SMALL, BATCHES = 50, range(1, 40), 6
SHIPS = [f"ship {number}" for number in range(2_000)]
WHOLE, SPOT = {"lo": [0, 0], "hi": [10, 10]}, {"lo": [9, 9], "hi": [9.1, 9.1]}
# Its border goes to and fro between the ships.
SHORE = {
    "type": "Polygon",
    "coordinates": [[[0, 0], *([9 * n / 10, 9 * (n % 2)] for n in range(10)), [9, 0], [9, 9.5], [0, 9.5], [0, 0]]],
}
ZONES = {"layer": "zones", "predicate": "dwithin", "distance": 3_000}
# The same query, once huge, and as it is for others that run beside it.
KINDS = {
    "range": ({"area": WHOLE}, {"area": SPOT}),
    "filter": ({"area": WHOLE, "where": "speed > 3"}, {"area": SPOT, "where": "speed > 3"}),
    "join": ({"kind": "join", "join": ZONES}, {"kind": "join", "join": ZONES, "area": SPOT}),
    "stream join": (
        {"kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": 40_000}},
        {"kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": 10}},
    ),
    "moving range": ({"around": {"key": SHIPS[0], "radius": 900_000}}, {"around": {"key": SHIPS[1], "radius": 9_000}}),
    "knn": (
        {"kind": "knn", "around": {"key": SHIPS[0]}, "k": 1_000},
        {"kind": "knn", "around": {"key": SHIPS[1]}, "k": 2},
    ),
    "aggregate": (
        {"around": {"key": SHIPS[0], "radius": 900_000}, "aggregate": {"function": "avg", "property": "speed"}},
        {"around": {"key": SHIPS[1], "radius": 9_000}, "aggregate": {"function": "avg", "property": "speed"}},
    ),
    # The places of the huge one are so uncertain that nothing is told of it.
    "track": ({"kind": "track", "area": SHORE, "accuracy": 300_000}, {"kind": "track", "area": SPOT}),
    "fixed aggregate": (
        {"area": WHOLE, "aggregate": {"function": "sum", "property": "speed"}},
        {"area": SPOT, "aggregate": {"function": "sum", "property": "speed"}},
    ),
}


def fleet(step):
    rng = random.Random(step)
    places = [(rng.uniform(0, 9), rng.uniform(0, 9)) for _ in SHIPS]
    speeds = [{"speed": rng.randint(0, 9)} for _ in SHIPS]
    return [("ships", 0, point_elements("ships", SHIPS, [step] * len(SHIPS), places, speeds, EARTH))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_one_that_is_huge_costs_by_far_more_than_the_small_ones(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(fragments, "COST_REPORTED_S", 0.0)
    engine = Engine(tmp_path, 1, 1)
    huge, small = ({"stream": "ships", **plan} for plan in KINDS[kind])
    zones = [shapely.box(x, y, x + 0.4, y + 0.4) for x in range(10) for y in range(10)]
    version = engine.layers.write("zones", feature_table("zones", [str(n) for n in range(100)], zones, [{}] * 100))
    # Each of the small ones has a plan of its own, so none shares an answer.
    plans = {query: small | {"where": f"speed < {100 + query}"} for query in SMALL} | {HUGE: huge}
    control = [{"op": "layer", "layer": "zones", "version": version}]
    control += [{"op": "register", "query": q, "revision": q, "plan": plan} for q, plan in plans.items()]
    engine.run(fleet(0), control)
    least = {}
    for number in range(1, BATCHES):
        # What the assembler tells includes what its region took.
        costs = [fragment.costs for fragment in engine.run(fleet(number), []) if fragment.costs][-1]
        told = {query: ms for query, revision, ms in costs["queries"] if query == revision}
        assert 0 < told[HUGE] <= costs["ms"]
        # Whatever else the machine did comes on top.
        least = {query: min(ms, least.get(query, ms)) for query, ms in told.items()}
    assert least.pop(HUGE) > 4 * statistics.median(least.get(query, 0) for query in SMALL), least


def test_time_is_shared_by_numbers_as_by_positions():
    failures, numbers = Failures(), [10, 20, 2**41]
    failures.share(np.array([2**41, 10, 2**41, 7]), 1.0, np.array(numbers))
    assert failures.seconds == {10: 0.25, 2**41: 0.5}


def owned_costs(*queries, processor_s=None):
    """Return the costs that a fragment tells of queries, given the area's width, the owner and the seconds of each."""
    entries = [
        {"op": "register", "query": 1 + number, "revision": 4, "owner": owner}
        | {"plan": {"stream": "ships", "area": {"lo": [0, 0], "hi": [width, 1]}}}
        for number, (width, owner, _) in enumerate(queries)
    ]
    registry, applied = Registry(EARTH).apply(entries)
    seconds = {1 + number: cost for number, (_, _, cost) in enumerate(queries)}
    if processor_s is None:
        processor_s = sum({width: cost for width, _, cost in queries}.values())
    control, no_snapshots = ControlStep(registry, registry, applied, 0), result_schema(EARTH).empty_table()
    return costs_of(seconds, control, Spent(1.0, processor_s), no_snapshots)


def test_a_region_tells_what_the_queries_of_an_owner_cost_together_and_which_cost_most():
    told = owned_costs((1, 7, 0.03), (2, 7, 0.04), (3, -2, 0.015), (4, 0, 0.04), (5, 0, 0.03))
    assert (told["ms"], told["queries"], told["owners"]) == (1000, [], [[7, 70, [[2, 4, 40], [1, 4, 30]]]])
    assert told["begun"] == [1, 2] and owned_costs((1, 7, 0.008), (2, 7, 0.008)) == {}
    assert owned_costs((1, 0, 0.06))["owners"] == []


def test_what_was_measured_of_no_query_is_shared_by_owners_in_proportion_up_to_a_bound():
    costs = (1, 7, 0.09), (2, 8, 0.06), (2, 8, 0.06), (3, 0, 0.05)
    told = owned_costs(*costs, processor_s=0.4)
    assert told["owners"] == [[7, 180, [[1, 4, 180]]], [8, 120, [[2, 4, 120]]]]
    assert told["queries"] == [[1, 4, 90], [2, 4, 60], [3, 4, 60], [4, 4, 50]]
    assert [ms for _, ms, _ in owned_costs(*costs, processor_s=60.0)["owners"]] == [1_440, 960]


def test_an_answer_that_several_queries_share_costs_its_owner_once():
    assert owned_costs((1, 7, 0.015), (1, 7, 0.015)) == {}
    assert owned_costs((1, 7, 0.06), (1, 7, 0.06), (1, 8, 0.06))["owners"] == [
        [7, 60, [[1, 4, 60]]],
        [8, 60, [[3, 4, 60]]],
    ]
