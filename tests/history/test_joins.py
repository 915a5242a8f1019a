"""A join of two tables takes bounded pieces, whatever lies where, and finds what brute force finds."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import bounds_array
from streaming.history import InvalidQuestion, RowLimits
from streaming.history import joins as joining
from streaming.history.found import row_bytes
from streaming.history.joins import RowJoin, join_plan, joined_schema
from streaming.history.rows import row_schema
from streaming.operators.candidate_counts import CandidateCounts
from streaming.operators.comparison import Comparison
from streaming.operators.features import IndexedBoxes
from streaming.spaces import EARTH
from tests.strategies import latitudes, longitudes, sizes

# Where elements are: spread, all in one place, along the antimeridian, at a pole, or some of these.
SCENES = {
    "spread": lambda rng, n: (rng.uniform(-180, 180, n), rng.uniform(-90, 90, n)),
    "one place": lambda rng, n: (np.full(n, 24.9), np.full(n, 60.2)),
    "antimeridian": lambda rng, n: (rng.choice([-180.0, -179.9999, 179.9999, 180.0], n), rng.uniform(-1, 1, n)),
    "pole": lambda rng, n: (rng.uniform(-180, 180, n), rng.uniform(89.9, 90, n)),
    "crowd": lambda rng, n: (np.r_[np.full(n // 2, 5.0), rng.uniform(-180, 180, n - n // 2)], np.full(n, 1.0)),
}
ALL = RowLimits()
PREDICATES = {
    "boxes": None,
    "intersects": None,
    "disjoint": None,
    "dwithin": 2e7,  # as far as places on the earth can be apart
}


def table(lon, lat, width=0.0, properties="{}"):
    """Return rows at places, boxes where there is a width."""
    n = len(lon)
    high = np.full(n, np.inf)
    low = np.column_stack([lon, np.maximum(lat - width, -90), -high])
    bounds = bounds_array(np.hstack([low, np.column_stack([lon + width, np.minimum(lat + width, 90), high])]))
    columns = [pa.array([f"{k:06}" for k in range(n)]), pa.array(range(n), pa.int64()), bounds]
    return pa.table([*columns, pa.nulls(n, pa.binary()), pa.array([properties] * n)], schema=row_schema(EARTH))


def joined(rows, partners, predicate, distance=None, limits=ALL, turn=lambda _: None, alike=False):
    return RowJoin(join_plan(predicate, distance, EARTH), EARTH, alike, limits, turn).found(rows, partners)


def pairs(found):
    return list(zip(found.rows["key"].to_pylist(), found.rows["partner_key"].to_pylist(), strict=True))


class Watched:
    """Notes how many pairs are made at the same time, and between two looks at whether to go on."""

    def __init__(self, monkeypatch):
        self.largest, self.rows, found = [], [], IndexedBoxes._candidates

        def candidates(boxes, plane):
            at, other = found(boxes, plane)
            self.largest.append(len(at))
            return np.stack([at, other])

        monkeypatch.setattr(IndexedBoxes, "_candidates", candidates)

    def turn(self, rows):
        self.rows.append(rows)


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("scene", SCENES)
def test_no_piece_makes_more_pairs_than_it_may_and_all_together_are_those_of_brute_force(scene, predicate, monkeypatch):
    rng = np.random.default_rng(len(scene))
    width = 0.0 if predicate == "dwithin" else 0.5  # the distances of places are quick to compute
    rows, partners = table(*SCENES[scene](rng, 200)), table(*SCENES[scene](rng, 200), width)
    whole = joined(rows, partners, predicate, PREDICATES[predicate])
    watched = Watched(monkeypatch)
    monkeypatch.setattr(joining, "PIECE_PAIRS", 500)
    found = joined(rows, partners, predicate, PREDICATES[predicate], turn=watched.turn)
    assert found.rows.equals(whole.rows) and pairs(found) == sorted(pairs(found))
    # A row alone may meet all partners, once for each of three turns; the pieces are between two looks.
    assert max(watched.largest, default=0) <= 600
    assert sum(watched.rows) == 200 and len(watched.rows) >= len(pairs(found)) / 600
    few = joined(rows, partners, predicate, PREDICATES[predicate], RowLimits(rows=7))
    assert few.rows.equals(found.rows.slice(0, 7)) and few.truncated == (found.rows.num_rows > 7)


boxes = st.lists(st.tuples(longitudes, latitudes, sizes, sizes), min_size=1, max_size=12)


@given(boxes, boxes)
def test_counts_are_never_less_than_the_pairs_that_meet(mine, others):
    arrays = [
        np.array([[*(lon, lat, -np.inf), *(lon + w, min(90.0, lat + h), np.inf)] for lon, lat, w, h in some])
        for some in (mine, others)
    ]
    count = CandidateCounts(arrays[1], EARTH).most(arrays[0])
    at, _ = IndexedBoxes(arrays[1], EARTH).meeting(arrays[0])
    assert (np.bincount(at, minlength=len(count)) <= count).all()
    assert (count <= 3 * len(others)).all()


def test_counts_follow_how_many_are_near():
    rng = np.random.default_rng(1)
    places = table(rng.uniform(-10, 10, 20_000), rng.uniform(50, 60, 20_000))
    bounds = joining.boxes_of(places, EARTH)
    reached = bounds + np.array([-0.05, -0.05, 0, 0.05, 0.05, 0])
    met = len(IndexedBoxes(bounds, EARTH).meeting(reached)[0])
    assert met <= CandidateCounts(bounds, EARTH).most(reached).sum() <= 4 * met


@pytest.mark.parametrize("predicate", ["boxes", "dwithin"])
def test_a_join_of_what_all_lies_in_one_place_takes_little_memory(predicate, monkeypatch):
    rows = table(np.full(4_000, 24.9), np.full(4_000, 60.2))
    monkeypatch.setattr(joining, "PIECE_PAIRS", 8_192)
    looked = []
    tracemalloc.start()
    try:
        found = joined(rows, rows, predicate, PREDICATES[predicate], RowLimits(10_000, 4 << 20), looked.append, True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.rows.num_rows == 10_000 and found.truncated
    assert peak < 40 << 20  # 16,000,000 pairs would take 256 MB for their numbers alone
    assert len(looked) <= 4  # it ends as soon as there are enough


def test_the_bytes_of_pairs_are_limited_too():
    rows = table(np.zeros(300), np.zeros(300), properties="x" * 10_000)
    found = joined(rows, rows, "boxes", limits=RowLimits(10_000, 1 << 20), alike=True)
    assert found.truncated and 40 < found.rows.num_rows < 60 and row_bytes(found.rows).sum() <= 1 << 20
    assert joined(rows, rows, "boxes", limits=RowLimits(bytes=1), alike=True).rows.num_rows == 1


def test_whoever_asks_can_end_a_join_between_two_pieces(monkeypatch):
    monkeypatch.setattr(joining, "PIECE_PAIRS", 100)
    looked = []

    def turn(rows):
        looked.append(rows)
        if len(looked) == 3:
            raise InvalidQuestion("enough")

    rows = table(np.zeros(50), np.zeros(50))
    with pytest.raises(InvalidQuestion, match="enough"):
        joined(rows, rows, "dwithin", 5.0, turn=turn)
    assert len(looked) == 3 and sum(looked) < 50


def test_a_join_of_nothing_is_empty():
    none, some = table(np.empty(0), np.empty(0)), table(np.zeros(3), np.zeros(3))
    for rows, partners in ((none, some), (some, none), (none, none)):
        found = joined(rows, partners, "intersects")
        assert found.rows.num_rows == 0 and found.rows.schema.names == joined_schema(EARTH).names
    assert [
        len(p)
        for p in Comparison(join_plan("boxes", None, EARTH), EARTH, joining._as_features(none, EARTH)).pieces(
            joining._as_elements(some, EARTH), np.arange(3), 2
        )
    ] == [2, 1]
