"""What is explained as a member is one in the engine, for random plans of every kind, and elements."""

from dataclasses import fields, replace
from pkgutil import resolve_name
from typing import get_args

import numpy as np
import orjson
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.cql2 import parse_text
from streaming.explaining import ExplanationFacts, Partner, Subject, explain
from streaming.explaining.filters import explain_filter, text_of
from streaming.filters import parse_filter, passes
from streaming.kinds.base import Fact, Kind
from streaming.kinds.registry import KINDS
from streaming.layers.features import feature_table
from streaming.operators.continuous_queries import ContinuousQueries
from streaming.operators.failures import Failures
from streaming.operators.features import Features
from streaming.operators.focal_ranges import FocalRanges
from streaming.operators.layer import LayerVersion
from streaming.operators.range_query import RangeQueries
from streaming.operators.stream_join import StreamJoins
from streaming.plans import parse_plan
from streaming.spaces import EARTH
from tests import strategies
from tests.areas import random_area
from tests.draws import examples, rngs
from tests.geodesy import apart_m
from tests.plans import strategies as documents

FAR = float("inf")
ONE = np.zeros(1, dtype=np.int64)


def subject_of(box, properties, stream="ships", key="a", geometry=None):
    wkb = None if geometry is None else shapely.to_wkb(geometry)
    return Subject.of(stream, key, 0, np.array(box), properties, EARTH, wkb)


def point(x, y):
    return [x, y, -FAR, x, y, FAR]


def leaves(term):
    """Return the terms without parts."""
    return [leaf for part in term.parts for leaf in leaves(part)] if term.parts else [term]


subjects = st.builds(subject_of, strategies.boxes(), strategies.properties, st.sampled_from(strategies.STREAMS))


@pytest.mark.long
@examples(100)
@given(strategies.plans(), subjects)
def test_a_range_is_explained_as_the_engine_decides_it(plan, subject):
    expected = bool(len(RangeQueries([plan], EARTH).match(subject.elements)[0]))
    told = explain(plan, subject)
    assert (told.holds is True) == expected
    assert expected or list(told.deciding())


@examples(100)
@given(rngs(), strategies.properties, st.booleans())
def test_an_area_of_any_shape_is_explained_as_the_engine_decides_it(rng, properties, shaped):
    lon, lat = rng.choice([-180.0, 179.8, 20.0]), rng.choice([-89.0, 0.0, 60.0, 88.0])
    plan = parse_plan({"stream": "ships", "area": random_area(rng, lon, lat, 1.0)})
    x, y = lon + rng.uniform(-2, 2), lat + rng.uniform(-1, 1)
    line = shapely.LineString([(x, y), (x + 0.2, y + 0.1)])
    box = [x, y, -FAR, x + 0.2, y + 0.1, FAR] if shaped else point(x, y)
    subject = subject_of(box, properties, geometry=line if shaped else None)
    expected = bool(len(RangeQueries([plan], EARTH).match(subject.elements)[0]))
    told = explain(plan, subject)
    assert told.holds == expected
    (area,) = told.parts
    assert (area.border.distance_m <= 0) == expected or abs(area.border.distance_m) < 1e-3
    here, there = (shapely.Point(place) for place in (area.border.element, area.border.place))
    assert apart_m(here, there) == pytest.approx(abs(area.border.distance_m), rel=3e-3, abs=0.01)


wheres = st.recursive(
    st.sampled_from(
        [
            "speed_mps > 3",
            "speed_mps * 2 - 1 <= 5",
            "kind = 'cargo'",
            "kind LIKE 'c%'",
            "CASEI(kind) LIKE CASEI('TANK%')",
            "kind IN ('cargo', 'x')",
            "speed_mps BETWEEN 1 AND 4",
            "name IS NULL",
            "moored",
            "name = kind",
            "NOT speed_mps IN (1, 2)",
        ]
    ),
    lambda part: st.one_of(
        st.builds("({} AND {})".format, part, part),
        st.builds("({} OR {})".format, part, part),
        st.builds("NOT ({})".format, part),
    ),
    max_leaves=6,
)
named = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["cargo", "tanker", 5]),
        "speed_mps": st.sampled_from([0, 2, 3.5, 6, "fast", None]),
        "name": st.sampled_from(["cargo", None]),
        "moored": st.sampled_from([True, False, "true"]),
    },
)


@examples(100)
@given(wheres, named)
def test_a_filter_is_explained_as_the_engine_decides_it(where, properties):
    told = explain_filter(where, subject_of(point(0, 0), properties))
    assert (told.holds is True) == passes(parse_filter(where), pa.array([orjson.dumps(properties).decode()]))[0]
    assert all(leaf.found for leaf in leaves(told))


