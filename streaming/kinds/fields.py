"""Fields that the plans of several kinds have, and the values of their keys.

If a value breaks a rule, `read` raises `InvalidPlan`. The message says the rule and the value.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.area_documents import area_document, parse_area_value, shape_of
from streaming.kinds.around import (
    FOCUS_KEYS,
    SHAPES,
    Focus,
    focus_document,
    parse_focus,
    parse_length,
    parse_shape,
    shape_document,
)
from streaming.kinds.parts import (
    MAX_FILTERS,
    MAX_TRANSFORMS,
    MAX_WHERE_CHARACTERS,
    Box,
    box_document,
    check_keys,
    filters_document,
    parse_box,
    parse_filters,
    parse_transform,
    parse_where,
    transform_document,
)
from streaming.kinds.schema import ABOVE_0, Schema, list_of, ref
from streaming.kinds.values import TEXT, PlanPart, Reading, Value, choice
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space

EMITS = ("changes", "membership", "all")
KEPT = EMITS[:2]


def _stream(value: Any, _: Reading) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidPlan("stream must be the name of a stream; got %(stream)s", stream=f"{value!r:.200}")
    return value


def _kept(value: Any, reading: Reading) -> str:
    emit: str = EMIT.read(value, reading)
    check_kept(emit)
    return emit


def _once(value: Any, _: Reading) -> str:
    if value != "all":
        raise InvalidPlan(
            "emit must be all: each pair is told once, and no answer is kept; got %(emit)s", emit=f"{value!r:.80}"
        )
    return str(value)


def _focus(keys: tuple[str, ...], what: str) -> Callable[[Any, Reading], Focus]:
    """Return what reads a focus in an object that has some keys; messages call the object `what`."""

    def read(value: Any, reading: Reading) -> Focus:
        focus = parse_focus(value, reading.fields["stream"], reading.space)
        check_keys(value, keys, gettext(what))
        return focus

    return read


@dataclass(frozen=True, kw_only=True)
class AreaOrWhole(Value):
    """A box, or a shape; without it, the whole space. The field has the box, and the shape is the first filter."""

    null: bool = True
    optional: bool = True

    def read(self, value: Any, reading: Reading) -> Box:
        area, shape = parse_area_value(value, reading.name, reading.space)
        reading.fields["filters"] = shape + reading.fields["filters"]
        return area or whole(reading.space)

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any] | None:
        return area_of(plan, space)

    def schema(self) -> Schema:
        return ref("area")


@dataclass(frozen=True, kw_only=True)
class NeededArea(AreaOrWhole):
    """A box, or a shape, that must be given."""

    null: bool = False
    optional: bool = False

    def read(self, value: Any, reading: Reading) -> Box:
        if value is None:
            raise InvalidPlan("%(name)s must be a box or a shape; got none", name=reading.name)
        return super().read(value, reading)


STREAM = PlanPart(reads=_stream, described=TEXT.described)
# CQL2 text, or none.
WHERE = PlanPart(
    reads=lambda value, at: parse_where(value, at.name),
    described={"type": "string", "maxLength": MAX_WHERE_CHARACTERS},
)
# The shape of an area is a filter, too, but it is written as the area; no filters are not written.
FILTERS = PlanPart(
    reads=lambda value, at: parse_filters(value, at.name, at.space),
    writes=lambda filters, space: filters_document(filters, space) or None,
    described=list_of(MAX_FILTERS, "key_filter", "keys_filter", "box_filter", "user_filter"),
)
TRANSFORM = PlanPart(
    reads=lambda value, at: parse_transform(value, at.space),
    writes=lambda transform, _: transform_document(transform),
    described=list_of(MAX_TRANSFORMS, "enlargement"),
)
EMIT = choice("emit", EMITS)
# Of an answer that is kept; of pairs that are told once.
EMIT_KEPT = PlanPart(reads=_kept, described={"enum": list(KEPT)})
EMIT_ONCE = PlanPart(reads=_once, described={"enum": ["all"]})
BOX = PlanPart(
    reads=lambda value, at: parse_box(value, at.name, at.space),
    writes=box_document,
    described=ref("box"),
    null=True,
    optional=True,
)
# A length above 0 in the space, or no limit.
LENGTH = PlanPart(
    reads=lambda value, at: parse_length(value, at.name, at.space),
    writes=lambda length, _: length if math.isfinite(length) else None,
    described={"type": "number", **ABOVE_0},
    null=True,
)
FOCUS = PlanPart(
    key="around",
    reads=_focus(FOCUS_KEYS, gettext_noop("around, of a query for nearest neighbours,")),
    writes=lambda focus, _: focus_document(focus),
    described=ref("focus"),
)
# A focus, and a shape, in one object.
FOCUS_OF_SHAPE = replace(FOCUS, reads=_focus((*FOCUS_KEYS, *SHAPES), "around"), described=ref("around"))
SHAPE = PlanPart(
    key="around",
    reads=lambda value, at: parse_shape(value, at.space),
    writes=lambda shape, _: shape_document(shape),
    described=ref("around"),
)
# Whoever has a field of such a name need not annotate it.
SHARED: Mapping[str, Value] = {
    "stream": STREAM,
    "where": WHERE,
    "filters": FILTERS,
    "emit": EMIT,
    "area": AreaOrWhole(),
    "transform": TRANSFORM,
}


def check_kept(emit: str) -> None:
    """Raise InvalidPlan unless the plan keeps its answer."""
    if emit not in KEPT:
        raise InvalidPlan(
            "emit must be changes or membership with around, an aggregate, encounters or closest approaches; got 'all'"
        )


def whole(space: Space) -> Box:
    """Return the box of the whole space."""
    return (-math.inf,) * space.n + (math.inf,) * space.n


def area_of(plan: Any, space: Space) -> dict[str, Any] | None:
    """Return the JSON form of a plan's area; None if it is the whole space."""
    if shape := shape_of(plan.filters):
        return area_document(shape)
    return box_of(plan.area, space)


def box_of(area: Box, space: Space) -> dict[str, Any] | None:
    """Return the JSON form of an area that is a box; None if it is the whole space."""
    return None if area == whole(space) else box_document(area, space)
