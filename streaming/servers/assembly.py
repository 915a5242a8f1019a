"""The assembler inside the engine: what the partial results of the participating servers make together.

It runs once a micro-batch, in whichever region ends last, and keeps where the focal objects are, how far search regions
reach, and what every participating server sent: the participating server table. All of it is state, so another process
goes on where one ended.

References
----------
PLACE* (2007), sections 3.3, 4.2 and 5.1: the assembler operator of the querying server.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import orjson
import polars as pl
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of, key_hashes
from streaming.operators.failures import Failures
from streaming.operators.metres import local_metres
from streaming.operators.runs import find
from streaming.results import (
    CANCELLED,
    DROPPED,
    EDITED,
    EXPIRED,
    LEFT,
    MOVED,
    PLACED,
    REGISTERED,
    SNAPSHOT,
    result_schema,
)
from streaming.servers import aggregation, nearest
from streaming.servers.aggregation import Aggregation, Groups
from streaming.servers.answers import Answers
from streaming.servers.focals import Focals, shifted
from streaming.servers.nearest import Neighbourhoods, Searches
from streaming.servers.orders import Orders
from streaming.servers.participant import Candidates, Partial, Tracks, elements_of
from streaming.servers.region import Region, Results, result_rows
from streaming.spaces import Space


@dataclass(frozen=True)
class Assembly:
    """State of the assembler.

    Parameters
    ----------
    focals : Focals
        As the regions saw them in the newest batch.
    reach : Focals
        The same, with the search regions that hold from the next batch on.
    neighbourhoods : Neighbourhoods
    aggregation : Aggregation
    """

    focals: Focals
    following: Focals
    neighbourhoods: Neighbourhoods = field(default_factory=Neighbourhoods.none)
    aggregation: Aggregation = field(default_factory=Aggregation.none)

    @classmethod
    def none(cls, space: Space) -> "Assembly":
        """Return the state without distributed queries."""
        return cls(Focals.none(space), Focals.none(space))


@dataclass(frozen=True)
class Book:
    """The objects of all regions, without and with a micro-batch.

    Parameters
    ----------
    before : callable
        Returns the regions as the batch before left them.
    after : sequence of Region
    space : Space
    """

    before: Callable[[], Iterable[Region]]
    after: Sequence[Region]
    space: Space

    def rows(self, answers: Answers, rank: np.ndarray) -> pa.Table:
        """Return members of answers as result tuples, each with its object's newest element, in any order.

        `rank` (P,) is 0 where there is none. What left all regions is shown as the batch before left it.
        """
        tables = [result_schema(self.space).empty_table()]
        for region, at, position in self._found(answers.key):
            objects = region.objects.take(position)
            nothing = {name: pa.nulls(len(at), pa.string()) for name in ("partner", "partner_properties")}
            table = result_rows(answers.take(at), objects, region.cold.take(objects), nothing, self.space)
            ranks = pa.array(rank[at].astype(np.int32), mask=rank[at] == 0)
            tables.append(table.set_column(table.num_columns - 1, "rank", ranks))
        return pa.concat_tables(tables)

    def _found(self, keys):
        """Yield regions, and which of some keys are found there, and where; each key once."""
        left = np.arange(len(keys))
        for regions in (lambda: self.after, self.before):
            if not len(left):
                return
            for region in regions():
                position, present = find(region.objects.key_hash, keys[left])
                if present.any():
                    yield region, left[present], position[present]
                left = left[~present]

    def column(self, keys: np.ndarray, name: str) -> np.ndarray:
        """Return a hot column of objects (K,)."""
        like = getattr(self.after[0].objects, name)
        values = np.zeros((len(keys), *like.shape[1:]), dtype=like.dtype)
        for region, at, position in self._found(keys):
            values[at] = getattr(region.objects, name)[position]
        return values

    def names(self, keys: np.ndarray) -> list[str | None]:
        """Return the names of objects (K,)."""
        names: list[str | None] = [None] * len(keys)
        for region, at, position in self._found(keys):
            found = region.cold.take(region.objects.take(position))["key"].to_pylist()
            for place, value in zip(at.tolist(), found, strict=True):
                names[place] = value
        return names

    def gone(self, keys: np.ndarray) -> np.ndarray:
        """Tell which objects (K,) are in no region any more."""
        gone = np.ones(len(keys), dtype=bool)
        for region in self.after:
            gone &= ~find(region.objects.key_hash, keys)[1]
        return gone

    @functools.cached_property
    def density(self) -> float:
        """How many objects there are in a square metre, or unit, of the box that holds them all; 0 without any."""
        boxes = [region.objects.bounds for region in self.after if len(region.objects)]
        count, n = sum(map(len, boxes)), self.space.n
        if not count:
            return 0.0
        low = np.min([box[:, :n].min(axis=0) for box in boxes], axis=0)
        high = np.max([box[:, n:].max(axis=0) for box in boxes], axis=0)
        extent = (high - low)[:2]
        extent = np.where(np.isfinite(extent) & (extent > 0), extent, 1e-9)
        if self.space.geographic:
            extent = extent * np.array(local_metres((high[1] + low[1]) / 2))
        return count / float(np.prod(extent))


def step(
    state: Assembly, partials: Sequence[Partial], orders: Orders, tracks: Tracks, book: Book
) -> tuple[Assembly, Results, dict[int, tuple[int, ...]]]:
    """Merge what participating servers sent in a micro-batch, in the order of their regions.

    Returns
    -------
    state : Assembly
    results : Results
        The tuples of kNN queries and of aggregates, and where queries that move are.
    sent : dict of int to tuple of int
        As in `results.Fragment`.
    """
    scene = _Scene(state, partials, orders, tracks, book)
    neighbourhoods, neighbours, reach = scene.neighbours()
    groups, changes, crossings = scene.groups()
    ids = orders.after.distributed_ids
    known = np.flatnonzero(~np.isnan(reach))
    following = Focals(tracks.after.elements, ids[known], reach[known])
    state = Assembly(tracks.after, following, neighbourhoods, groups)
    rows = [neighbours, scene.told(changes, crossings), scene.places(following)]
    table = pa.concat_tables(rows)
    snapshots = scene.snapshots(state)
    aggregates = tuple(query for query in scene.aggregates if query < 2**62)
    results = Results(table, snapshots, {"results": table.num_rows}, {})
    return state, replace(results, aggregates=aggregates), scene.sent()


@dataclass(frozen=True)
class _Scene:
    state: Assembly
    partials: Sequence[Partial]
    orders: Orders
    tracks: Tracks
    book: Book

    @property
    def ids(self):
        return self.orders.after.distributed_ids

    @property
    def queries(self):
        return self.orders.after.distributed

    @functools.cached_property
    def are(self):
        """The queries where the regions saw them."""
        return self.tracks.after.placed(self.orders.after)

    @functools.cached_property
    def shifted(self):
        return shifted(self.tracks.before.placed(self.orders.before), self.are, self.orders)

    @functools.cached_property
    def aggregates(self):
        """The aggregates, and those that were, by the numbers of their queries."""
        found = {}
        for registry in (self.orders.before, self.orders.after):
            queries, ids = registry.distributed, registry.distributed_ids
            found |= {int(ids[q]): queries.plans[q] for q in queries.aggregates.tolist()}
        return found

    def neighbours(self):
        """Return the state of kNN queries, their tuples, and the radii of search regions from now on, (Q,)."""
        chosen = self.queries.nearest
        places = self.are.places
        plans = [self.queries.plans[query] for query in chosen.tolist()]
        k = np.array([plan.k for plan in plans], dtype=np.float64)
        with np.errstate(divide="ignore"):
            guess = np.sqrt(k / (np.pi * np.float64(self.book.density))) if len(chosen) else k
        searches = Searches(
            self.ids[chosen],
            plans,
            ~np.isnan(places[chosen, 0]),
            self.shifted[chosen],
            self.are.radius[chosen],
            guess,
            self.queries.farthest[chosen],
            sum(len(region.objects) for region in self.book.after),
            lambda positions, radius: self._search(chosen[positions], radius),
        )
        state, changes, nearby = nearest.step(self.state.neighbourhoods, self.partials, searches)
        reach = np.full(len(self.ids), np.nan)
        reach[chosen] = nearby
        return state, self._neighbour_rows(changes), reach

    def _search(self, positions, radius):
        """Return all objects within radii of where queries are."""
        reach = np.full(len(self.ids), np.nan)
        reach[positions] = radius
        focals = Focals(self.tracks.after.elements, self.ids, reach)
        placed = focals.placed(self.orders.after)
        found = []
        for region in self.book.after:
            keys = region.objects.key_hash
            pairs = placed.match(elements_of(region.objects, region.cold), keys, Failures(), np.sort(positions))
            found.append(Candidates(self.ids[pairs.query], keys[pairs.row], pairs.distance))
        return Candidates.together(found)

    def _neighbour_rows(self, changes):
        query, key, sign = changes.members.query, changes.members.key, changes.sign
        quiet = np.isin(query, self.orders.after.quiet) & (sign == 0)
        reason = self._reasons(query)
        left = np.flatnonzero((sign == LEFT) & (reason == MOVED))
        away = left[self.book.gone(key[left])]
        dropped = np.isin(self.book.column(key[away], "stream"), list(self.orders.applied.dropped))
        reason[away] = np.where(dropped, DROPPED, EXPIRED)
        none = np.zeros(len(key), dtype=np.int64)
        answers = Answers(key, query, none, changes.members.distance, sign, reason)
        return self.book.rows(answers.take(~quiet), changes.members.rank[~quiet])

    def _reasons(self, query):
        """Return why the answers of queries (P,) changed, as far as it is not a matter of their objects."""
        applied, before = self.orders.applied, self.orders.before
        reason = np.full(len(query), MOVED, dtype=np.int8)
        focal = np.zeros(len(query), dtype=np.int64)
        position, known = find(self.ids, query)
        focal[known] = self.queries.focal[position[known]]
        for key, why in self.tracks.lost.items():
            reason[focal == key] = why
        changed = np.isin(query, applied.changed)
        reason[changed] = np.where(np.isin(query[changed], before.ids), EDITED, REGISTERED)
        reason[np.isin(query, applied.cancelled)] = CANCELLED
        return reason

    def groups(self):
        """Return the state of aggregates, and what changed of groups and thresholds."""
        ids, chosen = self.ids, self.queries.aggregates
        running = {int(ids[q]): self.queries.plans[q].aggregate for q in chosen.tolist()}
        changed = np.intersect1d(self.orders.applied.changed, ids[chosen])
        new = np.setdiff1d(ids[chosen], self.orders.before.distributed_ids)
        groups = Groups(
            running, np.union1d(changed, new), lambda keys: self.book.column(keys, "time_us"), self.orders.now_us
        )
        return aggregation.step(self.state.aggregation, self.partials, groups)

    def told(self, changes: pl.DataFrame, crossings: pl.DataFrame) -> pa.Table:
        """Return what changed of aggregates as result tuples."""
        quiet = pl.col("query").is_in(self.orders.after.quiet.tolist()) & (pl.col("sign") == 0)
        changes = changes.filter(~quiet)
        reason = self._reasons(changes["query"].to_numpy())
        groups = self._group_rows(changes, changes["sign"].to_numpy(), reason)
        reason = self._reasons(crossings["query"].to_numpy())
        return pa.concat_tables([groups, self._crossing_rows(crossings, reason)])

    def _group_rows(self, groups, sign, reason):
        keys = groups["object"].fill_null(0).to_numpy()
        named = groups["object"].is_not_null().to_numpy()
        n, bounds = self.book.space.n, np.tile(self.book.space.whole(), (len(groups), 1))
        names = np.full(len(groups), None, dtype=object)
        bounds[named], names[named] = self.book.column(keys[named], "bounds"), self.book.names(keys[named])
        figures = zip(*(groups[name].to_list() for name in ("query", "value", "count")), names.tolist(), strict=True)
        properties = [
            {"value": value, "count": count} | ({"object": name} if self._is_extreme(query) else {})
            for query, value, count, name in figures
        ]
        return self._rows(groups, sign, reason, bounds.reshape(-1, 2 * n), properties)

    def _is_extreme(self, query):
        return self.aggregates[query].aggregate.function in ("min", "max")

    def _crossing_rows(self, crossings, reason):
        bounds = np.tile(self.book.space.whole(), (len(crossings), 1)).reshape(-1, 2 * self.book.space.n)
        properties = [{"value": value} for value in crossings["value"].to_list()]
        sign = crossings["sign"].to_numpy() if "sign" in crossings.columns else np.ones(len(crossings), dtype=np.int8)
        return self._rows(crossings, sign, reason, bounds, properties, crossings)

    def _rows(self, groups, sign, reason, bounds, properties, thresholds=None):
        """Return groups as result tuples; of a threshold the properties are those of the partner."""
        rows, none, time = (
            len(groups),
            pa.nulls(len(groups), pa.string()),
            "time_us" if thresholds is None else "since_us",
        )
        text = pa.array([orjson.dumps(value).decode() for value in properties], pa.string())
        keys = groups["group"].to_list()
        columns = {
            "query": groups["query"].to_numpy(),
            "sign": np.broadcast_to(np.int8(sign), rows),
            "reason": np.broadcast_to(np.int8(reason), rows),
            "key": pa.array(keys, pa.string()),
            "key_hash": key_hashes("", keys) if rows else np.empty(0, dtype=np.int64),
            "time_us": groups[time].to_numpy(),
            "bounds": bounds_array(bounds),
            "properties": text if thresholds is None else none,
            "partner": none if thresholds is None else pa.array(thresholds["name"].to_list(), pa.string()),
            "partner_hash": np.zeros(rows, dtype=np.int64)
            if thresholds is None
            else thresholds["threshold"].to_numpy() + 1,
            "partner_properties": none if thresholds is None else text,
            "distance": pa.nulls(rows, pa.float64()),
            "rank": pa.nulls(rows, pa.int32()),
        }
        schema = result_schema(self.book.space)
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def places(self, following: Focals) -> pa.Table:
        """Return tuples that tell where queries are that moved, are new, or look farther or less far than before."""
        focused = self.queries.focused
        heard = find(self._heard, self.queries.focal[focused])[1]
        near, far = self.are.radius, following.placed(self.orders.after).radius
        steered = (near != far) & ~(np.isnan(near) & np.isnan(far))
        told = focused[heard | self.shifted[focused] | steered[focused]]
        lost = np.flatnonzero(np.isin(self.queries.focal, list(self.tracks.lost)) & (self.queries.focal != 0))
        why = [self.tracks.lost[key] for key in self.queries.focal[lost].tolist()]
        last = self._place_rows(lost, self.tracks.before, np.array(why, dtype=np.int8))
        return pa.concat_tables([self._place_rows(np.setdiff1d(told, lost), following), last])

    @functools.cached_property
    def _heard(self):
        """Keys of focal objects with another element than before, ascending."""
        after, before = self.tracks.after.elements, self.tracks.before.elements
        position, known = find(before["key_hash"].to_numpy(), after["key_hash"].to_numpy())
        heard = ~known
        for name in ("time_us", "heard_us", "version"):
            heard[known] |= before[name].to_numpy()[position[known]] != after[name].to_numpy()[known]
        return after["key_hash"].to_numpy()[heard]

    def _place_rows(self, positions, focals, reason=None):
        """Return tuples that tell where some queries are, by positions; those that are nowhere lost their object."""
        placed = focals.placed(self.orders.after)
        nowhere = np.isnan(placed.places[positions, 0])
        focal, radius = self.queries.focal[positions], placed.radius[positions]
        place, known = find(focals.keys, focal)
        n, count = self.book.space.n, len(positions)
        bounds = np.tile(self.book.space.whole(), (count, 1)).reshape(-1, 2 * n)
        for axis in range(min(2, n)):
            at = placed.places[positions[~nowhere], axis]
            bounds[~nowhere, axis] = bounds[~nowhere, n + axis] = at
        bounds[known] = bounds_of(focals.elements["bounds"])[place[known]]
        index = pa.array(place, mask=~known)
        told = {name: focals.elements[name].take(index) for name in ("properties", "time_us")}
        query = self.ids[positions]
        why = self._reasons(query) if reason is None else reason
        why = np.where(nowhere, EXPIRED, why).astype(np.int8)
        names = pa.array([self.queries.focus(position).key for position in positions.tolist()], pa.string())
        columns = {
            "query": query,
            "sign": np.full(count, PLACED, dtype=np.int8),
            "reason": why,
            "key": names,
            "key_hash": focal,
            "time_us": told["time_us"].fill_null(0),
            "bounds": bounds_array(bounds),
            "properties": told["properties"],
            "partner": pa.nulls(count, pa.string()),
            "partner_hash": np.zeros(count, dtype=np.int64),
            "partner_properties": pa.nulls(count, pa.string()),
            "distance": pa.array(radius, mask=~np.isfinite(radius)),
            "rank": pa.nulls(count, pa.int32()),
        }
        schema = result_schema(self.book.space)
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def snapshots(self, state: Assembly) -> pa.Table:
        """Return the whole answers that are asked for, and where these queries are."""
        asked = np.flatnonzero(np.isin(self.ids, self.orders.applied.snapshots))
        if not len(asked):
            return result_schema(self.book.space).empty_table()
        wanted = pl.col("query").is_in(self.ids[asked].tolist())
        answers = state.neighbourhoods.answers
        found = answers.take(np.isin(answers.query, self.ids[asked]))
        none = np.zeros(len(found.key), dtype=np.int64)
        members = Answers(found.key, found.query, none, found.distance, reason=SNAPSHOT)
        groups = state.aggregation.told.filter(wanted)
        crossed = state.aggregation.crossed.filter(wanted & pl.col("raised"))
        return pa.concat_tables(
            [
                self.book.rows(members, found.rank),
                self._group_rows(groups, np.ones(len(groups), np.int8), np.full(len(groups), SNAPSHOT, np.int8)),
                self._crossing_rows(crossed, np.full(len(crossed), SNAPSHOT, np.int8)),
                self._place_rows(np.intersect1d(asked, self.queries.focused), state.following, SNAPSHOT),
            ]
        )

    def sent(self) -> dict[int, tuple[int, ...]]:
        """Return how many tuples each participating server sent for each query."""
        counts: dict[int, list[int]] = {}
        for region, partial in enumerate(self.partials):
            query = np.r_[partial.removed.query, partial.added.query, partial.parts["query"].to_numpy()]
            for number, count in zip(*(part.tolist() for part in np.unique(query, return_counts=True)), strict=True):
                counts.setdefault(number, [0] * len(self.partials))[region] = count
        return {query: tuple(row) for query, row in counts.items()}
