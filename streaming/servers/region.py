"""The regional server: keeps the objects in its part of the space and the answers that they belong to.

References
----------
PLACE* (2007), section 2: an answer is kept incrementally, by positive and negative tuples.
BBoxDB Streams (2022), section 4.5: continuous queries run where the distribution region of the element is kept.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.runs import distinct, find
from streaming.results import (
    DROPPED,
    EXPIRED,
    HANDOFF,
    MOVED,
    SNAPSHOT,
    result_schema,
)
from streaming.servers.answers import Answers, Audience
from streaming.servers.border import LeftOut
from streaming.servers.changes import compared
from streaming.servers.home import tracked_schema
from streaming.servers.objects import Cold, Objects
from streaming.servers.orders import Orders
from streaming.servers.registry import Applied, Registry
from streaming.servers.scope import Scope, worth_telling
from streaming.spaces import Space


@dataclass(frozen=True)
class Region:
    """State of a regional server.

    Parameters
    ----------
    objects : Objects
    cold : Cold
    pair_key, pair_answer, pair_partner : ndarray of int64, shape (P,)
        Which object (its `key_hash`) belongs to which answer, in a join with which feature (its `key_hash`, otherwise
        0); ordered by key. Queries with equal plans share an answer.
    now_us : int
        The latest tick.
    left_out : mapping of int to LeftOut
        The queries, of all kinds, that the region does not evaluate.
    """

    objects: Objects
    cold: Cold
    pair_key: np.ndarray
    pair_answer: np.ndarray
    pair_partner: np.ndarray
    now_us: int = 0
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)

    @classmethod
    def empty(cls, space: Space) -> "Region":
        """Return the state of a server that has not seen any object."""
        return cls(Objects.empty(space), Cold(), *np.empty((3, 0), dtype=np.int64))

    def without(self, answers: np.ndarray) -> "Region":
        """Return the state without the members of some answers."""
        if not len(answers):
            return self
        kept = ~np.isin(self.pair_answer, answers)
        return replace(
            self, **{name: getattr(self, name)[kept] for name in ("pair_key", "pair_answer", "pair_partner")}
        )

    def elements(self, rows: np.ndarray, space: Space) -> pa.Table:
        """Return the objects at rows as elements with `home.tracked_schema`; versions only the home servers know."""
        objects = self.objects.take(rows)
        columns = {name: getattr(objects, name) for name in ("key_hash", "stream", "time_us", "heard_us")}
        columns |= {"version": objects.time_us, "bounds": bounds_array(objects.bounds)}
        source, schema = self.cold.take(objects), tracked_schema(space)
        return pa.table([columns[name] if name in columns else source[name] for name in schema.names], schema=schema)


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
    """Result tuples of one region and micro-batch, tables with `results.result_schema`; what failed, by query.

    `seconds` is what each query cost; queries that share an answer have the whole of it each.
    `shared` and `aggregates` are as in `results.Fragment`.
    """

    changes: pa.Table
    snapshots: pa.Table
    counters: dict = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    shared: dict[int, tuple[int, ...]] = field(default_factory=dict)
    aggregates: tuple[int, ...] = ()
    seconds: dict[int, float] = field(default_factory=dict)

    def plus(self, more: "Results") -> "Results":
        """Return these results and more of the same region and micro-batch, whose counters add up."""
        names = {**self.counters, **more.counters}
        return Results(
            pa.concat_tables([self.changes, more.changes]),
            pa.concat_tables([self.snapshots, more.snapshots]),
            {name: self.counters.get(name, 0) + more.counters.get(name, 0) for name in names},
            {**more.failures, **self.failures},
            {**self.shared, **more.shared},
            seconds={**self.seconds, **more.seconds},
        )


@dataclass(frozen=True)
class Turnover:
    """What becomes of a region's objects in a micro-batch.

    Parameters
    ----------
    was : Region
        As the batch before left it.
    known : Objects, M of them
        Those that were there, or came, with their newest elements.
    cold : Cold
        Of `known`.
    fate : ndarray of int8, shape (M,)
        Why each leaves the region, or MOVED where it stays.
    touched : ndarray of int64
        Keys of objects that moved, appeared or leave, ascending.
    departures : pyarrow.Table
        The newest elements of objects that went to another region, with `home.tracked_schema`.
    """

    was: Region
    known: Objects
    cold: Cold
    fate: np.ndarray
    touched: np.ndarray
    departures: pa.Table

    @classmethod
    def of(cls, region: Region, inbox: Inbox, orders: Orders) -> "Turnover":
        """Return what an inbox and the orders make of a region's objects."""
        arrivals = inbox.arrivals.take(np.argsort(inbox.arrivals["key_hash"].to_numpy()))
        known, cold = region.objects, region.cold
        if arrivals.num_rows:
            known, cold = known.merged(Objects.arrived(arrivals, cold.following)), cold.append(arrivals)
        departed = inbox.departures["key_hash"].to_numpy()
        fate = fates(known, departed, orders.after, orders.applied, orders.now_us)
        touched = distinct(np.r_[arrivals["key_hash"].to_numpy(), known.key_hash[fate != MOVED]])
        return cls(region, known, cold, fate, touched, inbox.departures)

    @functools.cached_property
    def objects(self) -> Objects:
        """Those that stay."""
        stays = self.fate == MOVED
        return self.known if stays.all() else self.known.take(stays)


