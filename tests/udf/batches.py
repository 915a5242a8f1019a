"""Batches as filters see them."""

import json

import numpy as np
import pyarrow as pa
import shapely

from streaming.elements import bounds_array


def batch(shapes, properties=None, keys=None, boxes=False, encoded=False):
    """Return a batch of geometries on earth without altitude; `boxes`: without geometry, so boxes alone."""
    rows = len(shapes)
    low, high = np.full((rows, 3), -np.inf), np.full((rows, 3), np.inf)
    low[:, :2], high[:, :2] = np.hsplit(shapely.bounds(shapes).reshape(rows, 4), 2)
    wkb = pa.nulls(rows, pa.binary()) if boxes else pa.array(list(shapely.to_wkb(shapes)), pa.binary())
    return pa.record_batch(
        {
            "key": pa.array(keys or [str(row) for row in range(rows)], pa.string()),
            "bounds": bounds_array(np.hstack([low, high])),
            "geometry": wkb.dictionary_encode() if encoded else wkb,
            "properties": pa.array([json.dumps(p) for p in properties or [{}] * rows], pa.string()),
        }
    )
