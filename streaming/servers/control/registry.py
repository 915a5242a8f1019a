"""The registry of continuous queries and streams, a pure function of the control log."""

import functools
import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson

from streaming.elements import stream_number
from streaming.errors import LookoutError
from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.registry import kind_of
from streaming.operators.continuous_queries import ContinuousQueries
from streaming.operators.distributed import DistributedQueries
from streaming.operators.features import Features
from streaming.operators.focal_ranges import focal_keys
from streaming.operators.runs import distinct, find
from streaming.operators.stream_join import Reach, StreamJoins, unfiltered
from streaming.plans import parse_plan, plan_document
from streaming.results import ANSWER_NUMBERS
from streaming.servers.answers.recipients import Recipients
from streaming.spaces import Space

logger = logging.getLogger(__name__)

# The revisions of this many cancelled queries are kept, so that a late registration does not start one of them again.
CANCELLED_KEPT = 10_000
MICROSECONDS = 1_000_000
# More than one, since the regions of a process may leave out different queries.
NARROWER_KEPT = 16
FOREVER_US = np.iinfo(np.int64).max // 2
REFUSED = "this release refuses the plan, so the query has ended; edit it to start it again: {}"

Catalogue = Callable[[str, int], Features]


@dataclass(frozen=True)
class Registration:
    """A registered query.

    Parameters
    ----------
    revision : int
        Rises with each change of the query.
    plan : Plan or None
        None once cancelled.
    text : bytes
        The plan as JSON. It is kept because the whole registry is written whenever one query changes.
    answer : int
        The number of the query's answer, which queries with equal plans share.
    error : str
        Why this release refuses a plan that an earlier release accepted; the plan is then None.
    """

    revision: int
    plan: Plan | None
    text: bytes = b"null"
    answer: int = 0
    error: str = ""

    @classmethod
    def of(cls, revision: int, plan: Plan | None, space: Space, answer: int | None = None) -> "Registration":
        """Return the registration of a plan; unless `answer` is given, its number follows from the plan."""
        text = orjson.dumps(plan and plan_document(plan, space))
        return cls(revision, plan, text, _answer_number(text) if answer is None else answer)


