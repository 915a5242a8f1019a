"""Foci, shapes and aggregates of plans: from JSON and back.

If a value breaks a rule, the functions raise `InvalidPlan`. The message says the rule and the value.
"""

import math
from typing import Any

import shapely

from streaming.errors import InvalidPlan, InvalidSpace
from streaming.plans.moving import Aggregate, Carried, Circle, Focus, Rectangle, Shape, Threshold
from streaming.plans.parts import check_keys, parse_choice, parse_number, parse_text
from streaming.spaces import Space

FUNCTIONS = ("count", "min", "max", "sum", "avg")
FOCUS_KEYS = ("stream", "key", "at")
SHAPES = ("radius", "half_widths", "polygon")
AGGREGATE_KEYS = ("function", "property", "dimension", "group_by", "thresholds")
THRESHOLD_KEYS = ("above", "below", "for_s")
# A little more than half the circumference of the earth.
MAX_METRES = 20_100_000.0
MAX_VERTICES = 1_000
MAX_THRESHOLDS = 8
MAX_FOR_S = 31_536_000.0


def parse_focus(around: Any, stream: str, space: Space) -> Focus:
    """Return the focus of a JSON object `around`; the stream of a key is `stream` unless the object names another."""
    if not isinstance(around, dict):
        raise InvalidPlan(f"around must be an object with a key or a place; got {around!r:.200}")
    named = _given(around, ("key", "at"))
    if len(named) != 1:
        raise InvalidPlan(f"around must have one of key, at; got {', '.join(named) or 'none'}")
    if named == ["at"]:
        if around.get("stream") is not None:
            raise InvalidPlan(f"around: stream belongs to key; got at and {around['stream']!r:.200}")
        return Focus(at=_place(around["at"], space))
    focal = around.get("stream")
    focal = stream if focal is None else parse_text(focal, "around: stream")
    return Focus(stream=focal, key=parse_text(around["key"], "around: key"))


def _place(at, space):
    dimensions = min(2, space.n)
    if not isinstance(at, list) or len(at) != dimensions or None in at:
        raise InvalidPlan(f"around: at must be a list of numbers, {dimensions} in this space; got {at!r:.200}")
    try:
        return tuple(float(value) for value in space.box(at, at)[:dimensions])
    except InvalidSpace as error:
        raise InvalidPlan(f"around: at: {error}") from None


def parse_shape(around: dict[str, Any], space: Space) -> Shape:
    """Return the shape that a JSON object `around` has besides its focus."""
    named = _given(around, SHAPES)
    if len(named) != 1:
        raise InvalidPlan(f"around must have one of {', '.join(SHAPES)}; got {', '.join(named) or 'none'}")
    if named == ["radius"]:
        return Circle(parse_length(around["radius"], "around: radius", space))
    if named == ["half_widths"]:
        return _rectangle(around["half_widths"], around.get("at") is not None, space)
    return _carried(around["polygon"], space)


def parse_length(value: Any, name: str, space: Space) -> float:
    """Return a length above 0: at most `MAX_METRES` in a geographic space, in units without a limit elsewhere."""
    return parse_number(value, name, above=0.0, hi=_longest(space))


def _longest(space):
    return MAX_METRES if space.geographic else math.inf


def _rectangle(widths, fixed, space):
    if not isinstance(widths, list) or not 1 <= len(widths) <= space.n:
        raise InvalidPlan(f"around: half_widths must be a list of 1 to {space.n} numbers or null; got {widths!r:.200}")
    if all(width is None for width in widths):
        raise InvalidPlan(f"around: half_widths must have a number; got {widths!r:.200}")
    if fixed and any(width is not None for width in widths[2:]):
        raise InvalidPlan(f"around: half_widths about a place must be null after the second; got {widths!r:.200}")
    parsed = [math.inf] * space.n
    for axis, (width, dimension) in enumerate(zip(widths, space.dimensions, strict=False)):
        if width is not None:
            longest = _longest(space) if axis < 2 else math.inf
            parsed[axis] = parse_number(width, f"around: half_widths: {dimension.name}", above=0.0, hi=longest)
    return Rectangle(tuple(parsed))


def _carried(polygon, space):
    if space.n < 2:
        raise InvalidPlan(f"around: polygon needs a space of two dimensions or more; got {space.name!r}")
    if not isinstance(polygon, list) or not 3 <= len(polygon) <= MAX_VERTICES:
        what = f"{len(polygon)} vertices" if isinstance(polygon, list) else repr(polygon)[:200]
        raise InvalidPlan(f"around: polygon must be a list of 3 to {MAX_VERTICES:,} vertices; got {what}")
    ring = tuple(_vertex(vertex, space) for vertex in polygon)
    if ring[0] == ring[-1]:
        ring = ring[:-1]
    if len(ring) < 3:
        raise InvalidPlan(f"around: polygon must have 3 vertices besides the closing one; got {polygon!r:.200}")
    shape = shapely.Polygon(ring)
    if not shape.is_valid or not shape.area > 0:
        reason = shapely.is_valid_reason(shape) if not shape.is_valid else "no area"
        raise InvalidPlan(f"around: polygon must be a simple ring with an area; got {reason}")
    return Carried(ring)


