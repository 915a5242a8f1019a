"""An estimate of a query, made of counts and samples, is near what the engine counts for it, on random places."""

from itertools import product

import numpy as np
import pytest

from streaming.elements import box_elements, key_hashes, stream_number
from streaming.operators.allowance import FOUND, KNOWN, MOST, PairAllowance
from streaming.operators.box_sample import LEAST_EACH, BoxSample, packed, together, unpacked
from streaming.operators.boxes import intersects
from streaming.operators.elements import Elements
from streaming.operators.estimates import COMPARED, Estimate, Known, estimate
from streaming.operators.failures import Failures
from streaming.operators.metres import within_reach
from streaming.operators.stream_join import StreamJoins
from streaming.plans import parse_plan
from streaming.spaces import EARTH

# Of random places with harbours, an estimate is within this factor of the true count. Where less than this part of all
# pairs meets, a sample has too few of them: then the estimate says no more than that they are few.
FACTOR, SEEN = 2.0, 2e-3
OBJECTS, SAMPLED = 1_200, 256


def places(rng, count, size_deg=0.0):
    """Random places, half of them in a few harbours: boxes of shape (N, 6) in random order."""
    middle = np.stack([rng.uniform(-170, 170, count), rng.uniform(-70, 70, count)], axis=1)
    clustered = rng.random(count) < 0.5
    middle[clustered] = middle[rng.integers(0, 5, clustered.sum())] + rng.normal(0, 0.5, (clustered.sum(), 2))
    height = np.full((count, 1), np.inf)
    return np.hstack([middle - size_deg, -height, middle + size_deg, height])


def elements_of(bounds, streams):
    """Elements at places, and the hashes of their keys; the number of each one's stream is given."""
    keys = [str(number) for number in range(len(bounds))]
    table = box_elements("any", keys, [1] * len(keys), bounds, [{}] * len(keys))
    cold = table.select(["key", "geometry", "properties"])
    return Elements(streams, bounds, lambda rows: cold.take(rows), has_geometries=False), np.arange(len(keys))


def counted(plan, bounds, streams):
    """What the engine counts for a join with a stream, in the unit of its room."""
    elements, key_hash = elements_of(bounds, streams)
    rows, failures = np.arange(len(bounds)), Failures(PairAllowance(10**9))
    StreamJoins([plan], EARTH).pairs(elements, key_hash, rows, rows, failures)
    return failures.allowance.most - failures.allowance.left


def near(partner, distance, **more):
    about = {"stream": partner, "predicate": "dwithin", "distance": distance}
    return parse_plan({"stream": "ships", "kind": "join", "join": about, **more})


