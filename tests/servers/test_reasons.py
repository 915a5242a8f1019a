"""Why an answer changed: the object moved, or the filter decided."""

import pytest

from streaming.results import ENTERED, FILTERED, LEFT, MOVED
from tests.servers.harness import Client, Engine, one

AREA = {"lo": [0, 0], "hi": [5, 5]}
PLAN = {"stream": "ships", "area": AREA, "where": "speed > 5"}
SLOW, FAST = 1, 9


def changes(tmp_path, places, *plans):
    """Return sign and reason of what one ship's places (longitude, speed) change in the answers of plans, by query."""
    engine, client = Engine(tmp_path, 2, 4), Client()
    control = [{"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in enumerate(plans, 1)]
    client.receive(engine.run([], control))
    for version, (lon, speed) in enumerate(places):
        ship = one("ships", "a", version, [lon, 1, 0, lon, 1, 0], {"speed": speed})
        client.receive(engine.run([("ships", 0, ship)], []))
    told = {query: [] for query in range(1, len(plans) + 1)}
    for row in client.told:
        if row["sign"] in (ENTERED, LEFT):
            told[row["query"]].append((row["sign"], row["reason"]))
    return told


@pytest.mark.parametrize("step", [0, 0.5])
def test_where_a_property_changed_the_filter_is_the_reason_whether_the_object_moves_or_not(tmp_path, step):
    places = [(1, SLOW), (1 + step, FAST), (1 + 2 * step, SLOW)]
    assert changes(tmp_path, places, PLAN) == {1: [(ENTERED, FILTERED), (LEFT, FILTERED)]}


@pytest.mark.parametrize("speed_outside", [SLOW, FAST])
def test_what_comes_from_outside_or_goes_there_moved_whatever_its_properties(tmp_path, speed_outside):
    places = [(7, speed_outside), (2, FAST), (8, speed_outside)]
    assert changes(tmp_path, places, PLAN) == {1: [(ENTERED, MOVED), (LEFT, MOVED)]}


def test_an_object_that_was_not_known_before_moved(tmp_path):
    assert changes(tmp_path, [(1, FAST)], PLAN) == {1: [(ENTERED, MOVED)]}


def test_each_query_has_its_own_reason_also_those_that_share_an_answer(tmp_path):
    places = [(1, SLOW), (4, FAST)]
    narrow = PLAN | {"area": {"lo": [3, 0], "hi": [5, 5]}}
    told = changes(tmp_path, places, PLAN, narrow, PLAN)
    assert told == {1: [(ENTERED, FILTERED)], 2: [(ENTERED, MOVED)], 3: [(ENTERED, FILTERED)]}


def test_what_is_reported_outside_of_a_box_has_its_reason_too(tmp_path):
    plan = PLAN | {"compare": {"lo": [3, 0], "hi": [5, 5]}, "report": "outside"}
    places = [(1, SLOW), (2, FAST), (4, FAST)]
    assert changes(tmp_path, places, plan) == {1: [(ENTERED, FILTERED), (LEFT, MOVED)]}
