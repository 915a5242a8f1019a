"""Areas of any shape: which documents are sound, what the others are told, and that the box about a shape holds it."""

import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streaming.errors import InvalidPlan
from streaming.plans import QueryPlanBuilder, parse_plan, plan_document
from streaming.plans.schema import plan_schema
from streaming.plans.together import parse_together
from streaming.spaces import EARTH, Dimension, Space
from tests.areas import random_area
from tests.draws import examples, rngs
from tests.oracle import boxes_meet
from webapp.words.plans import plan_in_words

GEOD = pyproj.Geod(ellps="WGS84")
PLANE = Space("plane", (Dimension("x", "m", 0, 10), Dimension("y", "m", 0, 10)))
LINE = Space("line", (Dimension("price", "USD", 0, 10),))
TRIANGLE = {"type": "Polygon", "coordinates": [[[170, 0], [190, 0], [180, 10], [170, 0]]]}
CIRCLE = {"circle": {"center": [24, 60], "radius_m": 5000}}
CORRIDOR = {"corridor": {"line": [[24, 60], [25, 61]], "width_m": 1000}}
TOGETHER = {"stream": "s", "join": {"stream": "t", "predicate": "dwithin", "distance": 10}}
KINDS = {
    "range": {"stream": "s"},
    "moving range": {"stream": "s", "around": {"at": [1, 2], "radius": 3}},
    "nearest": {"stream": "s", "kind": "knn", "k": 3, "around": {"key": "a"}},
    "aggregate": {"stream": "s", "aggregate": {"function": "count"}},
    "moving aggregate": {"stream": "s", "around": {"at": [1, 2], "radius": 3}, "aggregate": {"function": "count"}},
    "join": {"stream": "s", "kind": "join", "join": {"layer": "ports"}},
    "stored join": {"stream": "s", "kind": "join", "join": {"stored": "s"}},
    "stream join": TOGETHER | {"kind": "join"},
    "window join": TOGETHER | {"kind": "window_join", "window_s": 10},
    "interval join": TOGETHER | {"kind": "interval_join", "lower_s": 0, "upper_s": 10},
    "encounter": TOGETHER | {"kind": "encounter", "for_s": 10},
}


@examples(30)
@given(st.sampled_from(list(KINDS)), rngs())
def test_a_plan_of_every_kind_keeps_its_shape_and_says_it_in_words(kind, rng):
    area = random_area(rng, rng.uniform(-180, 180), rng.uniform(-89, 89), rng.choice([0.1, 2, 20]))
    document = KINDS[kind] | {"area": area, "filters": [{"key": "x"}]}
    plan = parse_plan(document)
    written = plan_document(plan)
    assert written["area"] == area and written["filters"] == [{"key": "x"}] and "compare" not in written
    assert parse_plan(written) == plan
    (outcome, _) = parse_together([document, document], EARTH)
    assert outcome.plan == plan
    validator = Draft202012Validator(plan_schema())
    assert validator.is_valid(document) and validator.is_valid(written)
    assert any(word in plan_in_words(written) for word in ("circle of", "corridor of", "polygon of", "polygons of"))


@examples(200)
@given(rngs())
def test_the_box_about_a_shape_holds_all_of_it(rng):
    lon, lat = rng.choice([-180.0, 179.99, rng.uniform(-180, 180)]), rng.choice([-90.0, 89.9, rng.uniform(-90, 90)])
    metres = 10 ** rng.uniform(0, 7)
    if rng.random() < 0.5:
        area, places = {"circle": {"center": [lon, lat], "radius_m": metres}}, [(lon, lat)]
    else:
        ends = [[max(-180.0, min(180.0, lon + rng.uniform(-50, 50))), rng.uniform(-90, 90)] for _ in range(3)]
        area, places = {"corridor": {"line": ends, "width_m": 2 * metres}}, ends
    box = parse_plan({"stream": "s", "area": area}).area
    for x, y in places:
        for bearing in range(0, 360, 15):
            to_x, to_y, _ = GEOD.fwd(x, y, bearing, metres * 0.999999)
            assert boxes_meet([to_x, to_y, 0, to_x, to_y, 0], box, EARTH), (to_x, to_y)


def polygon(*rings):
    return {"type": "Polygon", "coordinates": [list(map(list, ring)) for ring in rings]}


def circle(center, radius_m=1):
    return {"circle": {"center": center, "radius_m": radius_m}}


