"""Brute force: continuous queries evaluated one element and one query at a time, straight from their definition."""

import math
import re

import orjson
import shapely
from shapely import affinity

from streaming.kinds.areas import AreaFilter, CircleArea, CorridorArea
from streaming.kinds.range.plan import RangePlan
from streaming.spaces import EARTH, Space
from tests.geodesy import within

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


def box_shape(box):
    """A box in the plane: a point, a line or a polygon; the whole world where it has no bounds."""
    n = len(box) // 2
    x_lo, y_lo, x_hi, y_hi = box[0], box[1], box[n], box[n + 1]
    if math.isinf(x_lo):
        x_lo, x_hi = -180.0, 180.0
    if (x_lo, y_lo) == (x_hi, y_hi):
        return shapely.Point(x_lo, y_lo)
    if x_lo == x_hi or y_lo == y_hi:
        return shapely.LineString([(x_lo, y_lo), (x_hi, y_hi)])
    return shapely.box(x_lo, y_lo, x_hi, y_hi)


def meets_area(area, shape) -> bool:
    """Tell whether a geometry meets a polygon, circle or corridor, straight from its definition."""
    if isinstance(area, CircleArea):
        return within(shape, shapely.Point(area.center), max(area.radius_m, 1e-6))
    if isinstance(area, CorridorArea):
        return within(shape, shapely.LineString(area.line), max(area.width_m / 2, 1e-6))
    polygons = [shapely.Polygon(rings[0], rings[1:]) for rings in area.polygons]
    return any(affinity.translate(shape, turn).intersects(one) for turn in (-360, 0, 360) for one in polygons)


def in_area(plan, box, space: Space = EARTH, shape=None) -> bool:
    """Tell whether an element lies in the area of a plan: its geometry if it has one, otherwise its box."""
    areas = [entry.shape for entry in plan.filters if isinstance(entry, AreaFilter)]
    if areas:
        return all(meets_area(area, box_shape(box) if shape is None else shape) for area in areas)
    return boxes_meet(box, plan.area, space)


def filters_of(plan):
    """Return the filters of a plan, without the shape of its area."""
    return [entry for entry in plan.filters if not isinstance(entry, AreaFilter)]


def satisfies(plan: RangePlan, stream: str, box, properties: str, space: Space = EARTH) -> bool:
    """Tell whether an element satisfies a range query."""
    if stream != plan.stream or not in_area(plan, box, space):
        return False
    for step in plan.transform:
        box = enlarge(box, step.by, step.amount, space)
    inside = boxes_meet(box, plan.compare, space)
    return inside == (plan.report == "inside") and where_holds(plan.where, properties)
