"""The assembler inside the engine: it merges the partial results of the participating servers.

It runs once per micro-batch, in the region that ends last. It keeps where the focal objects are, the radii of search
regions, and what every participating server sent: the participating server table. All of this is state, so another
process can go on where one ended.

References
----------
PLACE* (2007), sections 3.3, 4.2 and 5.1: the assembler operator of the querying server.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.kinds.aggregate.plan import AggregatePlan
from streaming.operators.distributed import DistributedQueries, PlacedQueries
from streaming.operators.failures import Failures
from streaming.operators.places import distances
from streaming.operators.runs import find
from streaming.results import (
    CANCELLED,
    DROPPED,
    EDITED,
    ENTERED,
    EXPIRED,
    FAILED,
    FOCUS_MOVED,
    LEFT,
    MOVED,
    OTHERS_MOVED,
    REGISTERED,
    SNAPSHOT,
    STAYED,
    result_schema,
)
from streaming.servers.answers.members import Answers
from streaming.servers.answers.reasons import FocusDistances
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import LeftOut
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.all_regions import AllRegions
from streaming.servers.ways.moving import aggregation, nearest
from streaming.servers.ways.moving.aggregation import AggregateGroups, Aggregation
from streaming.servers.ways.moving.focals import Focals
from streaming.servers.ways.moving.nearest import NearestChanges, Ranking, Searches
from streaming.servers.ways.moving.partial import Candidates, Partial, Tracks
from streaming.servers.ways.moving.placement import Placement
from streaming.servers.ways.moving.rows import group_rows, place_rows, threshold_rows
from streaming.spaces import Space


@dataclass(frozen=True)
class AssemblerState:
    """State of the assembler.

    Parameters
    ----------
    focals : Focals
        The focal objects and search regions as the regions saw them in the newest batch.
    following : Focals
        The same focal objects, with the search regions that hold from the next batch on.
    ranking : Ranking
        The candidates of kNN queries, and the answers among them.
    aggregation : Aggregation
    left_out : mapping of int to LeftOut
        The queries that the assembler leaves out.
    """

    focals: Focals
    following: Focals
    ranking: Ranking = field(default_factory=Ranking.none)
    aggregation: Aggregation = field(default_factory=Aggregation.none)
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)

    @classmethod
    def none(cls, space: Space) -> "AssemblerState":
        """Return the state without distributed queries."""
        return cls(Focals.none(space), Focals.none(space))

    def without(self, queries: np.ndarray) -> "AssemblerState":
        """Return the state without the answers of some queries."""
        if not len(queries):
            return self
        return replace(self, ranking=self.ranking.without(queries), aggregation=self.aggregation.without(queries))


def lacking(partials: Iterable[Partial], control: ControlStep) -> list[int]:
    """Return the queries whose answers cannot be assembled because a region left out its part."""
    left_out = (query for partial in partials for query in partial.lacking.tolist())
    return list(filter(control.after.assembled, left_out))


def step(
    state: AssemblerState, partials: Sequence[Partial], control: ControlStep, tracks: Tracks, all_regions: AllRegions
) -> tuple[AssemblerState, Results, dict[int, tuple[int, ...]]]:
    """Merge what participating servers sent in a micro-batch, in the order of their regions.

    Returns
    -------
    state : AssemblerState
    results : Results
        The tuples of kNN queries and of aggregates, and those that tell where moving queries are.
    sent : dict of int to tuple of int
        As in `results.Fragment`.
    """
    state = state.without(control.applied.forgotten)
    if control.after.leaves_out:
        partials = [partial.only(control.after.distributed_ids) for partial in partials]
    answers = _AnswerAssembly(state, partials, control, tracks, all_regions, Failures())
    ranking, neighbours, reach = answers.neighbours()
    groups, changes, crossings = answers.groups()
    failures = answers.failures
    ids = control.after.distributed_ids
    known = np.flatnonzero(~np.isnan(reach))
    following = Focals(tracks.after.elements, ids[known], reach[known])
    state = AssemblerState(tracks.after, following, ranking, groups)
    rows = [neighbours, answers.told(changes, crossings), answers.places(following)]
    table = pa.concat_tables(rows)
    snapshots = answers.snapshots(state)
    results = Results(table, snapshots, {"results": table.num_rows}, failures.errors, seconds=failures.seconds)
    return state, replace(results, aggregates=tuple(answers.aggregates)), answers.sent()


@dataclass(frozen=True)
class _AnswerAssembly:
    """The assembly of all answers in a micro-batch."""

    state: AssemblerState
    partials: Sequence[Partial]
    control: ControlStep
    tracks: Tracks
    all_regions: AllRegions
    failures: Failures

    @property
    def ids(self) -> np.ndarray:
        return self.control.after.distributed_ids

    @property
    def queries(self) -> DistributedQueries:
        return self.control.after.distributed

    @property
    def placement(self) -> Placement:
        return self.tracks.placement(self.control)

    @property
    def are(self) -> PlacedQueries:
        """The queries, placed where the regions saw them."""
        return self.placement.are

    @property
    def were(self) -> PlacedQueries:
        """The queries, placed where they were."""
        return self.placement.were

    @property
    def shifted(self) -> np.ndarray:
        return self.placement.is_shifted

    @functools.cached_property
    def aggregates(self) -> dict[int, AggregatePlan]:
        """The plans of the aggregates before and after the batch, by the numbers of queries."""
        found: dict[int, AggregatePlan] = {}
        for registry in (self.control.before, self.control.after):
            queries, ids = registry.distributed, registry.distributed_ids
            found |= {int(ids[q]): queries.plans[q] for q in queries.aggregates.tolist()}
        return found

    @functools.cached_property
    def extremes(self) -> set[int]:
        """The queries for a minimum or maximum, whose tuples name an object."""
        return {query for query, plan in self.aggregates.items() if plan.aggregate.function in ("min", "max")}

    def neighbours(self) -> tuple[Ranking, pa.Table, np.ndarray]:
        """Return the state of kNN queries, their tuples, and the radii (Q,) of search regions for the next batch."""
        chosen = self.queries.nearest
        places = self.are.places
        plans = [self.queries.plans[query] for query in chosen.tolist()]

        def guess() -> np.ndarray:
            k = self.queries.k[chosen]
            with np.errstate(divide="ignore"):
                return np.sqrt(k / (np.pi * np.float64(self.all_regions.density)))

        searches = Searches(
            self.ids[chosen],
            plans,
            ~np.isnan(places[chosen, 0]),
            self.shifted[chosen],
            self.placement.is_carried[chosen],
            self.are.radius[chosen],
            guess,
            self.queries.farthest[chosen],
            sum(len(region.objects) for region in self.all_regions.after),
            lambda positions, radius: self._search(chosen[positions], radius),
            lambda positions, keys: distances(
                self.all_regions.column(keys, "bounds"), places[chosen[positions]], self.all_regions.space
            ),
            lambda ranked, seconds: self._charge(chosen, ranked, seconds),
            self.control.after.quiet(self.ids[chosen]),
        )
        ranking, changes, nearby = nearest.step(self.state.ranking, self.partials, searches)
        reach = np.full(len(self.ids), np.nan)
        reach[chosen] = nearby
        return ranking, self._neighbour_rows(changes, ranking), reach

    def _charge(self, chosen: np.ndarray, ranked: np.ndarray, seconds: float) -> None:
        """Share the time of ranking among some kNN queries by the numbers of neighbours that they ask for."""
        k = self.queries.k[chosen[ranked]]
        self.failures.charge(self.ids[chosen[ranked]], seconds * k / max(1, k.sum()))

    def _search(self, positions: np.ndarray, radius: np.ndarray) -> Candidates:
        """Return all objects within radii around queries, given by positions."""
        reach = np.full(len(self.ids), np.nan)
        reach[positions] = radius
        focals = Focals(self.tracks.after.elements, self.ids, reach)
        some, failed = focals.placed(self.control.after).some(np.sort(positions)), Failures()
        found = [Candidates.none()]
        for look in self.all_regions.looks:
            pairs, keys = some.search(look, failed)
            found.append(Candidates(self.ids[pairs.query], keys[pairs.row], pairs.distance))
        self.failures.add(failed, self.ids)
        return Candidates.together(found)

    def _neighbour_rows(self, changes: NearestChanges, ranking: Ranking) -> pa.Table:
        query, key, sign = changes.members.query, changes.members.key, changes.sign
        reason = self._reasons(query)
        left = np.flatnonzero((sign == LEFT) & (reason == MOVED))
        away = left[self.all_regions.gone(key[left])]
        dropped = np.isin(self.all_regions.column(key[away], "stream"), list(self.control.applied.dropped))
        reason[away] = np.where(dropped, DROPPED, EXPIRED)
        moved = np.flatnonzero(reason == MOVED)
        reason[moved] = self._explained(query[moved], key[moved], sign[moved], changes.moved[moved], ranking)
        none = np.zeros(len(key), dtype=np.int64)
        answers = Answers(key, query, none, changes.members.distance, sign, reason)
        return self.all_regions.rows(answers, changes.members.rank)

    def _explained(
        self, query: np.ndarray, key: np.ndarray, sign: np.ndarray, moved: np.ndarray, ranking: Ranking
    ) -> np.ndarray:
        """Return the reasons of changes that only objects or the focus can explain."""
        before, after = find(self.control.before.distributed_ids, query)[0], find(self.ids, query)[0]
        carried = (self.were.places[before] != self.are.places[after]).any(1)
        reason = np.where(moved, MOVED, np.where(carried, FOCUS_MOVED, OTHERS_MOVED)).astype(np.int8)
        crossed = np.flatnonzero(sign != STAYED)
        if len(crossed):
            way = self._ways(key[crossed], sign[crossed] == ENTERED, before[crossed], after[crossed], ranking)
            reason[crossed] = way.reasons()
        return reason

    def _ways(
        self, key: np.ndarray, entered: np.ndarray, before: np.ndarray, after: np.ndarray, ranking: Ranking
    ) -> FocusDistances:
        bounds, choosy = self.all_regions.column(key, "bounds"), self.queries.choosy[after]
        old, asked = np.full(len(key), np.nan), np.flatnonzero(entered & choosy)
        boxes, known = self.all_regions.were(key[asked])
        asked, boxes = asked[known], boxes[known]
        old[asked] = self.were.distances(boxes, key[asked], before[asked])
        limit = self._limits(self.state.ranking, self.control.before)[before]
        new_limit = self._limits(ranking, self.control.after)[after]
        between, new = self.were.distances(bounds, key, before), self.are.distances(bounds, key, after)
        return FocusDistances(entered, old, between, new, limit, new_limit, choosy)

    def _limits(self, ranking: Ranking, registry: Registry) -> np.ndarray:
        queries = registry.distributed
        return nearest.limits(ranking, registry.distributed_ids, queries.k, queries.farthest)

    def _reasons(self, query: np.ndarray) -> np.ndarray:
        """Return why the answers of queries (P,) changed; MOVED where their objects or foci decide."""
        applied, before = self.control.applied, self.control.before
        reason = np.full(len(query), MOVED, dtype=np.int8)
        focal = np.zeros(len(query), dtype=np.int64)
        position, known = find(self.ids, query)
        focal[known] = self.queries.focal[position[known]]
        for key, why in self.tracks.lost.items():
            reason[focal == key] = why
        changed = np.isin(query, applied.changed)
        reason[changed] = np.where(np.isin(query[changed], before.ids), EDITED, REGISTERED)
        reason[np.isin(query, applied.cancelled)] = CANCELLED
        reason[np.isin(query, applied.failed)] = FAILED
        return reason

    def groups(self) -> tuple[Aggregation, pl.DataFrame, pl.DataFrame]:
        """Return the state of aggregates, and the changes of groups and thresholds."""
        ids, chosen = self.ids, self.queries.aggregates
        running = {int(ids[q]): self.queries.plans[q].aggregate for q in chosen.tolist()}
        changed = np.intersect1d(self.control.applied.changed, ids[chosen])
        new = np.setdiff1d(ids[chosen], self.control.before.distributed_ids)
        groups = AggregateGroups(
            running,
            np.union1d(changed, new),
            lambda keys: self.all_regions.column(keys, "time_us"),
            self.control.now_us,
        )
        began = perf_counter()
        merged = aggregation.step(self.state.aggregation, self.partials, groups)
        work = [partial.parts["query"].to_numpy() for partial in self.partials]
        self.failures.share(np.concatenate(work), perf_counter() - began, ids)
        return merged

    def told(self, changes: pl.DataFrame, crossings: pl.DataFrame) -> pa.Table:
        """Return the changes of aggregates as result tuples."""
        if changes.is_empty() and crossings.is_empty():
            return result_schema(self.all_regions.space).empty_table()
        quiet = self.control.after.quiet(changes["query"].to_numpy()) & (changes["sign"].to_numpy() == 0)
        changes = changes.filter(~quiet)
        reason = self._reasons(changes["query"].to_numpy())
        groups = group_rows(changes, changes["sign"].to_numpy(), reason, self.all_regions, self.extremes)
        reason = self._reasons(crossings["query"].to_numpy())
        thresholds = threshold_rows(crossings, crossings["sign"].to_numpy(), reason, self.all_regions.space)
        return pa.concat_tables([groups, thresholds])

    def places(self, following: Focals) -> pa.Table:
        """Return tuples that tell where queries are.

        These are queries whose focal object reported or was lost, that moved or are new, or whose radius changed.
        """
        focused = self.queries.focused
        heard = np.isin(self.queries.focal[focused], self.tracks.heard)
        near, far = self.are.radius, following.placed(self.control.after).radius
        steered = (near != far) & ~(np.isnan(near) & np.isnan(far))
        told = focused[heard | self.shifted[focused] | steered[focused]]
        lost = np.flatnonzero(np.isin(self.queries.focal, list(self.tracks.lost)) & (self.queries.focal != 0))
        why = [self.tracks.lost[key] for key in self.queries.focal[lost].tolist()]
        still, after = np.setdiff1d(told, lost), self.control.after
        placed = place_rows(still, following, after, self._reasons(self.ids[still]))
        return pa.concat_tables([placed, place_rows(lost, self.tracks.before, after, np.array(why, dtype=np.int8))])

    def snapshots(self, state: AssemblerState) -> pa.Table:
        """Return the requested snapshots, and where these queries are."""
        asked = np.flatnonzero(np.isin(self.ids, self.control.applied.snapshots))
        if not len(asked):
            return result_schema(self.all_regions.space).empty_table()
        wanted = pl.col("query").is_in(self.ids[asked].tolist())
        found = state.ranking.answers(self.ids[asked])
        none = np.zeros(len(found.key), dtype=np.int64)
        members = Answers(found.key, found.query, none, found.distance, reason=SNAPSHOT)
        groups = state.aggregation.told.filter(wanted)
        crossed = state.aggregation.crossed.filter(wanted & pl.col("raised"))
        focused, after = np.intersect1d(asked, self.queries.focused), self.control.after
        return pa.concat_tables(
            [
                self.all_regions.rows(members, found.rank),
                group_rows(groups, *_held(len(groups)), self.all_regions, self.extremes),
                threshold_rows(crossed, *_held(len(crossed)), self.all_regions.space),
                place_rows(focused, state.following, after, _held(len(focused))[1]),
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


def _held(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the signs and the reasons of rows of snapshots."""
    return np.full(rows, ENTERED, dtype=np.int8), np.full(rows, SNAPSHOT, dtype=np.int8)
