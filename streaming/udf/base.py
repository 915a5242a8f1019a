"""The interface of user-defined filters, and the geometries that they see."""

from typing import Protocol

import numpy as np
import pyarrow as pa
import shapely

from streaming.elements import bounds_of

COLUMNS = ("key", "bounds", "geometry", "properties")
# Replaces the bound of a box that is unbounded in a dimension: GEOS computes with finite numbers only.
FAR_DEG = 1e9


class UserDefinedFilter(Protocol):
    """Lets elements, or pairs of an element and a feature, pass or not.

    Each process makes one instance, without arguments. Batches have the columns key (string), bounds (fixed-size list
    of 2n float64, ``[lo.., hi..]``), geometry (WKB, perhaps dictionary-encoded; null: the box) and properties (string,
    a JSON object). A batch may have no rows: when a plan is registered, its filters are tried on empty batches. If a
    filter cannot read its argument, it must raise ValueError with the rule and the value; the plan is then refused with
    that text.
    """

    def filter_element(self, elements: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which elements pass.

        Parameters
        ----------
        elements : pyarrow.RecordBatch, N rows
        argument : str
            The argument in the plan, unchanged; empty if the plan has none.

        Returns
        -------
        ndarray of bool, shape (N,)
        """

    def filter_pair(self, elements: pa.RecordBatch, features: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which pairs pass; pair i is row i of both batches.

        Parameters
        ----------
        elements, features : pyarrow.RecordBatch, P rows each
        argument : str

        Returns
        -------
        ndarray of bool, shape (P,)
        """


def shapes_of(batch: pa.RecordBatch) -> np.ndarray:
    """Return the geometries of a batch; for a row without one, its box in the first two dimensions.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, N rows
        With the columns geometry and bounds.

    Returns
    -------
    ndarray of shapely geometries, shape (N,)
        If the column is dictionary-encoded, each geometry of the dictionary is read once, and prepared.
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

    A box without area never becomes a polygon: GEOS finds a prepared polygon to be far from such polygons.
    """
    n = bounds.shape[1] // 2
    axes = min(2, n)
    low, high = np.zeros((len(bounds), 2)), np.zeros((len(bounds), 2))
    low[:, :axes], high[:, :axes] = bounds[:, :axes], bounds[:, n : n + axes]
    low, high = np.clip(low, -FAR_DEG, FAR_DEG), np.clip(high, -FAR_DEG, FAR_DEG)
    flat = (low == high).sum(1)
    if (flat == 2).all():
        return shapely.points(low)
    shapes = np.full(len(bounds), None, dtype=object)
    point, line, area = (flat == dimensions for dimensions in (2, 1, 0))
    shapes[point] = shapely.points(low[point])
    shapes[line] = shapely.linestrings(np.stack([low[line], high[line]], axis=1))
    shapes[area] = shapely.box(*low[area].T, *high[area].T)
    return shapes
