"""Continuous queries in levels, so that one more, one less or another one does not compile the others again.

A set has few levels, each an immutable `ContinuousQueries` with an index of its own. A change adds a small level at
the end, which is merged with those before it as `levelling` says. Queries that end are masked where they are. A merge
copies the columns of the levels, and builds the index anew; it reads no plan. So each query is copied some `RATIO`
times for each level, fewer times if many are registered at once, and a match looks into few indexes, however many
changes there were. No merge makes a batch late, however many queries there are.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streaming.kinds.base import Plan
from streaming.operators.continuous_queries import ContinuousQueries
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.levelling import staying
from streaming.operators.runs import find
from streaming.operators.spatial_join import FeaturesOf, Pairs
from streaming.spaces import Space

# A level is copied without the queries that have ended when these are more than its share of all.
MOST_ENDED = 0.5


class _Level:
    """Queries that are compiled together, on first use, from plans and from the levels that have some of them.

    `answers` are ascending; `plans` is an array of objects of the same length. `sources` are compiled levels, each with
    the answers (ascending) whose queries can be copied from there: an answer may have had another plan in a level.
    """

    def __init__(
        self,
        answers: np.ndarray,
        plans: np.ndarray,
        space: Space,
        sources: "tuple[tuple[_Level, np.ndarray], ...]" = (),
    ) -> None:
        self.answers, self.plans, self.space, self._sources = answers, plans, space, sources

    @functools.cached_property
    def queries(self) -> ContinuousQueries:
        """The queries, compiled."""
        parts, numbers, left = [], [], np.ones(len(self.answers), dtype=bool)
        for source, copied in self._sources:
            known = find(copied, self.answers)[1] & left
            if known.any():
                parts.append(source.queries.take(np.searchsorted(source.answers, self.answers[known])))
                numbers.append(np.flatnonzero(known))
                left &= ~known
        if left.any() or not parts:
            parts.append(ContinuousQueries(self.plans[left].tolist(), self.space))
            numbers.append(np.flatnonzero(left))
        queries = parts[0]
        if len(parts) > 1:
            queries = ContinuousQueries.together(parts, np.argsort(np.concatenate(numbers)))
        self._sources = ()
        return queries

    @property
    def is_compiled(self) -> bool:
        """Whether the queries are compiled already."""
        return "queries" in self.__dict__

    def compiled(self, answers: np.ndarray) -> "tuple[tuple[_Level, np.ndarray], ...]":
        """Return the sources from which another level can copy the queries of some of the answers."""
        if self.is_compiled:
            return ((self, answers),)
        return tuple((source, np.intersect1d(copied, answers)) for source, copied in self._sources)


@dataclass(frozen=True)
class _Masked:
    """A level, and which of its queries still run: all, if `kept` is None."""

    level: _Level
    kept: np.ndarray | None = None

    @functools.cached_property
    def running(self) -> int:
        """How many queries of the level still run."""
        return len(self.level.answers) if self.kept is None else int(self.kept.sum())

    @property
    def answers(self) -> np.ndarray:
        """The answers of the level that still run, ascending."""
        return self.level.answers if self.kept is None else self.level.answers[self.kept]

    @functools.cached_property
    def queries(self) -> ContinuousQueries:
        """The queries, compiled; those that have ended do not match."""
        return self.level.queries if self.kept is None else self.level.queries.masked(self.kept)

    def chosen(self, answers: np.ndarray) -> np.ndarray:
        """Return the positions of those of the answers (ascending) that run here."""
        position, known = find(self.level.answers, answers)
        position = position[known]
        return position if self.kept is None else position[self.kept[position]]

    def without(self, answers: np.ndarray) -> "_Masked":
        """Return the level without some answers."""
        position = self.chosen(answers)
        if not len(position):
            return self
        kept = np.ones(len(self.level.answers), dtype=bool) if self.kept is None else self.kept.copy()
        kept[position] = False
        masked = _Masked(self.level, kept)
        # A plan that cannot be compiled must not be tried again once its query is left out.
        few = masked.running < MOST_ENDED * len(kept) or not self.level.is_compiled
        return merged([masked]) if few else masked


def merged(levels: Sequence[_Masked]) -> _Masked:
    """Return one level with the queries that run in some levels."""
    kept = [slice(None) if one.kept is None else one.kept for one in levels]
    answers = np.concatenate([one.level.answers[some] for one, some in zip(levels, kept, strict=True)])
    plans = np.concatenate([one.level.plans[some] for one, some in zip(levels, kept, strict=True)])
    order = np.argsort(answers)
    sources = tuple(source for one in levels for source in one.level.compiled(one.answers))
    return _Masked(_Level(answers[order], plans[order], levels[0].level.space, sources))


@dataclass(frozen=True)
class QueryLevels:
    """An immutable set of continuous queries of one space, by the numbers of their answers.

    Parameters
    ----------
    space : Space
    levels : tuple
        Few; the largest first. An answer runs in one of them at the most.
    """

    space: Space
    levels: tuple[_Masked, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, plans: Mapping[int, Plan], space: Space) -> "QueryLevels":
        """Return the set of the queries with some plans, by the numbers of their answers."""
        return cls(space).changed(np.empty(0, dtype=np.int64), plans)

    def changed(self, ended: np.ndarray, begun: Mapping[int, Plan]) -> "QueryLevels":
        """Return the set after some queries have ended, and others have begun.

        Parameters
        ----------
        ended : ndarray of int64
            Answers, ascending.
        begun : mapping of int to Plan
            By answer; none of them runs any longer.
        """
        levels = [one.without(ended) for one in self.levels] if len(ended) else list(self.levels)
        if begun:
            numbers = sorted(begun)
            plans = np.empty(len(numbers), dtype=object)
            plans[:] = [begun[number] for number in numbers]
            levels.append(_Masked(_Level(np.array(numbers, dtype=np.int64), plans, self.space)))
        return QueryLevels(self.space, _levelled([one for one in levels if one.running]))

    def only(self, answers: np.ndarray) -> "QueryLevels":
        """Return the set of only some answers (ascending), in one level.

        The newest result is kept: all regions of a process ask for the queries that are new.
        """
        known = self.__dict__.get("_only")
        if known is None or not np.array_equal(known[0], answers):
            known = self.__dict__["_only"] = answers, self._only_of(answers)
        return known[1]

    def _only_of(self, answers: np.ndarray) -> "QueryLevels":
        some: list[tuple[_Level, np.ndarray]] = []
        for one in self.levels:
            kept = np.zeros(len(one.level.answers), dtype=bool)
            kept[one.chosen(answers)] = True
            if kept.any():
                some.append((one.level, kept))
        if len(some) == 1 and some[0][1].all():
            return QueryLevels(self.space, (_Masked(some[0][0]),))
        return QueryLevels(self.space, (merged([_Masked(*part) for part in some]),) if some else ())

    def match(self, elements: Elements, features_of: FeaturesOf, failures: Failures | None = None) -> Pairs:
        """Return the pairs of an element and a query that it satisfies, as `ContinuousQueries.match` does.

        In the pairs and in `failures`, the number of its answer stands for a query.
        """
        found = Pairs.none()
        for one in self.levels:
            failed = failures.part() if failures is not None else Failures()
            pairs = one.queries.match(elements, features_of, failed)
            if failures is not None:
                failures.add(failed, one.level.answers)
            pairs = _numbered(pairs, one.level.answers[pairs.query])
            found = found.merged(pairs) if len(found.row) and len(pairs.row) else found if len(found.row) else pairs
        return found

    def meets(self, stream: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Tell which elements may satisfy a query, given their streams (N,) and boxes (N, 2n): bool of shape (N,)."""
        meets = np.zeros(len(bounds), dtype=bool)
        for one in self.levels:
            meets |= one.queries.meets(stream, bounds)
        return meets

    def lies(self, elements: Elements, pairs: Pairs, features_of: FeaturesOf) -> np.ndarray:
        """Tell which pairs satisfy their query, filters aside; false if it does not run. bool of shape (P,).

        Parameters
        ----------
        elements : Elements
        pairs : Pairs
            P pairs of an element and an answer, with a partner if the query is a join.
        features_of : callable
            Returns the `Features` of a layer by its name.
        """
        lies = np.zeros(len(pairs.row), dtype=bool)
        for one in self.levels:
            place, mine = find(one.level.answers, pairs.query)
            if one.kept is not None:
                mine[mine] = one.kept[place[mine]]
            if mine.any():
                lies[mine] = one.queries.lies(elements, _numbered(pairs.take(mine), place[mine]), features_of)
        return lies

    def reached(self, bounds: np.ndarray, features_of: FeaturesOf) -> np.ndarray:
        """Tell which elements, given their boxes (N, 2n), may have a partner in one of the joins: bool of (N,)."""
        reached = np.zeros(len(bounds), dtype=bool)
        for one in self.levels:
            reached |= one.queries.reached(bounds, features_of)
        return reached


def _numbered(pairs: Pairs, query: np.ndarray) -> Pairs:
    return Pairs(pairs.row, query, pairs.partner, pairs.distance)


def _levelled(levels: Sequence[_Masked]) -> tuple[_Masked, ...]:
    """Order levels by size, the largest first, and merge the last ones; see `levelling.staying`."""
    levels = sorted(levels, key=_size)
    stay = staying([one.running for one in levels])
    if stay < len(levels) - 1:
        levels[stay:] = [merged(levels[stay:])]
    return tuple(sorted(levels, key=_size))


def _size(level: _Masked) -> int:
    return -level.running
