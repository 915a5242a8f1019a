"""Where an element must be: areas and boxes explained, each with how far the border is."""

import math

import numpy as np

from streaming.elements import UNKNOWN
from streaming.explaining.borders import border_of_box, border_of_shape, outside_by
from streaming.explaining.subject import Subject
from streaming.explaining.terms import BorderDistance, Term, every, negated
from streaming.explaining.words import metres
from streaming.kinds.area_documents import area_document
from streaming.kinds.areas import AreaFilter, AreaShape
from streaming.kinds.parts import Box, Enlargement
from streaming.kinds.words import number
from streaming.kinds.words import shape as shape_words
from streaming.language import gettext, gettext_noop
from streaming.operators.areas import Areas
from streaming.operators.boxes import intersects, transformed
from streaming.spaces import OPEN, Space

_NONE = np.zeros(1, dtype=np.int64)
_STEPS = {
    "enlarge_factor": gettext_noop("times %(amount)s"),
    "enlarge_value": gettext_noop("by %(amount)s in each dimension"),
    "enlarge_m": gettext_noop("by %(amount)s m"),
}


def area_terms(area: Box, shape: AreaShape | None, subject: Subject) -> list[Term]:
    """Return the terms of the area of a plan: that of its shape, or those of its box; none for the whole space."""
    if shape is None:
        return box_terms(area, subject)
    met = bool(_meets(area, subject.bounds, subject.space) and _met(shape, subject))
    border = border_of_shape(shape, met, subject) if _placed(subject) else None
    return [Term(_shape_words(shape), met, side(met, border), border=border)]


def _met(shape: AreaShape, subject: Subject) -> bool:
    return Areas([AreaFilter(shape)], subject.space).met(subject.elements, _NONE, _NONE)[0]


def _meets(box: Box, bounds: np.ndarray, space: Space) -> bool:
    """Tell whether the box of an element meets another one."""
    return bool(intersects(bounds, _NONE, np.array([box]), _NONE, space)[0])


def _shape_words(shape: AreaShape) -> str:
    return shape_words(area_document(shape), " m")


def _placed(subject: Subject) -> bool:
    """Tell whether an element has a place on a map."""
    return bool(np.isfinite(subject.bounds[0][[0, 1, subject.space.n, subject.space.n + 1]]).all())


def side(within: bool, border: BorderDistance | None) -> str:
    """Say how far within or outside of a border an element is."""
    if border is None:
        return gettext("inside") if within else gettext("outside")
    text = gettext("%(distance)s inside") if within else gettext("%(distance)s outside")
    return text % {"distance": metres(abs(border.distance_m))}


def box_terms(box: Box, subject: Subject, bounds: np.ndarray | None = None) -> list[Term]:
    """Return the terms of a box: of the place in longitude and latitude together, and of each further dimension.

    Parameters
    ----------
    box : Box
    subject : Subject
    bounds : ndarray of float64, shape (1, 2n), optional
        The transformed box of the element, which is compared in place of its own.
    """
    space = subject.space
    own = subject.bounds if bounds is None else bounds
    terms, first = [], 0
    if space.geographic:
        first = 2
        if any(_bounded(box, axis, space) for axis in (0, 1)):
            terms.append(_plane_term(box, subject, own, bounds is None))
    return terms + [_axis_term(box, axis, own, space) for axis in range(first, space.n) if _bounded(box, axis, space)]


def _bounded(box: Box, axis: int, space: Space) -> bool:
    return math.isfinite(box[axis]) or math.isfinite(box[space.n + axis])


def only(box: Box, axes: tuple[int, ...], space: Space) -> Box:
    """Return a box without its bounds in all but some dimensions."""
    n = space.n
    low = [box[axis] if axis in axes else -math.inf for axis in range(n)]
    return (*low, *(box[n + axis] if axis in axes else math.inf for axis in range(n)))


def _plane_term(box: Box, subject: Subject, bounds: np.ndarray, untransformed: bool) -> Term:
    plane = only(box, (0, 1), subject.space)
    meets = _meets(plane, bounds, subject.space)
    border = border_of_box(plane, meets, subject) if untransformed and _placed(subject) else None
    n = subject.space.n
    names = gettext("longitude %(interval)s"), gettext("latitude %(interval)s")
    sides = [
        name % {"interval": interval(box[axis], box[n + axis])}
        for axis, name in enumerate(names)
        if _bounded(box, axis, subject.space)
    ]
    return Term(gettext("in %(place)s") % {"place": ", ".join(sides)}, meets, side(meets, border), border=border)


def _axis_term(box: Box, axis: int, bounds: np.ndarray, space: Space) -> Term:
    dimension, n = space.dimensions[axis], space.n
    meets = _meets(only(box, (axis,), space), bounds, space)
    low, high = float(bounds[0, axis]), float(bounds[0, n + axis])
    asks = f"{dimension.name} {interval(box[axis], box[n + axis])} {dimension.unit}".rstrip()
    if low == UNKNOWN:
        return Term(asks, meets, gettext("its %(name)s is not known, which counts as none") % {"name": dimension.name})
    if not (math.isfinite(low) and math.isfinite(high)):
        return Term(asks, meets, gettext("it has no %(name)s, which counts as any") % {"name": dimension.name})
    found = gettext("%(name)s is %(low)s") % {
        "name": dimension.name,
        "low": number(low) if low == high else interval(low, high),
    }
    if not meets and not dimension.wraps:
        found += gettext(", %(distance)s %(unit)s outside") % {
            "distance": number(outside_by([low] * n, [high] * n, box, axis, space)),
            "unit": dimension.unit,
        }
    return Term(asks, meets, found)


def interval(low: float, high: float) -> str:
    """Return an interval as text.

    Examples
    --------
    >>> interval(1.0, 2.5), interval(-math.inf, 3), interval(4, math.inf)
    ('1 to 2.5', 'up to 3', 'from 4')
    """
    if not math.isfinite(low):
        return gettext("up to %(high)s") % {"high": number(high)} if math.isfinite(high) else gettext("any")
    return (
        gettext("%(low)s to %(high)s") % {"low": number(low), "high": number(high)}
        if high < OPEN
        else gettext("from %(low)s") % {"low": number(low)}
    )


def compared_term(compare: Box, report: str, transform: tuple[Enlargement, ...], subject: Subject) -> Term:
    """Return the term of the box of a range query: whether the transformed box of the element meets it, or does not."""
    bounds = transformed(subject.bounds, transform, subject.space)
    whose = gettext("its box, enlarged %(transform)s, ") % {"transform": steps_words(transform)} if transform else ""
    parts = box_terms(compare, subject, bounds if transform else None)
    inside = (
        every(gettext("%(whose)sin the query box") % {"whose": whose}, parts)
        if len(parts) != 1 or transform
        else parts[0]
    )
    return inside if report == "inside" else negated(gettext("outside of the query box"), inside)


def steps_words(transform: tuple[Enlargement, ...]) -> str:
    """Return transformations as text."""
    return gettext(", then ").join(gettext(_STEPS[step.by]) % {"amount": number(step.amount)} for step in transform)