@dataclass(frozen=True)
class Applied:
    """What the control entries of one micro-batch did.

    Parameters
    ----------
    acks : tuple of dict
        ``{"query", "revision", "op", "error"}`` for each entry that registers or cancels.
    changed, cancelled : ndarray of int64
        Queries with a new plan, and queries that ended; ascending.
    failed : ndarray of int64
        Queries that ended because evaluating them failed (see `servers.control.border`); they are among `cancelled`.
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


@dataclass(frozen=True)
class Registry:
    """An immutable registry of one space.

    Parameters
    ----------
    space : Space
    registrations : mapping of int to Registration
        By query number.
    ttl_us : mapping of int to int
        Time-to-live by stream number; a stream that is absent keeps its objects for ever.
    layers : mapping of str to int
        The version in force of each layer that joins may use.
    stored : mapping of int to str
        The names of the streams whose elements are stored, by stream number.
    catalogue : callable
        Given a layer and a version, returns its `Features`.
    left_out : frozenset of int
        Queries that are not evaluated; see `without`.
    """

    space: Space
    registrations: Mapping[int, Registration] = field(default_factory=dict)
    ttl_us: Mapping[int, int] = field(default_factory=dict)
    layers: Mapping[str, int] = field(default_factory=dict)
    stored: Mapping[int, str] = field(default_factory=dict)
    catalogue: Catalogue | None = field(default=None, compare=False)
    left_out: frozenset[int] = frozenset()

    @functools.cached_property
    def _running(self):
        """The registrations of the queries that run, by query."""
        return {query: registration for query, registration in self.registrations.items() if registration.plan}

    @functools.cached_property
    def _evaluated(self):
        """The registrations of the queries that run and are not left out, by query."""
        return {query: running for query, running in self._running.items() if query not in self.left_out}

    @functools.cached_property
    def _narrower(self):
        """The registries that `without` has made, by the queries that they leave out."""
        return {}

    def without(self, queries: Collection[int]) -> "Registry":
        """Return the registry without some queries; streams, and the reach of joins, stay as they are.

        The newest `NARROWER_KEPT` results are kept, so that a repeated call compiles nothing again.
        """
        left_out = frozenset(self._running.keys() & queries)
        if not left_out:
            return self
        if left_out not in self._narrower:
            for old in list(self._narrower)[: 1 - NARROWER_KEPT]:
                del self._narrower[old]
            self._narrower[left_out] = replace(self, left_out=left_out)
        return self._narrower[left_out]

    def only(self, queries: Collection[int]) -> "Registry":
        """Return the registry with only those of some queries that are not left out already."""
        return replace(self, left_out=frozenset(self._running.keys() - queries) | self.left_out)

    def revision(self, query: int) -> int | None:
        """Return the revision of a query, None if it does not run."""
        running = self._running.get(query)
        return running and running.revision

    @functools.cached_property
    def refused(self) -> dict[int, str]:
        """Why this release refuses plans that an earlier release accepted, by query; these queries have ended."""
        return {query: ended.error for query, ended in self.registrations.items() if ended.error}

    @functools.cached_property
    def ids(self) -> np.ndarray:
        """Numbers of the queries that run and are not left out, int64, ascending."""
        return np.array(sorted(self._evaluated), dtype=np.int64)

    @functools.cached_property
    def answer_of(self) -> np.ndarray:
        """The number of the answer of each of `ids`, int64."""
        return np.array([self.registrations[query].answer for query in self.ids.tolist()], dtype=np.int64)

    @functools.cached_property
    def answers(self) -> np.ndarray:
        """Numbers of the answers that a region computes by itself, int64, ascending, each once; the order of `queries`.

        These are all answers except those of joins with streams and of distributed queries.
        """
        apart = np.r_[self.stream_ids, self.distributed_ids]
        return np.unique(self.answer_of[np.isin(self.ids, apart, invert=True)])

    def recipients(self, apart: np.ndarray) -> Recipients:
        """Return the recipients of answers; each of the queries `apart` is reported under its own number."""
        return Recipients.of(self.ids, self.answer_of, apart) if len(apart) else self._everyone

    @functools.cached_property
    def _everyone(self):
        return Recipients.of(self.ids, self.answer_of, np.empty(0, dtype=np.int64))

    @functools.cached_property
    def queries(self) -> ContinuousQueries:
        """The queries of `answers`, ready to be matched; queries that share an answer are one."""
        return self.compiled(self.answers)

    @functools.cached_property
    def _plans(self):
        """The plan of each answer."""
        return {registration.answer: registration.plan for registration in self._evaluated.values()}

    @functools.cached_property
    def _joins(self):
        """The numbers of the answers of joins with each layer, by the layer's name."""
        joins = defaultdict(list)
        for answer, plan in self._plans.items():
            joins[kind_of(plan).layer(plan)].append(answer)
        joins.pop(None, None)
        return joins

    @property
    def layers_joined(self) -> frozenset[str]:
        """Names of the layers that queries are joined with."""
        return frozenset(self._joins)

    @functools.cached_property
    def measuring(self) -> np.ndarray:
        """Numbers of the answers of joins by distance, int64, ascending."""
        measuring = (answer for answer, plan in self._plans.items() if kind_of(plan).measures(plan))
        return np.array(sorted(measuring), dtype=np.int64)

    @functools.cached_property
    def measuring_ids(self) -> np.ndarray:
        """Numbers of the queries that are joins by distance, int64, ascending."""
        return self.ids[np.isin(self.answer_of, self.measuring)]

    def joins_with(self, layers: Container[str]) -> np.ndarray:
        """Return the numbers of the answers of joins with some layers, int64, ascending."""
        joined = (answer for layer, answers in self._joins.items() if layer in layers for answer in answers)
        return np.array(sorted(joined), dtype=np.int64)

    @functools.cached_property
    def stream_ids(self) -> np.ndarray:
        """Numbers of the joins with streams, int64, ascending; the order of `stream_joins`."""
        return np.array([query for query in self.ids.tolist() if _joins_stream(self.plan(query))], dtype=np.int64)

    @functools.cached_property
    def distributed_ids(self) -> np.ndarray:
        """Numbers of the distributed queries (moving ranges, kNN, aggregates), int64, ascending.

        This is the order of `distributed`.
        """
        return np.array([q for q in self.ids.tolist() if _evaluation(self.plan(q)).distributed], dtype=np.int64)

    def assembled(self, query: int) -> bool:
        """Tell whether the assembler reports the answer of a running query, instead of each region its part."""
        return _evaluation(self.plan(query)).assembled

    @functools.cached_property
    def quiet(self) -> np.ndarray:
        """Numbers of the queries that report membership alone, and of their answers, int64, ascending."""
        queries = np.array([q for q in self.ids.tolist() if self.plan(q).emit == "membership"], dtype=np.int64)
        return np.union1d(queries, self.answer_of[np.isin(self.ids, queries)])

    @functools.cached_property
    def stream_joins(self) -> StreamJoins:
        """The joins with streams that run, ready to be matched."""
        return self.compiled_joins(self.stream_ids)

    @functools.cached_property
    def stream_join_places(self) -> StreamJoins:
        """The joins of `stream_joins` without their filters."""
        return StreamJoins([unfiltered(plan) for plan in self._plans_of(self.stream_ids)], self.space)

    @functools.cached_property
    def reach(self) -> Reach:
        """How far elements of joined streams reach for partners; false without a join with a stream.

        Joins that are left out count, too.
        """
        plans = (registration.plan for registration in self._running.values())
        return Reach.of([plan for plan in plans if _joins_stream(plan)], self.space)

    @functools.cached_property
    def distributed(self) -> DistributedQueries:
        """The distributed queries that run, ready to be placed and matched."""
        return DistributedQueries(self._plans_of(self.distributed_ids), self.space)

    @functools.cached_property
    def focal(self) -> np.ndarray:
        """The `key_hash` of every object that a query follows, int64, ascending."""
        foci = (kind_of(plan).focus(plan) for plan in self._plans_of(self.distributed_ids))
        return distinct(focal_keys([focus for focus in foci if focus is not None and focus.key]))

    @functools.cached_property
    def streams_in_full(self) -> frozenset[int]:
        """Numbers of the streams whose every element is needed, not only the newest of each object.

        A query emits all of them, or the stream is stored.
        """
        plans = (registration.plan for registration in self.registrations.values())
        asked = {stream_number(plan.stream) for plan in plans if plan is not None and plan.emit == "all"}
        return frozenset(asked | self.stored.keys())

    def ttl_of(self, stream: np.ndarray) -> np.ndarray:
        """Return the times-to-live of streams, given their numbers (M,), in microseconds; `FOREVER_US` without one."""
        limited = np.array([(number, self.ttl_us[number]) for number in sorted(self.ttl_us)], dtype=np.int64)
        number, ttl_us = limited.reshape(-1, 2).T
        position, known = find(number, stream)
        ttl = np.full(len(stream), FOREVER_US)
        ttl[known] = ttl_us[position[known]]
        return ttl

    def compiled(self, answers: np.ndarray, features_of: Callable[[str], Features] | None = None) -> ContinuousQueries:
        """Return the queries of some answers, ready to be matched, in the order of `answers`.

        Joins use the features of layers as they are now, or those that `features_of` returns.
        """
        plans = [self._plans[answer] for answer in answers.tolist()]
        return ContinuousQueries(plans, self.space, features_of or self.features)

    def compiled_joins(self, ids: np.ndarray) -> StreamJoins:
        """Return some of the joins with streams, ready to be matched, in the order of `ids`."""
        return StreamJoins(self._plans_of(ids), self.space)

    def _plans_of(self, ids):
        return [self.plan(query) for query in ids.tolist()]

    def plan(self, query: int) -> Plan:
        """Return the plan of a query that runs; raise KeyError if it does not."""
        plan = self.registrations[query].plan
        if plan is None:
            raise KeyError(query)
        return plan

    def features(self, layer: str) -> Features:
        """Return the features of a layer as they are now; no features if the layer is not known (yet)."""
        if self.catalogue is None or layer not in self.layers:
            return Features.none(self.space)
        return self.catalogue(layer, self.layers[layer])

    def apply(self, entries: Iterable[Mapping[str, Any]]) -> tuple["Registry", Applied]:
        """Apply control entries in their order; see `logs.control_entry`.

        Returns
        -------
        registry : Registry
            `self` if nothing changed.
        applied : Applied
        """
        change = _Change(dict(self.registrations), dict(self.ttl_us), dict(self.layers), dict(self.stored))
        for entry in entries:
            change.apply(entry, self.space)
        return self._changed(change), change.applied()

    def _changed(self, change):
        changed = {name: getattr(change, name) for name in ("registrations", "ttl_us", "layers", "stored")}
        if all(value == getattr(self, name) for name, value in changed.items()):
            return self
        cancelled = [query for query, registration in change.registrations.items() if registration.plan is None]
        for query in cancelled[:-CANCELLED_KEPT]:
            del change.registrations[query]
        return replace(self, **changed)

    def to_json(self) -> bytes:
        """Return the registry as a JSON document; `from_json` is the inverse."""
        queries = [
            [query, told.revision, orjson.Fragment(told.text), told.answer, told.error]
            for query, told in self.registrations.items()
        ]
        numbered = {"ttl_us": list(self.ttl_us.items()), "stored": list(self.stored.items())}
        return orjson.dumps({"queries": queries, "layers": self.layers} | numbered)

    @classmethod
    def from_json(cls, text: bytes, space: Space, catalogue: Catalogue | None = None) -> "Registry":
        """Return the registry of a space that `to_json` wrote."""
        document = orjson.loads(text)
        registrations = {
            # An earlier release did not share answers: an answer had the number of its query.
            query: _restored(query, revision, plan, space, *(more or [query]))
            for query, revision, plan, *more in document["queries"]
        }
        layers, stored = document.get("layers", {}), dict(document.get("stored", ()))
        return cls(space, registrations, dict(document["ttl_us"]), layers, stored, catalogue)


