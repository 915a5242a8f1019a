"""Parts: the immutable GeoParquet files of which the versions of layers consist.

References
----------
GeoParquet 1.1.0, https://geoparquet.org/releases/v1.1.0/: the metadata key ``geo``, and the column ``bbox``, with which
readers skip row groups.
"""

import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from streaming.elements import bounds_of, key_hashes
from streaming.layers.features import feature_schema, hilbert_order, with_hashes
from streaming.spaces import Space
from streaming.state.files import whole

ROWS_PER_GROUP = 32_768
# GeoParquet's names, in the order of shapely's type numbers. No geometry is stored as a LinearRing.
TYPE_NAMES = (
    "Point",
    "LineString",
    "LinearRing",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    "GeometryCollection",
)
STORED = ("key", "bounds", "geometry", "properties")


@dataclass(frozen=True)
class FeatureSummary:
    """A summary of features, so that nobody has to read them.

    Parameters
    ----------
    features : int
        The number of features.
    bounds : tuple of float, length 2n
        The box around all features; ``(inf.., -inf..)`` if there are none.
    geometry_types : tuple of str
        In alphabetical order; features that are only boxes have no type.
    """

    features: int
    bounds: tuple[float, ...]
    geometry_types: tuple[str, ...]

    @classmethod
    def of(cls, bounds: np.ndarray, geometries: np.ndarray, space: Space) -> "FeatureSummary":
        """Return the summary of features, given their boxes of shape (N, 2n) and their shapely geometries or None."""
        types = set(np.unique(shapely.get_type_id(geometries)).tolist()) - {-1}
        return cls(len(bounds), around(bounds, space), tuple(sorted(TYPE_NAMES[number] for number in types)))

    @classmethod
    def joined(cls, summaries: Sequence["FeatureSummary"], space: Space) -> "FeatureSummary":
        """Return the summary of the features of several summaries, at least one."""
        types = {name for summary in summaries for name in summary.geometry_types}
        boxes = np.array([summary.bounds for summary in summaries])
        return cls(sum(summary.features for summary in summaries), around(boxes, space), tuple(sorted(types)))


def summarize(table: pa.Table, space: Space) -> FeatureSummary:
    """Return the summary of features."""
    starts = range(0, max(1, table.num_rows), ROWS_PER_GROUP)
    groups = (table.slice(start, ROWS_PER_GROUP) for start in starts)
    return FeatureSummary.joined(
        [
            FeatureSummary.of(bounds_of(rows["bounds"]), shapely.from_wkb(rows["geometry"].to_numpy()), space)
            for rows in groups
        ],
        space,
    )


def around(bounds: np.ndarray, space: Space) -> tuple[float, ...]:
    """Return the box around boxes of shape (N, 2n); ``(inf.., -inf..)`` if there are none."""
    low = bounds[:, : space.n].min(axis=0, initial=math.inf)
    high = bounds[:, space.n :].max(axis=0, initial=-math.inf)
    return (*low.tolist(), *high.tolist())


def bounds_from_json(bounds: Sequence[float | None], empty: bool = False) -> tuple[float, ...]:
    """Return a box from JSON, where null is infinite; if `empty`, lower bounds are inf and upper ones -inf."""
    half, low = len(bounds) // 2, math.inf if empty else -math.inf
    return tuple((low if n < half else -low) if b is None else b for n, b in enumerate(bounds))


def write_part(path: Path, table: pa.Table, space: Space) -> FeatureSummary:
    """Write features as GeoParquet, sorted along a Hilbert curve; the file appears whole or not at all.

    Parameters
    ----------
    path : Path
    table : pyarrow.Table
        With the columns of `features.feature_schema(space)`. `key_hash` may be missing: it depends on the layer's name
        and is not written.
    space : Space

    Returns
    -------
    FeatureSummary
    """
    summary = summarize(table, space)
    order = hilbert_order(bounds_of(table["bounds"]), space)
    stored = table.select(STORED)
    starts = range(0, len(order), ROWS_PER_GROUP)
    write_groups(
        path, (stored.take(pa.array(order[start : start + ROWS_PER_GROUP])) for start in starts), summary, space
    )
    return summary


