"""What a query of a sketch selects: a place, times and ranges of features; and another selection, to contrast it with.

If a value breaks a rule, `read` raises `InvalidPlan`. The message says the rule and the value.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from streaming.errors import InvalidPlan, InvalidSpace
from streaming.kinds import declared
from streaming.kinds.around import MAX_VERTICES, parse_ring
from streaming.kinds.fields import box_of, whole
from streaming.kinds.parts import Box, check_keys, given, parse_box, parse_number
from streaming.kinds.schema import Schema, list_of, ref
from streaming.kinds.sketch.schema import feature_range_schema, other_schema, times_schema
from streaming.kinds.sketch.times import SelectedTimes, parse_times, times_document
from streaming.kinds.values import TEXT, Definitions, FiniteNumber, PlanPart, Reading, Value
from streaming.language import gettext
from streaming.spaces import Space

Ring = tuple[tuple[float, float], ...]
MAX_RANGES = 8


@dataclass(frozen=True, kw_only=True)
class BoxOfPlace(Value):
    """The box of a place; None without it. A polygon adds the box about it later."""

    null: bool = True
    optional: bool = True

    def read(self, value: Any, reading: Reading) -> Box | None:
        return parse_box(value, reading.name, reading.space)

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any] | None:
        return None if plan.polygon else box_of(plan.area, space)

    def schema(self) -> Schema:
        return ref("box")


BOX_OF_PLACE = BoxOfPlace()


@dataclass(frozen=True, kw_only=True)
class RingOfPlace(Value):
    """The vertices of a place, a simple ring that is not closed, in place of a box; empty without it."""

    null: bool = True
    optional: bool = True

    def missing(self, reading: Reading) -> Ring:
        return ()

    def read(self, value: Any, reading: Reading) -> Ring:
        if reading.fields["area"] is not None:
            what = reading.name.removesuffix("polygon")
            raise InvalidPlan("%(what)sa place must be one of area, polygon; got both", what=what)
        ring = parse_ring(value, reading.name, reading.space, _vertex)
        reading.fields["area"] = _about(ring, reading.name, reading.space)
        return ring

    def write(self, plan: Any, name: str, space: Space) -> list[list[float]] | None:
        return [list(vertex) for vertex in plan.polygon] or None

    def schema(self) -> Schema:
        vertex = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
        return {"type": "array", "minItems": 3, "maxItems": MAX_VERTICES, "items": vertex}


@dataclass(frozen=True, kw_only=True)
class TimesOf(PlanPart):
    """Times; all times without it."""

    def missing(self, reading: Reading) -> SelectedTimes:
        return SelectedTimes()


TIMES = TimesOf(
    reads=lambda value, at: parse_times(value, at.name),
    writes=lambda times, _: times_document(times) or None,
    described=ref("times"),
    defines=lambda: {"times": times_schema()},
    null=True,
    optional=True,
)


@dataclass(frozen=True)
class FeatureRange:
    """The values of a feature that a selection has.

    Parameters
    ----------
    feature : str
        The name of the feature.
    lo : float or None
        The least value. A range has at least one bound, and at most one on each side.
    above : float or None
        All values are above this.
    hi : float or None
        The largest value.
    below : float or None
        All values are below this.
    """

    feature: Annotated[str, TEXT]
    lo: Annotated[float | None, FiniteNumber()] = None
    above: Annotated[float | None, FiniteNumber()] = None
    hi: Annotated[float | None, FiniteNumber()] = None
    below: Annotated[float | None, FiniteNumber()] = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest double of the range; infinite where it has no bound.

        Examples
        --------
        >>> FeatureRange("wind", above=3.0, hi=5.0).bounds
        (3.0000000000000004, 5.0)
        """
        lo = self.lo if self.above is None else math.nextafter(self.above, math.inf)
        hi = self.hi if self.below is None else math.nextafter(self.below, -math.inf)
        return -math.inf if lo is None else lo, math.inf if hi is None else hi