def _vertex(vertex, space):
    if not isinstance(vertex, list) or len(vertex) != 2:
        raise InvalidPlan(f"around: a vertex of polygon must be a list of 2 numbers; got {vertex!r:.200}")
    longest = _longest(space)
    east, north = (parse_number(offset, "around: polygon: an offset", lo=-longest, hi=longest) for offset in vertex)
    return east, north


def focus_document(focus: Focus) -> dict[str, Any]:
    """Return the JSON form of a focus."""
    return {"stream": focus.stream, "key": focus.key} if focus.key else {"at": list(focus.at)}


def shape_document(shape: Shape) -> dict[str, Any]:
    """Return the JSON form of a shape; unbounded half-widths at the end are left out."""
    if isinstance(shape, Circle):
        return {"radius": shape.radius}
    if isinstance(shape, Carried):
        return {"polygon": [list(vertex) for vertex in shape.polygon]}
    bounded = max(axis for axis, width in enumerate(shape.half_widths) if math.isfinite(width)) + 1
    return {"half_widths": [width if math.isfinite(width) else None for width in shape.half_widths[:bounded]]}


def parse_aggregate(document: Any, space: Space) -> Aggregate:
    """Return the aggregate that a JSON object describes."""
    if not isinstance(document, dict):
        raise InvalidPlan(f"aggregate must be an object with a function; got {document!r:.200}")
    check_keys(document, AGGREGATE_KEYS, "aggregate")
    if "function" not in document:
        raise InvalidPlan(f"aggregate needs a function, one of {', '.join(FUNCTIONS)}; got none")
    function = parse_choice(document, "function", FUNCTIONS)
    named = _given(document, ("property", "dimension"))
    if function == "count" and named:
        raise InvalidPlan(f"aggregate: count has neither property nor dimension; got {', '.join(named)}")
    if function != "count" and len(named) != 1:
        got = ", ".join(named) or "none"
        raise InvalidPlan(f"aggregate: {function} must have one of property, dimension; got {got}")
    texts = {name: _text(document, name) for name in ("property", "dimension", "group_by")}
    dimensions = [dimension.name for dimension in space.dimensions]
    if texts["dimension"] and texts["dimension"] not in dimensions:
        raise InvalidPlan(
            f"aggregate: dimension must be one of {', '.join(dimensions)}; got {texts['dimension']!r:.200}"
        )
    return Aggregate(function, thresholds=_thresholds(document.get("thresholds", [])), **texts)


def _text(document, name):
    return "" if document.get(name) is None else parse_text(document[name], f"aggregate: {name}")


def _thresholds(documents):
    if not isinstance(documents, list) or len(documents) > MAX_THRESHOLDS:
        raise InvalidPlan(f"thresholds must be a list of at most {MAX_THRESHOLDS} objects; got {documents!r:.200}")
    thresholds = tuple(map(_threshold, documents))
    if len(set(thresholds)) < len(thresholds):
        names = ", ".join(threshold.name for threshold in thresholds)
        raise InvalidPlan(f"thresholds must differ from each other; got {names}")
    return thresholds


def _threshold(document):
    if not isinstance(document, dict):
        raise InvalidPlan(f"a threshold must be an object with above or below; got {document!r:.200}")
    check_keys(document, THRESHOLD_KEYS, "a threshold")
    named = _given(document, ("above", "below"))
    if len(named) != 1:
        raise InvalidPlan(f"a threshold must have one of above, below; got {', '.join(named) or 'none'}")
    limit = {named[0]: parse_number(document[named[0]], f"a threshold: {named[0]}")}
    return Threshold(
        **limit, for_s=parse_number(document.get("for_s", 0.0), "a threshold: for_s", lo=0.0, hi=MAX_FOR_S)
    )


def aggregate_document(aggregate: Aggregate) -> dict[str, Any]:
    """Return the JSON form of an aggregate."""
    named = {name: getattr(aggregate, name) for name in ("property", "dimension", "group_by")}
    document = {"function": aggregate.function} | {name: value for name, value in named.items() if value}
    if aggregate.thresholds:
        document["thresholds"] = [_threshold_document(threshold) for threshold in aggregate.thresholds]
    return document


def _threshold_document(threshold):
    limit = {"below": threshold.below} if threshold.above is None else {"above": threshold.above}
    return limit | ({"for_s": threshold.for_s} if threshold.for_s else {})


def _given(document, names):
    """Return those of the names that have a value in the document; null counts as missing."""
    return [name for name in names if document.get(name) is not None]
