"""Areas from JSON and back: a box, a GeoJSON polygon, a circle or a corridor.

If a value breaks a rule, the functions raise `InvalidPlan`. The message says the rule and the value.

References
----------
RFC 7946, sections 3.1.6, 3.1.7 and 3.1.9: Polygon and MultiPolygon, and what crosses the antimeridian.
OGC 06-103r4 (simple features), section 6.1.11: which polygons are valid.
"""

import itertools
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import shapely

from streaming.errors import InvalidPlan, InvalidSpace
from streaming.kinds.areas import (
    MAX_AREA_METRES,
    MAX_AREA_VERTICES,
    AreaFilter,
    AreaShape,
    CircleArea,
    CorridorArea,
    Place,
    PolygonArea,
    envelope,
    vertices_of,
)
from streaming.kinds.parts import Box, Filter, parse_box, parse_number
from streaming.language import gettext, gettext_noop, thousands
from streaming.shorter_way import take_shorter_way
from streaming.spaces import Space

_NUMBERS = {int, float}
POLYGON_TYPES = ("Polygon", "MultiPolygon")
_FORMS = gettext_noop(
    'an object of the form {"lo": [...], "hi": [...]}, a GeoJSON Polygon or MultiPolygon, '
    '{"circle": {"center": [...], "radius_m": ...}} or {"corridor": {"line": [...], "width_m": '
    "...}}"
)


def parse_area_value(value: Any, name: str, space: Space) -> tuple[Box | None, tuple[AreaFilter, ...]]:
    """Return the box of an area, and the filter of its shape.

    Parameters
    ----------
    value : object
        The JSON value.
    name : str
        What messages call it.
    space : Space

    Returns
    -------
    box : tuple of float, length 2n, or None
        The box about the shape; None for null.
    filters : tuple of AreaFilter
        One for a shape; none for a box, which is the area itself.
    """
    if value is None:
        return None, ()
    keys = set(value) if isinstance(value, dict) else set()
    shape: AreaShape
    if "type" in keys:
        shape = _polygons(value, name, space)
    elif "circle" in keys or "corridor" in keys:
        shape = _measured(value, name, space)
    elif keys == {"lo", "hi"}:
        return parse_box(value, name, space), ()
    else:
        raise InvalidPlan(
            "%(name)s must be %(forms)s; got %(value)s", name=name, forms=gettext(_FORMS), value=f"{value!r:.200}"
        )
    places = vertices_of(shape)
    _corners(places, name, space)
    return space.corners(*envelope(shape)), (AreaFilter(shape),)


def _corners(places: list[Place], name: str, space: Space) -> None:
    """Check that places lie in the space: longitudes begin within it, and span at most a turn, as those of boxes."""
    low, high = (list(map(pick, zip(*places, strict=True))) for pick in (min, max))
    try:
        space.corners(low, high)
    except InvalidSpace as error:
        raise InvalidPlan.of(error, name) from None


def _polygons(value: dict[str, Any], name: str, space: Space) -> PolygonArea:
    if space.n < 2:
        raise InvalidPlan(
            "%(name)s: a polygon needs a space of two dimensions or more; got %(space)s",
            name=name,
            space=repr(space.name),
        )
    form = value["type"]
    if form not in POLYGON_TYPES or set(value) != {"type", "coordinates"}:
        raise InvalidPlan(
            "%(name)s must have a type, %(polygon_types)s, and coordinates, if it is GeoJSON; got "
            "%(form)s with %(value)s",
            name=name,
            polygon_types=" or ".join(POLYGON_TYPES),
            form=f"{form!r:.80}",
            value=", ".join(map(str, value)),
        )
    polygons = value["coordinates"] if form == "MultiPolygon" else [value["coordinates"]]
    if not isinstance(polygons, list) or not all(isinstance(rings, list) and rings for rings in polygons):
        raise InvalidPlan(
            "%(name)s: coordinates must be lists of rings that are not empty; got %(polygons)s",
            name=name,
            polygons=f"{polygons!r:.200}",
        )
    if not polygons:
        raise InvalidPlan("%(name)s must have a polygon; got none", name=name)
    _check_count([ring for rings in polygons for ring in rings], gettext("%(name)s: a ring") % {"name": name}, 4)
    shape = _shorter_way(PolygonArea(tuple(tuple(_ring(ring, name) for ring in rings) for rings in polygons)), space)
    made = polygons_geometry(shape)
    if not made.is_valid or not made.area > 0:
        reason = shapely.is_valid_reason(made) if not made.is_valid else gettext("no area")
        raise InvalidPlan(
            "%(name)s must be made of simple rings that do not cross, with an area; got %(reason)s",
            name=name,
            reason=reason,
        )
    return shape


