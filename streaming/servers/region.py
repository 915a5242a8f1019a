"""The regional server: keeps the objects in its part of the space and the answers that they belong to.

References
----------
PLACE* (2007), section 2: an answer is kept incrementally, by positive and negative tuples.
BBoxDB Streams (2022), section 4.5: continuous queries run where the distribution region of the element is kept.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.operators.runs import distinct, expand, find
from streaming.results import (
    CANCELLED,
    DROPPED,
    EDITED,
    ENTERED,
    EXPIRED,
    HANDOFF,
    LEFT,
    MOVED,
    REGISTERED,
    SNAPSHOT,
    STAYED,
    result_schema,
)
from streaming.servers.objects import Cold, Objects
from streaming.servers.registry import Applied, Registry
from streaming.spaces import Space

FOREVER_US = np.iinfo(np.int64).max // 2
# A tuple's sign by (was in the answer, is in the answer).
SIGN = np.array([[STAYED, ENTERED], [LEFT, STAYED]], dtype=np.int8)


@dataclass(frozen=True)
class Region:
    """State of a regional server.

    Parameters
    ----------
    objects : Objects
    cold : Cold
    pair_key, pair_query : ndarray of int64, shape (P,)
        The answers: which object (its `key_hash`) belongs to which query; ordered by key.
    now_us : int
        The latest tick.
    """

    objects: Objects
    cold: Cold
    pair_key: np.ndarray
    pair_query: np.ndarray
    now_us: int = 0

    @classmethod
    def empty(cls, space: Space) -> "Region":
        """Return the state of a server that has not seen any object."""
        return cls(Objects.empty(space), Cold(), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class Inbox:
    """What the home servers send to a region in one micro-batch: tables with `home.tracked_schema`; see `home.Outbox`.

    Keys are distinct within `arrivals` and within `departures`.
    """

    arrivals: pa.Table
    departures: pa.Table
    passing: pa.Table


@dataclass(frozen=True)
class Results:
    """Result tuples of one region and micro-batch, tables with `results.result_schema`."""

    changes: pa.Table
    snapshots: pa.Table
    counters: dict = field(default_factory=dict)


def step(region: Region, inbox: Inbox, before: Registry, after: Registry, applied: Applied) -> tuple[Region, Results]:
    """Apply the control entries, then the updates, of one micro-batch.

    Parameters
    ----------
    region : Region
    inbox : Inbox
    before, after : Registry
        Without and with the batch's control entries.
    applied : Applied
        What those entries did.

    Returns
    -------
    region : Region
    results : Results
        One tuple per (query, object) at the most, apart from queries that emit all. A tuple of an object that departed
        to another region has the reason ``handoff`` and must be netted with what that region says.
    """
    now_us = max(region.now_us, applied.now_us)
    arrivals = inbox.arrivals.take(np.argsort(inbox.arrivals["key_hash"].to_numpy()))
    known, cold = region.objects, region.cold
    if arrivals.num_rows:
        known, cold = known.merged(Objects.arrived(arrivals, cold.following)), cold.append(arrivals)
    fate = _fates(known, inbox.departures["key_hash"].to_numpy(), after, applied, now_us)
    objects = known.take(fate == MOVED) if (fate != MOVED).any() else known
    touched = distinct(np.r_[arrivals["key_hash"].to_numpy(), known.key_hash[fate != MOVED]])

    scope = _Scope(region, before, after, applied, touched)
    old_key, old_query, rest = scope.old_pairs()
    new_key, new_query, told = _evaluate(objects, cold, arrivals, touched, after, applied)
    changes = _changes(scope, (old_key, old_query), (new_key, new_query), known, fate)
    passing = _passing(inbox.passing, after)
    rows = [
        _rows(changes, known, cold, inbox.departures, after.space),
        _rows(told, known, cold, inbox.departures, after.space),
        passing,
    ]
    position = np.searchsorted(region.pair_key[rest], new_key)
    pair_key = np.insert(region.pair_key[rest], position, new_key)
    pair_query = np.insert(region.pair_query[rest], position, new_query)
    snapshots = _snapshots(applied.snapshots, pair_key, pair_query, objects, cold, after.space)
    cold, objects = cold.compacted(objects)
    counters = {"objects": len(objects), "results": sum(table.num_rows for table in rows)}
    state = Region(objects, cold, pair_key, pair_query, now_us)
    return state, Results(pa.concat_tables(rows), snapshots, counters)


def _fates(known, departed, after, applied, now_us):
    """Return, for each known object, why it leaves the region, or MOVED where it stays (int8, shape (M,))."""
    fate = np.full(len(known), MOVED, dtype=np.int8)
    if after.ttl_us:
        streams = np.array(sorted(after.ttl_us), dtype=np.int64)
        ttl_us = np.array([after.ttl_us[stream] for stream in streams.tolist()], dtype=np.int64)
        position, limited = find(streams, known.stream)
        ttl = np.where(limited, ttl_us[np.minimum(position, len(streams) - 1)], FOREVER_US)
        fate[known.heard_us < now_us - ttl] = EXPIRED
    if applied.dropped:
        fate[np.isin(known.stream, applied.dropped)] = DROPPED
    position, present = find(known.key_hash, departed)
    fate[position[present]] = HANDOFF
    return fate


@dataclass(frozen=True)
class _Scope:
    """The part of the answers that a micro-batch may change: touched objects, and queries that changed or ended."""

    region: Region
    before: Registry
    after: Registry
    applied: Applied
    touched: np.ndarray

    def old_pairs(self):
        """Return keys and queries of the pairs in scope, and the mask of the others."""
        pair_key, pair_query = self.region.pair_key, self.region.pair_query
        start = np.searchsorted(pair_key, self.touched, "left")
        stop = np.searchsorted(pair_key, self.touched, "right")
        rest = np.ones(len(pair_key), dtype=bool)
        rest[expand(start, stop - start)[1]] = False
        altered = np.union1d(self.applied.changed, self.applied.cancelled)
        if len(altered):
            rest[np.isin(pair_query, altered)] = False
        return pair_key[~rest], pair_query[~rest], rest

    def reasons(self, query, fate):
        """Return why the answer changed, by query (P,) and fate of the object (P,); the query's own change first."""
        reason = fate.copy()
        changed = np.isin(query, self.applied.changed)
        fresh = changed & ~np.isin(query, self.before.ids)
        here = fate == MOVED
        reason[here & changed] = EDITED
        reason[here & fresh] = REGISTERED
        reason[np.isin(query, self.applied.cancelled)] = CANCELLED
        return reason


