"""Explain a plan of any kind: which of its terms an element satisfies."""

from collections.abc import Callable
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any

from streaming.explaining.known import ExplanationFacts
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every
from streaming.kinds.base import Plan
from streaming.kinds.registry import kind_of
from streaming.language import gettext

# Explains a plan of one kind, as `explain` does; the subject is of its stream.
Explained = Callable[[Any, Subject, ExplanationFacts], Term]

_explained = lru_cache(resolve_name)


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
    explained: Explained = _explained(kind_of(plan).explained)
    return explained(plan, subject, known)