def _shorter_way(shape: PolygonArea, space: Space) -> PolygonArea:
    """Return a shape on earth without edges over more than half a turn: they are meant the shorter way."""
    made = np.array([shapely.Polygon(rings[0], rings[1:]) for rings in shape.polygons])
    if not space.geographic or not len(take_shorter_way(made)):
        return shape
    rings = [[shapely.get_coordinates(ring).tolist() for ring in shapely.get_rings(one)] for one in made]
    return PolygonArea(tuple(tuple(tuple((x, y) for x, y in ring) for ring in one) for one in rings))


def polygons_geometry(shape: PolygonArea) -> shapely.Geometry:
    """Return the polygons of a shape as one geometry."""
    made = [shapely.Polygon(rings[0], rings[1:]) for rings in shape.polygons]
    return made[0] if len(made) == 1 else shapely.MultiPolygon(made)


def _ring(ring: list[Any], name: str) -> tuple[Place, ...]:
    places = _places(ring, gettext("%(name)s: a vertex") % {"name": name})
    if places[0] != places[-1]:
        raise InvalidPlan(
            "%(name)s: a ring must end where it begins; got %(first)s and %(last)s",
            name=name,
            first=list(places[0]),
            last=list(places[-1]),
        )
    return places


def _measured(value: dict[str, Any], name: str, space: Space) -> CircleArea | CorridorArea:
    form = "circle" if "circle" in value else "corridor"
    keys = ("center", "radius_m") if form == "circle" else ("line", "width_m")
    inner = value[form]
    if set(value) != {form} or not isinstance(inner, dict) or set(inner) != set(keys):
        raise InvalidPlan(
            "%(name)s: a %(form)s must be an object with %(keys)s alone; got %(value)s",
            name=name,
            form=form,
            keys=" and ".join(keys),
            value=f"{value!r:.200}",
        )
    if not space.geographic:
        raise InvalidPlan(
            "%(name)s: a %(form)s needs a space with longitude and latitude; got %(space)s",
            name=name,
            form=form,
            space=repr(space.name),
        )
    length = parse_number(inner[keys[1]], f"{name}: {keys[1]}", above=0.0, hi=MAX_AREA_METRES)
    if form == "circle":
        return CircleArea(_place(inner["center"], f"{name}: center"), length)
    _check_count([inner["line"]], f"{name}: line", 2)
    line = _places(inner["line"], gettext("%(name)s: a vertex") % {"name": name})
    if len(set(line)) < 2:
        raise InvalidPlan(
            "%(name)s: line must have two places that differ; got %(line)s", name=name, line=f"{inner['line']!r:.200}"
        )
    return CorridorArea(line, length)


def _check_count(lists: list[Any], name: str, fewest: int) -> None:
    """Check how many places each of some lists has, and all of them together."""
    for places in lists:
        if not isinstance(places, list) or len(places) < fewest:
            raise InvalidPlan(
                "%(name)s must be a list of %(fewest)s vertices or more; got %(places)s",
                name=name,
                fewest=fewest,
                places=f"{places!r:.200}",
            )
    if (count := sum(map(len, lists))) > MAX_AREA_VERTICES:
        raise InvalidPlan(
            "an area must have at most %(max_area_vertices)s vertices; got %(count)s",
            max_area_vertices=thousands(MAX_AREA_VERTICES),
            count=thousands(count),
        )


def _places(places: list[Any], name: str) -> tuple[Place, ...]:
    # Without a look at each number: programs register thousands of shapes.
    if all(type(place) is list and len(place) == 2 for place in places):
        flat = list(itertools.chain.from_iterable(places))
        if set(map(type, flat)) <= _NUMBERS and all(abs(number) <= sys.float_info.max for number in flat):
            numbers = list(map(float, flat))
            return tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return tuple(_place(place, name) for place in places)


def _place(place: Any, name: str) -> Place:
    if not isinstance(place, list) or len(place) != 2:
        raise InvalidPlan("%(name)s must be a list of 2 numbers; got %(place)s", name=name, place=f"{place!r:.200}")
    first, second = (parse_number(number, gettext("%(name)s: a coordinate") % {"name": name}) for number in place)
    return first, second


def shape_of(filters: tuple[Filter, ...]) -> AreaShape | None:
    """Return the shape of the area of a plan, given the filters of the plan; None if the area is a box."""
    return next((entry.shape for entry in filters if isinstance(entry, AreaFilter)), None)


def area_document(shape: AreaShape) -> dict[str, Any]:
    """Return the JSON form of a shape; `parse_area_value` is the inverse."""
    if isinstance(shape, CircleArea):
        return {"circle": {"center": list(shape.center), "radius_m": shape.radius_m}}
    if isinstance(shape, CorridorArea):
        return {"corridor": {"line": _lists(shape.line), "width_m": shape.width_m}}
    polygons = [[_lists(ring) for ring in rings] for rings in shape.polygons]
    if len(polygons) == 1:
        return {"type": "Polygon", "coordinates": polygons[0]}
    return {"type": "MultiPolygon", "coordinates": polygons}


def _lists(places: Iterable[Place]) -> list[list[float]]:
    return list(map(list, places))