def write_groups(path: Path, groups: Iterable[pa.Table], summary: FeatureSummary, space: Space) -> None:
    """Write features, sorted already, as GeoParquet; the file appears whole or not at all.

    Parameters
    ----------
    path : Path
    groups : iterable of pyarrow.Table
        With the columns `STORED`, each of `ROWS_PER_GROUP` rows, but the last.
    summary : FeatureSummary
        Of all features.
    space : Space
    """
    stored = pa.schema([feature_schema(space).field(name) for name in STORED])
    schema = _part_schema(stored, summary, space)
    with whole(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for rows in groups:
            writer.write_table(_with_bbox(rows.cast(stored), schema, space), row_group_size=ROWS_PER_GROUP)


def new_part_name() -> str:
    """Return the name of a new part."""
    return f"{uuid.uuid4().hex}.parquet"


def read_groups(layer: str, path: Path, space: Space) -> Iterator[pa.Table]:
    """Yield the features of a part, with `features.feature_schema(space)`, in groups of neighbours."""
    with pq.ParquetFile(path) as part:
        for group in range(part.num_row_groups):
            rows = part.read_row_group(group, columns=list(STORED)).replace_schema_metadata(None)
            yield with_hashes(layer, rows, space)


def read_hashes(layer: str, path: Path) -> np.ndarray:
    """Return the hashes of the keys of a part, int64 of shape (N,)."""
    groups = (key_hashes(layer, rows["key"].to_numpy()) for rows in _column(path, "key"))
    return np.concatenate([np.empty(0, dtype=np.int64), *groups])


def read_extent(path: Path, mask: np.ndarray, space: Space) -> np.ndarray:
    """Return the box around those features of a part for which a mask is true, float64 of shape (2n,)."""
    boxes, start = [np.empty((0, 2 * space.n))], 0
    for rows in _column(path, "bounds"):
        boxes.append(np.array([around(bounds_of(rows["bounds"])[mask[start : start + rows.num_rows]], space)]))
        start += rows.num_rows
    return np.array(around(np.concatenate(boxes), space))


def sample_bounds(path: Path, most: int) -> np.ndarray:
    """Return the boxes of some features of a part, drawn evenly, about `most`: float64 of shape (K, 2n)."""
    step = -(-pq.read_metadata(path).num_rows // most)
    return np.concatenate([bounds_of(rows["bounds"])[:: max(1, step)] for rows in _column(path, "bounds")])


def _column(path: Path, name: str) -> Iterator[pa.Table]:
    """Yield a column of a part, a group at a time."""
    with pq.ParquetFile(path) as part:
        for group in range(part.num_row_groups):
            yield part.read_row_group(group, columns=[name])


def read_parts(layer: str, paths: Iterable[Path], masks: Iterable[np.ndarray | None], space: Space) -> pa.Table:
    """Return the features of parts that are in force: not replaced or removed by a later edit.

    Parameters
    ----------
    layer : str
    paths : iterable of Path
    masks : iterable of ndarray of bool or None
        For each part, which of its rows are in force; None for all rows.
    space : Space

    Returns
    -------
    pyarrow.Table
        With `features.feature_schema(space)`, part after part.
    """
    tables = []
    for path, mask in zip(paths, masks, strict=True):
        table = pq.read_table(path, columns=list(STORED))
        tables.append(table if mask is None or mask.all() else table.filter(pa.array(mask)))
    return with_hashes(layer, pa.concat_tables(tables).replace_schema_metadata(None), space)


def _part_schema(schema: pa.Schema, summary: FeatureSummary, space: Space) -> pa.Schema:
    if space.n < 2:
        return schema
    box = pa.struct([pa.field(side, pa.float64(), nullable=False) for side in ("xmin", "ymin", "xmax", "ymax")])
    geometry: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": list(summary.geometry_types),
        "covering": {"bbox": {side.name: ["bbox", side.name] for side in box}},
    }
    if not space.geographic:  # without this key, GeoParquet assumes longitude and latitude of WGS 84
        geometry["crs"] = None
    if summary.features and all(map(math.isfinite, flat := _flat(summary.bounds, space))):
        geometry["bbox"] = flat
    head = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": geometry}}
    return schema.append(pa.field("bbox", box, nullable=False)).with_metadata({"geo": orjson.dumps(head)})


def _with_bbox(rows: pa.Table, schema: pa.Schema, space: Space) -> pa.Table:
    if space.n < 2:
        return rows
    sides = bounds_of(rows["bounds"])[:, [0, 1, space.n, space.n + 1]]
    field = schema.field("bbox")
    box = pa.StructArray.from_arrays([pa.array(side) for side in sides.T], fields=list(field.type))
    return rows.append_column(field, box).cast(schema)


def _flat(bounds: Sequence[float], space: Space) -> list[float]:
    return [bounds[0], bounds[1], bounds[space.n], bounds[space.n + 1]]
