"""Closest approaches explained: how close two objects will be to each other, and when."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.explaining.asked import asked_terms
from streaming.explaining.filters import explain_filter, filter_term
from streaming.explaining.joins import more_words, name_in, possible_partners
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every
from streaming.explaining.words import metres, span
from streaming.kinds.closest_approach.plan import ClosestApproachPlan
from streaming.language import gettext
from streaming.operators.closest import MICROSECONDS, Closest, satisfying
from streaming.operators.elements import Elements
from streaming.operators.stream_join import StreamJoins

# So many nearest objects are looked at. If there are as many, a partner may be farther away.
MOST_LOOKED_AT = 50


def closest_term(plan: ClosestApproachPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a closest approach by the partner that comes closest in time, or else by the one that comes closest."""
    return every(gettext("in the answer"), [*asked_terms(plan, subject), _partner(plan, subject, known)])


def _partner(plan: ClosestApproachPlan, subject: Subject, known: ExplanationFacts) -> Term:
    asks = gettext("comes within %(within_m)s of an object of %(name)s if both keep course and speed") % {
        "within_m": metres(plan.within_m),
        "name": plan.partners.name,
    }
    others = possible_partners(plan.partners, asks, subject, known)
    if isinstance(others, Term):
        return others
    elements = _elements([subject, *others])
    found = Closest.of(elements, np.zeros(len(others), dtype=np.int64), np.arange(1, len(others) + 1))
    met = _met(plan, subject, elements, [subject, *others])
    distance_m = np.where(np.isnan(found.distance_m), np.inf, found.distance_m)
    soon = satisfying(found, plan.within_m, plan.within_s)
    best = min(met, key=distance_m.__getitem__) if met else int(np.lexsort((distance_m, ~soon))[0])
    terms = _terms(plan, subject, others[best], found, best)
    name = name_in(others[best].properties, others[best].key)
    told = replace(every(asks, terms), found=f"{name}{more_words(len(met))}")
    if met or len(others) < MOST_LOOKED_AT:
        return told
    farther = gettext("the nearest %(count)s were looked at; one that is farther away may come closer") % {
        "count": len(others)
    }
    return replace(
        every(asks, [*terms, Term(gettext("any other object"), None, farther)]), holds=None, found=told.found
    )


def _terms(plan: ClosestApproachPlan, subject: Subject, other: Subject, found: Closest, best: int) -> list[Term]:
    """Return the terms of a pair: the distance, the time, the age of the older report, the filters of the partner."""
    far_m, after_s = float(found.distance_m[best]), float(found.after_s[best])
    apart_s = abs(_time_us(subject) - _time_us(other)) / MICROSECONDS
    known = np.isfinite(after_s)
    unknown = gettext("the two keep their distance, or one says that it is too fast")
    when = (
        ""
        if not known
        else gettext("in %(after_s)s") % {"after_s": span(after_s)}
        if after_s >= 0
        else gettext("they were closest %(value)s before") % {"value": span(-after_s)}
    )
    terms = [
        Term(
            gettext("%(within_m)s at most") % {"within_m": metres(plan.within_m)},
            far_m <= plan.within_m,
            metres(far_m) if known else unknown,
        ),
        Term(
            gettext("in %(within_s)s at most") % {"within_s": span(plan.within_s)},
            bool(0 <= after_s <= plan.within_s),
            when or unknown,
        ),
        Term(
            gettext("reports %(gap_s)s apart at most") % {"gap_s": span(plan.gap_s)},
            apart_s <= plan.gap_s,
            gettext("they are %(apart_s)s apart") % {"apart_s": span(apart_s)},
        ),
    ]
    partners = plan.partners
    if partners.where:
        terms.append(explain_filter(partners.where, other))
    terms += [filter_term(entry, other) for entry in partners.filters]
    if partners.pair_filters:
        terms.append(Term(gettext("the filters of pairs"), None, gettext("they are not explained")))
    return terms


def _elements(everyone: Sequence[Subject]) -> Elements:
    """Return several elements as one table of elements."""
    tables = pa.concat_tables([one.table for one in everyone])
    stream = np.concatenate([one.elements.stream for one in everyone])
    bounds, time_us = np.concatenate([one.bounds for one in everyone]), tables["time_us"].to_numpy()
    return Elements(stream, bounds, tables.take, time_us=time_us, heard_us=time_us)


def _met(plan: ClosestApproachPlan, subject: Subject, elements: Elements, everyone: Sequence[Subject]) -> list[int]:
    """Return the positions of the others that are partners; which one of the two the pair is told of does not count."""
    n = subject.space.n
    pairs: Any = replace(plan, area=(-np.inf,) * n + (np.inf,) * n, where="", filters=(), mirrored=True)
    keys = np.concatenate([one.table["key_hash"].to_numpy() for one in everyone])
    rows = np.arange(len(everyone))
    found = StreamJoins([pairs], subject.space).pairs(elements, keys, rows[:1], rows[1:])
    return sorted({int(partner) - 1 for partner in found.partner})


def _time_us(subject: Subject) -> int:
    return subject.table["time_us"][0].as_py()