def _evaluate(objects, cold, arrivals, touched, after, applied):
    """Match touched objects with all queries, and the others with the queries that changed.

    Returns keys and queries of the pairs to keep, ordered by key, and the changes of queries that keep nothing.
    """
    moved, present = find(objects.key_hash, touched)
    moved = moved[present]
    row, query = _match(objects, cold, moved, after.queries)
    keeps = after.queries.keeps[query] if len(query) else np.empty(0, dtype=bool)
    key, number = objects.key_hash[moved[row]], after.ids[query]
    told = (
        key[~keeps],
        number[~keeps],
        np.full((~keeps).sum(), ENTERED, np.int8),
        np.full((~keeps).sum(), MOVED, np.int8),
    )
    key, number = key[keeps], number[keeps]
    if len(applied.changed):
        others = np.ones(len(objects), dtype=bool)
        others[moved] = False
        others = np.flatnonzero(others)
        changed = after.compiled(applied.changed)
        row, query = _match(objects, cold, others, changed)
        keeps = changed.keeps[query]
        key = np.r_[key, objects.key_hash[others[row[keeps]]]]
        number = np.r_[number, applied.changed[query[keeps]]]
        order = np.argsort(key, kind="stable")
        key, number = key[order], number[order]
    return key, number, told


def _match(objects, cold, rows, queries):
    """Match the objects at `rows`; return positions in `rows` and positions of queries."""
    chosen = objects if len(rows) == len(objects) else objects.take(rows)
    return queries.match(
        chosen.stream, chosen.bounds, lambda wanted: cold.take(chosen.take(wanted))["properties"].combine_chunks()
    )


def _changes(scope, old, new, known, fate):
    """Compare old and new pairs; return keys, queries, signs and reasons of the tuples to tell."""
    queries = distinct(np.r_[scope.before.ids, scope.after.ids])
    was, now = (
        distinct(np.searchsorted(known.key_hash, key) * len(queries) + np.searchsorted(queries, query))
        for key, query in (old, new)
    )
    pairs = distinct(np.r_[was, now])
    row, query = pairs // max(1, len(queries)), queries[pairs % max(1, len(queries))]
    key = known.key_hash[row]
    sign = SIGN[find(was, pairs)[1].astype(np.int8), find(now, pairs)[1].astype(np.int8)]
    reason = scope.reasons(query, fate[row])
    # An object that did not move and stays in an edited query's answer is nothing to tell.
    tell = (sign != STAYED) | find(scope.touched, key)[1]
    return key[tell], query[tell], sign[tell], reason[tell]


def _rows(changes, known, cold, departures, space):
    """Return result tuples; of an object that departed, with its newest element."""
    key, query, sign, reason = changes
    if not len(key):
        return result_schema(space).empty_table()
    departed_key = departures["key_hash"].to_numpy()
    order = np.argsort(departed_key)
    place, gone = find(departed_key[order], key)
    away, here = np.flatnonzero(gone), np.flatnonzero(~gone)
    found = known.take(find(known.key_hash, key[here])[0])
    tables = []
    if len(here):
        source = cold.take(found)
        tables.append(_table(query[here], sign[here], reason[here], found, source, space))
    if len(away):
        source = departures.take(order[place[away]])
        found = Objects.arrived(source, -1)
        tables.append(_table(query[away], sign[away], reason[away], found, source, space))
    return pa.concat_tables(tables)


def _table(query, sign, reason, objects, source, space):
    columns = {
        "query": query,
        "sign": sign,
        "reason": reason,
        "key": source["key"],
        "key_hash": objects.key_hash,
        "time_us": objects.time_us,
        "bounds": bounds_array(objects.bounds),
        "properties": source["properties"],
    }
    return pa.table(columns, schema=result_schema(space))


def _passing(passing, after):
    """Report elements that a newer one superseded to the queries that want every element."""
    if not passing.num_rows:
        return result_schema(after.space).empty_table()
    objects = Objects.arrived(passing, -1)
    row, query = after.queries.match(objects.stream, objects.bounds, passing["properties"].combine_chunks().take)
    wanted = ~after.queries.keeps[query]
    row, query = row[wanted], query[wanted]
    signs, reasons = np.full(len(row), ENTERED, np.int8), np.full(len(row), MOVED, np.int8)
    return _table(after.ids[query], signs, reasons, objects.take(row), passing.take(row), after.space)


def _snapshots(queries, pair_key, pair_query, objects, cold, space):
    """Return the whole answers of `queries`."""
    chosen = np.flatnonzero(np.isin(pair_query, queries)) if queries else np.empty(0, np.int64)
    if not len(chosen):
        return result_schema(space).empty_table()
    found = objects.take(find(objects.key_hash, pair_key[chosen])[0])
    signs, reasons = np.full(len(chosen), ENTERED, np.int8), np.full(len(chosen), SNAPSHOT, np.int8)
    return _table(pair_query[chosen], signs, reasons, found, cold.take(found), space)
