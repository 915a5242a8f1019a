"""The registry of continuous queries and streams, a pure function of the control log.

A change shares all that it does not concern with the registry before it: the registrations (`Levels`), and the forms in
which servers look at the queries that run (`RunningQueries`). So one query more, less or changed costs about as much
with a hundred queries as with a hundred thousand, and a batch that changes no query costs nothing.

The views of pages are queries like all others here, and are stored as these are. A registry without them, as it would
be after a restart, were no function of the control log: a worker process that ends in the middle of a batch is replaced
by one that reads the stored state, and its regions would not answer views that the other regions answer. A stored view
costs one row when it begins, and one when it ends.
"""

import functools
import logging
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from streaming.elements import stream_number
from streaming.kinds.base import Plan
from streaming.kinds.join.plan import PlanWithPartners
from streaming.kinds.registry import kind_of
from streaming.kinds.rule.plan import RulePlan
from streaming.kinds.sketch.plan import SketchPlan
from streaming.operators.asked import NOBODY
from streaming.operators.distributed import DistributedQueries
from streaming.operators.encounters import Encounter, Ordering
from streaming.operators.layer import LayerVersion
from streaming.operators.padding import LayerReach
from streaming.operators.query_levels import QueryLevels
from streaming.operators.region_map import InvalidMap, RegionMap
from streaming.operators.rules import Rules
from streaming.operators.runs import find
from streaming.operators.stream_join import StreamJoins
from streaming.operators.stream_reach import Reach
from streaming.operators.time_joins import TimeJoin, either_may_drive
from streaming.operators.tracks import TrackQueries
from streaming.servers.answers.recipients import Recipients
from streaming.servers.control.answer_numbers import AnswerNumbers, Put
from streaming.servers.control.columns import (
    BY_DISTANCE,
    EVERY_ELEMENT,
    LAYER_JOIN,
    MEMBERSHIP,
    Columns,
    Row,
    bits_where,
    layer_of,
)
from streaming.servers.control.entries import ControlEntries, Entry
from streaming.servers.control.levels import Level, Levels
from streaming.servers.control.registrations import ParsedPlan, Registration, words
from streaming.servers.control.running import EncounterGroup, RunningQueries
from streaming.sketch.settings import InvalidSketch
from streaming.sketch.stream import StreamSketch, parse_stream_sketch, stream_sketch_document
from streaming.spaces import Space

logger = logging.getLogger(__name__)

# The revisions of this many cancelled queries are kept, so that a late registration does not start one of them again.
CANCELLED_KEPT = 10_000
MICROSECONDS = 1_000_000
# More than one, since the regions of a process may leave out different queries.
NARROWER_KEPT = 16
FOREVER_US = np.iinfo(np.int64).max // 2
_ASSEMBLED = bits_where(lambda evaluation: evaluation.assembled)

Catalogue = Callable[[str, int], LayerVersion]


