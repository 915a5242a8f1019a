"""Words that the descriptions of several kinds of queries use."""

import itertools
from typing import Any

from streaming.language import gettext, numeral


def number(value: float) -> str:
    """Return a number as text, with commas between thousands and at most six decimals."""
    return numeral(plain(value))


def plain(value: float) -> str:
    """Return a number as `number` does in English, whatever the reader's language, as in the text of a filter."""
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def box(document: dict[str, Any]) -> str:
    """Return the two corners of a box as text."""
    corners = (
        gettext(", ").join(gettext("any") if bound is None else number(bound) for bound in document[side])
        for side in ("lo", "hi")
    )
    return gettext("%(low)s to %(high)s") % dict(zip(("low", "high"), corners, strict=True))


def focus(around: dict[str, Any]) -> str:
    """Return the name of a focal object, or the coordinates of a place, as text."""
    return gettext(", ").join(map(number, around["at"])) if "at" in around else f"{around['stream']} {around['key']}"


def shape(area: dict[str, Any], unit: str) -> str:
    """Return an area that has a shape as text, such as "in a circle of 5,000 m"; `unit` follows lengths.

    Examples
    --------
    >>> shape({"circle": {"center": [24, 60], "radius_m": 5000.0}}, " m")
    'in a circle of 5,000 m'
    >>> shape({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]}, " m")
    'in a polygon of 3 corners'
    """
    if "circle" in area:
        return gettext("in a circle of %(radius_m)s%(unit)s") % {
            "radius_m": number(area["circle"]["radius_m"]),
            "unit": unit,
        }
    if "corridor" in area:
        return gettext("in a corridor of %(width_m)s%(unit)s") % {
            "width_m": number(area["corridor"]["width_m"]),
            "unit": unit,
        }
    polygons = area["coordinates"] if area["type"] == "MultiPolygon" else [area["coordinates"]]
    corners = sum(len(ring) - 1 for ring in itertools.chain.from_iterable(polygons))
    values = {"polygons": len(polygons), "corners": numeral(f"{corners:,}")}
    if len(polygons) == 1:
        return gettext("in a polygon of %(corners)s corners") % values
    return gettext("in %(polygons)s polygons of %(corners)s corners") % values


def within(document: dict[str, Any], unit: str) -> str:
    """Return what the words of a plan end with if its area has a shape; otherwise nothing."""
    area = document.get("area")
    return "" if area is None or "lo" in area else f" {shape(area, unit)}"
