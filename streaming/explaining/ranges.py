"""Ranges explained; and kinds of queries of which nothing more can be told."""

from typing import Any

from streaming.explaining.asked import asked_terms
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.places import compared_term
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every
from streaming.kinds.base import Evaluation
from streaming.kinds.range.plan import RangePlan
from streaming.kinds.registry import kind_of
from streaming.kinds.sketch.plan import SketchPlan
from streaming.language import gettext


def box_term(plan: RangePlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a range query; the box is not told twice where it is the area."""
    terms = asked_terms(plan, subject)
    if plan.compare != plan.area or plan.report != "inside" or plan.transform:
        terms = [*terms, compared_term(plan.compare, plan.report, plan.transform, subject)]
    return every(gettext("in the answer"), terms)


def sketch_term(plan: SketchPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Say why the answer of a sketch has no objects."""
    asks = gettext("about areas and times, as a sketch has them")
    return every(gettext("in the answer"), [Term(asks, None, gettext("a sketch does not know single objects"))])


def usual_term(plan: Any, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a plan whose kind names no function for that: as a range if it is evaluated like one.

    Of others, what they ask of the element alone is explained.
    """
    kind = kind_of(plan)
    if kind.evaluation(plan) is Evaluation.REGIONAL and not kind.refinement:
        return box_term(plan, subject, known)
    asks = gettext("what %(name)s asks") % {"name": kind.name}
    more = Term(asks, None, gettext("queries of this kind cannot be explained further"))
    return every(gettext("in the answer"), [*asked_terms(plan, subject), more])
