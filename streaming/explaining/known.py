"""What else is known when an element is explained: layers, partners, foci, answers and clocks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term
from streaming.operators.layer import LayerVersion
from streaming.results.rule_clock import RuleClock


@dataclass(frozen=True)
class Partner:
    """A member of an answer: its key, its rank (0 for none), and its distance from the focus."""

    key: str
    rank: int = 0
    distance: float | None = None


@dataclass(frozen=True)
class ExplanationFacts:
    """What is known besides the element and the plan; None stands for what is not known.

    Parameters
    ----------
    layer : callable
        Returns the `LayerVersion` of a name, or None.
    focus : Subject or None
        The focal object. `lost` says that the engine does not know it, either.
    lost : bool
    partners : sequence of Subject or None
        The nearest elements of the stream with which the query is joined; those that cannot be partners are left out.
    neighbours : sequence of Partner or None
        The answer of a query for nearest neighbours, the nearest first.
    groups : mapping of str to float, or None
        The values of an aggregate, by group.
    clock : RuleClock or None
    answers : mapping of int to Term
        For a rule, explanations of the queries that it names.
    names : mapping of int to str
        For a rule, the names of these queries.
    fix : Subject or None
        For a query about tracks, the last believed report of the element.
    member : bool or None
        For such a query, whether the element is in the answer.
    now_us : int or None
        The time at which it is explained; by default, that of the element.
    """

    layer: Callable[[str], LayerVersion | None] = lambda name: None
    focus: Subject | None = None
    lost: bool = False
    partners: Sequence[Subject] | None = None
    neighbours: Sequence[Partner] | None = None
    groups: Mapping[str, float] | None = None
    clock: RuleClock | None = None
    answers: Mapping[int, Term] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    fix: Subject | None = None
    member: bool | None = None
    now_us: int | None = None
