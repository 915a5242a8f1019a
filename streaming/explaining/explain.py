"""Explain a plan of any kind: which of its terms an element satisfies."""

from collections.abc import Callable, Mapping
from typing import Any

from streaming.explaining import joins, moving, rules
from streaming.explaining.approaches import approach_terms
from streaming.explaining.asked import asked_terms
from streaming.explaining.closest import closest_terms
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.places import compared_term
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every
from streaming.explaining.tracks import track_term
from streaming.kinds.aggregate.plan import AggregatePlan
from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.range.plan import RangePlan
from streaming.kinds.registry import kind_of
from streaming.kinds.sketch.plan import SketchPlan
from streaming.language import gettext


def explain(plan: Plan, subject: Subject, known: ExplanationFacts | None = None) -> Term:
    """Explain why an element is in the answer of a plan, or why it is not.

    Parameters
    ----------
    plan : Plan
        Of any kind.
    subject : Subject
        The element, in the space of the plan.
    known : ExplanationFacts, optional
        What else is known. Terms that need what is not known do not hold, or fail to hold: their `holds` is None.

    Returns
    -------
    Term
        It holds if the engine has the element in the answer of the plan, or counts it in an aggregate.
    """
    known = known or ExplanationFacts()
    if subject.stream != plan.stream:
        asks = gettext("an object of the stream %(stream)s") % {"stream": plan.stream}
        return every(
            gettext("in the answer"),
            [Term(asks, False, gettext("it is of the stream %(stream)s") % {"stream": subject.stream})],
        )
    return _BY_EVALUATION[kind_of(plan).evaluation(plan)](plan, subject, known)


def _regional(plan: Any, subject: Subject, known: ExplanationFacts) -> Term:
    if getattr(plan, "partners", None) is not None:
        return every(
            gettext("in the answer"), [*asked_terms(plan, subject), *joins.feature_terms(plan, subject, known)]
        )
    refinement = kind_of(plan).refinement
    if refinement in _BY_REFINEMENT:
        return every(
            gettext("in the answer"), [*asked_terms(plan, subject), *_BY_REFINEMENT[refinement](plan, subject)]
        )
    if refinement:
        what = Term(
            gettext("what %(name)s asks") % {"name": kind_of(plan).name},
            None,
            gettext("queries of this kind cannot be explained further"),
        )
        return every(gettext("in the answer"), [*asked_terms(plan, subject), what])
    return every(gettext("in the answer"), [*asked_terms(plan, subject), *_compared(plan, subject)])


def _compared(plan: RangePlan, subject: Subject) -> list[Term]:
    """Return the term of the box of a range query, unless it is that of the area."""
    if plan.compare == plan.area and plan.report == "inside" and not plan.transform:
        return []
    return [compared_term(plan.compare, plan.report, plan.transform, subject)]


def _aggregate(plan: AggregatePlan, subject: Subject, known: ExplanationFacts) -> Term:
    members = kind_of(plan).members(plan)
    return moving.aggregate_term(plan, explain(members, subject, known), subject, known)


def _stream_join(plan: Any, subject: Subject, known: ExplanationFacts) -> Term:
    term = closest_terms if kind_of(plan).prediction(plan) else joins.stream_term
    return term(plan, subject, known)


def _sketch(plan: SketchPlan, subject: Subject, known: ExplanationFacts) -> Term:
    asks = gettext("about areas and times, as a sketch has them")
    return every(gettext("in the answer"), [Term(asks, None, gettext("a sketch does not know single objects"))])


_BY_REFINEMENT: Mapping[str, Callable[..., list[Term]]] = {"streaming.operators.approaches:Approaches": approach_terms}
_BY_EVALUATION: Mapping[Evaluation, Callable[..., Term]] = {
    Evaluation.REGIONAL: _regional,
    Evaluation.STREAM_JOIN: _stream_join,
    Evaluation.TIME_JOIN: joins.time_term,
    Evaluation.ENCOUNTER: joins.encounter_term,
    Evaluation.MOVING_RANGE: moving.range_term,
    Evaluation.NEAREST: moving.nearest_term,
    Evaluation.AGGREGATE: _aggregate,
    Evaluation.SKETCH: _sketch,
    Evaluation.TRACK: track_term,
    Evaluation.RULE: rules.rule_term,
}
