"""Pairs of reports as a region tells them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.operators.asked import Asked
from streaming.operators.failures import Failures
from streaming.operators.meetings import Meetings
from streaming.results import ENTERED, MOVED, result_schema
from streaming.servers.region.place import RegionPlace
from streaming.servers.ways.time_joins.reports import Picked
from streaming.spaces import Space


@dataclass(frozen=True)
class Pairing:
    """Finds the pairs of a join over event time in a region, and tells those that are the region's to tell.

    Parameters
    ----------
    query : int
    join : TimeJoin
    space : Space
    place : RegionPlace
    failures : Failures
        Receives the errors of user-defined filters.
    """

    query: int
    join: Any
    space: Space
    place: RegionPlace
    failures: Failures

    def pairs(self, picked: Picked, left: np.ndarray, right: np.ndarray) -> Meetings:
        """Return the pairs of reports at rows of the join's two streams that satisfy all but the times."""
        return self._found(self.join.pairs, picked, left, right)

    def judged(self, picked: Picked, row: np.ndarray, partner: np.ndarray) -> Meetings:
        """Return those of some pairs of reports that satisfy all but the times; see `StreamJoins.judged`."""
        return self._found(self.join.judged, picked, row, partner)

    def _found(self, find: Callable[..., Meetings], picked: Picked, left: np.ndarray, right: np.ndarray) -> Meetings:
        failed = self.failures.part()
        found: Meetings = find(picked.elements, picked.column("key_hash"), left, right, failed)
        self.failures.add(failed, np.array([self.query]))
        return found

    def has_room(self, looked: int) -> bool:
        """Count pairs before they are looked at; return whether the step has room for them."""
        return self.failures.ask(Asked.jointly(np.array([self.query]), looked))

    def goes_on(self, took: float, looked_at: int, rest: int) -> bool:
        """Tell whether more pairs are looked at; see `Failures.goes_on`."""
        return self.failures.goes_on(np.array([self.query]), took, looked_at, rest)

    def miss(self, pairs: int) -> None:
        """Count pairs that would be looked at if there was room."""
        self.failures.miss(np.array([self.query]), pairs)

    def own(self, picked: Picked, pairs: Meetings) -> Meetings:
        """Return the pairs that this region tells."""
        failed = self.failures.part()
        key_hash, time_us = (picked.column(name) for name in ("key_hash", "time_us"))
        once = self.join.unmirrored(pairs, picked.elements, key_hash, time_us, failed)
        self.failures.add(failed, np.array([self.query]))
        pairs = pairs.take(once)
        tellers = self.join.tellers(pairs, picked.column("bounds"), self.place.region_map)
        return pairs.take(tellers == self.place.number)

    def rows(self, picked: Picked, pairs: Meetings, window_us: int | None) -> pa.Table:
        """Return pairs as result tuples; `window_us` is the beginning of their window, if they are of one."""
        return pair_rows(self.query, picked, pairs, window_us, self.space)


def pair_rows(query: int, picked: Picked, pairs: Meetings, window_us: int | None, space: Space) -> pa.Table:
    """Return pairs of picked reports as result tuples of a query; see `Pairing.rows`."""
    count, schema = len(pairs.row), result_schema(space)
    if not count:
        return schema.empty_table()
    one, other = picked.cold(pairs.row), picked.cold(pairs.partner)
    time_us, key_hash, bounds = (picked.column(name) for name in ("time_us", "key_hash", "bounds"))
    columns = {
        "query": np.full(count, query),
        "sign": np.full(count, ENTERED, dtype=np.int8),
        "reason": np.full(count, MOVED, dtype=np.int8),
        "key": one["key"],
        "key_hash": key_hash[pairs.row],
        "time_us": time_us[pairs.row],
        "bounds": bounds_array(bounds[pairs.row]),
        "properties": one["properties"],
        "partner": other["key"],
        "partner_hash": key_hash[pairs.partner],
        "partner_properties": other["properties"],
        "distance": pa.array(pairs.distance, from_pandas=True),
        "partner_time_us": time_us[pairs.partner],
        "partner_bounds": bounds_array(bounds[pairs.partner]),
        "window_us": pa.nulls(count, pa.int64()) if window_us is None else np.full(count, window_us),
    }
    return pa.table([columns.get(field.name, pa.nulls(count, field.type)) for field in schema], schema=schema)
