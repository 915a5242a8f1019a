"""The regional server: keeps the objects in its part of the space and the answers that they belong to.

References
----------
PLACE* (2007), section 2: an answer is kept incrementally, by positive and negative tuples.
BBoxDB Streams (2022), section 4.5: continuous queries run where the distribution region of the element is kept.
"""

from dataclasses import dataclass, field, fields, replace

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.runs import distinct, expand, find
from streaming.operators.spatial_join import Pairs
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
    pair_key, pair_query, pair_partner : ndarray of int64, shape (P,)
        The answers: which object (its `key_hash`) belongs to which query, in a join with which feature (its `key_hash`,
        otherwise 0); ordered by key.
    now_us : int
        The latest tick.
    """

    objects: Objects
    cold: Cold
    pair_key: np.ndarray
    pair_query: np.ndarray
    pair_partner: np.ndarray
    now_us: int = 0

    @classmethod
    def empty(cls, space: Space) -> "Region":
        """Return the state of a server that has not seen any object."""
        return cls(Objects.empty(space), Cold(), *np.empty((3, 0), dtype=np.int64))


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
    """Result tuples of one region and micro-batch, tables with `results.result_schema`; and what failed, by query."""

    changes: pa.Table
    snapshots: pa.Table
    counters: dict = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)


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
        One tuple per (query, object, partner) at the most, apart from queries that emit all. A tuple of an object that
        departed to another region has the reason ``handoff`` and must be netted with what that region says.
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
    old, rest = scope.old_answers()
    failures = Failures()
    new, told = _evaluate(objects, cold, arrivals, touched, after, applied, failures)
    changes = _changes(scope, old, new, known, fate)
    writer = _Writer(known, cold, inbox.departures, before, after)
    rows = [writer.rows(changes), writer.rows(told), _passing(inbox.passing, writer, failures)]
    position = np.searchsorted(region.pair_key[rest], new.key)
    pair_key = np.insert(region.pair_key[rest], position, new.key)
    pair_query = np.insert(region.pair_query[rest], position, new.query)
    pair_partner = np.insert(region.pair_partner[rest], position, new.partner)
    state = Region(objects, cold, pair_key, pair_query, pair_partner, now_us)
    snapshots = writer.snapshots(applied.snapshots, state)
    cold, objects = cold.compacted(objects)
    counters = {"objects": len(objects), "results": sum(table.num_rows for table in rows)}
    results = Results(pa.concat_tables(rows), snapshots, counters, failures.errors)
    return replace(state, objects=objects, cold=cold), results


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
        fate[np.isin(known.stream, list(applied.dropped))] = DROPPED
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

    def old_answers(self):
        """Return the answers in scope, and the mask of the others."""
        pair_key, pair_query = self.region.pair_key, self.region.pair_query
        start = np.searchsorted(pair_key, self.touched, "left")
        stop = np.searchsorted(pair_key, self.touched, "right")
        rest = np.ones(len(pair_key), dtype=bool)
        rest[expand(start, stop - start)[1]] = False
        altered = np.union1d(self.applied.changed, self.applied.cancelled)
        if len(altered):
            rest[np.isin(pair_query, altered)] = False
        return Answers(pair_key[~rest], pair_query[~rest], self.region.pair_partner[~rest]), rest

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


@dataclass(frozen=True)
class Answers:
    """Members of answers: object, query and partner, each int64 of shape (P,); and what is to tell of each.

    `sign`, `reason` and `distance` are arrays of the same length, or one value for all.
    """

    key: np.ndarray
    query: np.ndarray
    partner: np.ndarray
    distance: np.ndarray | float = np.nan
    sign: np.ndarray | int = ENTERED
    reason: np.ndarray | int = MOVED

    @classmethod
    def of(cls, pairs: Pairs, keys: np.ndarray, queries: np.ndarray) -> "Answers":
        """Return pairs as members of answers, given the keys of the rows and the numbers of the queries."""
        return cls(keys[pairs.row], queries[pairs.query], pairs.partner, pairs.distance)

    def take(self, rows: np.ndarray) -> "Answers":
        """Return the members at positions or of a mask."""
        columns = (getattr(self, field.name) for field in fields(self))
        return Answers(*(column[rows] if isinstance(column, np.ndarray) else column for column in columns))


def _evaluate(objects, cold, arrivals, touched, after, applied, failures):
    """Match touched objects with all queries, and the others with the queries that changed.

    Returns the answers to keep, ordered by key, and what queries that keep nothing report.
    """
    moved, present = find(objects.key_hash, touched)
    moved = moved[present]
    found, told = _match(objects, cold, moved, after.queries, after.ids, failures)
    if len(applied.changed):
        others = np.ones(len(objects), dtype=bool)
        others[moved] = False
        compiled = after.compiled(applied.changed)
        more, _ = _match(objects, cold, np.flatnonzero(others), compiled, applied.changed, failures)
        columns = ("key", "query", "partner", "distance")
        both = Answers(*(np.r_[getattr(found, name), getattr(more, name)] for name in columns))
        found = both.take(np.argsort(both.key, kind="stable"))
    return found, told


def _match(objects, cold, rows, queries, ids, failures):
    """Match the objects at `rows`; return the answers of queries that keep theirs, and those of the others."""
    chosen = objects if len(rows) == len(objects) else objects.take(rows)
    elements = Elements(
        chosen.stream, chosen.bounds, lambda wanted: cold.take(chosen.take(wanted)), cold.has_geometries
    )
    failed = Failures()
    pairs = queries.match(elements, failed)
    failures.add(failed, ids)
    keeps = queries.keeps[pairs.query]
    answers = Answers.of(pairs, chosen.key_hash, ids)
    return answers.take(keeps), answers.take(~keeps)


def _changes(scope, old, new, known, fate):
    """Compare old and new answers; return the tuples to tell."""
    queries = distinct(np.r_[scope.before.ids, scope.after.ids])
    partners = distinct(np.r_[old.partner, new.partner])

    def coded(answers):
        row, query = np.searchsorted(known.key_hash, answers.key), np.searchsorted(queries, answers.query)
        return (row * len(queries) + query) * len(partners) + np.searchsorted(partners, answers.partner)

    was, now = coded(old), coded(new)
    order = np.argsort(now)
    was, now, distance = np.sort(was), now[order], new.distance[order]
    pairs = distinct(np.r_[was, now])
    rest, partner = np.divmod(pairs, max(1, len(partners)))
    row, query = np.divmod(rest, max(1, len(queries)))
    query, key = queries[query], known.key_hash[row]
    place, is_in = find(now, pairs)
    sign = SIGN[find(was, pairs)[1].astype(np.int8), is_in.astype(np.int8)]
    measured = np.full(len(pairs), np.nan)
    measured[is_in] = distance[place[is_in]]
    reason = scope.reasons(query, fate[row])
    # An object that did not move and stays in an edited query's answer is nothing to tell.
    tell = (sign != STAYED) | find(scope.touched, key)[1]
    return Answers(key, query, partners[partner], measured, sign, reason).take(tell)


@dataclass(frozen=True)
class _Writer:
    """Writes result tuples, of what the region knows of objects and of the partners of queries."""

    known: Objects
    cold: Cold
    departures: pa.Table
    before: Registry
    after: Registry

    def rows(self, answers):
        """Return result tuples; of an object that departed, with its newest element."""
        if not len(answers.key):
            return result_schema(self.after.space).empty_table()
        departed_key = self.departures["key_hash"].to_numpy()
        order = np.argsort(departed_key)
        place, gone = find(departed_key[order], answers.key)
        away, here = np.flatnonzero(gone), np.flatnonzero(~gone)
        tables = []
        if len(here):
            tables.append(self.present(answers.take(here), self.known, self.cold))
        if len(away):
            source = self.departures.take(order[place[away]])
            tables.append(self.table(answers.take(away), Objects.arrived(source, -1), source))
        return pa.concat_tables(tables)

    def present(self, answers, objects, cold):
        """Return result tuples of objects that are among `objects`."""
        found = objects.take(find(objects.key_hash, answers.key)[0])
        return self.table(answers, found, cold.take(found))

    def snapshots(self, queries, state):
        """Return the whole answers of `queries`."""
        chosen = np.flatnonzero(np.isin(state.pair_query, queries)) if queries else np.empty(0, np.int64)
        if not len(chosen):
            return result_schema(self.after.space).empty_table()
        key, query, partner = state.pair_key[chosen], state.pair_query[chosen], state.pair_partner[chosen]
        return self.present(Answers(key, query, partner, reason=SNAPSHOT), state.objects, state.cold)

    def table(self, answers, objects, source):
        """Return result tuples; `objects` and the cold columns of `source` have a row for each."""
        rows = len(answers.key)
        columns = {
            "query": answers.query,
            "sign": np.broadcast_to(np.int8(answers.sign), rows),
            "reason": np.broadcast_to(np.int8(answers.reason), rows),
            "key": source["key"],
            "key_hash": objects.key_hash,
            "time_us": objects.time_us,
            "bounds": bounds_array(objects.bounds),
            "properties": source["properties"],
            "partner_hash": answers.partner,
            "distance": pa.array(np.broadcast_to(answers.distance, rows), from_pandas=True),
        }
        columns |= self.partners(answers)
        schema = result_schema(self.after.space)
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def partners(self, answers):
        """Return the keys and the properties of partners, null where there is none."""
        rows = len(answers.key)
        joined = np.flatnonzero(answers.partner != 0)
        found, taken = [np.empty(0, np.int64)], {"partner": [], "partner_properties": []}
        for query in np.unique(answers.query[joined]).tolist():
            mine = joined[answers.query[joined] == query]
            for registry in (self.after, self.before):
                features = registry.partners(query)
                place, present = features.find(answers.partner[mine])
                found.append(mine[present])
                # Never whole features: one may be a continent, and stand in thousands of rows.
                wanted = features.table.select(["key", "properties"]).take(pa.array(place[present]))
                taken["partner"].append(wanted["key"])
                taken["partner_properties"].append(wanted["properties"])
                mine = mine[~present]
        if not taken["partner"]:
            return {name: pa.nulls(rows, pa.string()) for name in taken}
        index = np.full(rows, -1)
        order = np.concatenate(found)
        index[order] = np.arange(len(order))
        place = pa.array(index, mask=index < 0)
        return {
            name: pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string()).take(place)
            for name, parts in taken.items()
        }


def _passing(passing, writer, failures):
    """Report elements that a newer one superseded to the queries that want every element."""
    registry = writer.after
    if not passing.num_rows or registry.queries.keeps.all():
        return result_schema(registry.space).empty_table()
    objects = Objects.arrived(passing, -1)
    elements = Elements(objects.stream, objects.bounds, lambda rows: passing.take(pa.array(rows)))
    failed = Failures()
    pairs = registry.queries.match(elements, failed)
    failures.add(failed, registry.ids)
    pairs = pairs.take(~registry.queries.keeps[pairs.query])
    answers = Answers.of(pairs, objects.key_hash, registry.ids)
    return writer.table(answers, objects.take(pairs.row), passing.take(pa.array(pairs.row)))
