"""Spans: the times in which two reports are valid and near each other, as regions tell them to the assembler."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of
from streaming.servers.sorted_runs import Column
from streaming.spaces import Space
from streaming.state.codec import HEAD, Codec, Parts, Tables, array_of

_MIX = np.uint64(0x9E3779B97F4A7C15)


@lru_cache(maxsize=64)
def span_schema(space: Space) -> pa.Schema:
    """Return the columns of spans.

    Returns
    -------
    pyarrow.Schema
        query, key_hash, partner_hash : int64; the query, and the pair;
        since_us, until_us : int64; a span ends before `until_us`; it is `OPEN_US` if it goes on;
        reason : int8, a code of `results.REASONS`: why it ends;
        distance : float64, NaN unless the query compares by distance;
        key, properties, time_us, bounds : of the element's report;
        partner, partner_properties, partner_time_us, partner_bounds : of the partner's report.
    """
    kinds: dict[str, pa.DataType] = dict.fromkeys(
        ("query", "key_hash", "partner_hash", "since_us", "until_us"), pa.int64()
    )
    kinds |= {"reason": pa.int8(), "distance": pa.float64()}
    box = pa.list_(pa.float64(), 2 * space.n)
    kinds |= {"key": pa.string(), "properties": pa.string(), "time_us": pa.int64(), "bounds": box}
    kinds |= {"partner": pa.string(), "partner_properties": pa.string()}
    return pa.schema(kinds | {"partner_time_us": pa.int64(), "partner_bounds": box})


@dataclass(frozen=True)
class Ends:
    """The ends of spans that were told before as going on: arrays of shape (E,)."""

    query: np.ndarray
    key_hash: np.ndarray
    partner_hash: np.ndarray
    until_us: np.ndarray
    reason: np.ndarray

    @classmethod
    def none(cls) -> "Ends":
        """Return no ends."""
        query, key_hash, partner_hash, until_us = np.empty((4, 0), dtype=np.int64)
        return cls(query, key_hash, partner_hash, until_us, np.empty(0, dtype=np.int8))

    @classmethod
    def together(cls, parts: Sequence["Ends"]) -> "Ends":
        """Return the ends of all parts, one part after the other."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in [cls.none(), *parts]]) for name in names))


@dataclass(frozen=True)
class Spans:
    """What a region tells the assembler in a batch.

    Parameters
    ----------
    begun : pyarrow.Table
        With `span_schema`: the spans that have begun, and perhaps ended. Each span of a pair is told by one region.
    ended : Ends
    lacking : ndarray of int64
        Queries that the region leaves out; ascending.
    """

    begun: pa.Table
    ended: Ends
    lacking: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def pair_hashes(query: np.ndarray, key_hash: np.ndarray, partner_hash: np.ndarray) -> np.ndarray:
    """Return what stands for pairs in answers, int64 of shape (P,)."""
    mixed = query.astype(np.int64).view(np.uint64)
    for column in (key_hash, partner_hash):
        mixed = (mixed ^ column.view(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def columns_of(table: pa.Table) -> dict[str, Column]:
    """Return a table of spans as columns, as sorted runs have them."""
    columns: dict[str, Column] = {}
    for name, kind in zip(table.schema.names, table.schema.types, strict=True):
        whole = table[name].combine_chunks()
        if pa.types.is_fixed_size_list(kind):
            columns[name] = bounds_of(table[name])
        else:
            columns[name] = whole if pa.types.is_string(kind) else whole.to_numpy()
    return columns


def table_of(columns: dict[str, Column], schema: pa.Schema) -> pa.Table:
    """Return columns as a table; the inverse of `columns_of`."""
    found = [columns[name] for name in schema.names]
    boxes = [bounds_array(column) if getattr(column, "ndim", 1) > 1 else column for column in found]
    return pa.table(boxes, schema=schema)


def _encode(spans: Spans) -> Parts:
    ended = pa.table({name: getattr(spans.ended, name) for name in Ends.__dataclass_fields__})
    return {HEAD: Tables([spans.begun, ended, pa.table({"lacking": spans.lacking})])}


def _decode(parts: Parts) -> Spans:
    begun, ended, lacking = parts[HEAD].tables()
    return Spans(begun, Ends(*map(array_of, ended.columns)), array_of(lacking["lacking"]))


SPANS: Codec = Codec(lambda batch: None, _encode, _decode)
