"""The builder makes the plans that documents describe, and refuses a wrong call at that call."""

import json
import math

import pytest
from hypothesis import given

from streaming.errors import InvalidPlan
from streaming.kinds.around import Circle, Focus, Rectangle
from streaming.kinds.join.partners import SOURCES
from streaming.plans import QueryPlanBuilder, parse_plan, plan_document
from streaming.spaces import Dimension, Space
from tests.plans.strategies import documents

SHIPS = QueryPlanBuilder.create_query_on("ships")
NEAR = SHIPS.compare_with_static_space([24, 60], [25, 61])
BESIDE = SHIPS.spatial_join_with(stream="buses")
JOINED = SHIPS.spatial_join_with(layer="ports")
PRICES = Space("prices", (Dimension("price", "EUR", 0.0, 1e6),))
ENLARGE = {
    "enlarge_factor": QueryPlanBuilder.enlarge_by_factor,
    "enlarge_value": QueryPlanBuilder.enlarge_by_value,
    "enlarge_m": QueryPlanBuilder.enlarge_by_metres,
}
EMIT = {
    "changes": QueryPlanBuilder.emit_changes,
    "membership": QueryPlanBuilder.emit_membership,
    "all": QueryPlanBuilder.emit_all,
}


def in_area(builder, area):
    """Call the method for the form of an area."""
    if "lo" in area:
        return builder.for_all_new_elements_in(**area)
    if "circle" in area:
        return builder.in_circle(**area["circle"])
    return builder.in_corridor(**area["corridor"]) if "corridor" in area else builder.in_polygon(area)


def called(document):
    """Return the builder after the calls that say what a document says."""
    builder = QueryPlanBuilder.create_query_on(document["stream"])
    if document.get("area"):
        builder = in_area(builder, document["area"])
    if document.get("compare"):
        builder = builder.compare_with_static_space(**document["compare"])
    if document.get("report") == "outside":
        builder = builder.report_negative_matches()
    for step in document.get("transform", []):
        ((by, amount),) = step.items()
        builder = ENLARGE[by](builder, amount)
    builder = _filtered(builder, document, "stream")
    if "join" in document:
        builder = _joined(builder, document["join"])
    if "window_s" in document:
        builder = builder.in_windows_of(document["window_s"], document.get("slide_s"), document.get("start_s"))
    if "lower_s" in document:
        builder = builder.within_interval(document["lower_s"], document["upper_s"], document.get("bin_s"))
    if "for_s" in document:
        away = document.get("away_from")
        layer = away and (away["layer"], away["distance"])
        builder = builder.near_for_at_least(document["for_s"], document.get("gap_s"), layer)
    if document.get("kind") == "track":
        fastest_m_s = document.get("fastest_m_s")
        builder = builder.along_tracks(document.get("accuracy", 0), fastest_m_s, document.get("gap_s"))
    builder = builder.wait_for_reports(document.get("lateness_s"), document.get("idle_s"))
    if "mirrored" in document:
        builder = builder.mirrored(document["mirrored"])
    if document.get("around"):
        builder = _around(builder, document["around"])
    if document.get("kind") == "knn":
        builder = builder.nearest(document["k"], document.get("max_distance"), document.get("alpha"))
    if document.get("aggregate"):
        builder = _aggregated(builder, document["aggregate"])
    return EMIT[document["emit"]](builder) if "emit" in document else builder


def _around(builder, around):
    if "radius" in around:
        builder = builder.within_radius(around["radius"])
    if "half_widths" in around:
        builder = builder.within_half_widths(*around["half_widths"])
    if "polygon" in around:
        builder = builder.within_polygon(around["polygon"])
    return (
        builder.around_place(around["at"]) if around.get("at") else builder.follow(around["key"], around.get("stream"))
    )


def _aggregated(builder, aggregate):
    builder = builder.aggregate(**{name: value for name, value in aggregate.items() if name != "thresholds"})
    for threshold in aggregate.get("thresholds", []):
        for_s = threshold.get("for_s", 0.0)
        if threshold.get("above") is not None:
            builder = builder.raise_when_above(threshold["above"], for_s)
        else:
            builder = builder.raise_when_below(threshold["below"], for_s)
    return builder


def _joined(builder, join):
    arguments = {name: join[name] for name in (*SOURCES, "predicate", "distance") if name in join}
    builder = _filtered(builder.spatial_join_with(**arguments), join, "stored")
    for entry in join.get("pair_filters", []):
        builder = builder.filter_pairs_by_udf(**entry)
    return builder


def _filtered(builder, document, side):
    for entry in document.get("filters", []):
        form = next(form for form in ("key", "keys", "box", "udf") if form in entry)
        arguments = entry["box"] if form == "box" else entry
        builder = getattr(builder, f"filter_{side}_by_{form}")(**arguments)
    if "where" in document:
        builder = getattr(builder, f"filter_{side}_by_where")(document["where"])
    return builder