@examples(40)
@given(wheres, named)
def test_the_text_of_a_filter_means_the_same(where, properties):
    again, column = text_of(parse_text(where)), pa.array([orjson.dumps(properties).decode()])
    assert passes(parse_filter(again), column)[0] == passes(parse_filter(where), column)[0]


def test_a_missing_property_is_named_and_makes_the_term_unknown():
    told = explain_filter("speed_mps > 5 AND kind = 'cargo'", subject_of(point(0, 0), {"kind": "cargo"}))
    assert told.holds is None
    assert [(term.asks, term.found) for term in told.deciding()] == [("speed_mps > 5", "speed_mps is missing")]


def layer_of(rng, count=12):
    places = [shapely.Point(rng.uniform(-3, 3), rng.uniform(-3, 3)) for _ in range(count)]
    shapes = [place.buffer(radius) if (radius := rng.choice([0.0, 0.3, 1.0])) else place for place in places]
    keys = [f"f{number}" for number in range(count)]
    table = feature_table("ports", keys, shapes, [{"kind": rng.choice(strategies.KINDS)} for _ in keys])
    return LayerVersion.of(Features(table, EARTH))


@examples(40)
@given(rngs(), st.sampled_from(["intersects", "within", "dwithin", "disjoint", "boxes", "covered_by"]))
def test_a_join_with_a_layer_is_explained_as_the_engine_decides_it(rng, predicate):
    layer = layer_of(rng)
    join = {"layer": "ports", "predicate": predicate, "where": rng.choice(["", "kind = 'cargo'"])}
    if predicate == "dwithin":
        join["distance"] = rng.choice([0.0, 20_000.0, 90_000.0])
    plan = {"stream": "ships", "kind": "join", "join": join, "area": {"lo": [-2, -3], "hi": [3, 3]}}
    plan = parse_plan(plan | {"transform": rng.choice([[], [{"enlarge_m": 5_000}]])})
    subject = subject_of(point(rng.uniform(-4, 4), rng.uniform(-3, 3)), {})
    queries = ContinuousQueries([plan], EARTH)
    expected = bool(len(queries.match(subject.elements, lambda _: layer).row))
    told = explain(plan, subject, ExplanationFacts(layer=lambda _: layer))
    assert told.holds == expected
    near = told.parts[-1]
    if near.border and predicate == "intersects" and not plan.transform:
        assert (near.border.distance_m <= 0) == (near.holds is True)


shapes_about = st.one_of(
    st.builds(lambda r: {"radius": r}, st.sampled_from([1_000.0, 150_000.0, 9e6])),
    st.builds(lambda a, b: {"half_widths": [a, b]}, st.sampled_from([1e4, 3e5]), st.sampled_from([1e4, 3e5])),
    st.just({"polygon": [[-9e4, -9e4], [9e4, -9e4], [0, 2e5]]}),
)


@examples(40)
@given(
    shapes_about,
    st.sampled_from(["b", "a", "at"]),
    subjects,
    strategies.boxes(),
    st.sampled_from(["", "speed_mps > 3"]),
)
def test_a_range_about_a_focus_is_explained_as_the_engine_decides_it(shape, focus, subject, box, where):
    around = shape | ({"at": [1.0, 1.0]} if focus == "at" else {"stream": "ships", "key": focus})
    plan = parse_plan({"stream": "ships", "around": around, "where": where})
    other = subject_of(box, {}, key=focus)
    keys, bounds = (np.empty(0, np.int64), np.empty((0, 6))) if focus == "at" else (other.key_hash, other.bounds)
    placed = FocalRanges([plan], EARTH).placed(keys, bounds, np.full(1, np.nan))
    expected = bool(len(placed.match(subject.elements, subject.key_hash, Failures()).row))
    told = explain(plan, subject, ExplanationFacts(focus=None if focus == "at" else other))
    assert (told.holds is True) == expected


def test_a_range_whose_focus_is_lost_has_nobody_and_one_whose_focus_is_not_known_is_unknown():
    plan = parse_plan({"stream": "ships", "around": {"key": "b", "radius": 1_000}})
    told = [
        explain(plan, subject_of(point(0, 0), {}), known) for known in (ExplanationFacts(lost=True), ExplanationFacts())
    ]
    assert [term.holds for term in told] == [False, None]