SQUARE = [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)]
WRONG = [
    (polygon([(0, 0), (1, 1), (1, 0), (0, 1), (0, 0)]), "simple rings.* got Self-intersection"),
    (polygon([(0, 0), (1, 1), (2, 2), (0, 0)]), "simple rings|with an area"),
    (polygon(SQUARE, [(9, 9), (9, 8), (8, 8), (9, 9)]), "got Hole lies outside shell"),
    (polygon([(0, 0), (1, 0), (1, 1), (0, 1)]), r"a ring must end where it begins; got \[0.0, 0.0\] and \[0.0, 1.0\]"),
    (polygon([(0, 0), (1, 1), (0, 0)]), "a ring must be a list of 4 vertices or more"),
    (polygon([(0, 0, 5), (1, 0, 5), (1, 1, 5), (0, 0, 5)]), "a vertex must be a list of 2 numbers"),
    (polygon([(0, 0), (1, 0), (1, 91), (0, 0)]), "latitude must end at 90 or before; got 91"),
    (polygon([(200, 0), (201, 0), (201, 1), (200, 0)]), r"longitude must start within \[-180, 180\]; got 200"),
    (
        polygon([(-180, 0), (-60, -1), (60, -1), (181, 0), (60, 1), (-60, 1), (-180, 0)]),
        "longitude must end at 180 or before; got 181",
    ),
    (polygon([(i / 1000, i % 2 * i) for i in range(1001)]), "at most 1,000 vertices; got 1,001"),
    ({"type": "Polygon"}, "and coordinates, if it is GeoJSON; got 'Polygon' with type"),
    ({"type": "Point", "coordinates": [0, 0]}, "Polygon or MultiPolygon.*got 'Point'"),
    ({"type": "MultiPolygon", "coordinates": []}, "must have a polygon; got none"),
    (circle([0, 0], 0), "radius_m must be a finite number, above 0"),
    (circle([0, 0], 3e7), "at most 20,100,000; got 30000000.0"),
    (circle([0, float("nan")]), "a coordinate must be a finite number; got nan"),
    (circle([190, 0]), "longitude must start within"),
    ({"circle": {"center": [0, 0]}}, "an object with center and radius_m alone"),
    ({"corridor": {"line": [[0, 0]], "width_m": 1}}, "line must be a list of 2 vertices or more"),
    ({"corridor": {"line": [[0, 0], [0, 0]], "width_m": 1}}, "two places that differ"),
    ({"corridor": {"line": [[0, 0], [1, 0]], "width_m": -1}}, "width_m must be a finite number, above 0"),
    ({"lo": [0, 0]}, "area must be an object of the form"),
    ("everywhere", "area must be an object of the form .*got 'everywhere'"),
]


@pytest.mark.parametrize(("area", "message"), WRONG)
def test_a_wrong_area_is_refused_with_the_rule_and_the_value(area, message):
    with pytest.raises(InvalidPlan, match=message):
        parse_plan({"stream": "s", "area": area})


def test_what_a_space_lacks_is_refused():
    plan = parse_plan({"stream": "s", "area": polygon(SQUARE)}, PLANE)
    assert plan.area == (0.0, 0.0, 4.0, 4.0)
    for area in (CIRCLE, CORRIDOR):
        with pytest.raises(InvalidPlan, match="needs a space with longitude and latitude; got 'plane'"):
            parse_plan({"stream": "s", "area": area}, PLANE)
    with pytest.raises(InvalidPlan, match="two dimensions or more; got 'line'"):
        parse_plan({"stream": "s", "area": polygon(SQUARE)}, LINE)


def test_outside_needs_a_box_beside_a_shape():
    with pytest.raises(InvalidPlan, match="report outside needs a compare box"):
        parse_plan({"stream": "s", "area": CIRCLE, "report": "outside"})
    compare = {"lo": [24, 60], "hi": [24.1, 60.1]}
    document = plan_document(parse_plan({"stream": "s", "area": CIRCLE, "report": "outside", "compare": compare}))
    assert (document["area"], document["compare"]) == (CIRCLE, compare)


def test_words_name_the_shape_and_its_size():
    words = {plan_in_words(plan_document(parse_plan({"stream": "s", "area": area}))) for area in (CIRCLE, CORRIDOR)}
    assert words == {"in a circle of 5,000 m", "in a corridor of 1,000 m"}
    count = parse_plan(KINDS["aggregate"] | {"area": TRIANGLE})
    assert plan_in_words(plan_document(count)) == "count in a polygon of 3 corners"


def test_the_builder_makes_areas_of_every_shape():
    begun = QueryPlanBuilder.create_query_on("s")
    made = [begun.in_circle([24, 60], 5000), begun.in_corridor([[24, 60], [25, 61]], 1000), begun.in_polygon(TRIANGLE)]
    assert [plan_document(builder.build())["area"] for builder in made] == [CIRCLE, CORRIDOR, TRIANGLE]
    joined = made[0].spatial_join_with(layer="ports").build()
    assert plan_document(joined)["area"] == CIRCLE
    with pytest.raises(InvalidPlan, match="radius_m must be"):
        begun.in_circle([24, 60], 0)