@pytest.mark.long
@given(documents)
def test_the_calls_build_the_plan_of_the_document(document):
    assert called(document).build() == parse_plan(document)


@given(documents)
def test_a_plan_goes_through_json_and_the_builder_unchanged(document):
    plan = parse_plan(document)
    builder = QueryPlanBuilder.from_document(document)
    assert builder.build() == plan
    assert parse_plan(json.loads(builder.to_json())) == plan


def test_a_call_leaves_the_builder_as_it_was():
    before = NEAR.to_json()
    assert NEAR.report_negative_matches().filter_stream_by_key("a").enlarge_by_factor(2).to_json() != before
    assert NEAR.to_json() == before
    joined = JOINED.to_json()
    JOINED.filter_stored_by_key("a").filter_pairs_by_udf("b")
    assert JOINED.to_json() == joined


def test_what_is_handed_over_may_change_later():
    corner = [24, 60]
    builder = SHIPS.compare_with_static_space(corner, [25, 61])
    corner[0] = 25
    assert builder.build().compare[0] == 24


def test_a_call_overrides_focus_and_shape_of_the_one_before():
    builder = SHIPS.within_radius(5).follow("a", "tugs").within_half_widths(1, None).around_place([24, 60])
    plan = builder.follow("b").build()
    assert (plan.focus, plan.shape) == (Focus("ships", "b"), Rectangle((1.0, math.inf, math.inf)))
    assert builder.within_radius(7).build().focus == Focus(at=(24.0, 60.0))


def test_the_area_may_be_said_before_the_range_that_moves():
    plan = SHIPS.for_all_new_elements_in([0, 0], [9, 9]).follow("a").within_radius(3).build()
    assert (plan.area[:2], plan.shape) == ((0.0, 0.0), Circle(3.0))


def test_the_area_of_tracks_may_be_said_after_them_and_must_be_said():
    tracks = QueryPlanBuilder.create_query_on("ships").along_tracks(accuracy=10)
    assert plan_document(tracks.in_circle([20, 60], 500).build())["area"]["circle"]["radius_m"] == 500
    with pytest.raises(InvalidPlan, match="area"):
        tracks.build()


