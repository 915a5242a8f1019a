"""What plans of all kinds ask of an element: its area, CQL2 text, and filters."""

from streaming.explaining.filters import explain_filter, filter_term
from streaming.explaining.places import area_terms
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term
from streaming.kinds.area_documents import shape_of
from streaming.kinds.areas import AreaFilter
from streaming.kinds.base import Plan


def asked_terms(plan: Plan, subject: Subject) -> list[Term]:
    """Return the terms of a plan that are about the element alone."""
    terms = area_terms(plan.area, shape_of(plan.filters), subject)
    if plan.where:
        terms.append(explain_filter(plan.where, subject))
    return terms + [filter_term(entry, subject) for entry in plan.filters if not isinstance(entry, AreaFilter)]