@dataclass(frozen=True)
class Applied:
    """What the control entries of one micro-batch did.

    Parameters
    ----------
    acks : tuple of dict
        ``{"query", "revision", "op", "error"}`` for each entry that registers or cancels.
    changed, cancelled : ndarray of int64
        Queries with a new plan, and queries that ended; ascending. An edit that leaves the plan equal is neither.
    failed : ndarray of int64
        Queries that ended because evaluating them failed (see `servers.control.border`); they are among `cancelled`.
    clocks : tuple of (int, str)
        The rules and the keys of objects whose clocks were asked for.
    forgotten : ndarray of int64
        The numbers of queries and answers whose end cannot be reported; they are not among `cancelled`.
    edited : frozenset of str
        Layers of which another version is now in force, or none.
    snapshots : tuple of int
        Queries whose whole answer was requested.
    dropped : mapping of int to str
        The names of streams whose objects have to leave, by stream number.
    now_us : int
        The latest tick, in microseconds; 0 without one.
    """

    acks: tuple[dict, ...] = ()
    changed: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    cancelled: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    snapshots: tuple[int, ...] = ()
    dropped: Mapping[int, str] = field(default_factory=dict)
    now_us: int = 0
    edited: frozenset[str] = frozenset()
    failed: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    forgotten: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    clocks: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Registry:
    """An immutable registry of one space.

    Parameters
    ----------
    space : Space
    registrations : Levels of Registration
        By query number.
    ttl_us : mapping of int to int
        Time-to-live by stream number; a stream that is absent keeps its objects for ever.
    layers : mapping of str to int
        The version in force of each layer that joins may use.
    stored : mapping of int to str
        The names of the streams whose elements are stored, by stream number.
    sketched : mapping of int to StreamSketch
        How the streams are sketched that are, by stream number.
    catalogue : callable
        Given a layer and a version, returns its `LayerVersion`.
    running, evaluated : RunningQueries
        The queries that run, and those of them that are not left out; see `without`.
    ended : ndarray of int64
        The queries in `registrations` that do not run; those that ended last come last.
    refused : mapping of int to str
        Why this release refuses plans that an earlier release accepted, by query; these queries have ended.
    numbers : AnswerNumbers
        The numbers of the answers of the queries that run.
    region_map : RegionMap
        How the space is cut into regions; by default, it is one region.
    """

    space: Space
    registrations: Levels[Registration] = field(default_factory=Levels)
    ttl_us: Mapping[int, int] = field(default_factory=dict)
    layers: Mapping[str, int] = field(default_factory=dict)
    stored: Mapping[int, str] = field(default_factory=dict)
    sketched: Mapping[int, StreamSketch] = field(default_factory=dict)
    catalogue: Catalogue | None = field(default=None, compare=False)
    running: RunningQueries = field(default=None, compare=False, repr=False)  # type: ignore[assignment]
    evaluated: RunningQueries = field(default=None, compare=False, repr=False)  # type: ignore[assignment]
    ended: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64), compare=False)
    refused: Mapping[int, str] = field(default_factory=dict)
    numbers: AnswerNumbers = field(default_factory=AnswerNumbers, compare=False)
    region_map: RegionMap = field(default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.region_map is None:
            object.__setattr__(self, "region_map", RegionMap.grid(self.space, 1))
        if self.running is None:
            object.__setattr__(self, "running", RunningQueries.none(self.space))
        if self.evaluated is None:
            object.__setattr__(self, "evaluated", self.running)

    @functools.cached_property
    def _narrower(self) -> "dict[frozenset[int], Registry]":
        """The registries that `without` has made, by the queries that they leave out."""
        return {}

    def without(self, queries: Collection[int]) -> "Registry":
        """Return the registry without some queries; streams, and the reach of joins, stay as they are.

        The newest `NARROWER_KEPT` results are kept, so that a repeated call compiles nothing again.
        """
        left_out = frozenset(query for query in queries if self.runs(query))
        if not left_out:
            return self
        if left_out not in self._narrower:
            for old in list(self._narrower)[: 1 - NARROWER_KEPT]:
                del self._narrower[old]
            rows = [row for row in self._rows(sorted(left_out)) if self.evaluates(row.query)]
            self._narrower[left_out] = replace(self, evaluated=self.evaluated.changed(rows, ()))
        return self._narrower[left_out]

    def only(self, queries: Collection[int]) -> "Registry":
        """Return the registry with only those of some queries that are not left out already."""
        rows = self._rows(query for query in sorted(queries) if self.evaluates(query))
        return replace(self, evaluated=self.evaluated.only(rows))

    @property
    def leaves_out(self) -> bool:
        """Whether some of the running queries are left out."""
        return self.evaluated is not self.running

    def evaluates(self, query: int) -> bool:
        """Tell whether a query runs and is not left out."""
        return bool(find(self.ids, np.array([query]))[1][0])

    def _rows(self, queries: Iterable[int]) -> list[Row]:
        told = ((query, self.registrations[query]) for query in queries)
        return [_row(query, known) for query, known in told if known.parsed]

    def runs(self, query: int) -> bool:
        """Tell whether a query runs; it may be left out."""
        return self.revision(query) is not None

    def revision(self, query: int) -> int | None:
        """Return the revision of a query, None if it does not run."""
        told = self.registrations.get(query)
        return told.revision if told and told.parsed else None

    @property
    def ids(self) -> np.ndarray:
        """Numbers of the queries that run and are not left out, int64, ascending."""
        return self.columns.query

    @property
    def answer_of(self) -> np.ndarray:
        """The number of the answer of each of `ids`, int64."""
        return self.columns.answer

    @property
    def columns(self) -> Columns:
        """The queries that run and are not left out."""
        return self.evaluated.columns

    @property
    def answers(self) -> np.ndarray:
        """Numbers of the answers that a region computes by itself, int64, ascending, each once.

        These are all answers except those of joins with streams and of distributed queries.
        """
        return self.evaluated.answers

    def recipients(self, apart: np.ndarray) -> Recipients:
        """Return the recipients of answers; each of the queries `apart` is reported under its own number."""
        return Recipients(self.columns, apart)

    @property
    def queries(self) -> QueryLevels:
        """The queries of `answers`, ready to be matched; queries that share an answer are one."""
        return self.evaluated.levels

    @property
    def layers_joined(self) -> frozenset[str]:
        """Names of the layers that queries are joined with."""
        return frozenset(reach.layer for reach in self.columns.layers)

    @property
    def layer_reaches(self) -> Collection[LayerReach]:
        """How far the joins with layers reach, each way once."""
        return self.columns.layers.keys()

    def keep(self, answers: np.ndarray) -> np.ndarray:
        """Tell which answers (K,) are kept, instead of being reported as elements arrive: bool of shape (K,)."""
        if not self.columns.streams_in_full:
            return np.ones(len(answers), dtype=bool)
        return ~self.evaluated.are(answers, EVERY_ELEMENT)

    @property
    def keep_all(self) -> bool:
        """Whether all answers are kept."""
        return not self.columns.streams_in_full

    def quiet(self, names: np.ndarray) -> np.ndarray:
        """Tell which numbers (K,) are those of queries that report membership alone, or of their answers: bool (K,)."""
        return self.evaluated.are(names, MEMBERSHIP)

    def measuring(self, names: np.ndarray) -> np.ndarray:
        """Tell which numbers (K,) are those of joins by distance, or of their answers: bool of shape (K,)."""
        return self.evaluated.are(names, BY_DISTANCE)

    def joins_with(self, layers: Container[str]) -> np.ndarray:
        """Return the numbers of the answers of joins with some layers that a region computes by itself, ascending."""
        columns = self.columns
        if not any(reach.layer in layers for reach in columns.layers):
            return np.empty(0, dtype=np.int64)
        rows = self._rows(columns.query[columns.having(LAYER_JOIN) & ~columns.having(EncounterGroup.bits)].tolist())
        return np.unique(np.array([row.answer for row in rows if layer_of(row.plan) in layers], dtype=np.int64))

    @property
    def stream_ids(self) -> np.ndarray:
        """Numbers of the joins with streams, int64, ascending; the order of `stream_joins`."""
        return self.evaluated.groups.stream_joins.ids

    @property
    def distributed_ids(self) -> np.ndarray:
        """Numbers of the distributed queries (moving ranges, kNN, aggregates), int64, ascending.

        This is the order of `distributed`.
        """
        return self.evaluated.groups.distributed.ids

    def assembled(self, query: int) -> bool:
        """Tell whether the assembler reports the answer of a running query, instead of each region its part."""
        plan = self.plan(query)
        return kind_of(plan).evaluation(plan).assembled

    @property
    def stream_joins(self) -> StreamJoins:
        """The joins with streams that run, ready to be matched."""
        return self.evaluated.groups.stream_joins.joins

    @property
    def stream_join_places(self) -> StreamJoins:
        """The joins of `stream_joins` without their filters."""
        return self.evaluated.groups.stream_joins.places

    @property
    def reach(self) -> Reach:
        """How far elements of joined streams reach for partners; false without a join with a stream.

        Joins that are left out count, too.
        """
        return self.running.groups.stream_joins.reach

    @property
    def time_joins(self) -> Mapping[int, TimeJoin]:
        """The joins over event time that run, by query, ready to be evaluated."""
        return self.evaluated.groups.time_joins.joins

    @property
    def report_reach(self) -> Reach:
        """How far reports reach for partners in joins over event time; false without one. Those left out count, too."""
        return self.running.groups.time_joins.reach

    @property
    def encounters(self) -> Mapping[int, Encounter]:
        """The queries for encounters that run, by query, ready to be evaluated."""
        return self.evaluated.groups.encounters.joins

    @property
    def encounter_reach(self) -> Reach:
        """How far reports reach for partners in encounters; false without one. Those left out count, too."""
        return self.running.groups.encounters.reach

    @property
    def orderings(self) -> Mapping[Ordering, int]:
        """The orderings that encounters need, those left out, too: for each, how long a report may be valid."""
        return self.running.groups.encounters.orderings

    @property
    def sketch_plans(self) -> Mapping[int, SketchPlan]:
        """The queries of sketches that run, by number."""
        return self.evaluated.groups.sketches.plans

    @property
    def rules(self) -> Rules:
        """The rules that run, compiled."""
        return self.evaluated.groups.rules.rules

    @property
    def rule_plans(self) -> Mapping[int, RulePlan]:
        """The plans of the rules that run, by number."""
        return self.evaluated.groups.rules.plans

    @property
    def tracks(self) -> TrackQueries:
        """The queries about tracks that run, compiled."""
        return self.evaluated.groups.tracks.queries

    @property
    def watched(self) -> np.ndarray:
        """The numbers of the queries that rules name, int64, ascending; also those that rules left out name."""
        return self.running.groups.rules.rules.queries

    @property
    def valued(self) -> np.ndarray:
        """The numbers of the aggregates whose values rules look at, int64, ascending; also of rules left out."""
        return self.running.groups.rules.rules.valued

    @functools.cached_property
    def watches_assembled(self) -> bool:
        """Whether a rule names a query whose objects the assembler reports; aggregates have groups in place of them."""
        columns = self.running.columns
        queries = np.setdiff1d(columns.query[columns.having(_ASSEMBLED)], self.valued)
        return any(self.assembled(query) for query in queries[find(self.watched, queries)[1]].tolist())

    @property
    def time_join_plans(self) -> Mapping[int, PlanWithPartners]:
        """The plans of the joins over event time that run, by query. Those left out count, too."""
        return cast(Mapping[int, PlanWithPartners], self.running.groups.time_joins.plans)

    @property
    def by_partner(self) -> frozenset[int]:
        """The joins over event time that are driven by their partners; see `TimeJoin`."""
        return self.running.groups.time_joins.by_partner

    @property
    def distributed(self) -> DistributedQueries:
        """The distributed queries that run, ready to be placed and matched."""
        return self.evaluated.groups.distributed.queries

    @property
    def focal(self) -> np.ndarray:
        """The `key_hash` of every object that a query follows, int64, ascending."""
        return self.evaluated.groups.distributed.focal

    @property
    def streams_in_full(self) -> frozenset[int]:
        """Numbers of the streams whose every element is needed, not only the newest of each object.

        A query emits all of them, or the stream is stored.
        """
        emitted = self.running.columns.streams_in_full.keys()
        return frozenset(emitted | self.stored.keys())

    def ttl_of(self, stream: np.ndarray) -> np.ndarray:
        """Return the times-to-live of streams, given their numbers (M,), in microseconds; `FOREVER_US` without one."""
        limited = np.array([(number, self.ttl_us[number]) for number in sorted(self.ttl_us)], dtype=np.int64)
        number, ttl_us = limited.reshape(-1, 2).T
        position, known = find(number, stream)
        ttl = np.full(len(stream), FOREVER_US)
        ttl[known] = ttl_us[position[known]]
        return ttl

    def compiled_joins(self, ids: np.ndarray) -> StreamJoins:
        """Return some of the joins with streams, ready to be matched, in the order of `ids`."""
        return StreamJoins([self.running.groups.stream_joins.plans[query] for query in ids.tolist()], self.space)

    def plan(self, query: int) -> Plan:
        """Return the plan of a query that runs; raise KeyError if it does not."""
        plan = self.registrations[query].plan
        if plan is None:
            raise KeyError(query)
        return plan

    def features(self, layer: str) -> LayerVersion:
        """Return the features of a layer as they are now; no features if the layer is not known (yet)."""
        if self.catalogue is None or layer not in self.layers:
            return LayerVersion.none(self.space)
        return self.catalogue(layer, self.layers[layer])

    def apply(self, entries: Sequence[Entry] | ControlEntries) -> tuple["Registry", Applied]:
        """Apply control entries in their order; see `logs.control_entry`.

        Returns
        -------
        registry : Registry
            `self` if nothing changed.
        applied : Applied
        """
        entries = ControlEntries.of(entries, self.space)
        change = _RegistryChanges(self, iter(entries.plans.values()))
        for entry in entries.entries:
            change.apply(entry)
        after, applied = self._changed(change), change.applied()
        return after, after._with_snapshots(applied)

    def _with_snapshots(self, applied: Applied) -> Applied:
        """Have the queries that new and edited rules name tell their whole answers, too."""
        plans = self.running.groups.rules.plans
        named = {query for rule in applied.changed.tolist() if rule in plans for query in plans[rule].queries}
        named = {query for query in named if self.runs(query)}
        return replace(applied, snapshots=tuple(dict.fromkeys((*applied.snapshots, *sorted(named)))))

    def _changed(self, change: "_RegistryChanges") -> "Registry":
        rest = {name: getattr(change, name) for name in ("ttl_us", "layers", "stored", "sketched", "region_map")}
        if not (change.put or change.driven) and all(value == getattr(self, name) for name, value in rest.items()):
            return self
        put: Put = {**change.put}
        numbers, put = self.numbers.numbered(put, self.registrations, self.running.columns)
        ended = self.ended[~np.isin(self.ended, list(put))] if put else self.ended
        ended = np.r_[
            ended, np.array([query for query, told in put.items() if told and not told.parsed], dtype=np.int64)
        ]
        put = dict.fromkeys(ended[:-CANCELLED_KEPT].tolist()) | put
        put |= dict.fromkeys(put.keys() & set(ended[:-CANCELLED_KEPT].tolist()))
        refused = {query: error for query, error in self.refused.items() if query not in put} if put else self.refused
        registrations = self.registrations.changed(put)
        running = self._running_after(put)
        running = running.driven(_driven(running, change.driven))
        return Registry(
            self.space,
            registrations,
            **rest,
            catalogue=self.catalogue,
            running=running,
            ended=ended[-CANCELLED_KEPT:],
            refused=refused,
            numbers=numbers,
        )

    def _running_after(self, put: Mapping[int, Registration | None]) -> RunningQueries:
        """Return the queries that run after some registrations were put; None stands for one that was removed."""
        told = [(query, self.registrations.get(query), now) for query, now in put.items()]
        told = [(query, was, now) for query, was, now in told if not _runs_alike(was, now)]
        ended = [_row(query, was) for query, was, _ in told if was and was.parsed]
        begun = [_row(query, now) for query, _, now in told if now and now.parsed]
        return self.running.changed(ended, begun)

    def head(self) -> dict[str, Any]:
        """Return what is small, as a JSON object; together with the levels of `registrations` it is the registry."""
        levels = [level.number for level in self.registrations.levels]
        numbered = {"ttl_us": list(self.ttl_us.items()), "stored": list(self.stored.items())}
        numbered["sketched"] = [[number, stream_sketch_document(told)] for number, told in self.sketched.items()]
        more = {"region_map": self.region_map.document(), "by_partner": sorted(self.by_partner)}
        return {"levels": levels, "layers": dict(self.layers)} | more | numbered

    def restored(self, head: Mapping[str, Any], levels: Iterable[Level[Registration]]) -> "Registry":
        """Return a registry that was stored. What it has in common with this one, both share.

        Parameters
        ----------
        head : mapping
            From `head`.
        levels : iterable of Level
            The levels that it names. Those that this registry has too should be the same objects.
        """
        registrations = Levels(list(levels))
        mine = {id(level) for level in self.registrations.levels}
        new = [level for level in registrations.levels if id(level) not in mine]
        known = {query: registrations[query] for query in registrations}
        differing = {query for level in new for query in level.entries}
        differing.update(set(self.running.columns.query.tolist()) - known.keys())
        return Registry(
            self.space,
            registrations,
            dict(head["ttl_us"]),
            dict(head["layers"]),
            dict(head["stored"]),
            {number: parse_stream_sketch(told, self.space) for number, told in head["sketched"]},
            self.catalogue,
            self._running_after({query: registrations.get(query) for query in sorted(differing)}).driven(
                frozenset(head["by_partner"])
            ),
            ended=np.array([query for query, told in known.items() if not told.parsed], dtype=np.int64),
            refused={query: told.error for query, told in known.items() if told.error},
            numbers=AnswerNumbers.of(known.values()),
            region_map=RegionMap.of(self.space, head["region_map"]),
        )


class _RegistryChanges:
    """Collects the effects of a sequence of control entries."""

    def __init__(self, before: Registry, plans: Iterator[ParsedPlan | Exception]) -> None:
        self._before, self._plans = before.registrations, plans
        self.put: dict[int, Registration] = {}
        self.ttl_us, self.layers = dict(before.ttl_us), dict(before.layers)
        self.stored, self.sketched, self.region_map = dict(before.stored), dict(before.sketched), before.region_map
        self._acks: list[dict[str, Any]] = []
        self._touched: dict[int, None] = {}
        self._snapshots: dict[int, None] = {}
        self._dropped: dict[int, str] = {}
        self._now_us = 0
        self._edited: set[str] = set()
        self._clocks: dict[tuple[int, str], None] = {}
        self.driven: dict[int, bool] = {}

    def apply(self, entry: Entry) -> None:
        operation = getattr(self, f"_{entry.get('op')}", None)
        if operation is not None:
            operation(entry)

    def applied(self) -> Applied:
        running = [query for query in self._touched if self.put[query].parsed]
        ended = [query for query in self._touched if not self.put[query].parsed]
        return Applied(
            tuple(self._acks),
            np.array(sorted(running), dtype=np.int64),
            np.array(sorted(ended), dtype=np.int64),
            # A query that is not known yet has no answer; to send an empty snapshot would be wrong.
            tuple(query for query in self._snapshots if self._known(query)),
            dict(self._dropped),
            self._now_us,
            frozenset(self._edited),
            clocks=tuple(self._clocks),
        )

    def _register(self, entry: Entry) -> None:
        plan, known = next(self._plans), self._known(entry["query"])
        if known is not None and not _is_news(entry, known):
            self._ack(entry, known.error or None)
        elif isinstance(plan, Exception):  # whatever is wrong with a plan, the other entries are applied
            self._ack(entry, words(plan))
        else:
            self._put(entry, known, Registration(entry["revision"], plan, owner=entry.get("owner", NOBODY)))

    def _cancel(self, entry: Entry) -> None:
        known = self._known(entry["query"])
        if _is_news(entry, known):
            self._put(entry, known, Registration(entry["revision"]))
        else:
            self._ack(entry, None)

    def _known(self, query: int) -> Registration | None:
        return self.put.get(query) or self._before.get(query)

    def _put(self, entry: Entry, known: Registration | None, registration: Registration) -> None:
        query = entry["query"]
        # Whatever else was edited, a query whose plan stays goes on as it is.
        if (known and known.parsed) is not registration.parsed:
            self.driven.pop(query, None)
            self._touched[query] = None
        self.put.pop(query, None)  # the query that ended last comes last
        self.put[query] = registration
        self._ack(entry, None)

    def _ack(self, entry: Entry, error: str | None) -> None:
        self._acks.append({"query": entry["query"], "revision": entry["revision"], "op": entry["op"], "error": error})

    def _snapshot(self, entry: Entry) -> None:
        self._snapshots[entry["query"]] = None

    def _clock(self, entry: Entry) -> None:
        self._clocks[entry["query"], entry["key"]] = None

    def _tick(self, entry: Entry) -> None:
        self._now_us = max(self._now_us, entry["now_us"])

    def _stream(self, entry: Entry) -> None:
        number = stream_number(entry["stream"])
        if entry.get("ttl_s") is None:
            self.ttl_us.pop(number, None)
        else:
            self.ttl_us[number] = int(entry["ttl_s"] * MICROSECONDS)
        if entry.get("stored"):
            self.stored[number] = entry["stream"]
        else:
            self.stored.pop(number, None)
        self._sketch(number, entry)

    def _sketch(self, number: int, entry: Entry) -> None:
        """Put the settings of a stream's sketch in force. Those that break a rule leave everything as it is."""
        if entry.get("sketch") is None:
            self.sketched.pop(number, None)
            return
        try:
            self.sketched[number] = parse_stream_sketch(entry["sketch"], self.region_map.space)
        except InvalidSketch as error:
            logger.error("the sketch of the stream %s is refused: %s", entry["stream"], error)

    def _regions(self, entry: Entry) -> None:
        """Put the next region map in force. One that does not follow the newest is late: somebody was faster."""
        try:
            found = RegionMap.of(self.region_map.space, entry["map"])
        except InvalidMap as error:
            logger.error("a region map is refused: %s", error)
            return
        if found.number == self.region_map.number + 1:
            self.region_map = found

    def _drive(self, entry: Entry) -> None:
        """Let the one or the other stream of a join over event time drive it, unless the join has changed since."""
        known = self._known(entry["query"])
        if known is not None and known.parsed and known.revision == entry["revision"]:
            self.driven[entry["query"]] = bool(entry["by_partner"])

    def _layer(self, entry: Entry) -> None:
        """Put another version of a layer in force for the joins with it."""
        if self.layers.get(entry["layer"]) != entry["version"]:
            self.layers[entry["layer"]] = entry["version"]
            self._edited.add(entry["layer"])

    def _drop_layer(self, entry: Entry) -> None:
        if self.layers.pop(entry["layer"], None) is not None:
            self._edited.add(entry["layer"])

    def _drop_stream(self, entry: Entry) -> None:
        number = stream_number(entry["stream"])
        self.ttl_us.pop(number, None)
        self.stored.pop(number, None)
        self.sketched.pop(number, None)
        self._dropped[number] = entry["stream"]


def _driven(running: RunningQueries, asked: Mapping[int, bool]) -> frozenset[int]:
    """Return which joins over event time are driven by their partners after changes that were asked for."""
    joins = running.groups.time_joins
    able = {query for query in asked if query in joins.plans and either_may_drive(joins.plans[query])}
    return joins.by_partner - able | {query for query in able if asked[query]}


def _is_news(entry: Entry, known: Registration | None) -> bool:
    """Tell whether an entry changes a query, given its registration or None."""
    return known is None or entry["revision"] > known.revision


def _runs_alike(was: Registration | None, now: Registration | None) -> bool:
    """Tell whether two registrations of a query, either of them None if it is missing, run the same, or do not run."""
    plans = [told.parsed if told else None for told in (was, now)]
    if plans[0] is not plans[1]:
        return False
    return was is None or now is None or plans[0] is None or (was.answer, was.owner) == (now.answer, now.owner)


def _row(query: int, told: Registration) -> Row:
    """Return a registered query as a row of the running queries."""
    assert told.parsed is not None, "only queries with a plan run"
    return Row(query, told.answer, told.parsed.plan, told.parsed.bits, told.owner)