def step(turnover: Turnover, passing: pa.Table, orders: Orders) -> tuple[Region, Results]:
    """Apply the control entries, then the updates, of one micro-batch.

    Parameters
    ----------
    turnover : Turnover
    passing : pyarrow.Table
        As in `Inbox`.
    orders : Orders

    Returns
    -------
    region : Region
    results : Results
        One tuple per (query, object, partner) at the most, apart from queries that emit all. A tuple of an object that
        departed to another region has the reason ``handoff`` and must be netted with what that region says.
    """
    region, cold, objects = turnover.was.without(orders.applied.forgotten), turnover.cold, turnover.objects
    before, after, applied, failures = orders.before, orders.after, orders.applied, Failures()
    scope = Scope(before, after, applied, turnover.touched, objects, failures)
    inside = scope.covers(region.pair_key, region.pair_answer)
    rest = ~inside
    old = Answers(region.pair_key[inside], region.pair_answer[inside], region.pair_partner[inside])
    new, told = scope.evaluated(cold)
    new = scope.with_kept(old, new)
    audience = scope.audience
    changes = _changes(scope, scope.audience_before.told(old), audience.told(new), turnover)
    writer, began = Writer(turnover.known, cold, turnover.departures, before, after), perf_counter()
    rows = [writer.rows(changes), writer.rows(audience.told(told))]
    failures.share(audience.answers_of(changes.query), perf_counter() - began, after.answers)
    rows.append(_passing(passing, writer, audience, failures))
    position = np.searchsorted(region.pair_key[rest], new.key)
    pair_key = np.insert(region.pair_key[rest], position, new.key)
    pair_answer = np.insert(region.pair_answer[rest], position, new.query)
    pair_partner = np.insert(region.pair_partner[rest], position, new.partner)
    state = Region(objects, cold, pair_key, pair_answer, pair_partner, orders.now_us)
    snapshots = writer.snapshots(applied.snapshots, state, scope)
    cold, objects = cold.compacted(objects)
    table = pa.concat_tables(rows)
    shared, told_rows = audience.shared_in(table["query"].to_numpy())
    counters = {"objects": len(objects), "results": told_rows}
    errors, seconds = (_of_queries(told, after) for told in (failures.errors, failures.seconds))
    results = Results(table, snapshots, counters, errors, shared, seconds=seconds)
    return replace(state, objects=objects, cold=cold), results


def _of_queries(told, registry):
    """Return what is told by query, given what is told by answer."""
    if not told:
        return {}
    answers = zip(registry.ids.tolist(), registry.answer_of.tolist(), strict=True)
    return {query: told[answer] for query, answer in answers if answer in told}


def fates(known: Objects, departed: np.ndarray, after: Registry, applied: Applied, now_us: int) -> np.ndarray:
    """Return, for each known object, why it leaves the region, or MOVED where it stays (int8, shape (M,))."""
    fate = np.full(len(known), MOVED, dtype=np.int8)
    if after.ttl_us:
        fate[known.heard_us < now_us - after.ttl_of(known.stream)] = EXPIRED
    if applied.dropped:
        fate[np.isin(known.stream, list(applied.dropped))] = DROPPED
    position, present = find(known.key_hash, departed)
    fate[position[present]] = HANDOFF
    return fate


def _changes(scope, old, new, turnover):
    """Compare old and new answers; return the tuples to tell."""
    both = compared(old, new)
    fate = turnover.fate[np.searchsorted(turnover.known.key_hash, both.key)]
    changes = scope.explained(replace(both, reason=scope.reasons(both, fate)), turnover.was.objects, turnover.cold)
    touched = find(scope.touched, both.key)[1]
    return changes.take(worth_telling(changes, touched, scope.before, scope.after))