def _restored(query, revision, plan, space, answer, error=""):
    """Return a registration that was written; if this release refuses its plan, the query has ended."""
    try:
        return replace(Registration.of(revision, plan and parse_plan(plan, space), space, answer), error=error)
    except Exception as refusal:  # whatever an earlier release accepted, the other queries go on
        error = REFUSED.format(_words(refusal))
        logger.error("query %d: %s", query, error)
        return replace(Registration.of(revision, None, space, answer), error=error)


def _words(error):
    """Return the text of a refusal; an error that is not a `LookoutError` is a bug, so its class is named, too."""
    return str(error) if isinstance(error, LookoutError) else f"{type(error).__name__}: {error}"


class _Change:
    """Collects the effects of a sequence of control entries."""

    def __init__(self, registrations, ttl_us, layers, stored):
        self.registrations, self.ttl_us, self.layers, self.stored = registrations, ttl_us, layers, stored
        self._acks, self._touched, self._snapshots, self._dropped, self._now_us = [], {}, {}, {}, 0
        self._edited = set()

    def apply(self, entry, space):
        operation = getattr(self, f"_{entry.get('op')}", None)
        if operation is not None:
            operation(entry, space)

    def applied(self):
        running = [query for query in self._touched if self.registrations[query].plan is not None]
        ended = [query for query in self._touched if self.registrations[query].plan is None]
        return Applied(
            tuple(self._acks),
            np.array(sorted(running), dtype=np.int64),
            np.array(sorted(ended), dtype=np.int64),
            # A query that is not known yet has no answer; to send an empty snapshot would be wrong.
            tuple(query for query in self._snapshots if query in self.registrations),
            dict(self._dropped),
            self._now_us,
            frozenset(self._edited),
        )

    def _register(self, entry, space):
        if not self._news(entry):
            return self._ack(entry, self.registrations[entry["query"]].error or None)
        try:
            registration = Registration.of(entry["revision"], parse_plan(entry["plan"], space), space)
        except Exception as error:  # whatever is wrong with a plan, the other entries are applied
            return self._ack(entry, _words(error))
        return self._put(entry, registration)

    def _cancel(self, entry, _):
        if self._news(entry):
            return self._put(entry, Registration(entry["revision"], None))
        return self._ack(entry, None)

    def _news(self, entry):
        known = self.registrations.get(entry["query"])
        return known is None or entry["revision"] > known.revision

    def _put(self, entry, registration):
        query = entry["query"]
        known = self.registrations.pop(query, None)
        self.registrations[query] = registration
        if known is not None or registration.plan is not None:
            self._touched[query] = None
        self._ack(entry, None)

    def _ack(self, entry, error):
        head = {name: entry[name] for name in ("query", "revision", "op")}
        self._acks.append({**head, "error": error})

    def _snapshot(self, entry, _):
        self._snapshots[entry["query"]] = None

    def _tick(self, entry, _):
        self._now_us = max(self._now_us, entry["now_us"])

    def _stream(self, entry, _):
        number = stream_number(entry["stream"])
        if entry.get("ttl_s") is None:
            self.ttl_us.pop(number, None)
        else:
            self.ttl_us[number] = int(entry["ttl_s"] * MICROSECONDS)
        if entry.get("stored"):
            self.stored[number] = entry["stream"]
        else:
            self.stored.pop(number, None)

    def _layer(self, entry, _):
        """Put another version of a layer in force for the joins with it."""
        if self.layers.get(entry["layer"]) != entry["version"]:
            self.layers[entry["layer"]] = entry["version"]
            self._edited.add(entry["layer"])

    def _drop_layer(self, entry, _):
        if self.layers.pop(entry["layer"], None) is not None:
            self._edited.add(entry["layer"])

    def _drop_stream(self, entry, _):
        number = stream_number(entry["stream"])
        self.ttl_us.pop(number, None)
        self.stored.pop(number, None)
        self._dropped[number] = entry["stream"]


def _evaluation(plan):
    return kind_of(plan).evaluation(plan)


def _joins_stream(plan):
    return _evaluation(plan) is Evaluation.STREAM_JOIN


def _answer_number(text):
    """Return the number of a plan's answer; equal plans have equal numbers, in every process and after a restart."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % ANSWER_NUMBERS | ANSWER_NUMBERS
