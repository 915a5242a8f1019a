"""Foci, and shapes about a focus, which several kinds of queries have: dataclasses, from JSON and back.

If a value breaks a rule, the functions raise `InvalidPlan`. The message says the rule and the value.

References
----------
PLACE* (2007), sections 4 and 5: range and kNN queries whose focal objects move.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import shapely

from streaming.errors import InvalidPlan, InvalidSpace
from streaming.kinds.parts import given, parse_number, parse_text
from streaming.language import gettext, thousands
from streaming.spaces import Space

FOCUS_KEYS = ("stream", "key", "at")
SHAPES = ("radius", "half_widths", "polygon")
# A little more than half the circumference of the earth.
MAX_METRES = 20_100_000.0
MAX_VERTICES = 1_000


@dataclass(frozen=True)
class Focus:
    """Where a query is: at a focal object, which it follows, or at a fixed place.

    Parameters
    ----------
    stream : str
        The stream of the focal object; the query's own stream if it is missing. A fixed place has none.
    key : str
        The key of the focal object in its stream. A fixed place has none.
    at : tuple of float
        The fixed place: its coordinates in the first two dimensions, or in the only one.
    """

    stream: str = ""
    key: str = ""
    at: tuple[float, ...] = ()


@dataclass(frozen=True)
class Circle:
    """A circle about the focus.

    Parameters
    ----------
    radius : float
        Above 0; metres in a space with longitude and latitude, units of the first dimensions elsewhere.
    """

    radius: float


@dataclass(frozen=True)
class Rectangle:
    """A box about the focus.

    Parameters
    ----------
    half_widths : tuple of float, length n
        Above 0; null for no bound. The first two are metres in a space with longitude and latitude; all others are in
        the unit of their dimension.
    """

    half_widths: tuple[float, ...]


@dataclass(frozen=True)
class Carried:
    """A polygon that the focus carries along, in the first two dimensions.

    Parameters
    ----------
    polygon : tuple of tuple of float
        The vertices of a simple ring, which is not closed, as offsets from the focus, east and north in metres in a
        space with longitude and latitude, in the dimensions' units elsewhere.
    """

    polygon: tuple[tuple[float, float], ...]


Shape = Circle | Rectangle | Carried


def parse_focus(around: Any, stream: str, space: Space) -> Focus:
    """Return the focus of a JSON object `around`; the stream of a key is `stream` unless the object names another."""
    if not isinstance(around, dict):
        raise InvalidPlan("around must be an object with a key or a place; got %(around)s", around=f"{around!r:.200}")
    named = given(around, ("key", "at"))
    if len(named) != 1:
        raise InvalidPlan("around must have one of key, at; got %(named)s", named=", ".join(named) or gettext("none"))
    if named == ["at"]:
        if around.get("stream") is not None:
            raise InvalidPlan(
                "around: stream belongs to key; got at and %(stream)s", stream=f"{around['stream']!r:.200}"
            )
        return Focus(at=_place(around["at"], space))
    focal = around.get("stream")
    focal = stream if focal is None else parse_text(focal, "around: stream")
    return Focus(stream=focal, key=parse_text(around["key"], "around: key"))


def _place(at: Any, space: Space) -> tuple[float, ...]:
    dimensions = min(2, space.n)
    if not isinstance(at, list) or len(at) != dimensions or None in at:
        raise InvalidPlan(
            "around: at must be a list of numbers, %(dimensions)s in this space; got %(at)s",
            dimensions=dimensions,
            at=f"{at!r:.200}",
        )
    try:
        return space.corners(at, at)[:dimensions]
    except InvalidSpace as error:
        raise InvalidPlan("around: at: %(error)s", error=error) from None


def parse_shape(around: dict[str, Any], space: Space) -> Shape:
    """Return the shape that a JSON object `around` has besides its focus."""
    named = given(around, SHAPES)
    if len(named) != 1:
        raise InvalidPlan(
            "around must have one of %(shapes)s; got %(named)s",
            shapes=", ".join(SHAPES),
            named=", ".join(named) or gettext("none"),
        )
    if named == ["radius"]:
        return Circle(parse_length(around["radius"], "around: radius", space))
    if named == ["half_widths"]:
        return _rectangle(around["half_widths"], around.get("at") is not None, space)
    return _carried(around["polygon"], space)


def parse_length(value: Any, name: str, space: Space) -> float:
    """Return a length above 0: at most `MAX_METRES` in a geographic space, in units without a limit elsewhere."""
    return parse_number(value, name, above=0.0, hi=_longest(space))


def _longest(space: Space) -> float:
    return MAX_METRES if space.geographic else math.inf


def _rectangle(widths: Any, fixed: bool, space: Space) -> Rectangle:
    if not isinstance(widths, list) or not 1 <= len(widths) <= space.n:
        raise InvalidPlan(
            "around: half_widths must be a list of 1 to %(n)s numbers or null; got %(widths)s",
            n=space.n,
            widths=f"{widths!r:.200}",
        )
    if all(width is None for width in widths):
        raise InvalidPlan("around: half_widths must have a number; got %(widths)s", widths=f"{widths!r:.200}")
    if fixed and any(width is not None for width in widths[2:]):
        raise InvalidPlan(
            "around: half_widths about a place must be null after the second; got %(widths)s",
            widths=f"{widths!r:.200}",
        )
    parsed = [math.inf] * space.n
    for axis, (width, dimension) in enumerate(zip(widths, space.dimensions, strict=False)):
        if width is not None:
            longest = _longest(space) if axis < 2 else math.inf
            parsed[axis] = parse_number(width, f"around: half_widths: {dimension.name}", above=0.0, hi=longest)
    return Rectangle(tuple(parsed))


def _carried(polygon: Any, space: Space) -> Carried:
    return Carried(parse_ring(polygon, "around: polygon", space, _offsets))


def parse_ring(
    polygon: Any, name: str, space: Space, vertex: Callable[[list, str, Space], tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    """Return the vertices of a simple ring, which is not closed; `vertex` reads the two numbers of one of them."""
    if space.n < 2:
        raise InvalidPlan(
            "%(name)s needs a space of two dimensions or more; got %(space)s", name=name, space=repr(space.name)
        )
    if not isinstance(polygon, list) or not 3 <= len(polygon) <= MAX_VERTICES:
        what = (
            gettext("%(count)s vertices") % {"count": len(polygon)}
            if isinstance(polygon, list)
            else repr(polygon)[:200]
        )
        raise InvalidPlan(
            "%(name)s must be a list of 3 to %(max_vertices)s vertices; got %(what)s",
            name=name,
            max_vertices=thousands(MAX_VERTICES),
            what=what,
        )
    for numbers in polygon:
        if not isinstance(numbers, list) or len(numbers) != 2:
            raise InvalidPlan(
                "%(name)s: a vertex must be a list of 2 numbers; got %(numbers)s",
                name=name,
                numbers=f"{numbers!r:.200}",
            )
    ring = tuple(vertex(numbers, name, space) for numbers in polygon)
    if ring[0] == ring[-1]:
        ring = ring[:-1]
    if len(ring) < 3:
        raise InvalidPlan(
            "%(name)s must have 3 vertices besides the closing one; got %(polygon)s",
            name=name,
            polygon=f"{polygon!r:.200}",
        )
    shape = shapely.Polygon(ring)
    if not shape.is_valid or not shape.area > 0:
        reason = shapely.is_valid_reason(shape) if not shape.is_valid else gettext("no area")
        raise InvalidPlan("%(name)s must be a simple ring with an area; got %(reason)s", name=name, reason=reason)
    return ring


def _offsets(numbers: list[Any], name: str, space: Space) -> tuple[float, float]:
    longest = _longest(space)
    east, north = (
        parse_number(offset, gettext("%(name)s: an offset") % {"name": name}, lo=-longest, hi=longest)
        for offset in numbers
    )
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


def shape_reach(shape: Shape) -> float:
    """Return how far a shape reaches from its focus in the first two dimensions; infinite if it has no bound there."""
    if isinstance(shape, Circle):
        return shape.radius
    if isinstance(shape, Carried):
        return max(math.hypot(*vertex) for vertex in shape.polygon)
    return max(shape.half_widths[:2])