@pytest.mark.parametrize("partner", ["ships", "buses"])
@pytest.mark.seeds(6)
def test_the_estimate_of_a_join_with_a_stream_is_near_what_the_engine_counts(seed, partner):
    rng = np.random.default_rng(seed)
    plan = near(partner, 10 ** rng.uniform(5, 7.3))
    bounds = places(rng, OBJECTS)
    names = np.where(np.arange(OBJECTS) < OBJECTS // 2, "ships", partner)
    streams = np.array([stream_number(name) for name in names])
    samples = {name: BoxSample.drawn(bounds[names == name], SAMPLED) for name in ("ships", partner)}
    found = estimate(plan, Known(samples), EARTH)
    true = counted(plan, bounds, streams)
    assert true > SEEN * (OBJECTS / 2) ** 2
    assert true / FACTOR <= found.work <= true * FACTOR
    assert found.room == MOST + KNOWN * OBJECTS


@pytest.mark.seeds(6)
def test_a_sample_of_a_join_that_has_few_pairs_tells_that_they_are_few(seed):
    rng = np.random.default_rng(seed)
    bounds = places(rng, OBJECTS)
    found = estimate(near("ships", 10.0), Known({"ships": BoxSample.drawn(bounds, SAMPLED)}), EARTH)
    assert found.pairs < SEEN * OBJECTS**2 and not found.doubtful


@pytest.mark.parametrize("distance", [None, 300_000.0])
@pytest.mark.seeds(6)
def test_the_estimate_of_a_join_with_a_layer_is_near_how_many_boxes_meet_in_its_area(seed, distance):
    rng = np.random.default_rng(seed)
    bounds, features = places(rng, OBJECTS), places(rng, 2_000, size_deg=8.0)
    about = {"layer": "zones", "predicate": "dwithin" if distance else "intersects"}
    about |= {"distance": distance} if distance else {}
    plan = parse_plan({"stream": "ships", "kind": "join", "join": about, "area": {"lo": [-180, -90], "hi": [60, 90]}})
    known = Known({"ships": BoxSample.drawn(bounds, SAMPLED)}, BoxSample.drawn(features, SAMPLED))
    reach = within_reach(bounds, distance, EARTH) if distance else bounds
    row, other = (part.ravel() for part in np.indices((OBJECTS, len(features))))
    true = (intersects(reach, row, features, other, EARTH) & (bounds[row, 0] <= 60)).sum()
    found = estimate(plan, known, EARTH)
    assert true > SEEN * OBJECTS * len(features)
    assert true / FACTOR <= found.pairs <= true * FACTOR


def test_a_sample_of_all_gives_the_true_count():
    bounds = places(np.random.default_rng(1), 300)
    plan = near("ships", 100_000)
    row, other = (part.ravel() for part in np.indices((300, 300)))
    met = intersects(within_reach(bounds, 100_000, EARTH), row, bounds, other, EARTH) & (row != other)
    assert estimate(plan, Known({"ships": BoxSample.drawn(bounds, COMPARED)}), EARTH).pairs == pytest.approx(met.sum())


def test_everything_with_everything_is_hopeless_and_disjoint_compares_everything():
    ships = {"ships": BoxSample.drawn(places(np.random.default_rng(1), 1_000), COMPARED, count=20_000)}
    assert estimate(near("ships", 20_000_000), Known(ships), EARTH).hopeless
    zones = parse_plan({"stream": "ships", "kind": "join", "join": {"layer": "zones", "predicate": "disjoint"}})
    found = estimate(zones, Known(ships, BoxSample.drawn(np.zeros((7, 6)), 7)), EARTH)
    assert found.pairs == pytest.approx(7 * 20_000)


def test_filters_make_a_join_with_a_layer_no_hopeless_one_since_an_estimate_does_not_evaluate_them():
    ships = {"ships": BoxSample.drawn(np.zeros((500, 6)), COMPARED, count=1_000_000)}
    known = Known(ships, BoxSample.drawn(np.zeros((500, 6)), COMPARED, count=10_000))
    document = {"stream": "ships", "kind": "join", "join": {"layer": "zones"}}
    assert estimate(parse_plan(document), known, EARTH).hopeless
    filtered = estimate(parse_plan(document | {"where": "speed_mps > 30"}), known, EARTH)
    assert filtered.doubtful and not filtered.hopeless


@pytest.mark.parametrize(
    "document",
    [
        {"compare": {"lo": [0, 0], "hi": [1, 1]}},
        {"kind": "knn", "k": 3, "around": {"at": [0, 0]}},
        {"compare": {"lo": [0, 0], "hi": [1, 1]}, "aggregate": {"function": "count"}},
    ],
)
def test_queries_that_compare_no_pairs_have_no_estimate(document):
    known = Known({"ships": BoxSample.drawn(np.zeros((500, 6)), COMPARED)}, BoxSample.drawn(np.zeros((500, 6)), 9))
    assert estimate(parse_plan({"stream": "ships"} | document), known, EARTH) is None


def test_without_data_there_is_no_estimate():
    ships = BoxSample.drawn(np.zeros((500, 6)), COMPARED)
    assert estimate(near("buses", 1e7), Known({"ships": ships}), EARTH) is None
    assert (
        estimate(near("buses", 1e7), Known({"ships": ships, "buses": BoxSample.drawn(np.zeros((0, 6)), 9)}), EARTH)
        is None
    )
    zones = parse_plan({"stream": "ships", "kind": "join", "join": {"layer": "zones"}})
    assert estimate(zones, Known({"ships": ships}), EARTH) is None


def test_the_limits_of_an_estimate():
    limits = [
        (False, False, 400_000, 0),
        (False, True, 0, 60_000),
        (False, True, 10_000_000, 0),
        (True, True, 10_000_001, 0),
    ]
    for hopeless, doubtful, pairs, matches in limits:
        found = Estimate(pairs, matches, 1_000_000, True)
        assert (found.hopeless, found.doubtful) == (hopeless, doubtful)
        assert found.work == pairs + FOUND * matches


@pytest.mark.parametrize(("most", "tasks"), [*product([64, 512], [1, 3])])
def test_what_tasks_pack_is_bounded_and_stands_for_as_many_objects(most, tasks):
    rng = np.random.default_rng(1)
    counts = {1: 100_000, 2: 5_000, 3: 40}
    parts = []
    for _ in range(tasks):
        samples = {stream: BoxSample.drawn(places(rng, count), 512) for stream, count in counts.items()}
        payload = packed(samples, most // tasks)
        assert len(payload) < 80 * most // tasks + 2_000
        parts.append(unpacked(payload))
    told = together(parts)
    for stream, sample in told.items():
        assert sample.count == pytest.approx(tasks * counts[stream]) and len(sample) >= min(LEAST_EACH, counts[stream])
    assert 1 in told and (told.keys() == counts.keys() or most // tasks < 3 * LEAST_EACH)
    assert unpacked(packed({}, most)) == {}


def test_hashes_of_keys_are_even_so_a_range_of_them_is_a_fair_part():
    hashes = key_hashes("ships", [f"MS {number}" for number in range(20_000)])
    for share in (0.1, 0.5):
        assert (hashes < int(share * 2**64) - 2**63).mean() == pytest.approx(share, abs=0.02)
