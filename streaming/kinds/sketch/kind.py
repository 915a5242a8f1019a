"""Queries of a stream's sketch: how a plan is read, written, described and evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.fields import box_of, opening, parse_stream, whole
from streaming.kinds.parts import Box, check_keys, given, parse_number, parse_text
from streaming.kinds.schema import of_kind
from streaming.kinds.sketch.asks import ask_document, parse_asks
from streaming.kinds.sketch.places import Ring, parse_place
from streaming.kinds.sketch.plan import (
    MAX_RANGES,
    OTHER_KEYS,
    RANGE_KEYS,
    SKETCH_KEYS,
    FeatureRange,
    Other,
    SketchPlan,
)
from streaming.kinds.sketch.schema import definition, definitions
from streaming.kinds.sketch.times import SelectedTimes, parse_times, times_document
from streaming.kinds.sketch.words import described
from streaming.language import gettext
from streaming.spaces import Space


class SketchKind(Kind[SketchPlan]):
    """Questions about what has passed, answered from a sketch."""

    name, written, plan_class = "sketch", "sketch", SketchPlan

    def parse(self, document: dict[str, Any], space: Space) -> SketchPlan:
        check_keys(document, SKETCH_KEYS, gettext("a query of a sketch"))
        if "ask" not in document:
            raise InvalidPlan("a query of a sketch must have ask, a list of questions; got none")
        asks, place, time = (
            parse_asks(document["ask"]),
            parse_place(document, "", space),
            parse_times(document.get("time")),
        )
        other = _other(document.get("other"), place or (whole(space), ()), time, space)
        contrasts = any(ask.question == "contrast" for ask in asks)
        if contrasts != (other is not None):
            got = gettext("contrast without other") if contrasts else gettext("other without contrast")
            raise InvalidPlan("other belongs to the question contrast; got %(got)s", got=got)
        once = document.get("once", False)
        if not isinstance(once, bool):
            raise InvalidPlan("once must be true or false; got %(once)s", once=f"{once!r:.80}")
        area, polygon = place or (whole(space), ())
        return SketchPlan(
            stream=parse_stream(document),
            ask=asks,
            area=area,
            polygon=polygon,
            time=time,
            ranges=_ranges(document.get("ranges", [])),
            other=other,
            confidence=parse_number(document.get("confidence", 0.95), "confidence", lo=0.5, hi=0.9999),
            once=once,
        )

    def document(self, plan: SketchPlan, space: Space) -> dict[str, Any]:
        ranges = [_range_document(entry) for entry in plan.ranges]
        optional = {"time": times_document(plan.time), "ranges": ranges, "other": _other_document(plan, space)}
        return (
            opening(plan)
            | {"ask": [ask_document(ask) for ask in plan.ask]}
            | _place_document(plan, space)
            | {key: value for key, value in optional.items() if value}
            | {"confidence": plan.confidence, "once": plan.once}
        )

    def words(self, document: dict[str, Any], unit: str) -> str:
        return described(document)

    def definition(self) -> dict[str, Any]:
        return definition()

    def definitions(self) -> dict[str, dict[str, Any]]:
        return definitions()

    def condition(self) -> dict[str, Any]:
        return of_kind("sketch")

    def evaluation(self, plan: SketchPlan) -> Evaluation:
        return Evaluation.SKETCH


def _ranges(documents: Any) -> tuple[FeatureRange, ...]:
    if not isinstance(documents, list) or len(documents) > MAX_RANGES:
        raise InvalidPlan(
            "ranges must be a list of at most %(max_ranges)s objects; got %(documents)s",
            max_ranges=MAX_RANGES,
            documents=f"{documents!r:.200}",
        )
    ranges = tuple(_range(entry) for entry in documents)
    names = [entry.feature for entry in ranges]
    if len(set(names)) < len(names):
        raise InvalidPlan(
            "the features of ranges must differ from each other; got %(names)s", names=f"{', '.join(names):.200}"
        )
    return ranges


def _range(document: Any) -> FeatureRange:
    if not isinstance(document, dict):
        raise InvalidPlan(
            "a range must be an object with a feature and its bounds; got %(document)s",
            document=f"{document!r:.200}",
        )
    check_keys(document, RANGE_KEYS, gettext("a range"))
    feature = parse_text(document.get("feature"), gettext("a range: feature"))
    bounds = {
        key: parse_number(document[key], gettext("a range: %(key)s") % {"key": key})
        for key in RANGE_KEYS[1:]
        if key in document
    }
    for sides in (("lo", "above"), ("hi", "below")):
        if len(given(bounds, sides)) > 1:
            raise InvalidPlan("a range must have one of %(sides)s; got both", sides=", ".join(sides))
    if not bounds:
        raise InvalidPlan("a range must have lo or above, or hi or below; got none")
    found = FeatureRange(feature, **bounds)
    lo, hi = found.bounds
    if lo > hi:
        raise InvalidPlan("a range must have values; got none for %(feature)s", feature=f"{feature:.80}")
    return found


def _range_document(entry: FeatureRange) -> dict[str, Any]:
    return {key: value for key in RANGE_KEYS if (value := getattr(entry, key)) is not None}


def _place_document(place: SketchPlan | Other, space: Space) -> dict[str, Any]:
    """Return the keys of a place: those of a polygon, or of a box unless it is the whole space."""
    if place.polygon:
        return {"polygon": [list(vertex) for vertex in place.polygon]}
    return box_of(place.area, space, whole(space))


def _other(document: Any, place: tuple[Box, Ring], time: SelectedTimes, space: Space) -> Other | None:
    if document is None:
        return None
    if not isinstance(document, dict) or not given(document, OTHER_KEYS):
        raise InvalidPlan(
            "other must be an object with one of %(other_keys)s; got %(document)s",
            other_keys=", ".join(OTHER_KEYS),
            document=f"{document!r:.200}",
        )
    check_keys(document, OTHER_KEYS, "other")
    area, polygon = parse_place(document, "other: ", space) or place
    time = time if document.get("time") is None else parse_times(document["time"], "other: time")
    return Other(area, polygon, time)


def _other_document(plan: SketchPlan, space: Space) -> dict[str, Any]:
    """Return what the other selection has besides what it shares with the selection."""
    other = plan.other
    if other is None:
        return {}
    document: dict[str, Any] = {}
    if (other.area, other.polygon) != (plan.area, plan.polygon):
        document |= _place_document(other, space) or {"area": {"lo": [None], "hi": [None]}}
    if other.time != plan.time or not document:
        document["time"] = times_document(other.time)
    return document
