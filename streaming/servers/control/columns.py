"""The running queries as columns of arrays, changed by copying the arrays and never by going through the queries."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from streaming.elements import stream_number
from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.registry import kind_of
from streaming.operators.asked import NOBODY
from streaming.operators.padding import LayerReach
from streaming.operators.runs import expand, find

K = TypeVar("K")

# What a query is, as bits; one more for each evaluation.
MEMBERSHIP, EVERY_ELEMENT, BY_DISTANCE, LAYER_JOIN = (1 << bit for bit in range(4))
_EVALUATIONS = {evaluation: 1 << bit for bit, evaluation in enumerate(Evaluation, 4)}


def layer_of(plan: Plan) -> str | None:
    """Return the name of the layer that a plan joins with, None if there is none."""
    return kind_of(plan).layer(plan)


def bits_of(plan: Plan) -> int:
    """Return what a query is, as bits."""
    kind = kind_of(plan)
    evaluation = kind.evaluation(plan)
    tests = {
        MEMBERSHIP: plan.emit == "membership",
        EVERY_ELEMENT: plan.emit == "all" and not evaluation.event_timed,
        BY_DISTANCE: kind.measures(plan),
        LAYER_JOIN: kind.layer(plan) is not None,
    }
    return sum(bit for bit, is_set in tests.items() if is_set) + _EVALUATIONS[evaluation]


def bits_where(matches: Callable[[Evaluation], bool]) -> int:
    """Return the bits of all evaluations that match."""
    return sum(bit for evaluation, bit in _EVALUATIONS.items() if matches(evaluation))


class Row(NamedTuple):
    """A running query: its number, that of its answer, its plan, what it is (see `bits_of`), and whom it counts for."""

    query: int
    answer: int
    plan: Plan
    bits: int
    owner: int = NOBODY


def _none() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Columns:
    """Running queries, twice: by query, and by answer.

    Parameters
    ----------
    query, answer : ndarray of int64, shape (Q,)
        The numbers of the queries, ascending, and of their answers.
    bits : ndarray of uint32, shape (Q,)
        What each query is; see `bits_of`.
    owner : ndarray of int64, shape (Q,)
        Whom each query counts for.
    ordered_answer, ordered_query : ndarray of int64, shape (Q,)
        The same pairs, by answer, ascending. The queries that share an answer are in any order.
    streams_in_full, layers : mapping
        How many queries want every element of a stream, by its number, and are joined with a layer, by their reach.
    """

    query: np.ndarray = field(default_factory=_none)
    answer: np.ndarray = field(default_factory=_none)
    bits: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.uint32))
    owner: np.ndarray = field(default_factory=_none)
    ordered_answer: np.ndarray = field(default_factory=_none)
    ordered_query: np.ndarray = field(default_factory=_none)
    streams_in_full: Mapping[int, int] = field(default_factory=Counter)
    layers: Mapping[LayerReach, int] = field(default_factory=Counter)

    def changed(self, ended: Sequence[Row], begun: Sequence[Row]) -> "Columns":
        """Return the columns after some queries have ended, and others have begun; an edited query is in both."""
        if not ended and not begun:
            return self
        return self._without(ended)._with(begun)

    def _without(self, rows: Sequence[Row]) -> "Columns":
        if not rows:
            return self
        gone = np.array([row.query for row in rows], dtype=np.int64)
        place = np.searchsorted(self.query, gone)
        start = np.searchsorted(self.ordered_answer, answers := distinct_of(rows), "left")
        _, run = expand(start, np.searchsorted(self.ordered_answer, answers, "right") - start)
        ordered = run[np.isin(self.ordered_query[run], gone)]
        streams, layers = _counted(rows)
        return Columns(
            np.delete(self.query, place),
            np.delete(self.answer, place),
            np.delete(self.bits, place),
            np.delete(self.owner, place),
            np.delete(self.ordered_answer, ordered),
            np.delete(self.ordered_query, ordered),
            _fewer(self.streams_in_full, streams),
            _fewer(self.layers, layers),
        )

    def _with(self, rows: Sequence[Row]) -> "Columns":
        if not rows:
            return self
        queries, answers, _, what, whose = zip(*rows, strict=True)
        order = np.argsort(query := np.array(queries, dtype=np.int64))
        query, answer = query[order], np.array(answers, dtype=np.int64)[order]
        bits, owner = np.array(what, dtype=np.uint32)[order], np.array(whose, dtype=np.int64)[order]
        place, order = np.searchsorted(self.query, query), np.argsort(answer, kind="stable")
        ordered = np.searchsorted(self.ordered_answer, answer[order])
        streams, layers = _counted(rows)
        return Columns(
            np.insert(self.query, place, query),
            np.insert(self.answer, place, answer),
            np.insert(self.bits, place, bits),
            np.insert(self.owner, place, owner),
            np.insert(self.ordered_answer, ordered, answer[order]),
            np.insert(self.ordered_query, ordered, query[order]),
            Counter(self.streams_in_full) + streams,
            Counter(self.layers) + layers,
        )

    def chosen(self, queries: np.ndarray) -> "Columns":
        """Return only those of some queries that run; without the counts by stream and layer."""
        place, known = find(self.query, np.unique(queries))
        rows = place[known]
        query, answer = self.query[rows], self.answer[rows]
        order = np.argsort(answer, kind="stable")
        return Columns(query, answer, self.bits[rows], self.owner[rows], answer[order], query[order])

    def having(self, bits: int) -> np.ndarray:
        """Tell which queries have one of the bits, bool of shape (Q,)."""
        return (self.bits & np.uint32(bits)) != 0

    def answers_of(self, queries: np.ndarray) -> np.ndarray:
        """Return the answers of those of some queries that run, int64, ascending, each once."""
        place, known = find(self.query, queries)
        return np.unique(self.answer[place[known]])

    def queries_of(self, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the queries of answers (K,): for each its answer's position in `answers`, and its number; int64."""
        start = np.searchsorted(self.ordered_answer, answers, "left")
        of, place = expand(start, np.searchsorted(self.ordered_answer, answers, "right") - start)
        return of, self.ordered_query[place]

    def owners_of(self, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return whom queries, or the queries of answers, count for, given the numbers (K,) of running ones.

        Returns
        -------
        of, owner : ndarray of int64
            A position in `names`, and an owner, once for each query of it.
        """
        answer, query = self.queries_of(names)
        place, known = find(self.query, names)
        owner = np.r_[self.owner[place[known]], self.owner[find(self.query, query)[0]]]
        return np.r_[np.flatnonzero(known), answer], owner


def distinct_of(rows: Sequence[Row]) -> np.ndarray:
    """Return the answers of rows, int64, ascending, each once."""
    return np.unique(np.array([row.answer for row in rows], dtype=np.int64))


def _counted(rows: Sequence[Row]) -> tuple[Counter[int], Counter[LayerReach]]:
    """Return how many of some queries want each stream in full, and are joined with a layer in each way."""
    return (
        Counter(stream_number(row.plan.stream) for row in rows if row.bits & EVERY_ELEMENT),
        Counter(_reach(row.plan) for row in rows if row.bits & LAYER_JOIN),
    )


def _reach(plan: Plan) -> LayerReach:
    return LayerReach(layer_of(plan) or "", *kind_of(plan).layer_reach(plan))


def _fewer(counts: Mapping[K, int], less: Counter[K]) -> Counter[K]:
    return Counter(counts) - less
