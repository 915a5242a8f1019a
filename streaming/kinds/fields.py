"""Fields that the plans of several kinds have, and the values of their keys.

If a value breaks a rule, `read` raises `InvalidPlan`. The message says the rule and the value.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.area_documents import area_document, parse_area_value, shape_of
from streaming.kinds.around import (
    FOCUS_KEYS,
    SHAPES,
    Focus,
    Shape,
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
    parse_choice,
    parse_filters,
    parse_transform,
    parse_where,
    transform_document,
)
from streaming.kinds.schema import ABOVE_0, Schema, list_of, ref
from streaming.kinds.values import Reading, Text, Value
from streaming.language import gettext
from streaming.spaces import Space

EMITS = ("changes", "membership", "all")
KEPT = EMITS[:2]


@dataclass(frozen=True, kw_only=True)
class StreamName(Text):
    """The name of a stream."""

    def read(self, value: Any, reading: Reading) -> str:
        """See `Value`."""
        if not isinstance(value, str) or not value:
            raise InvalidPlan("stream must be the name of a stream; got %(stream)s", stream=f"{value!r:.200}")
        return value


@dataclass(frozen=True, kw_only=True)
class Where(Value):
    """CQL2 text, or none."""

    def read(self, value: Any, reading: Reading) -> str:
        """See `Value`."""
        return parse_where(value, reading.name)

    def schema(self) -> Schema:
        """See `Value`."""
        return {"type": "string", "maxLength": MAX_WHERE_CHARACTERS}


@dataclass(frozen=True, kw_only=True)
class Filters(Value):
    """Filters, without the shape of an area, which is one of the same field; none are not written."""

    def read(self, value: Any, reading: Reading) -> tuple:
        """See `Value`."""
        return parse_filters(value, reading.name, reading.space)

    def write(self, plan: Any, name: str, space: Space) -> list[dict[str, Any]] | None:
        """See `Value`."""
        return filters_document(getattr(plan, name), space) or None

    def schema(self) -> Schema:
        """See `Value`."""
        return list_of(MAX_FILTERS, "key_filter", "keys_filter", "box_filter", "user_filter")


@dataclass(frozen=True, kw_only=True)
class Transform(Value):
    """Enlargements of an element's box."""

    def read(self, value: Any, reading: Reading) -> tuple:
        """See `Value`."""
        return parse_transform(value, reading.space)

    def write(self, plan: Any, name: str, space: Space) -> list[dict[str, float]]:
        """See `Value`."""
        return transform_document(getattr(plan, name))

    def schema(self) -> Schema:
        """See `Value`."""
        return list_of(MAX_TRANSFORMS, "enlargement")


@dataclass(frozen=True, kw_only=True)
class Emit(Value):
    """What is reported: one of `EMITS`."""

    def read(self, value: Any, reading: Reading) -> str:
        """See `Value`."""
        return parse_choice({"emit": value}, "emit", EMITS)

    def schema(self) -> Schema:
        """See `Value`."""
        return {"enum": list(EMITS)}


@dataclass(frozen=True, kw_only=True)
class EmitKept(Emit):
    """What is reported of an answer that is kept: one of `KEPT`."""

    def read(self, value: Any, reading: Reading) -> str:
        """See `Value`."""
        emit = super().read(value, reading)
        check_kept(emit)
        return emit

    def schema(self) -> Schema:
        """See `Value`."""
        return {"enum": list(KEPT)}


@dataclass(frozen=True, kw_only=True)
class EmitOnce(Value):
    """``all``: each pair is told once, and no answer is kept."""

    def read(self, value: Any, reading: Reading) -> str:
        """See `Value`."""
        if value != "all":
            raise InvalidPlan(
                "emit must be all: each pair is told once, and no answer is kept; got %(emit)s", emit=f"{value!r:.80}"
            )
        return value

    def schema(self) -> Schema:
        """See `Value`."""
        return {"enum": ["all"]}


