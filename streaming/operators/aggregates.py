"""Aggregates over the members of ranges: each region computes a part, and the assembler merges the parts.

References
----------
PLACE* (2007), section 4.2: participating servers aggregate before they send, the assembler merges what they sent.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from streaming.kinds.aggregate.plan import Aggregate
from streaming.operators.elements import Elements
from streaming.operators.numbered import Numbered
from streaming.operators.spatial_join import Pairs
from streaming.property_columns import PropertyColumns
from streaming.spaces import Space

# The group of the elements without the property of `group_by`.
NO_GROUP = "null"
MEMBERS = pl.Schema({"query": pl.Int64, "key": pl.Int64, "value": pl.Float64, "group": pl.String})
PARTS = pl.Schema(
    {
        "query": pl.Int64,
        "group": pl.String,
        "count": pl.Int64,
        "known": pl.Int64,
        "sum": pl.Float64,
        "min": pl.Float64,
        "min_key": pl.Int64,
        "max": pl.Float64,
        "max_key": pl.Int64,
    }
)
VALUES = {
    "count": pl.col("count").cast(pl.Float64),
    "sum": pl.col("sum"),
    "avg": pl.when(pl.col("known") > 0).then(pl.col("sum") / pl.col("known")),
    "min": pl.col("min"),
    "max": pl.col("max"),
}
OBJECTS = {"min": pl.col("min_key"), "max": pl.col("max_key")}


def measured(
    pairs: Pairs, elements: Elements, keys: np.ndarray, aggregates: Mapping[int, Aggregate], space: Space
) -> pl.DataFrame:
    """Return the members of ranges, each with its value and its group.

    Parameters
    ----------
    pairs : Pairs
        The elements and the queries in whose ranges they lie.
    elements : Elements, N of them
    keys : ndarray of int64, shape (N,)
        The `key_hash` of each element.
    aggregates : mapping of int to Aggregate
        By query, with the same numbers as in `pairs`.
    space : Space

    Returns
    -------
    polars.DataFrame
        With the columns `MEMBERS`, a row for each pair. The value is null if the element has no such number.
    """
    frames = [pl.DataFrame(schema=MEMBERS)]
    queries, place = np.unique(pairs.query, return_inverse=True)
    asked = [aggregates[query] for query in queries.tolist()]
    measures = Numbered.of([(one.property, one.dimension, one.group_by) for one in asked])
    columns = PropertyColumns(elements.cold(np.arange(len(elements)))["properties"])
    for number, (name, dimension, group_by) in enumerate(measures.values):
        chosen = measures.number[place] == number
        rows = pairs.row[chosen]
        frame = pl.DataFrame({"query": pairs.query[chosen], "key": keys[rows]})
        value: pl.Series | pl.Expr = pl.lit(None, dtype=pl.Float64)
        if name:
            value = columns.number(name)[rows].fill_nan(None)
        elif dimension:
            value = _along(elements.bounds[rows], dimension, space)
        group = columns.text(group_by)[rows].fill_null(NO_GROUP) if group_by else pl.lit("")
        frames.append(frame.with_columns(value=value, group=group).cast(MEMBERS))
    return pl.concat(frames)


def _along(bounds: np.ndarray, name: str, space: Space) -> pl.Series:
    """Return the middles of boxes (K, 2n) in a dimension; null if a box has no bound there."""
    axis = [dimension.name for dimension in space.dimensions].index(name)
    with np.errstate(invalid="ignore"):
        middle = (bounds[:, axis] + bounds[:, space.n + axis]) / 2
    return pl.Series(np.where(np.isfinite(middle), middle, np.nan)).fill_nan(None)


def parts(members: pl.DataFrame) -> pl.DataFrame:
    """Return one region's part of the aggregates, a row for each query and group.

    Parameters
    ----------
    members : polars.DataFrame
        With the columns `MEMBERS`.

    Returns
    -------
    polars.DataFrame
        With the columns `PARTS`: ``count`` counts all members, ``known`` those with a value. If several members have
        the least or the greatest value, ``min_key`` and ``max_key`` are the lowest of their keys.
    """
    value = pl.col("value")
    frame = members.sort("query", "key").group_by("query", "group", maintain_order=True)
    return frame.agg(
        count=pl.len(),
        known=value.count(),
        sum=value.sum(),
        min=value.min(),
        min_key=pl.col("key").get(value.arg_min(), null_on_oob=True),
        max=value.max(),
        max_key=pl.col("key").get(value.arg_max(), null_on_oob=True),
    ).cast(PARTS)


def merged(several: pl.DataFrame) -> pl.DataFrame:
    """Merge the parts of several servers into one row for each query and group.

    Parameters
    ----------
    several : polars.DataFrame
        With the columns `PARTS`. Within a group the parts stand in the order of the servers, and are summed in it.

    Returns
    -------
    polars.DataFrame
        With the columns `PARTS`. Of equal extremes it keeps the lowest key, as `parts` does.
    """
    lowest = pl.col("min_key").sort_by("min", "min_key", nulls_last=True)
    highest = pl.col("max_key").sort_by("max", "max_key", descending=[True, False], nulls_last=True)
    frame = several.group_by("query", "group", maintain_order=True).agg(
        pl.col("count", "known", "sum").sum(),
        min=pl.col("min").min(),
        min_key=lowest.first(),
        max=pl.col("max").max(),
        max_key=highest.first(),
    )
    return frame.select(list(PARTS)).cast(PARTS)


def valued(whole: pl.DataFrame, aggregates: Mapping[int, Aggregate]) -> pl.DataFrame:
    """Return the values of aggregates.

    Parameters
    ----------
    whole : polars.DataFrame
        Merged parts, with the columns `PARTS`.
    aggregates : mapping of int to Aggregate
        By query.

    Returns
    -------
    polars.DataFrame
        With the columns query, group, count, value, and object: the `key_hash` of the object that has the least or the
        greatest value, null for functions other than ``min`` and ``max``.
    """
    functions = pl.DataFrame(
        {"query": list(aggregates), "function": [aggregate.function for aggregate in aggregates.values()]},
        schema={"query": pl.Int64, "function": pl.String},
    )
    function = pl.col("function")
    value, key = pl.lit(None, dtype=pl.Float64), pl.lit(None, dtype=pl.Int64)
    for name, expression in VALUES.items():
        value = pl.when(function == name).then(expression).otherwise(value)
    for name, expression in OBJECTS.items():
        key = pl.when(function == name).then(expression).otherwise(key)
    joined = whole.join(functions, on="query", maintain_order="left")
    return joined.select("query", "group", "count", value=value, object=key)
