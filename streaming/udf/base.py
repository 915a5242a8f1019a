"""What every user-defined filter is, and how it sees elements."""

from typing import Protocol

import numpy as np
import pyarrow as pa
import shapely

from streaming.elements import bounds_of

COLUMNS = ("key", "bounds", "geometry", "properties")
# Stands for the end of a dimension in which a box is unbounded: GEOS computes with finite numbers alone.
FAR_DEG = 1e9


class UserDefinedFilter(Protocol):
    """Lets elements, or pairs of an element and a feature, pass or not.

    Made once a process, without arguments. Batches have the columns key (string), bounds (fixed-size list of 2n
    float64, ``[lo.., hi..]``), geometry (WKB, perhaps dictionary-encoded; null: the box) and properties (string, a JSON
    object). They may have no rows: a plan is tried on none when it is registered. An argument that cannot be read must
    raise ValueError with the rule and the value, and the plan is refused with that text.
    """

    def filter_element(self, elements: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which elements pass.

        Parameters
        ----------
        elements : pyarrow.RecordBatch, N rows
        argument : str
            The plan's, as it was written; empty where it has none.

        Returns
        -------
        ndarray of bool, shape (N,)
        """

    def filter_pair(self, elements: pa.RecordBatch, features: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which pairs pass; a pair is a row of both batches.

        Parameters
        ----------
        elements, features : pyarrow.RecordBatch, P rows each
        argument : str

        Returns
        -------
        ndarray of bool, shape (P,)
        """


def shapes_of(batch: pa.RecordBatch) -> np.ndarray:
    """Return the geometries of a batch; where a row has none, its box in the first two dimensions.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, N rows
        With the columns geometry and bounds.

    Returns
    -------
    ndarray of shapely geometries, shape (N,)
        Those of a dictionary are read once and prepared, however many rows they have.
    """
    column = batch["geometry"]
    if pa.types.is_dictionary(column.type):
        unique = shapely.from_wkb(column.dictionary.to_numpy(zero_copy_only=False))
        shapely.prepare(unique)
        shapes = np.full(len(column), None, dtype=object)
        given = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        shapes[given] = unique[column.indices.take(pa.array(given)).to_numpy(zero_copy_only=False)]
    else:
        shapes = shapely.from_wkb(column.to_numpy(zero_copy_only=False))
    missing = np.flatnonzero(shapely.is_missing(shapes))
    shapes[missing] = box_shapes(bounds_of(batch["bounds"])[missing])
    return shapes


def box_shapes(bounds: np.ndarray) -> np.ndarray:
    """Return boxes (K, 2n) in the first two dimensions as points, lines or polygons.

    Never as polygons without area: GEOS finds a prepared polygon to be far from these.
    """
    n = bounds.shape[1] // 2
    low, high = np.zeros((len(bounds), 2)), np.zeros((len(bounds), 2))
    axes = min(2, n)
    low[:, :axes], high[:, :axes] = bounds[:, :axes], bounds[:, n : n + axes]
    low, high = np.clip(low, -FAR_DEG, FAR_DEG), np.clip(high, -FAR_DEG, FAR_DEG)
    flat = low == high
    shapes = shapely.box(*low.T, *high.T)
    line = flat.any(1)
    shapes[line] = shapely.linestrings(np.stack([low[line], high[line]], axis=1))
    point = flat.all(1)
    shapes[point] = shapely.points(low[point])
    return shapes
