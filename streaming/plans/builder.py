"""A builder of plans in Python, call by call.

References
----------
BBoxDB Streams (2022), section 5.4, table 6: the QueryPlanBuilder.
"""

import copy
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.around import FOCUS_KEYS, SHAPES
from streaming.kinds.base import Plan
from streaming.kinds.join.times import TIMES
from streaming.plans.documents import parse_plan, plan_document
from streaming.spaces import EARTH, Space

Corner = Sequence[float | None]


class QueryPlanBuilder:
    """An unfinished plan, which never changes: each call returns a new builder.

    A call that breaks a rule raises `InvalidPlan` at once. If a method is called again, the new values replace the old
    ones, but filters, enlargements and thresholds add up.

    Parameters
    ----------
    document : mapping
        As for `parse_plan`, but a range query may still lack its boxes, and `around` its focus or its shape. Use
        `create_query_on` or `from_document` to begin a plan.
    space : Space

    Examples
    --------
    >>> near = QueryPlanBuilder.create_query_on("ships").compare_with_static_space([24, 60], [25, 61])
    >>> near.enlarge_by_metres(200).filter_stream_by_where("speed_mps > 5").build().where
    'speed_mps > 5'
    """

    def __init__(self, document: Mapping[str, Any], space: Space = EARTH) -> None:
        self._document, self._space = copy.deepcopy(dict(document)), space
        parse_plan(self._completed(), space)

    @classmethod
    def create_query_on(cls, stream: str, space: Space = EARTH) -> "QueryPlanBuilder":
        """Begin a query on a stream."""
        return cls({"stream": stream}, space)

    @classmethod
    def from_document(cls, document: Any, space: Space = EARTH) -> "QueryPlanBuilder":
        """Begin with an existing plan, given as a JSON document."""
        return cls(plan_document(parse_plan(document, space), space), space)

    def of_kind(self, kind: str, **keys: Any) -> "QueryPlanBuilder":
        """Make it a query of any kind, with keys as in the JSON documents of the kind."""
        return self._with(kind=kind, **keys)

    def for_all_new_elements_in(self, lo: Corner, hi: Corner) -> "QueryPlanBuilder":
        """Register the query in a box (alpha): the query ignores elements outside of it."""
        return self._with(area=_box(lo, hi))

    def in_circle(self, center: Sequence[float], radius_m: float) -> "QueryPlanBuilder":
        """Register the query in a circle, given its centre (longitude, latitude) and its radius in metres."""
        return self._with(area={"circle": {"center": list(center), "radius_m": radius_m}})

    def in_corridor(self, line: Sequence[Sequence[float]], width_m: float) -> "QueryPlanBuilder":
        """Register the query in a corridor, given its line and its width in metres."""
        return self._with(area={"corridor": {"line": [list(place) for place in line], "width_m": width_m}})

    def in_polygon(self, geometry: Mapping[str, Any]) -> "QueryPlanBuilder":
        """Register the query in a GeoJSON Polygon or MultiPolygon."""
        return self._with(area=dict(geometry))

    def compare_with_static_space(self, lo: Corner, hi: Corner) -> "QueryPlanBuilder":
        """Compare the elements with a box (tau): the plan is a range query."""
        return self._with(compare=_box(lo, hi))

    def report_positive_matches(self) -> "QueryPlanBuilder":
        """Report the elements that intersect the box (beta); this is the default."""
        return self._with(report="inside")

    def report_negative_matches(self) -> "QueryPlanBuilder":
        """Report the elements of the area that do not intersect the box (beta)."""
        return self._with(report="outside")

    def enlarge_by_factor(self, factor: float) -> "QueryPlanBuilder":
        """Multiply the extent of the element's box by a factor (theta); enlargements apply in the order of calls."""
        return self._and("transform", {"enlarge_factor": factor})

    def enlarge_by_value(self, value: float) -> "QueryPlanBuilder":
        """Move every side of the element's box outwards by a value in each dimension's own unit (theta)."""
        return self._and("transform", {"enlarge_value": value})

    def enlarge_by_metres(self, metres: float) -> "QueryPlanBuilder":
        """Move the sides of the element's box outwards in longitude and latitude, by metres (theta)."""
        return self._and("transform", {"enlarge_m": metres})

    def spatial_join_with(
        self,
        *,
        layer: str | None = None,
        stream: str | None = None,
        stored: str | None = None,
        predicate: str = "intersects",
        distance: float | None = None,
    ) -> "QueryPlanBuilder":
        """Join the elements with the features of a layer, or with the last known or the stored elements of a stream.

        Parameters
        ----------
        layer, stream, stored : str
            The name of the layer or stream; exactly one of the three.
        predicate : str
            One of `PREDICATES`.
        distance : float
            For the predicate ``dwithin``, which needs it: metres in a space with longitude and latitude, the unit of
            the first dimension elsewhere.
        """
        named = _known(layer=layer, stream=stream, stored=stored, distance=distance)
        kind = self._document.get("kind") if "join" in self._document else "join"
        return self._with(kind=kind, join=named | {"predicate": predicate})

    def in_windows_of(
        self, window_s: float, slide_s: float | None = None, start_s: float | None = None
    ) -> "QueryPlanBuilder":
        """Join all reports of the two streams in the same window of event time, see `WindowJoinPlan`."""
        return self._timed(kind="window_join", window_s=window_s, **_known(slide_s=slide_s, start_s=start_s))

    def within_interval(self, lower_s: float, upper_s: float, bin_s: float | None = None) -> "QueryPlanBuilder":
        """Join all reports of the two streams whose times differ by an interval, see `IntervalJoinPlan`."""
        return self._timed(kind="interval_join", lower_s=lower_s, upper_s=upper_s, **_known(bin_s=bin_s))

    def near_for_at_least(
        self, for_s: float, gap_s: float | None = None, away_from: tuple[str, float] | None = None
    ) -> "QueryPlanBuilder":
        """Report the encounters of two objects: both stay near each other for a while.

        Parameters
        ----------
        for_s : float
            For how long, in seconds.
        gap_s : float, optional
            For how long an object is taken to be where it reported last.
        away_from : tuple of str and float, optional
            A layer, and the distance that both objects must be farther away from its features.
        """
        layer = None if away_from is None else dict(zip(("layer", "distance"), away_from, strict=True))
        return self._timed(kind="encounter", for_s=for_s, **_known(gap_s=gap_s, away_from=layer))

    def wait_for_reports(self, lateness_s: float | None = None, idle_s: float | None = None) -> "QueryPlanBuilder":
        """Say how late reports may be, and for how long a silent stream is waited for, in seconds."""
        return self._with(**_known(lateness_s=lateness_s, idle_s=idle_s))

    def mirrored(self, mirrored: bool = True) -> "QueryPlanBuilder":
        """In the join of a stream with itself over event time: tell pairs both ways."""
        return self._with(mirrored=mirrored)

    def follow(self, key: str, stream: str | None = None) -> "QueryPlanBuilder":
        """Let the query follow a focal object, which belongs to the query's own stream unless another is named."""
        return self._about(FOCUS_KEYS, {"key": key} | _known(stream=stream))

    def around_place(self, at: Sequence[float]) -> "QueryPlanBuilder":
        """Let the query lie around a fixed place: two coordinates, or one in a space of one dimension."""
        return self._about(FOCUS_KEYS, {"at": list(at)})

    def within_radius(self, radius: float) -> "QueryPlanBuilder":
        """Let the range be a circle around the focus; the radius is in metres in a geographic space, else in units."""
        return self._about(SHAPES, {"radius": radius})

    def within_half_widths(self, *half_widths: float | None) -> "QueryPlanBuilder":
        """Let the range be a box around the focus: half its extent in each dimension, None where it is unbounded."""
        return self._about(SHAPES, {"half_widths": list(half_widths)})

    def within_polygon(self, polygon: Sequence[Sequence[float]]) -> "QueryPlanBuilder":
        """Let the range be a polygon around the focus; its vertices are offsets (east, north) from the focus."""
        return self._about(SHAPES, {"polygon": [list(vertex) for vertex in polygon]})

    def will_enter(self, target: Mapping[str, Any], within_s: float) -> "QueryPlanBuilder":
        """Find elements outside of an area that will be in it soon, if they keep their course and speed.

        Parameters
        ----------
        target : mapping
            The area as JSON: a box, GeoJSON, a circle or a corridor.
        within_s : float
            How many seconds after its newest report an element must be there, at most.
        """
        return self._with(kind="approach", target=dict(target), within_s=within_s)

    def along_tracks(
        self,
        accuracy: float | Mapping[str, Any] = 0.0,
        fastest_m_s: float | None = None,
        gap_s: float | None = None,
    ) -> "QueryPlanBuilder":
        """Find the objects whose track is in the area, although their reported places are noisy.

        Parameters
        ----------
        accuracy : float or mapping
            How far a reported place may be from the true one, in metres, or the property that says so, as JSON.
        fastest_m_s : float, optional
            Reports for which an object must have been faster are not believed.
        gap_s : float, optional
            Between reports that are at most so many seconds apart, the object moved along the straight line.
        """
        told = {"fastest_m_s": fastest_m_s, "gap_s": gap_s}
        told = {name: value for name, value in told.items() if value is not None}
        how = accuracy if isinstance(accuracy, float | int) else dict(accuracy)
        return self._with(kind="track", accuracy=how, **told)

    def will_come_close(
        self, within_m: float, within_s: float, stream: str | None = None, gap_s: float | None = None
    ) -> "QueryPlanBuilder":
        """Find pairs of objects that will be close to each other soon, if both keep their course and speed.

        Parameters
        ----------
        within_m, within_s : float
            How far the two may be from each other at the closest point of approach, and in how many seconds.
        stream : str, optional
            The stream of the other objects; the query's own if it is left out.
        gap_s : float, optional
            How many seconds the reports of the two may be apart.
        """
        join = {"join": {"stream": stream}} if stream else {}
        return self._with(kind="closest_approach", within_m=within_m, within_s=within_s, **join, **_known(gap_s=gap_s))

    def nearest(self, k: int, max_distance: float | None = None, alpha: float | None = None) -> "QueryPlanBuilder":
        """Report the `k` elements that are nearest to the focus (kNN), and no farther than `max_distance`.

        Parameters
        ----------
        k : int
        max_distance : float, optional
            Metres in a space with longitude and latitude, units elsewhere; no limit if it is left out.
        alpha : float, optional
            By what part the search region is larger than the answer.
        """
        return self._with(kind="knn", k=k, **_known(max_distance=max_distance, alpha=alpha))

    def aggregate(
        self,
        function: str,
        *,
        property: str | None = None,
        dimension: str | None = None,
        group_by: str | None = None,
    ) -> "QueryPlanBuilder":
        """Report a value of all elements of the range query's answer, or one for each group of them.

        Parameters
        ----------
        function : {"count", "min", "max", "sum", "avg"}
        property, dimension : str
            What the function is computed over. All functions but ``count`` need exactly one of the two.
        group_by : str
            The property whose values are the groups; one group if it is left out.
        """
        return self._with(
            aggregate={"function": function} | _known(property=property, dimension=dimension, group_by=group_by)
        )

    def raise_when_above(self, value: float, for_s: float = 0.0) -> "QueryPlanBuilder":
        """Report when the aggregate has been above a value for `for_s` seconds without a break."""
        return self._raise({"above": value, "for_s": for_s})

    def raise_when_below(self, value: float, for_s: float = 0.0) -> "QueryPlanBuilder":
        """Report when the aggregate has been below a value for `for_s` seconds without a break."""
        return self._raise({"below": value, "for_s": for_s})

    def alarm_when(
        self,
        condition: Mapping[str, Any],
        for_s: float = 0.0,
        until: Mapping[str, Any] | None = None,
        rearm_s: float = 0.0,
    ) -> "QueryPlanBuilder":
        """Make the query a rule, whose alarms begin when a condition over other queries has held for `for_s` seconds.

        Parameters
        ----------
        condition, until : mapping
            Documents of conditions; see `streaming.plans.conditions`.
        for_s : float
            For how long without a break.
        rearm_s : float
            After an alarm there is no other one for so many seconds.
        """
        times = {"for_s": for_s, "rearm_s": rearm_s} | _known(until=until)
        kept = {name: self._document[name] for name in ("stream", "schedule") if name in self._document}
        return QueryPlanBuilder(kept | {"kind": "rule", "when": condition} | times, self._space)

    def more_often_than(self, more_than: int, within_s: float) -> "QueryPlanBuilder":
        """Begin the alarms of a rule when its condition began to hold more often than that, in place of `for_s`."""
        rest = {name: value for name, value in self._document.items() if name not in ("for_s", "until")}
        return QueryPlanBuilder(rest | {"rate": {"more_than": more_than, "within_s": within_s}}, self._space)

    def on_schedule(
        self, begin: str, end: str, days: Sequence[str] | None = None, time_zone: str = "UTC"
    ) -> "QueryPlanBuilder":
        """Let a rule count from a time of day to another, such as "22:00", on some days such as "mon"."""
        schedule = {"from": begin, "to": end, "time_zone": time_zone} | ({} if days is None else {"days": list(days)})
        return self._with(schedule=schedule)

    def ask_sketch(self, *questions: Mapping[str, Any], **selection: Any) -> "QueryPlanBuilder":
        """Ask the sketch of the stream what has passed, in place of its elements.

        Parameters
        ----------
        *questions : mapping
            As in the key `ask`: ``{"question": "mean", "features": ["temp"]}``.
        **selection
            Other keys of such plans, such as `time`, `polygon`, `ranges`, `other`, `confidence` and `once`; see
            docs/sketch-queries.md.
        """
        kept = {name: self._document[name] for name in ("stream", "area") if name in self._document}
        return QueryPlanBuilder(kept | {"kind": "sketch", "ask": list(questions)} | selection, self._space)

    def filter_stream_by_key(self, key: str) -> "QueryPlanBuilder":
        """Let only the elements of one key pass."""
        return self._and("filters", {"key": key})

    def filter_stream_by_keys(self, keys: Sequence[str]) -> "QueryPlanBuilder":
        """Let only the elements pass that have one of some keys."""
        return self._and("filters", {"keys": list(keys)})

    def filter_stream_by_box(self, lo: Corner, hi: Corner) -> "QueryPlanBuilder":
        """Let only the elements pass that intersect a box."""
        return self._and("filters", {"box": _box(lo, hi)})

    def filter_stream_by_udf(self, udf: str, argument: str = "") -> "QueryPlanBuilder":
        """Let only the elements pass that a user-defined filter lets pass."""
        return self._and("filters", {"udf": udf, "argument": argument})

    def filter_stream_by_where(self, where: str) -> "QueryPlanBuilder":
        """Let only the elements pass whose properties satisfy a condition in CQL2 text."""
        return self._with(where=where)

    def filter_stored_by_key(self, key: str) -> "QueryPlanBuilder":
        """Join only with the partner of one key (lambda)."""
        return self._and_partners("filters", {"key": key})

    def filter_stored_by_keys(self, keys: Sequence[str]) -> "QueryPlanBuilder":
        """Join only with the partners of some keys (lambda)."""
        return self._and_partners("filters", {"keys": list(keys)})

    def filter_stored_by_box(self, lo: Corner, hi: Corner) -> "QueryPlanBuilder":
        """Join only with partners that intersect a box (lambda)."""
        return self._and_partners("filters", {"box": _box(lo, hi)})

    def filter_stored_by_udf(self, udf: str, argument: str = "") -> "QueryPlanBuilder":
        """Join only with partners that a user-defined filter lets pass (lambda)."""
        return self._and_partners("filters", {"udf": udf, "argument": argument})

    def filter_stored_by_where(self, where: str) -> "QueryPlanBuilder":
        """Join only with partners whose properties satisfy a condition in CQL2 text (lambda)."""
        return self._with(join=self._partners() | {"where": where})

    def filter_pairs_by_udf(self, udf: str, argument: str = "") -> "QueryPlanBuilder":
        """Report only the pairs that a user-defined filter lets pass."""
        return self._and_partners("pair_filters", {"udf": udf, "argument": argument})

    def emit_changes(self) -> "QueryPlanBuilder":
        """Keep the answer, and report each change of it; this is the default."""
        return self._with(emit="changes")

    def emit_membership(self) -> "QueryPlanBuilder":
        """Keep the answer, and report only what enters and leaves it."""
        return self._with(emit="membership")

    def emit_all(self) -> "QueryPlanBuilder":
        """Report every match as it comes, and keep nothing."""
        return self._with(emit="all")

    def build(self) -> Plan:
        """Return the plan.

        Raises
        ------
        InvalidPlan
            If it is a range query without any box, or `around` lacks its focus or its shape.
        """
        return parse_plan(self._document, self._space)

    def to_json(self) -> str:
        """Return the finished plan as JSON text, as the websocket takes it."""
        return json.dumps(plan_document(self.build(), self._space))

    def _completed(self) -> Mapping[str, Any]:
        """Return the document, with placeholders for what later calls may add, such that `parse_plan` can check it."""
        document, kind = self._document, self._document.get("kind", "range")
        around = document.get("around")
        if kind == "range" and around is None:
            return document if {"area", "compare"} & set(document) else document | {"compare": _box([None], [None])}
        if kind == "track":
            return {"area": _box([0.0, 0.0], [1.0, 1.0])} | document
        if "join" in document or kind not in ("range", "knn"):
            return document
        missing: dict[str, Any] = {} if _has(around, ("key", "at")) else {"key": "any"}
        if kind == "range" and not _has(around, SHAPES):
            missing["radius"] = 1.0
        return document | {"around": missing | (around or {})}

    def _with(self, **changes: Any) -> "QueryPlanBuilder":
        return QueryPlanBuilder(self._document | changes, self._space)

    def _and(self, name: str, entry: Any) -> "QueryPlanBuilder":
        return self._with(**{name: [*self._document.get(name, []), entry]})

    def _about(self, replaced: Collection[str], named: dict[str, Any]) -> "QueryPlanBuilder":
        """Return a builder in whose `around` the keys `named` stand in the place of the keys `replaced`."""
        kept = {name: value for name, value in self._document.get("around", {}).items() if name not in replaced}
        return self._with(around=kept | named)

    def _timed(self, **times: Any) -> "QueryPlanBuilder":
        self._partners()
        kept = {name: value for name, value in self._document.items() if name not in TIMES}
        return QueryPlanBuilder(kept | times, self._space)

    def _raise(self, threshold: Mapping[str, Any]) -> "QueryPlanBuilder":
        if "aggregate" not in self._document:
            raise InvalidPlan("thresholds come after aggregate; got a plan without it")
        aggregate = self._document["aggregate"]
        return self._with(aggregate=aggregate | {"thresholds": [*aggregate.get("thresholds", []), threshold]})

    def _and_partners(self, name: str, entry: Any) -> "QueryPlanBuilder":
        partners = self._partners()
        return self._with(join=partners | {name: [*partners.get(name, []), entry]})

    def _partners(self) -> dict[str, Any]:
        if "join" not in self._document:
            raise InvalidPlan(
                "filters of partners and pairs, and times, come after spatial_join_with; got a plan without it"
            )
        return self._document["join"]


def _box(lo: Corner, hi: Corner) -> dict[str, Any]:
    return {"lo": lo, "hi": hi}


def _known(**named: Any) -> dict[str, Any]:
    return {name: value for name, value in named.items() if value is not None}


def _has(around: Mapping[str, Any] | None, names: Collection[str]) -> bool:
    return around is not None and any(around.get(name) is not None for name in names)
