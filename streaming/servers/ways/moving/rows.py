"""Result tuples that name no member of an answer: groups, thresholds, and where queries are."""

from collections.abc import Container
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of, key_hashes
from streaming.operators.distributed import DistributedQueries
from streaming.operators.runs import find
from streaming.results import EXPIRED, PLACED
from streaming.servers.answers.rows import anywhere, table_of, texts
from streaming.servers.control.registry import Registry
from streaming.servers.region.all_regions import AllRegions
from streaming.servers.ways.moving.focals import Focals
from streaming.spaces import Space


def group_rows(
    groups: pl.DataFrame, sign: np.ndarray, reason: np.ndarray, all_regions: AllRegions, extremes: Container
) -> pa.Table:
    """Return the values of aggregates as result tuples.

    Parameters
    ----------
    groups : polars.DataFrame, G rows
        With the columns of `aggregation.TOLD`.
    sign, reason : ndarray of int8, shape (G,)
    all_regions : AllRegions
    extremes : container of int
        The queries for a minimum or maximum; their tuples name the object that has it.
    """
    keys, named = groups["object"].fill_null(0).to_numpy(), groups["object"].is_not_null().to_numpy()
    bounds, names = anywhere(len(groups), all_regions.space), np.full(len(groups), None, dtype=object)
    bounds[named], names[named] = all_regions.column(keys[named], "bounds"), all_regions.names(keys[named])
    figures = zip(*(groups[name].to_list() for name in ("query", "value", "count")), names.tolist(), strict=True)
    properties = [
        {"value": value, "count": count} | ({"object": name} if query in extremes else {})
        for query, value, count, name in figures
    ]
    columns = _of_groups(groups, sign, reason) | {
        "time_us": groups["time_us"].to_numpy(),
        "properties": texts(properties),
    }
    return table_of(columns | {"bounds": bounds_array(bounds)}, len(groups), all_regions.space)


def threshold_rows(crossings: pl.DataFrame, sign: np.ndarray, reason: np.ndarray, space: Space) -> pa.Table:
    """Return thresholds as result tuples: the partner is the threshold, and its properties are the value.

    Parameters
    ----------
    crossings : polars.DataFrame, C rows
        With the columns of `aggregation.CROSSED`.
    sign, reason : ndarray of int8, shape (C,)
    space : Space
    """
    columns = _of_groups(crossings, sign, reason) | {
        "time_us": crossings["since_us"].to_numpy(),
        "bounds": bounds_array(anywhere(len(crossings), space)),
        "partner": pa.array(crossings["name"].to_list(), pa.string()),
        "partner_hash": crossings["threshold"].to_numpy() + 1,
        "partner_properties": texts([{"value": value} for value in crossings["value"].to_list()]),
    }
    return table_of(columns, len(crossings), space)


def place_rows(positions: np.ndarray, focals: Focals, registry: Registry, reason: np.ndarray) -> pa.Table:
    """Return result tuples with the sign `PLACED`, which tell where queries are.

    Parameters
    ----------
    positions : ndarray of int64, shape (K,)
        Positions of distributed queries that have a focus. A query without a place has lost its focal object.
    focals : Focals
    registry : Registry
    reason : ndarray of int8, shape (K,)
    """
    queries, space, placed = registry.distributed, registry.space, focals.placed(registry)
    nowhere = np.isnan(placed.places[positions, 0])
    focal, radius = queries.focal[positions], placed.radius[positions]
    place, known = find(focals.keys, focal)
    bounds = anywhere(len(positions), space)
    for axis in range(min(2, space.n)):
        for side in (axis, space.n + axis):
            bounds[~nowhere, side] = placed.places[positions[~nowhere], axis]
    bounds[known] = bounds_of(focals.elements["bounds"])[place[known]]
    element = pa.array(place, mask=~known)
    columns = {
        "query": registry.distributed_ids[positions],
        "sign": np.full(len(positions), PLACED, dtype=np.int8),
        "reason": np.where(nowhere, EXPIRED, reason).astype(np.int8),
        "key": _names(queries, positions),
        "key_hash": focal,
        "time_us": focals.elements["time_us"].take(element).fill_null(0),
        "bounds": bounds_array(bounds),
        "properties": focals.elements["properties"].take(element),
        "distance": pa.array(radius, mask=~np.isfinite(radius)),
    }
    return table_of(columns, len(positions), space)


def _names(queries: DistributedQueries, positions: np.ndarray) -> pa.Array:
    return pa.array([queries.focus(position).key for position in positions.tolist()], pa.string())


def _of_groups(groups: pl.DataFrame, sign: np.ndarray, reason: np.ndarray) -> dict[str, Any]:
    keys = groups["group"].to_list()
    hashes = key_hashes("", keys) if keys else np.empty(0, dtype=np.int64)
    columns = {"query": groups["query"].to_numpy(), "sign": sign, "reason": reason}
    return columns | {"key": pa.array(keys, pa.string()), "key_hash": hashes}
