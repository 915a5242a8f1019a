"""A join of streams judges pairs in the same way, whoever has found them, and however their shapes are given."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

from streaming.elements import stream_number
from streaming.kinds.join.partners import Partners
from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.parts import Enlargement
from streaming.operators.elements import Elements
from streaming.operators.stream_join import StreamJoins
from streaming.spaces import EARTH

WORLD, COUNT = tuple(EARTH.whole().tolist()), 40
SHAPES = ["points", "boxes", "geometries"]
WAYS = {
    "dwithin": JoinPlan("a", Partners("stream", "b", "dwithin", 50_000.0), WORLD),
    "of itself": JoinPlan("a", Partners("stream", "a", "dwithin", 50_000.0), WORLD),
    "enlarged": JoinPlan("a", Partners("stream", "b", "intersects"), WORLD, (Enlargement("enlarge_m", 50_000.0),)),
    "boxes": JoinPlan("a", Partners("stream", "b", "boxes"), WORLD, (Enlargement("enlarge_value", 0.5),)),
}


def random_elements(rng, shape):
    """Elements of two streams around the antimeridian, some at one place: points, boxes, or points as geometries."""
    low = np.round(rng.uniform([179, 59], [181, 61], (COUNT, 2)), 1)
    low[:, 0] = np.where(low[:, 0] >= 180, low[:, 0] - 360, low[:, 0])
    high = low + (rng.choice([0.0, 0.3], (COUNT, 1)) if shape == "boxes" else 0.0)
    flat = np.full((COUNT, 1), np.inf)
    texts = pa.nulls(COUNT, pa.string())
    wkb = shapely.to_wkb(shapely.points(low)) if shape == "geometries" else [None] * COUNT
    table = pa.table({"key": texts, "geometry": pa.array(wkb, pa.binary()), "properties": texts})
    stream = np.array([stream_number(name) for name in "ab"])[rng.integers(0, 2, COUNT)]
    bounds = np.hstack([low, -flat, high, flat])
    return Elements(stream, bounds, lambda rows: table.take(pa.array(rows)), shape == "geometries")


def found(meetings):
    pairs = zip(meetings.row, meetings.query, meetings.partner, np.nan_to_num(meetings.distance, nan=-1), strict=True)
    return sorted((int(row), int(query), int(partner), float(distance)) for row, query, partner, distance in pairs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.seeds(8)
def test_pairs_that_a_caller_knows_are_judged_as_those_that_the_join_finds(seed, shape, way):
    rng = np.random.default_rng(seed)
    elements, joins = random_elements(rng, shape), StreamJoins([WAYS[way]], EARTH)
    key_hash, rows = rng.integers(0, COUNT // 2, COUNT), np.arange(COUNT)
    expected = found(joins.pairs(elements, key_hash, rows, rows))
    row, partner = (side.ravel() for side in np.meshgrid(rows, rows))
    assert found(joins.judged(elements, key_hash, row, partner)) == expected
    some = rng.random(len(row)) < 0.5
    pairs = set(zip(row[some].tolist(), partner[some].tolist(), strict=True))
    judged = found(joins.judged(elements, key_hash, row[some], partner[some]))
    assert judged == [one for one in expected if (one[0], one[2]) in pairs]


@pytest.mark.seeds(40)
def test_points_have_the_same_distances_as_their_geometries(seed):
    points, geometries = (random_elements(np.random.default_rng(seed), shape) for shape in ("points", "geometries"))
    joins, rows = StreamJoins([WAYS["dwithin"]], EARTH), np.arange(COUNT)
    one, other = (found(joins.pairs(elements, rows, rows, rows)) for elements in (points, geometries))
    assert one and one == other


@pytest.mark.parametrize("way", sorted(WAYS))
def test_no_pairs_are_judged_to_none(way):
    elements, none = random_elements(np.random.default_rng(1), "points"), np.empty(0, dtype=np.int64)
    assert not found(StreamJoins([WAYS[way]], EARTH).judged(elements, np.arange(COUNT), none, none))
