"""Boxes that meet have a region in common, wherever the borders run and however often a circle is turned."""

import random

import numpy as np
import pytest
from hypothesis import given

from streaming.elements import wrapped
from streaming.operators.boxes import intersects
from streaming.operators.partitioners import PARTITIONERS, partitioned
from streaming.operators.region_map import InvalidMap, RegionCut, RegionMap
from streaming.spaces import EARTH, Dimension, Space
from tests.draws import rngs, times
from tests.servers.harness import another

LINE = Space("line", (Dimension("x", "", 0.0, 1.0),))
CIRCLE = Space("circle", (Dimension("x", "", 0.0, 0.7, True),))
TORUS = Space("torus", (Dimension("x", "", -1.0, 1.1, True), Dimension("y", "", 0.0, 0.3, True)))


def boxes(rng, space, regions, count):
    """Return boxes whose corners lie on borders of cells, or a rounding beside them."""
    cells = rng.integers(0, regions + 1, (count, space.n)) / regions
    low = np.array([d.lo + cells[:, axis] * d.extent for axis, d in enumerate(space.dimensions)]).T
    low += rng.choice([0.0, 0.0, 1e-16, -1e-16, 0.01], low.shape)
    extent = np.array([d.extent for d in space.dimensions])
    high = low + rng.choice([0.0, 0.0, 1.0 / regions, 0.4, 0.99], low.shape) * extent
    free = rng.random(low.shape) < 0.1
    return np.hstack([np.where(free, -np.inf, low), np.where(free, np.inf, high)])


@pytest.mark.parametrize("space", [LINE, CIRCLE, TORUS, EARTH], ids=lambda space: space.name)
@pytest.mark.parametrize("regions", [1, 4, 7, 12])
@pytest.mark.parametrize("changes", [0, 8])
@pytest.mark.seeds(80)
def test_boxes_that_meet_have_a_region_in_common(space, regions, changes, seed):
    rng, region_map = np.random.default_rng(seed), RegionMap.grid(space, regions)
    decisions = random.Random(seed)
    for _ in range(changes):
        region_map = another(region_map, decisions)
    reach, others = boxes(rng, space, regions, 40), wrapped(boxes(rng, space, regions, 40), space)
    reach = wrapped(reach, space)
    # A reach may begin before the circle does.
    reach[:, : space.n] -= rng.choice([0.0, 1e-9, 0.05], (40, 1))
    row, other = (index.reshape(-1) for index in np.indices((40, 40)))
    meet = intersects(reach, row, others, other, space)
    common = (region_map.regions_of(reach)[row] & region_map.regions_of(others)[other]).any(1)
    assert common[meet].all()


@pytest.mark.parametrize("regions", [1, 6, 70])
def test_the_region_that_keeps_a_box_is_one_of_those_that_it_meets_and_points_meet_one_alone(regions):
    rng, region_map = np.random.default_rng(regions), RegionMap.grid(EARTH, regions)
    low = rng.uniform([-180, -90, 0], [180, 90, 9], (500, 3))
    kept = region_map.region_of(np.tile(low, 2))
    assert region_map.regions_of(np.hstack([low, low + 20]))[np.arange(500), kept].all()
    points = region_map.regions_of(np.tile(low, 2))
    assert (points.sum(1) == 1).all() and (points.argmax(1) == kept).all()


@given(rngs())
def test_a_region_keeps_what_lies_in_its_cell_through_splits_and_merges(rng):
    known = RegionMap.grid(EARTH, 3)
    places = np.random.default_rng(rng.getrandbits(32)).uniform([-180, -90, -100], [180, 90, 10_000], (50, 3))
    for _ in times(rng, 20):
        later = another(known, rng)
        assert later.number == known.number + 1 and len(later.places) == later.regions
        assert RegionMap.of(EARTH, later.document()) == later
        assert later.cells[:, 3:].tolist() != later.cells[:, :3].tolist()
        of = later.region_of(np.tile(places, 2))
        assert ((later.cells[of, :3] <= places) & (places <= later.cells[of, 3:])).all()
        for region in range(later.regions + 1):  # none keeps what the region after the last one does
            assert (later.keeps(region, np.tile(places, 2)) == (of == region)).all()
        known = later


def test_a_merge_gives_the_free_number_to_the_last_region():
    known = RegionMap(EARTH, RegionCut(0, 0.0, 0, RegionCut(1, 0.0, 1, RegionCut(0, 90.0, 2, 3))), places=(5, 6, 7, 8))
    assert known.siblings == [(2, 3)]
    merged = known.merged(2, 3)
    assert merged.tree == RegionCut(0, 0.0, 0, RegionCut(1, 0.0, 1, 2)) and merged.places == (5, 6, 7)
    other = RegionMap(
        EARTH, RegionCut(0, 0.0, RegionCut(1, 0.0, 3, 0), RegionCut(1, 0.0, 1, 2)), places=(5, 6, 7, 8)
    ).merged(3, 0)
    assert other.tree == RegionCut(0, 0.0, 0, RegionCut(1, 0.0, 1, 2)) and other.places == (8, 6, 7)
    with pytest.raises(InvalidMap, match="not the two sides of one cut"):
        known.merged(0, 1)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "no region map"),
        ({"tree": [0, 0.0, 0], "number": 0, "places": []}, "no region map"),
        ({"tree": [0, 0.0, 0, 2], "number": 0, "places": []}, "numbers from 0"),
        ({"tree": [3, 0.0, 0, 1], "number": 0, "places": []}, "one of the 3 dimensions"),
        ({"tree": [0, 180.0, 0, 1], "number": 0, "places": []}, "must lie between"),
        ({"tree": [0, 10.0, [0, 20.0, 0, 1], 2], "number": 0, "places": []}, "from -180.0 to 10.0 must lie between"),
        ({"tree": [0, float("nan"), 0, 1], "number": 0, "places": []}, "must lie between"),
        ({"tree": 0, "number": 0, "places": [0, 1]}, "needs a place"),
    ],
)
def test_what_is_no_region_map_is_refused_in_words(document, words):
    with pytest.raises(InvalidMap, match=words):
        RegionMap.of(EARTH, document)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_partitioners_cut_where_places_are(partitioner):
    rng = np.random.default_rng(1)
    crowd = np.column_stack([rng.normal(25, 0.5, 900), rng.normal(60, 0.2, 900), np.full(900, -np.inf)])
    places = np.vstack(
        [crowd, np.column_stack([rng.uniform(-180, 180, 100), rng.uniform(-90, 90, 100), np.zeros(100)])]
    )
    known = partitioned(EARTH, partitioner, places, 16)
    assert known.regions >= 16 and known.number == 0
    most = np.bincount(known.region_of(np.tile(places, 2))).max()
    # Halves of the globe become as small as the crowd only after many cuts.
    assert most <= 80 if partitioner == "kd" else most > 80


def test_places_at_one_point_are_not_cut_for_ever():
    assert partitioned(EARTH, "kd", np.zeros((100, 3)), 4).regions == 1
