"""Brute force: continuous queries evaluated one element and one query at a time, straight from their definition."""

import math
import re

import orjson

from streaming.kinds.range.plan import RangePlan
from streaming.spaces import EARTH, Space

METRES_PER_DEGREE = 6_371_008.8 * math.pi / 180


def intervals_meet(low, high, other_low, other_high, turn):
    """Closed intervals meet, on a circle of length `turn` (0: a line) after any number of turns."""
    shifts = [turn * k for k in range(-4, 5)] if turn else [0]
    return any(low + shift <= other_high and other_low <= high + shift for shift in shifts)


def boxes_meet(box, other, space):
    """Boxes intersect in every dimension."""
    return all(
        intervals_meet(box[a], box[space.n + a], other[a], other[space.n + a], d.extent if d.wraps else 0)
        for a, d in enumerate(space.dimensions)
    )


def enlarge(box, by, amount, space):
    """One enlargement of one box."""
    box, n = list(box), space.n
    for axis in range(n):
        low, high = box[axis], box[n + axis]
        margin = amount
        if by == "enlarge_factor":
            margin = (high - low) * (amount - 1) / 2 if math.isfinite(high - low) else 0
        box[axis], box[n + axis] = (low, high) if by == "enlarge_m" else (low - margin, high + margin)
    if by == "enlarge_m":
        degrees = amount / METRES_PER_DEGREE
        pole = max(abs(box[1]), abs(box[n + 1])) + degrees
        wide = degrees / math.cos(math.radians(min(pole, 89.99))) if pole < 89.99 else math.inf
        box[0], box[n] = box[0] - wide, box[n] + wide
        box[1], box[n + 1] = box[1] - degrees, box[n + 1] + degrees
    for axis, dimension in enumerate(space.dimensions):
        if dimension.wraps and box[n + axis] - box[axis] >= dimension.extent:
            box[axis], box[n + axis] = -math.inf, math.inf
    return box


def where_holds(where: str, properties: str) -> bool:
    """Evaluate the few filters that tests use: ``name = 'text'`` and ``name > number``."""
    if not where:
        return True
    name, relation, value = re.fullmatch(r"(\w+) (=|>) (.+)", where).groups()
    actual = orjson.loads(properties or "{}").get(name)
    if relation == "=":
        return actual == value.strip("'")
    return actual is not None and actual > float(value)


def satisfies(plan: RangePlan, stream: str, box, properties: str, space: Space = EARTH) -> bool:
    """Tell whether an element satisfies a range query."""
    if stream != plan.stream or not boxes_meet(box, plan.area, space):
        return False
    for step in plan.transform:
        box = enlarge(box, step.by, step.amount, space)
    inside = boxes_meet(box, plan.compare, space)
    return inside == (plan.report == "inside") and where_holds(plan.where, properties)