def _ranges(value: Any, reading: Reading) -> tuple[FeatureRange, ...]:
    if not isinstance(value, list) or len(value) > MAX_RANGES:
        raise InvalidPlan(
            "ranges must be a list of at most %(max_ranges)s objects; got %(documents)s",
            max_ranges=MAX_RANGES,
            documents=f"{value!r:.200}",
        )
    ranges = tuple(_range(entry, reading.space) for entry in value)
    names = [entry.feature for entry in ranges]
    if len(set(names)) < len(names):
        raise InvalidPlan(
            "the features of ranges must differ from each other; got %(names)s", names=f"{', '.join(names):.200}"
        )
    return ranges


def _range(document: Any, space: Space) -> FeatureRange:
    if not isinstance(document, dict):
        raise InvalidPlan(
            "a range must be an object with a feature and its bounds; got %(document)s",
            document=f"{document!r:.200}",
        )
    check_keys(document, declared.keys_of(FeatureRange), gettext("a range"))
    fields = declared.read(FeatureRange, document, space, gettext("a range: %(key)s") % {"key": ""})
    for sides in (("lo", "above"), ("hi", "below")):
        if len(given(fields, sides)) > 1:
            raise InvalidPlan("a range must have one of %(sides)s; got both", sides=", ".join(sides))
    if not given(fields, ("lo", "above", "hi", "below")):
        raise InvalidPlan("a range must have lo or above, or hi or below; got none")
    found = FeatureRange(**fields)
    lo, hi = found.bounds
    if lo > hi:
        raise InvalidPlan("a range must have values; got none for %(feature)s", feature=f"{found.feature:.80}")
    return found


RANGES = PlanPart(
    reads=_ranges,
    writes=lambda ranges, space: [declared.write(entry, space) for entry in ranges] or None,
    described=list_of(MAX_RANGES, "feature_range"),
    defines=lambda: {"feature_range": feature_range_schema(declared.definition(FeatureRange))},
)


@dataclass(frozen=True)
class Other:
    """The place and the time with which a selection is contrasted.

    Parameters
    ----------
    area : tuple of float, length 2n
        The box of the place, or about its polygon; the place of the selection if neither is given.
    polygon : tuple of tuple of float
        The vertices of the place, a simple ring; empty if it is a box.
    time : SelectedTimes
        Its times; those of the selection if they are missing.
    """

    area: Annotated[Box, BOX_OF_PLACE]
    polygon: Annotated[Ring, RingOfPlace()]
    time: Annotated[SelectedTimes, TIMES]


@dataclass(frozen=True, kw_only=True)
class OtherOf(Value):
    """The other selection; None without it. It has the place and the times of the selection unless it has its own."""

    null: bool = True

    def read(self, value: Any, reading: Reading) -> Other:
        keys = declared.keys_of(Other)
        if not isinstance(value, dict) or not given(value, keys):
            raise InvalidPlan(
                "other must be an object with one of %(other_keys)s; got %(document)s",
                other_keys=", ".join(keys),
                document=f"{value!r:.200}",
            )
        check_keys(value, keys, "other")
        own, fields = reading.fields, declared.read(Other, value, reading.space, "other: ")
        if fields["area"] is None:
            fields |= {"area": own["area"] or whole(reading.space), "polygon": own["polygon"]}
        if value.get("time") is None:
            fields["time"] = own["time"]
        return Other(**fields)

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any] | None:
        """Return what the other selection has besides what it shares with the selection."""
        other = plan.other
        if other is None:
            return None
        document = declared.write(other, space)
        document.pop("time", None)
        if (other.area, other.polygon) == (plan.area, plan.polygon):
            document = {}
        elif not document:
            document = {"area": {"lo": [None], "hi": [None]}}
        if other.time != plan.time or not document:
            document["time"] = times_document(other.time)
        return document

    def schema(self) -> Schema:
        return ref("other_selection")

    def definitions(self) -> Definitions:
        return {"other_selection": other_schema(declared.definition(Other))}


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