@examples(100)
@given(rngs(), st.sampled_from(["dwithin", "intersects", "boxes"]))
def test_a_join_with_a_stream_is_explained_as_the_engine_decides_it(rng, predicate):
    join = {"stream": "buses", "predicate": predicate} | ({"distance": 100_000.0} if predicate == "dwithin" else {})
    plan = parse_plan({"stream": "ships", "kind": "join", "join": join, "where": rng.choice(["", "speed_mps > 3"])})
    grid = [0.0, 0.5, 1.0, 2.0]
    others = [subject_of(point(rng.choice(grid), rng.choice(grid)), {}, "buses", f"b{n}") for n in range(4)]
    subject = subject_of(point(rng.choice(grid), rng.choice(grid)), rng.choice([{}, {"speed_mps": 5}]))
    everyone = [subject, *others]
    table = pa.concat_tables([one.table for one in everyone])
    elements = replace(
        subject.elements,
        stream=np.concatenate([one.elements.stream for one in everyone]),
        bounds=np.concatenate([one.bounds for one in everyone]),
        cold=table.take,
    )
    keys, rows = table["key_hash"].to_numpy(), np.arange(5)
    expected = bool(len(StreamJoins([plan], EARTH).pairs(elements, keys, rows, rows).row))
    assert (explain(plan, subject, ExplanationFacts(partners=others)).holds is True) == expected
    assert explain(plan, subject).holds is not True


def test_who_is_not_among_the_nearest_is_told_how_far_the_last_of_them_is():
    plan = parse_plan({"stream": "ships", "kind": "knn", "k": 2, "around": {"at": [0, 0]}})
    answer = [Partner("b", 1, 500.0), Partner("c", 2, 1_000.0)]
    told = explain(plan, subject_of(point(0, 0.1), {}), ExplanationFacts(neighbours=answer))
    (term,) = told.deciding()
    assert term.found == "11 km away; the last of the 2 is c at 1.00 km"
    assert term.border.distance_m == pytest.approx(11_057.4 - 1_000, abs=1)
    mine = explain(plan, subject_of(point(0, 0.1), {}, key="c"), ExplanationFacts(neighbours=answer))
    assert mine.holds and mine.parts[-1].found == "rank 2 of 2, 11 km away"


def test_an_aggregate_tells_whether_the_object_is_counted_and_its_value_against_each_threshold():
    aggregate = {"function": "count", "group_by": "kind", "thresholds": [{"above": 3}, {"below": 1}]}
    plan = parse_plan({"stream": "ships", "compare": {"lo": [0, 0], "hi": [1, 1]}, "aggregate": aggregate})
    ship = subject_of(point(0.5, 0.5), {"kind": "cargo"})
    told = explain(plan, ship, ExplanationFacts(groups={"cargo": 2.0, "tanker": 9.0}))
    assert [term.found for term in told.deciding()] == ["it is 2", "it is 2"]
    assert explain(plan, ship, ExplanationFacts(groups={"cargo": 4.0})).holds
    assert explain(plan, ship).holds is None


@examples(40)
@given(documents.documents, strategies.boxes(), strategies.properties)
def test_every_plan_can_be_explained(document, box, properties):
    plan = parse_plan(document)
    told = explain(plan, subject_of(box, properties, plan.stream, "a"))
    assert told.holds is True or list(told.deciding())
    orjson.dumps(told.document())


def test_outside_of_a_box_without_bounds_is_decided_by_that_box():
    anywhere = {"lo": [None, None], "hi": [None, None]}
    plan = parse_plan({"stream": "a", "area": anywhere, "report": "outside"})
    told = explain(plan, subject_of([25.0, 60.0, 0.0, 25.0, 60.0, 0.0], {}, "a", "a"))
    assert told.holds is False
    assert [term.asks for term in told.deciding()] == ["in the query box"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_says_who_explains_it(kind):
    assert kind.explained != Kind.explained and callable(resolve_name(kind.explained))


def test_every_fact_that_an_explanation_can_use_is_a_field():
    assert set(get_args(Fact)) <= {field.name for field in fields(ExplanationFacts)}


def test_rules_and_queries_of_sketches_say_what_cannot_be_known():
    rule = {"stream": "a", "kind": "rule", "when": {"query": 1}, "for_s": 60, "rearm_s": 60}
    asked = {"stream": "a", "kind": "sketch", "ask": [{"question": "count"}]}
    for document in (rule, asked):
        told = explain(parse_plan(document), subject_of(point(0, 0), {}, "a"))
        assert told.holds is None and all(term.holds is None for term in told.deciding())


def test_an_object_of_another_stream_is_told_so():
    (term,) = explain(
        parse_plan({"stream": "buses", "compare": {"lo": [0, 0], "hi": [1, 1]}}), subject_of(point(0, 0), {})
    ).deciding()
    assert term.found == "it is of the stream ships"
