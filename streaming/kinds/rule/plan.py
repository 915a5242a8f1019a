"""Rules: the plan."""

import functools
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from streaming.kinds.base import Unfiltered
from streaming.kinds.declared import Object
from streaming.kinds.join.times import Duration
from streaming.kinds.parts import Box
from streaming.kinds.rule.conditions import NUMBERS, TRUE, UNKNOWN, RuleCondition, condition_document, parse_condition
from streaming.kinds.rule.schedule import Schedule, parse_schedule, schedule_document
from streaming.kinds.rule.schema import condition_schema, schedule_schema
from streaming.kinds.schema import ref
from streaming.kinds.values import Derived, PlanPart, WholeNumber

MOST_OFTEN = 1_000


CONDITION = PlanPart(
    reads=lambda value, at: parse_condition(value, at.name),
    writes=lambda condition, _: condition_document(condition),
    described=ref("condition"),
    defines=lambda: {"condition": condition_schema()},
)
SCHEDULE = PlanPart(
    reads=lambda value, _: parse_schedule(value),
    writes=lambda schedule, _: schedule_document(schedule),
    described=ref("schedule"),
    defines=lambda: {"schedule": schedule_schema()},
    null=True,
)


@dataclass(frozen=True)
class Rate:
    """How often a condition must have begun to hold.

    Parameters
    ----------
    more_than : int
        More often than this, 1 to 1,000.
    within_s : float
        In so many seconds.
    """

    more_than: Annotated[int, WholeNumber(most=MOST_OFTEN)]
    within_s: Annotated[float, Duration(above=0)]


@dataclass(frozen=True)
class RulePlan(Unfiltered):
    """What holds for a while, or often, of objects or of whole answers; each such time is an alarm.

    An object is in the answer of the rule while its alarm lasts. A rule about whole answers has one alarm, with an
    empty key.

    Parameters
    ----------
    stream : str
        The stream of the objects.
    when : RuleCondition
        An object has an alarm when it has been in, or not in, the answers of other queries of the same stream like
        this for long enough, or often enough. In place of that, the condition is about how many objects whole answers
        have, and about values of aggregates; or about objects that are silent.
    until : RuleCondition or None
        The alarm lasts while this holds, or `when` does; by default, while `when` does. It is for a second, larger area
        or a second value that must be left.
    for_s : float
        How long `when` must hold without a break, in seconds; for how long an object must be silent.
    rearm_s : float
        After an alarm, the same object has no other one for so many seconds.
    rate : Rate or None
        In place of `for_s`: how often `when` must begin to hold. The alarm lasts until it was less often.
    schedule : Schedule or None
        When the rule counts. Outside of it, no condition holds.
    area : tuple of float, length 2n
        The whole space: the queries that it names have areas.
    """

    stream: str
    when: Annotated[RuleCondition, CONDITION]
    until: Annotated[RuleCondition | None, replace(CONDITION, null=True)] = None
    for_s: Annotated[float, Duration(least=0)] = 0.0
    rearm_s: Annotated[float, Duration(least=0)] = 0.0
    rate: Annotated[Rate | None, Object(of=Rate, definition="rate")] = None
    schedule: Annotated[Schedule | None, SCHEDULE] = None
    area: Annotated[Box, Derived()] = field(kw_only=True)
    kind: str = "rule"

    @functools.cached_property
    def terms(self) -> tuple[RuleCondition, ...]:
        """The terms of its conditions, each once, in order; see `RuleCondition.terms`."""
        return tuple(dict.fromkeys((*self.when.terms, *(self.until.terms if self.until else ()))))

    @functools.cached_property
    def queries(self) -> tuple[int, ...]:
        """The queries that its conditions name, each once, in order."""
        return tuple(dict.fromkeys(term.query for term in self.terms))

    @functools.cached_property
    def figures(self) -> dict[RuleCondition, str]:
        """What the numbers are called that its terms look at, by the terms, in the properties of its alarms.

        One number is called by what it is. Of several, each is called by its query, too.
        """
        named = {(term.operator, term.query, term.group) for term in self.terms}
        names = {}
        for term in self.terms:
            group = f" ({term.group})" if term.group else ""
            names[term] = term.operator if len(named) == 1 else f"{term.operator} of {term.query}{group}"
        return names

    @property
    def whole(self) -> bool:
        """Whether it is about whole answers, and not about objects."""
        return any(term.operator in NUMBERS for term in self.terms)

    @property
    def silent(self) -> bool:
        """Whether it is about objects that are silent."""
        return self.when.operator == "silent"

    @functools.cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """The truth tables over `terms` of what begins an alarm and of what lets it last: see `RuleCondition.table`.

        Those of a rule about silence are over three terms: the object is in the answer; it has left it only because it
        was silent; it has been silent for long enough.
        """
        if self.silent:
            member, lost, long = (np.arange(27) // 3**bit % 3 for bit in range(3))
            watched = np.where(member == UNKNOWN, UNKNOWN, np.maximum(member, lost))
            silent = np.minimum(watched, long).astype(np.int8)
            return silent, silent
        begins = self.when.table(self.terms)
        return begins, np.maximum(begins, self.until.table(self.terms)) if self.until else begins

    @property
    def holds_of_none(self) -> tuple[bool, bool]:
        """Whether what begins an alarm, and what lets it last, holds for what no term is true of."""
        begins, lasts = self.tables
        return bool(begins[0] == TRUE), bool(lasts[0] == TRUE)

    @property
    def emit(self) -> str:
        """Only the beginning and the end of an alarm are told."""
        return "membership"
