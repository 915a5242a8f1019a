"""The border of a query: a failure to evaluate, net or encode one answer does not affect the others.

Every step of a server runs through a `Border`, for all queries at once. Only if it raises, the border halves the
queries, again and again, until it finds those that raise by themselves. It then runs the step as if these had just
ended, so the others are answered in the same batch. After a pause it runs the step as if they had just been registered.
So a server that can start and end queries can also deal with their failures and recoveries, whatever their kind.

A query for which a step never ends raises nothing. Whoever sees this from outside ends the process, and says so to the
one that runs the batch again (`Watched`). It first probes the step, which changes nothing: for no query, then for a
few answers at a time, each probe named. So the next time that it does not end, it is known for whom, and these are
put in quarantine: from then on, the step does not know them.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from streaming.isolation import faulty
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.control.watched import Watched

T = TypeVar("T")

logger = logging.getLogger(__name__)

# A query that failed is tried again after this pause, by the engine's clock. Each further failure doubles the pause.
FIRST_PAUSE_US = 2_000_000
LONGEST_PAUSE_US = 60_000_000
# The first pause of a query for which there was no room, and the later ones: to try it costs as much as a step.
REFUSED_PAUSES_US = 300_000_000, 1_800_000_000
MAX_REASON_CHARACTERS = 500
# Into about so many parts the suspects are divided for probes, since each of them costs as much as a step.
PROBES = 100
# PanicException of polars is not an Exception.
FAULTS = (Exception, pl.exceptions.PanicException)


class QueriesFailed(Exception):
    """Raised by a step that knows which queries failed; `errors` are by query."""

    def __init__(self, errors: Mapping[int, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = dict(errors)


class QueriesRefused(QueriesFailed):
    """Raised by a step that had no room for queries. They are tried again less often, since each try costs as much."""


def refuse(refused: Mapping[int, str]) -> None:
    """Raise `QueriesRefused` if a step had no room for queries, given why by query."""
    if refused:
        raise QueriesRefused(refused)


@dataclass(frozen=True)
class LeftOut:
    """A query that a server does not evaluate: its revision, the pause's end by the engine's clock, and its length."""

    revision: int
    until_us: int = 0
    pause_us: int = 0


def left_out_rows(queries: Mapping[int, LeftOut]) -> list[list[int]]:
    """Return the queries left out as lists of numbers, to be stored."""
    return [[query, *astuple(out)] for query, out in queries.items()]


def left_out_of_rows(rows: Iterable[list[int]]) -> dict[int, LeftOut]:
    """Return the queries left out; the inverse of `left_out_rows`."""
    return {query: LeftOut(*out) for query, *out in rows}


@dataclass
class Border:
    """The border of all queries of a server in one micro-batch.

    Parameters
    ----------
    control : ControlStep
    left_out_before : mapping of int to LeftOut
        The queries that the batch before left out.
    watched : Watched, optional
        How the steps are watched.

    Attributes
    ----------
    left_out : dict of int to LeftOut
        The queries that this batch leaves out.
    quarantined : dict of int to str
        Those of the queries before and after this batch that are in quarantine: why.
    errors : dict of int to str
        What failed in this batch, by query.
    lost : set of int
        The failed queries whose end could not be reported either: whoever holds their answers needs a snapshot.
    refused : set of int
        The queries among `errors` for which a step had no room.
    elsewhere : dict of int to LeftOut
        The queries among `errors` that failed in another server, and are left out there.
    """

    control: ControlStep
    left_out_before: Mapping[int, LeftOut]
    watched: Watched = field(default_factory=Watched)
    left_out: dict[int, LeftOut] = field(init=False)
    quarantined: dict[int, str] = field(init=False)
    errors: dict[int, str] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    elsewhere: dict[int, LeftOut] = field(default_factory=dict)

    def __post_init__(self) -> None:
        revision, now_us = self.control.after.revision, self.control.now_us
        known = {query: out for query, out in self.left_out_before.items() if revision(query) == out.revision}
        self.left_out = {query: out for query, out in known.items() if now_us < out.until_us}
        self._again = {query: out for query, out in known.items() if query not in self.left_out}
        self._unknown = self._quarantine()
        # They begin anew even if an edit left their plans equal.
        lacking = self.left_out_before.keys() | self._unknown
        self._begun = [query for query in lacking - self.left_out.keys() if self.control.after.runs(query)]

    def _quarantine(self) -> set[int]:
        """Leave out the queries in quarantine; return those whose end is not reported, since even that may not end."""
        before, after = self.control.before, self.control.after
        self.quarantined = self.watched.among(self.control)
        numbered = self.watched.quarantined
        self.leave_out(query for query in self.quarantined if (query, after.revision(query)) in numbered)
        running = {query for query in self.quarantined if (query, before.revision(query)) in numbered}
        self.lost |= running - self.left_out_before.keys()
        return running - self.left_out_before.keys()

    def leave_out(self, queries: Iterable[int]) -> None:
        """Leave out, in this batch, running queries that another server leaves out because they failed there."""
        for query in queries:
            revision = self.control.after.revision(query)
            if revision is not None:
                self.left_out[query] = LeftOut(revision)

    def passed(self, step: Callable[[ControlStep], T]) -> T:
        """Run a step for all queries except those that are left out, and those for which it raises.

        An `OSError`, or an error that no query causes, is raised: it is the engine's failure, not a query's.
        """
        if self.watched.probed:
            self._probe(step)
        found: dict[int, str] = {}
        while True:
            try:
                return self._taken(step, found)
            except OSError:  # a failure of the machine is the engine's
                raise
            except FAULTS as error:
                more = self._blamed(step, error, found)
                if not more:
                    raise
                found |= more

    def _taken(self, step: Callable[[ControlStep], T], found: Mapping[int, str]) -> T:
        """Run a step in which the failed queries end; if it raises, run a step that does not know them."""
        lost: set[int] = set()
        try:
            result = self._named(lambda: step(self._control(found)))
        except FAULTS as error:
            if not found or isinstance(error, OSError):
                raise
            before = self._control().before
            result = self._named(lambda: step(self._control(found, found)))
            lost = {query for query in found if before.evaluates(query)}
        for query, why in found.items():
            logger.error("query %d is left out for a while: %s", query, why)
            self._leave(query, why)
        self.lost |= lost
        return result

    def _blamed(
        self, step: Callable[[ControlStep], Any], error: BaseException, found: Mapping[int, str]
    ) -> dict[int, str]:
        """Return the queries for which a step raises, other than those already found, each with its error."""
        if isinstance(error, QueriesRefused):
            self.refused |= error.errors.keys()
        if isinstance(error, QueriesFailed):
            return {query: why for query, why in error.errors.items() if query not in found}
        if self._error_of(step, ()) is not None:
            return {}
        for several in self._suspects():
            left = [alike for alike in several if found.keys().isdisjoint(alike)]
            more = faulty(left, lambda some: self._error_of(step, some))
            if more:
                return {query: why for alike, why in more for query in alike}
        return {}

    def _suspects(self) -> tuple[list[list[int]], list[list[int]]]:
        """Return the queries, grouped by shared answers: first the groups that failed before, then the others."""
        before, after = self._control().before, self._control().after
        answers = dict(zip(before.ids.tolist(), before.answer_of.tolist(), strict=True))
        answers |= zip(after.ids.tolist(), after.answer_of.tolist(), strict=True)
        together: dict[int, list[int]] = {}
        for query, answer in answers.items():
            together.setdefault(answer, []).append(query)
        parts: tuple[list[list[int]], list[list[int]]] = [], []
        for alike in together.values():
            parts[self._again.keys().isdisjoint(alike)].append(alike)
        return parts

    def _probe(self, step: Callable[[ControlStep], Any]) -> None:
        """Run a step for no query, then for a few suspects at a time; what comes of it is dropped."""
        suspects = self.watched.suspects
        several = [alike for part in self._suspects() for alike in part]
        if suspects:
            several = [alike for alike in several if not suspects.isdisjoint(alike)]
        self._error_of(step, ())
        at_once = max(1, len(several) // PROBES)
        for first in range(0, len(several), at_once):
            self._error_of(step, several[first : first + at_once])

    def _error_of(self, step: Callable[[ControlStep], Any], several: Sequence[Sequence[int]]) -> str | None:
        """Return the error that a step raises for some answers alone, given the queries of each; None without one."""
        queries = [query for alike in several for query in alike]
        named = queries if len(several) == 1 else [alike[0] for alike in several]
        try:
            self._named(lambda: step(self._alone(queries)), len(several), named)
        except OSError:
            raise
        except FAULTS as error:
            logger.debug("a step of %d queries raised", len(queries), exc_info=error)
            return f"{type(error).__name__}: {error!s:.{MAX_REASON_CHARACTERS}}"
        return None

    def _named(self, run: Callable[[], T], answers: int = 0, queries: Collection[int] = ()) -> T:
        """Run a step, named for those who watch; see `Watched`."""
        registries = self.control.before, self.control.after
        found = {(query, known.revision(query)) for query in queries for known in registries}
        self.watched.begin(answers, sorted((query, revision) for query, revision in found if revision is not None))
        try:
            return run()
        finally:
            self.watched.end()

    def _leave(self, query: int, why: str) -> None:
        self.errors[query] = why
        revision = self.control.after.revision(query)
        if revision is not None:  # otherwise it has ended in this batch
            paused_us = self._again[query].pause_us if query in self._again else 0
            if query in self.refused:
                pause_us = REFUSED_PAUSES_US[paused_us >= REFUSED_PAUSES_US[0]]
            else:
                pause_us = min(max(2 * paused_us, FIRST_PAUSE_US), LONGEST_PAUSE_US)
            self.left_out[query] = LeftOut(revision, self.control.now_us + pause_us, pause_us)

    def _alone(self, queries: Collection[int]) -> ControlStep:
        """Return the control step as if only some queries ran of those that are not left out."""
        control = self._control()
        others = _numbers(control.before, np.isin(control.before.ids, list(queries), invert=True))
        applied = replace(control.applied, forgotten=np.union1d(control.applied.forgotten, others))
        return replace(control, before=control.before.only(queries), after=control.after.only(queries), applied=applied)

    def _control(self, failed: Collection[int] = (), unknown: Collection[int] = ()) -> ControlStep:
        """Return the control step as if the queries left out did not run, and those that `failed` had just ended.

        The `unknown` ones, and those whose quarantine begins, appear as if they had never run before.
        """
        unknown = {*self._unknown, *unknown}
        before = self.control.before.without({*self.left_out_before, *unknown})
        after = self.control.after.without({*self.left_out, *failed})
        if before is self.control.before and after is self.control.after:
            return self.control
        applied = self.control.applied
        begun = np.union1d(applied.changed, self._begun)
        ended = np.setdiff1d(list({*self.left_out, *failed}), list({*self.left_out_before, *unknown})).astype(np.int64)
        return replace(
            self.control,
            before=before,
            after=after,
            applied=replace(
                applied,
                changed=begun[np.isin(begun, after.ids)].astype(np.int64),
                cancelled=np.union1d(applied.cancelled, ended),
                failed=ended,
                forgotten=_numbers(self.control.before, np.isin(self.control.before.ids, list(unknown))),
            ),
        )


def _numbers(registry: Registry, chosen: np.ndarray) -> np.ndarray:
    """Return the numbers of chosen queries and of their answers."""
    return np.r_[registry.ids[chosen], registry.answer_of[chosen]]
