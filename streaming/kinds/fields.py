"""Fields that the plans of several kinds have: from JSON and back.

If a value breaks a rule, the functions raise `InvalidPlan`. The message says the rule and the value.
"""

import math
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.area_documents import area_document, parse_area_value, shape_of
from streaming.kinds.base import Plan
from streaming.kinds.parts import (
    Box,
    box_document,
    filters_document,
    parse_choice,
    parse_filters,
    parse_transform,
    parse_where,
)
from streaming.spaces import Space

EMITS = ("changes", "membership", "all")


def common(document: dict[str, Any], space: Space) -> dict[str, Any]:
    """Return the fields that plans of all kinds share: `stream`, `where`, `filters` and `emit`."""
    return {
        "stream": parse_stream(document),
        "where": parse_where(document.get("where", "")),
        "filters": parse_filters(document.get("filters", []), "filters", space),
        "emit": parse_choice(document, "emit", EMITS),
    }


def located(document: dict[str, Any], space: Space) -> dict[str, Any]:
    """Return the fields of `common`, and `area`, which is the whole space if it is missing.

    If the area has a shape, `area` is the box about it, and the shape is the first filter.
    """
    area, shape = parse_area_value(document.get("area"), "area", space)
    fields = common(document, space)
    return fields | {"area": area or whole(space), "filters": shape + fields["filters"]}


def compared(document: dict[str, Any], space: Space) -> dict[str, Any]:
    """Return the fields of `located`, and `transform`, for kinds that transform elements before they compare them."""
    return located(document, space) | {"transform": parse_transform(document.get("transform", []), space)}


def check_kept(emit: str) -> None:
    """Raise InvalidPlan unless the plan keeps its answer."""
    if emit == "all":
        raise InvalidPlan(
            "emit must be changes or membership with around, an aggregate, encounters or closest approaches; got 'all'"
        )


def whole(space: Space) -> Box:
    """Return the box of the whole space."""
    return (-math.inf,) * space.n + (math.inf,) * space.n


def opening(plan: Plan) -> dict[str, Any]:
    """Return the first keys of every document: `stream` and `kind`."""
    return {"stream": plan.stream, "kind": plan.kind}


def emitted(plan: Plan, space: Space) -> dict[str, Any]:
    """Return the keys for `where`, `emit` and `filters`, as they follow each other in every document."""
    filters = filters_document(plan.filters, space)
    return {"where": plan.where, "emit": plan.emit} | ({"filters": filters} if filters else {})


def area_of(plan: Plan, space: Space, missing: Box) -> dict[str, Any]:
    """Return the key `area`, unless the area is unbounded and a document without it means the same area, `missing`."""
    shape = shape_of(plan.filters)
    return {"area": area_document(shape)} if shape else box_of(plan.area, space, missing)


def box_of(area: Box, space: Space, missing: Box) -> dict[str, Any]:
    """Return the key `area` of an area that is a box, as `area_of` does."""
    needed = any(map(math.isfinite, area)) or area != missing
    return {"area": box_document(area, space)} if needed else {}


def parse_stream(document: dict[str, Any]) -> str:
    """Return the name of the stream of a document."""
    stream = document.get("stream")
    if not isinstance(stream, str) or not stream:
        raise InvalidPlan("stream must be the name of a stream; got %(stream)s", stream=f"{stream!r:.200}")
    return stream
