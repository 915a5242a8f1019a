"""The place of a selection, a box or a polygon, from JSON.

If a value breaks a rule, the functions raise `InvalidPlan`. The message says the rule and the value.
"""

from typing import Any

from streaming.errors import InvalidPlan, InvalidSpace
from streaming.kinds.around import parse_ring
from streaming.kinds.parts import Box, given, parse_box, parse_number
from streaming.language import gettext
from streaming.spaces import Space

Ring = tuple[tuple[float, float], ...]


def parse_place(document: dict[str, Any], what: str, space: Space) -> tuple[Box, Ring] | None:
    """Return the place that a document has.

    Parameters
    ----------
    document : dict
    what : str
        What names in messages begin with.
    space : Space

    Returns
    -------
    area : tuple of float, length 2n
        The box; of a polygon, the box about it. None in place of both if the document has no place.
    polygon : tuple of tuple of float
        The vertices of a simple ring, which is not closed; empty for a box.
    """
    named = given(document, ("area", "polygon"))
    if len(named) > 1:
        raise InvalidPlan("%(what)sa place must be one of area, polygon; got both", what=what)
    if named == ["polygon"]:
        ring = parse_ring(document["polygon"], f"{what}polygon", space, _vertex)
        return _about(ring, f"{what}polygon", space), ring
    box = parse_box(document.get("area"), f"{what}area", space)
    return None if box is None else (box, ())


def _vertex(numbers: list[Any], name: str, _: Space) -> tuple[float, float]:
    first, second = (parse_number(value, gettext("%(name)s: a coordinate") % {"name": name}) for value in numbers)
    return first, second


def _about(ring: Ring, name: str, space: Space) -> Box:
    """Return the box about a ring, which must lie in the space."""
    columns = list(zip(*ring, strict=True))
    try:
        return space.corners([min(column) for column in columns], [max(column) for column in columns])
    except InvalidSpace as error:
        raise InvalidPlan.of(error, name) from None