@dataclass(frozen=True)
class Writer:
    """Writes result tuples, of what a region knows of objects and of the partners of queries."""

    known: Objects
    cold: Cold
    departures: pa.Table
    before: Registry
    after: Registry

    def rows(self, answers: Answers) -> pa.Table:
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

    def present(self, answers: Answers, objects: Objects, cold: Cold) -> pa.Table:
        """Return result tuples of objects that are among `objects`."""
        found = objects.take(find(objects.key_hash, answers.key)[0])
        return self.table(answers, found, cold.take(found))

    def snapshots(self, queries: Sequence[int], state: Region, scope: Scope) -> pa.Table:
        """Return the whole answers of `queries`."""
        running = np.isin(self.after.ids, queries)
        wanted = self.after.answer_of[running]
        chosen = np.flatnonzero(np.isin(state.pair_answer, wanted)) if len(wanted) else np.empty(0, np.int64)
        if not len(chosen):
            return result_schema(self.after.space).empty_table()
        key, answer, partner = state.pair_key[chosen], state.pair_answer[chosen], state.pair_partner[chosen]
        audience = Audience.of(self.after.ids[running], wanted, self.after.ids)
        members = scope.measured(Answers(key, answer, partner, np.full(len(key), np.nan)), state.cold)
        return self.snapshot(audience.told(members), state.objects, state.cold)

    def snapshot(self, members: Answers, objects: Objects, cold: Cold) -> pa.Table:
        """Return members of answers, all of them among `objects`, as rows of snapshots."""
        if not len(members.key):
            return result_schema(self.after.space).empty_table()
        return self.present(replace(members, reason=SNAPSHOT), objects, cold)

    def table(self, answers: Answers, objects: Objects, source: pa.Table) -> pa.Table:
        """Return result tuples; `objects` and the cold columns of `source` have a row for each."""
        return result_rows(answers, objects, source, self._partners(answers), self.after.space)

    def _layers(self):
        """Yield where partners may be found: the layers that are joined now, then those that were.

        A feature's hash is that of its key and its layer, so it is in one layer only.
        """
        for registry in (self.after, self.before):
            for layer in sorted(registry.layers_joined):
                yield registry, layer

    def _partners(self, answers):
        """Return the keys and the properties of partners, null where there is none."""
        rows = len(answers.key)
        left = np.flatnonzero(answers.partner != 0)
        found, taken = [np.empty(0, np.int64)], {"partner": [], "partner_properties": []}
        for features in (registry.features(layer) for registry, layer in self._layers()):
            if not len(left):
                break
            place, present = features.find(answers.partner[left])
            found.append(left[present])
            # Never whole features: one may be a continent, and stand in thousands of rows.
            wanted = features.table.select(["key", "properties"]).take(pa.array(place[present]))
            taken["partner"].append(wanted["key"])
            taken["partner_properties"].append(wanted["properties"])
            left = left[~present]
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


def _passing(passing, writer, audience, failures):
    """Report elements that a newer one superseded to the queries that want every element."""
    registry = writer.after
    if not passing.num_rows or registry.queries.keeps.all():
        return result_schema(registry.space).empty_table()
    objects = Objects.arrived(passing, -1)
    elements = Elements(objects.stream, objects.bounds, lambda rows: passing.take(pa.array(rows)))
    failed = Failures()
    pairs = registry.queries.match(elements, failed)
    failures.add(failed, registry.answers)
    pairs = pairs.take(~registry.queries.keeps[pairs.query])
    told = audience.told(Answers.of(pairs, np.arange(len(objects)), registry.answers))
    answers = replace(told, key=objects.key_hash[told.key])
    return writer.table(answers, objects.take(told.key), passing.take(pa.array(told.key)))


def result_rows(answers: Answers, objects: Objects, source: pa.Table, partners: Mapping, space: Space) -> pa.Table:
    """Return members of answers as result tuples.

    Parameters
    ----------
    answers : Answers, P members
    objects : Objects
    source : pyarrow.Table
        The cold columns of the same objects, a row for each member.
    partners : mapping of str to pyarrow array
        `partner` and `partner_properties`.
    space : Space
    """
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
        "rank": pa.nulls(rows, pa.int32()),
    } | dict(partners)
    schema = result_schema(space)
    return pa.table([columns[name] for name in schema.names], schema=schema)