def test_a_call_overrides_the_one_before_and_filters_and_enlargements_add_up():
    builder = NEAR.compare_with_static_space([0, 0], [1, 1]).report_negative_matches().report_positive_matches()
    builder = builder.emit_all().emit_changes().enlarge_by_value(1).enlarge_by_value(2)
    plan = builder.filter_stream_by_key("a").filter_stream_by_key("b").build()
    assert (plan.compare[:2], plan.report, plan.emit) == ((0.0, 0.0), "inside", "changes")
    assert [step.amount for step in plan.transform] == [1, 2]
    assert [entry.key for entry in plan.filters] == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: QueryPlanBuilder.create_query_on(""), "name of a stream"),
        (lambda: SHIPS.for_all_new_elements_in([25, 60], [24, 61]), "area: longitude: lo must not exceed hi"),
        (lambda: SHIPS.compare_with_static_space([24, 60], [25]), "compare: lo and hi must have equally many"),
        (lambda: SHIPS.enlarge_by_metres(-1), "enlarge_m must be a finite number"),
        (lambda: SHIPS.enlarge_by_factor(math.nan), "enlarge_factor must be a finite number"),
        (lambda: QueryPlanBuilder.create_query_on("shares", PRICES).enlarge_by_metres(5), "longitude and latitude"),
        (lambda: SHIPS.filter_stream_by_where("speed >"), "where: a value is missing"),
        (lambda: SHIPS.filter_stream_by_key(""), "not empty"),
        (lambda: SHIPS.filter_stream_by_udf("x", 5), "argument must be a text"),
        (lambda: SHIPS.filter_stored_by_key("a"), "come after spatial_join_with"),
        (lambda: SHIPS.filter_stored_by_where("a = 1"), "come after spatial_join_with"),
        (lambda: NEAR.filter_pairs_by_udf("x"), "come after spatial_join_with"),
        (lambda: SHIPS.in_windows_of(60), "come after spatial_join_with"),
        (lambda: JOINED.in_windows_of(60), "got the unknown layer"),
        (lambda: BESIDE.in_windows_of(0), "window_s must be a finite number, above 0"),
        (lambda: BESIDE.in_windows_of(600, 1), "slide_s must be at least a 100th of window_s, 6; got 1"),
        (lambda: BESIDE.within_interval(5, 4), "lower_s must be at most upper_s; got 5 and 4"),
        (lambda: BESIDE.within_interval(0, 1e9), "upper_s must be"),
        (lambda: BESIDE.within_interval(0, 1).wait_for_reports(lateness_s=-1), "lateness_s must be"),
        (lambda: BESIDE.within_interval(0, 1).emit_changes(), "emit must be all"),
        (lambda: BESIDE.near_for_at_least(-1), "for_s must be a finite number, at least 0"),
        (lambda: BESIDE.near_for_at_least(60, gap_s=0), "gap_s must be a finite number, above 0"),
        (lambda: BESIDE.near_for_at_least(60, away_from=("ports", -1)), "away_from: distance must be"),
        (lambda: BESIDE.near_for_at_least(60, away_from=("", 1)), "away_from: layer must be"),
        (lambda: BESIDE.near_for_at_least(60).emit_all(), "emit must be changes or membership"),
        (lambda: BESIDE.wait_for_reports(lateness_s=1), "unknown lateness_s"),
        (lambda: SHIPS.spatial_join_with(), "join must have one of layer, stream, stored; got none"),
        (lambda: SHIPS.spatial_join_with(layer="a", stream="b"), "got layer, stream"),
        (lambda: SHIPS.spatial_join_with(layer="a", predicate="beside"), "predicate must be one of"),
        (lambda: SHIPS.spatial_join_with(layer="a", predicate="dwithin"), "distance belongs to"),
        (lambda: SHIPS.spatial_join_with(layer="a", distance=5), "distance belongs to"),
        (lambda: NEAR.spatial_join_with(layer="a"), "unknown compare"),
        (lambda: JOINED.compare_with_static_space([24, 60], [25, 61]), "unknown compare"),
        (lambda: JOINED.report_negative_matches(), "unknown report"),
        (lambda: JOINED.filter_stored_by_box([3], [2]), "lo must not exceed hi"),
        (lambda: SHIPS.follow(""), "key must be a text that is not empty"),
        (lambda: SHIPS.around_place([24]), "at must be a list of numbers, 2 in this space"),
        (lambda: SHIPS.around_place([24, 91]), "latitude must start within"),
        (lambda: SHIPS.within_radius(0), "radius must be a finite number, above 0"),
        (lambda: SHIPS.within_half_widths(), "half_widths must be a list of 1 to 3"),
        (lambda: SHIPS.within_polygon([[0, 0], [1, 1], [1, 0], [0, 1]]), "simple ring"),
        (lambda: SHIPS.nearest(0), "k must be a whole number of 1 to 1,000"),
        (lambda: SHIPS.nearest(5, max_distance=-1), "max_distance must be a finite number, above 0"),
        (lambda: SHIPS.nearest(5, alpha=11), "alpha must be a finite number"),
        (lambda: SHIPS.follow("a").within_radius(5).nearest(3), "unknown radius"),
        (lambda: SHIPS.follow("a").nearest(3).within_radius(5), "unknown radius"),
        (lambda: NEAR.follow("a"), "has around, or compare"),
        (lambda: SHIPS.follow("a").enlarge_by_value(3), "has around, or compare"),
        (lambda: SHIPS.follow("a").emit_all(), "emit must be changes or membership"),
        (lambda: JOINED.aggregate("count"), "aggregate belongs to the kind range; got join"),
        (lambda: NEAR.aggregate("median"), "function must be one of"),
        (lambda: NEAR.aggregate("sum"), "sum must have one of property, dimension; got none"),
        (lambda: NEAR.aggregate("min", dimension="depth"), "dimension must be one of longitude"),
        (lambda: NEAR.aggregate("count").emit_all(), "emit must be changes or membership"),
        (lambda: NEAR.raise_when_above(3), "thresholds come after aggregate"),
        (lambda: NEAR.aggregate("count").raise_when_below(3, for_s=-1), "for_s must be a finite number, at least 0"),
        (lambda: SHIPS.follow("a").build(), "around must have one of radius, half_widths, polygon; got none"),
        (lambda: SHIPS.within_radius(5).build(), "around must have one of key, at; got none"),
        (lambda: SHIPS.nearest(5).build(), "around must be an object with a key or a place; got None"),
        (lambda: SHIPS.build(), "needs an area or a compare box"),
        (lambda: SHIPS.to_json(), "needs an area or a compare box"),
    ],
)
def test_a_wrong_call_is_refused_at_once(call, words):
    with pytest.raises(InvalidPlan, match=words):
        call()


def test_a_plan_is_built_in_the_space_of_its_stream():
    plan = QueryPlanBuilder.create_query_on("shares", PRICES).compare_with_static_space([100], [9999]).build()
    assert plan.compare == (100.0, 9999.0)


def test_a_kind_without_a_method_of_its_own_is_built_by_its_keys():
    near = SHIPS.of_kind("knn", k=3, around={"at": [24, 60]})
    assert near.build() == SHIPS.around_place([24, 60]).nearest(3).build()
    with pytest.raises(InvalidPlan, match=r"k must be a whole number of 1 to 1,000; got 0"):
        near.of_kind("knn", k=0)
