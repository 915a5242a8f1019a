"""What happens to members of answers of queries about tracks, as a home server puts it down."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.results import result_schema
from streaming.servers.answers.names import names_of
from streaming.servers.sorted_runs import Column
from streaming.spaces import Space

# What an event has of the report that it is about.
SOURCE = ("key", "key_hash", "time_us", "bounds", "properties")


class Events(NamedTuple):
    """What happened to pairs of a query and an object, in order: a row for each.

    `from_us` is -1 unless the event was interpolated; then `time_us` and `place` are those of the passage.
    """

    query: np.ndarray
    source: pa.Table
    sign: np.ndarray
    reason: np.ndarray
    from_us: np.ndarray
    to_us: np.ndarray

    @classmethod
    def of(cls, query: np.ndarray, source: pa.Table, sign: int, reason: np.ndarray | int) -> "Events":
        """Return events that are not interpolated."""
        none = np.full(len(query), -1, dtype=np.int64)
        broad = np.broadcast_to(np.asarray(reason, dtype=np.int8), len(query))
        return cls(query, source, np.full(len(query), sign, dtype=np.int8), broad, none, none)


@dataclass
class TrackPairs:
    """Pairs of a query and an object that something concerns, by `name`, ascending.

    `row` is the pair's row among the members that were known, -1 without one.
    """

    name: np.ndarray
    query: np.ndarray
    key: np.ndarray
    inside: np.ndarray
    row: np.ndarray

    def place(self, query: np.ndarray, key: np.ndarray) -> np.ndarray:
        """Return the positions of pairs, all of which are here."""
        return np.searchsorted(self.name, names_of(query, key))


def event_rows(events: Events, space: Space) -> pa.Table:
    """Return events as result tuples."""
    rows, schema = len(events.query), result_schema(space)
    columns = {name: events.source[name] for name in SOURCE}
    columns |= {"query": events.query, "sign": events.sign, "reason": events.reason}
    columns["partner_hash"] = np.zeros(rows, dtype=np.int64)
    for name in ("from_us", "to_us"):
        told = getattr(events, name)
        columns[name] = pa.array(told, mask=told < 0)
    return pa.table([columns.get(one.name, pa.nulls(rows, one.type)) for one in schema], schema=schema)


def source_of(members: Mapping[str, Column], space: Space, rows: np.ndarray | None = None) -> pa.Table:
    """Return what events need of members, given as columns: of all, or of those at some rows."""
    columns = [bounds_array(members[name]) if name == "bounds" else members[name] for name in SOURCE]
    whole = result_schema(space)
    table = pa.table(columns, schema=pa.schema([whole.field(name) for name in SOURCE]))
    return table if rows is None else table.take(pa.array(rows))