@dataclass(frozen=True, kw_only=True)
class AreaOrWhole(Value):
    """A box, or a shape; without it, the whole space. The field has the box, and the shape is the first filter."""

    null: bool = True

    @property
    def optional(self) -> bool:
        """See `Value`."""
        return True

    def read(self, value: Any, reading: Reading) -> Box:
        """See `Value`."""
        area, shape = parse_area_value(value, reading.name, reading.space)
        reading.fields["filters"] = shape + reading.fields["filters"]
        return area or whole(reading.space)

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any] | None:
        """See `Value`."""
        return area_of(plan, space, whole(space))

    def schema(self) -> Schema:
        """See `Value`."""
        return ref("area")


@dataclass(frozen=True, kw_only=True)
class NeededArea(AreaOrWhole):
    """A box, or a shape, that must be given."""

    null: bool = False

    @property
    def optional(self) -> bool:
        """See `Value`."""
        return False

    def read(self, value: Any, reading: Reading) -> Box:
        """See `Value`."""
        if value is None:
            raise InvalidPlan("%(name)s must be a box or a shape; got none", name=reading.name)
        return super().read(value, reading)


@dataclass(frozen=True, kw_only=True)
class BoxOrNone(Value):
    """A box; None without it."""

    null: bool = True

    @property
    def optional(self) -> bool:
        """See `Value`."""
        return True

    def read(self, value: Any, reading: Reading) -> Box | None:
        """See `Value`."""
        return parse_box(value, reading.name, reading.space)

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any] | None:
        """See `Value`."""
        return box_document(getattr(plan, name), space)

    def schema(self) -> Schema:
        """See `Value`."""
        return ref("box")


@dataclass(frozen=True, kw_only=True)
class Length(Value):
    """A length above 0 in the space, or without a limit."""

    null: bool = True

    def read(self, value: Any, reading: Reading) -> float:
        """See `Value`."""
        return parse_length(value, reading.name, reading.space)

    def write(self, plan: Any, name: str, space: Space) -> float | None:
        """See `Value`."""
        length = getattr(plan, name)
        return length if math.isfinite(length) else None

    def schema(self) -> Schema:
        """See `Value`."""
        return {"type": "number", **ABOVE_0}


@dataclass(frozen=True, kw_only=True)
class FocusOf(Value):
    """The focus in the key `around`."""

    key: str = "around"

    def read(self, value: Any, reading: Reading) -> Focus:
        """See `Value`."""
        focus = parse_focus(value, reading.fields["stream"], reading.space)
        check_keys(value, FOCUS_KEYS, gettext("around, of a query for nearest neighbours,"))
        return focus

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any]:
        """See `Value`."""
        return focus_document(getattr(plan, name))

    def schema(self) -> Schema:
        """See `Value`."""
        return ref("focus")


@dataclass(frozen=True, kw_only=True)
class FocusWithShape(FocusOf):
    """The focus in the key `around`, which has a shape, too."""

    def read(self, value: Any, reading: Reading) -> Focus:
        """See `Value`."""
        focus = parse_focus(value, reading.fields["stream"], reading.space)
        check_keys(value, (*FOCUS_KEYS, *SHAPES), "around")
        return focus

    def schema(self) -> Schema:
        """See `Value`."""
        return ref("around")


@dataclass(frozen=True, kw_only=True)
class ShapeAround(Value):
    """The shape in the key `around`."""

    key: str = "around"

    def read(self, value: Any, reading: Reading) -> Shape:
        """See `Value`."""
        return parse_shape(value, reading.space)

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any]:
        """See `Value`."""
        return shape_document(getattr(plan, name))

    def schema(self) -> Schema:
        """See `Value`."""
        return ref("around")


# Whoever has a field of such a name need not annotate it.
SHARED: Mapping[str, Value] = {
    "stream": StreamName(),
    "where": Where(),
    "filters": Filters(),
    "emit": Emit(),
    "area": AreaOrWhole(),
    "transform": Transform(),
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


def area_of(plan: Any, space: Space, missing: Box) -> dict[str, Any] | None:
    """Return the JSON form of a plan's area; None if it is unbounded, and a plan without it has the area `missing`."""
    if shape := shape_of(plan.filters):
        return area_document(shape)
    return box_of(plan.area, space, missing)


def box_of(area: Box, space: Space, missing: Box) -> dict[str, Any] | None:
    """Return the JSON form of an area that is a box, or None, as `area_of` does."""
    return box_document(area, space) if any(map(math.isfinite, area)) or area != missing else None
