"""Queries of every kind in areas of any shape equal brute force after every batch, however the input is cut."""

import random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.kinds.areas import AreaFilter
from streaming.plans import parse_plan, plan_document
from streaming.results import EDITED, ENTERED, FILTERED, LEFT, MOVED, REGISTERED
from streaming.results.netting import net
from streaming.spaces import EARTH
from tests.areas import random_area
from tests.draws import examples
from tests.servers import (
    test_continuous_queries,
    test_distributed,
    test_encounters,
    test_joins,
    test_stream_joins,
    test_time_joins,
)
from tests.servers.harness import Engine, one

PLACES = (-180.0, -0.5, 0.0, 0.5, 1.0, 179.0, 179.5), (-1.0, 0.0, 0.5, 1.0, 89.0, 89.5)
SIZES_DEG = (0.3, 1.0, 2.0, 30.0)


def shaped(random_plan):
    """Return a function that makes random plans as another one does, most of them in an area that is no box."""

    def made(rng, *args, **kwargs):
        plan = random_plan(rng, *args, **kwargs)
        if rng.random() < 0.2 or (args and args[0] is not EARTH and hasattr(args[0], "dimensions")):
            return plan
        document = plan_document(plan)
        if document.get("report") == "inside" or "compare" not in document:
            document.pop("compare", None)
        lon, lat = rng.choice(PLACES[0]), rng.choice(PLACES[1])
        plan = parse_plan(document | {"area": random_area(rng, lon, lat, rng.choice(SIZES_DEG))})
        assert any(isinstance(entry, AreaFilter) for entry in plan.filters)
        return plan

    return made


KINDS = {
    "range": (test_continuous_queries, "random_plan"),
    "around, nearest and aggregates": (test_distributed, "random_distributed_plan"),
    "join with a layer": (test_joins, "random_plan"),
    "join with a stream": (test_stream_joins, "random_plan"),
    "join over event time": (test_time_joins, "random_plan"),
    "encounter": (test_encounters, "random_plan"),
}


def play(kind, rng):
    """Play a random history, with shapes."""
    module, name = KINDS[kind]
    made = shaped(getattr(module, name))
    with mock.patch.object(module, name, made):
        if module is test_continuous_queries:
            history = module.random_history
            with mock.patch.object(module, "random_history", lambda rng: history(rng, made)):
                return module.play(rng)
        return module.play(rng, **({"random_plan": made} if module is test_joins else {}))


def play_seed(kind, seed):
    """Play the history of a seed, with shapes."""
    return play(kind, random.Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@examples(6)
@given(seed=st.integers(0, 2**32 - 1))
def test_answers_in_areas_of_any_shape_equal_the_oracle_after_every_batch_and_restart(kind, seed):
    play_seed(kind, seed)


SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
TRIANGLE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 4], [0, 0]]]}
CIRCLE = {"circle": {"center": [1, 1], "radius_m": 60_000}}
CORRIDOR = {"corridor": {"line": [[0, 3], [4, 3]], "width_m": 20_000}}
SHIPS = {"a": (0.8, 0.8), "b": (3.0, 3.0), "c": (2.0, 2.0), "d": (1.0, 3.05), "e": (9.0, 9.0)}


def box(place):
    return [*place, float("-inf"), *place, float("inf")]


def register(area, revision, **more):
    return {"op": "register", "query": 1, "revision": revision, "plan": {"stream": "ships", "area": area} | more}


def told(fragments):
    return {(row["sign"], row["reason"], row["key"]) for row in net(fragments).to_pylist()}


def test_an_edit_of_a_shape_tells_exactly_what_enters_and_leaves(tmp_path):
    engine = Engine(tmp_path, 2, 4, rescaled=0.0)
    elements = [("ships", 0, one("ships", key, 1, box(place), {})) for key, place in SHIPS.items()]
    assert told(engine.run(elements, [register(SQUARE, 1)])) == {(ENTERED, REGISTERED, key) for key in "abcd"}
    assert told(engine.run([], [register(TRIANGLE, 2)])) == {(LEFT, EDITED, "b"), (LEFT, EDITED, "d")}
    assert told(engine.run([], [register(CIRCLE, 3)])) == {(LEFT, EDITED, "c")}
    moved = {(LEFT, EDITED, "a"), *((ENTERED, EDITED, key) for key in "bd")}
    assert told(engine.run([], [register(CORRIDOR, 4)])) == moved


def test_who_leaves_a_shape_but_not_the_box_about_it_has_moved_and_was_not_filtered(tmp_path):
    engine = Engine(tmp_path, 2, 4, rescaled=0.0)

    def at(version, place, speed=5):
        return [("ships", 0, one("ships", "a", version, box(place), {"speed_mps": speed}))]

    engine.run(at(1, (0.5, 0.5)), [register(TRIANGLE, 1, where="speed_mps > 1")])
    assert told(engine.run(at(2, (3.9, 3.9)), [])) == {(LEFT, MOVED, "a")}
    assert told(engine.run(at(3, (2.0, 2.0)), [])) == {(ENTERED, MOVED, "a")}, "on the border"
    assert told(engine.run(at(4, (2.0, 2.0), speed=0), [])) == {(LEFT, FILTERED, "a")}


def test_who_leaves_the_shape_of_the_area_of_a_query_with_a_focus_has_moved(tmp_path):
    engine = Engine(tmp_path, 1, 2, rescaled=0.0)
    around = {"at": [2.0, 2.0], "radius": 1_000_000.0}
    engine.run([("ships", 0, one("ships", "a", 1, box((0.5, 0.5)), {}))], [register(TRIANGLE, 1, around=around)])
    moved = engine.run([("ships", 0, one("ships", "a", 2, box((3.9, 3.9)), {}))], [])
    assert told(moved) == {(LEFT, MOVED, "a")}


def test_random_areas_of_the_tests_have_every_form():
    rng = random.Random(1)
    forms = {tuple(sorted(random_area(rng, 0, 0, 1))) for _ in range(100)}
    assert forms == {("circle",), ("corridor",), ("coordinates", "type")}
