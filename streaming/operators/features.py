"""Features, the partners of elements in joins: in memory and indexed.

The features of one version of a layer never change. So what is derived from them is computed once, on first use.
"""

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from streaming.elements import bounds_of, element_schema
from streaming.filters import parse_filter, passes
from streaming.kinds.parts import BoxFilter, Filter, KeyFilter, KeysFilter, UserFilter
from streaming.operators.allowance import PIECE
from streaming.operators.boxes import in_plane, intersects, turns
from streaming.operators.candidate_counts import BORDERS, CandidateCounts
from streaming.operators.cells import PointGrid
from streaming.operators.elements import repeated
from streaming.operators.query_index import FAR
from streaming.operators.runs import distinct, find
from streaming.spaces import Space
from streaming.udf import Judged, evaluate_element
from streaming.udf.base import COLUMNS, shapes_of


class IndexedBoxes:
    """Immutable boxes with an index over them.

    Parameters
    ----------
    bounds : ndarray of float64, shape (M, 2n)
    space : Space
    sparse : bool
        Whether few of the boxes that are asked for meet any. If these are points, a grid is used in place of a tree: it
        is built in less time, and knows sooner that a box has no point.
    """

    def __init__(self, bounds: np.ndarray, space: Space, sparse: bool = False) -> None:
        self.bounds, self.space, self._sparse = bounds, space, sparse
        self._grid: PointGrid | None = None

    def __len__(self) -> int:
        return len(self.bounds)

    @functools.cached_property
    def extent(self) -> np.ndarray:
        """The box around all boxes in the first two dimensions, float64 of shape (4,); needs at least one feature."""
        plane = self._plane()
        return np.r_[plane[:, :2].min(0), plane[:, 2:].max(0)]

    @functools.cached_property
    def tree(self) -> shapely.STRtree:
        """An index over the boxes in the first two dimensions.

        It holds points if all boxes are points. Otherwise it holds the diagonals of the boxes, which need half the
        memory.
        """
        plane = self._plane()
        if self._are_points:
            return shapely.STRtree(shapely.points(plane[:, :2]))
        return shapely.STRtree(shapely.linestrings(plane.reshape(-1, 2, 2)))

    @functools.cached_property
    def _are_points(self) -> bool:
        plane = self._plane()
        return bool((plane[:, :2] == plane[:, 2:]).all())

    def points(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the places (K, 2) of the features at rows if it is known that all are points, otherwise None."""
        return None

    def meeting(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of some other boxes (K, 2n) and these that meet, perhaps after a turn, int64 each."""
        at, other = self._candidates(np.clip(in_plane(boxes, self.space), -FAR, FAR))
        rows = np.arange(len(at))
        # Only the boxes of candidates are looked at: there are few, also where there are many boxes.
        keep = intersects(boxes[at], rows, self.bounds[other], rows, self.space)
        return at[keep], other[keep]

    def counts(self, boxes: np.ndarray) -> np.ndarray:
        """Return in how many pairs `meeting` finds each of some other boxes (K, 2n), at most: int64 of shape (K,)."""
        most = np.full(len(boxes), len(self))
        if len(boxes) * len(self) <= PIECE:
            return most
        return np.minimum(self._candidate_counts.most(boxes), most)

    @functools.cached_property
    def _candidate_counts(self) -> CandidateCounts:
        # With more borders, it would take longer to count than to find what lies near small boxes.
        return CandidateCounts(self.bounds, self.space, int(min(BORDERS, 2 + 2 * np.sqrt(len(self)))))

    def _candidates(self, plane: np.ndarray) -> np.ndarray:
        """Return the pairs of boxes of the plane (K, 4) and these that meet there, each pair once."""
        low, high = self.extent[:2], self.extent[2:]
        found = [np.empty((2, 0), dtype=np.int64)]
        least, most = plane[:, :2].min(0, initial=np.inf), plane[:, 2:].max(0, initial=-np.inf)
        for turn in turns(self.space):
            if (least + turn > high).any() or (most + turn < low).any():
                continue
            moved = plane + np.tile(turn, 2)
            close = np.flatnonzero((moved[:, :2] <= high).all(1) & (moved[:, 2:] >= low).all(1))
            at, other = self._asked(moved[close])
            found.append(np.stack([close[at], other]))
        if sum(part.shape[1] > 0 for part in found) < 2:
            return max(found, key=np.size)
        at, other = np.hstack(found)
        return np.stack(np.divmod(distinct(at * len(self) + other), len(self)))

    def _asked(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of boxes of the plane (K, 4) and these that meet there."""
        if not (self._sparse and len(boxes) and self._are_points):
            return self._tree_asked(boxes)
        if self._grid is None:
            self._grid = PointGrid(self._plane()[:, :2], np.median(boxes[:, 2:] - boxes[:, :2], axis=0))
        at, other, wide = self._grid.within(boxes)
        if not len(wide):
            return at, other
        more, others = self._tree_asked(boxes[wide])
        return np.r_[at, wide[more]], np.r_[other, others]

    def _tree_asked(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        points = (boxes[:, :2] == boxes[:, 2:]).all()
        at, other = self.tree.query(shapely.points(boxes[:, :2]) if points else shapely.box(*boxes.T))
        return at, other

    def _plane(self) -> np.ndarray:
        """Return the boxes in the first two dimensions, float64 of shape (M, 4)."""
        return np.clip(in_plane(self.bounds, self.space), -FAR, FAR)


class Features(IndexedBoxes):
    """An immutable table of features.

    Parameters
    ----------
    table : pyarrow.Table, M rows
        With `layers.features.feature_schema`: key, key_hash, bounds, geometry, properties.
    space : Space

    Attributes
    ----------
    key_hash : ndarray of int64, shape (M,)
        Ascending; the positions that methods take and return refer to this order.
    bounds : ndarray of float64, shape (M, 2n)
    """

    def __init__(self, table: pa.Table, space: Space) -> None:
        self.table = ordered(table)
        super().__init__(bounds_of(self.table["bounds"]), space)
        self.key_hash = self.table["key_hash"].to_numpy()
        self._shapes = np.full(len(self), None, dtype=object)
        self._spans = np.empty((len(self), 2))
        self._judged: dict[tuple[str, tuple[Filter, ...]], Judged] = {}

    @classmethod
    def none(cls, space: Space) -> "Features":
        """Return a table without features."""
        return cls(element_schema(space).empty_table().select(["key_hash", *COLUMNS]), space)

    def hashes(self, rows: np.ndarray) -> np.ndarray:
        """Return the `key_hash` of the features at rows (K,)."""
        return self.key_hash[rows]

    def batch(self, rows: np.ndarray) -> pa.RecordBatch:
        """Return the features at rows (K,), which may repeat, for user-defined filters; stores each geometry once."""
        unique, place = np.unique(rows, return_inverse=True)
        table = self.table.select(["key", "geometry", "properties"]).take(pa.array(unique))
        return repeated(table, self.bounds[rows], place)

    def shapes(self, rows: np.ndarray) -> np.ndarray:
        """Return the prepared geometries of the features at rows (K,); if a feature has none, its box in the plane."""
        self._read(rows)
        return self._shapes[rows]

    def spans(self, rows: np.ndarray) -> np.ndarray:
        """Return the least and the greatest first coordinate of the geometries at rows (K,), float64 of shape (K, 2).

        They may differ from the boxes, since boxes are kept within one turn of a circle, but geometries as drawn.
        """
        self._read(rows)
        return self._spans[rows]

    def _read(self, rows: np.ndarray) -> None:
        """Read and prepare the geometries that nobody has asked for before."""
        wanted = rows[shapely.is_missing(self._shapes[rows])]
        if len(wanted):
            wanted = np.unique(wanted)
            made = shapes_of(_one_batch(self.table.select(["bounds", "geometry"]).take(pa.array(wanted))))
            shapely.prepare(made)
            self._shapes[wanted] = made
            self._spans[wanted] = shapely.bounds(made)[:, [0, 2]]

    def passing(self, where: str, filters: tuple[Filter, ...]) -> np.ndarray:
        """Tell which features pass CQL2 text (empty for none) and all filters (lambda), bool of shape (M,)."""
        return self.judged(where, filters).passes

    def judged(self, where: str, filters: tuple[Filter, ...]) -> Judged:
        """Tell which features pass, as `passing` does, and give the error of the first filter that failed, if any."""
        known = (where, filters)
        if known not in self._judged:
            mask = passes(parse_filter(where), self.table["properties"]) if where else np.ones(len(self), dtype=bool)
            parts = [self._judge(entry) for entry in filters]
            for part in parts:
                mask = mask & part.passes
            self._judged[known] = Judged(mask, next((part.error for part in parts if part.error is not None), None))
        return self._judged[known]

    def _judge(self, entry: Filter) -> Judged:
        if isinstance(entry, KeyFilter):
            return Judged(self.table["key"].to_numpy() == entry.key, None)
        if isinstance(entry, KeysFilter):
            keys = pa.array(entry.keys, pa.string())
            return Judged(pc.is_in(self.table["key"], value_set=keys).to_numpy(zero_copy_only=False), None)
        if isinstance(entry, BoxFilter):
            rows = np.arange(len(self))
            return Judged(intersects(self.bounds, rows, np.array([entry.box]), np.zeros_like(rows), self.space), None)
        assert isinstance(entry, UserFilter), "only elements are judged by the shape of an area"
        return evaluate_element(entry.udf, self.batch(np.arange(len(self))), entry.argument)

    def find(self, key_hash: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of features, given the hashes of their keys, and which exist; see `runs.find`."""
        return find(self.key_hash, key_hash)


def ordered(table: pa.Table) -> pa.Table:
    """Return features ordered by the hashes of their keys, in one chunk; without a copy if they are so already."""
    key_hash = table["key_hash"].to_numpy()
    if (key_hash[1:] < key_hash[:-1]).any():
        table = table.take(np.argsort(key_hash, kind="stable"))
    return table.combine_chunks()


def differing(before: Features, after: Features) -> Features:
    """Return the features that differ between two versions of a layer: removed, added, and changed ones.

    A changed feature is returned twice, as it was and as it is, with the same key.
    """
    place, present = find(after.key_hash, before.key_hash)
    old, new = np.flatnonzero(present), place[present]
    whole = len(old) == len(before) == len(after)
    earlier, later = (v.table if whole else v.table.take(pa.array(r)) for v, r in ((before, old), (after, new)))
    same = (before.bounds[old] == after.bounds[new]).all(axis=1)
    for name in ("key", "geometry", "properties"):
        equal = pc.fill_null(pc.equal(earlier[name], later[name]), False)
        same &= pc.or_(equal, pc.and_(pc.is_null(earlier[name]), pc.is_null(later[name]))).to_numpy()
    gone, added = np.ones(len(before), dtype=bool), np.ones(len(after), dtype=bool)
    gone[old[same]], added[new[same]] = False, False
    return Features(
        pa.concat_tables([v.table.filter(pa.array(m)) for v, m in ((before, gone), (after, added))]), after.space
    )


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)
