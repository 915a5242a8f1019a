"""The checks of the harness see what they are there for: an answer that is wrong, and tuples that come twice."""

import copy

import pytest

from tests.chaos.client import ReturningClient
from tests.chaos.oracle import Truth
from tests.chaos.pairs import PAIR_PLANS, Reported, pair_faults
from tests.chaos.workload import FLEET, WIRE, Workload

INFINITE = float("inf")
RINGS = {"7": [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]}
PLACES = {"f0": (0.5, 0.5), "f1": (0.501, 0.5), "f2": (1.5, 1.5)}
OBJECTS = {
    key: {"time_us": 1, "bounds": [*place, -INFINITE, *place, INFINITE], "properties": '{"kind":"bus","speed_mps":3.0}'}
    for key, place in PLACES.items()
}
BOX = {"lo": [0, 0], "hi": [1, 1]}


def row(key, sign="+", **more):
    place = PLACES[key]
    bounds = [*place, None, *place, None]
    shown = {"kind": "bus", "speed_mps": 3.0}
    return {"sign": sign, "key": key, "time_us": 1, "bounds": bounds, "properties": shown, **more}


def group(value):
    bounds = [None] * 6
    return {"sign": "+", "key": "", "time_us": 1, "bounds": bounds, "properties": {"value": value, "count": 2}}


def partner(key):
    return {"partner": {"key": key}}


RIGHT = {
    "range": ({"compare": BOX}, [row("f0"), row("f1")]),
    "membership": ({"compare": BOX, "emit": "membership"}, [row("f0"), row("f1")]),
    "join with a layer": (
        {"kind": "join", "join": {"layer": "zones", "predicate": "intersects"}},
        [row("f0", **partner("7")), row("f1", **partner("7"))],
    ),
    "join with a stream": (
        {"kind": "join", "join": {"stream": FLEET, "predicate": "dwithin", "distance": 500}},
        [row("f0", **partner("f1")), row("f1", **partner("f0"))],
    ),
    "moving range": ({"around": {"key": "f0", "radius": 500}}, [row("f1")]),
    "nearest": (
        {"kind": "knn", "k": 1, "around": {"at": [1.5, 1.5]}},
        [row("f2", distance=0.0, rank=1)],
    ),
    "aggregate": ({"compare": BOX, "aggregate": {"function": "count"}}, [group(2.0)]),
}


def client_with(rows):
    client = ReturningClient("", "")
    client.subscribed, client._fresh = {1}, {1}
    client._take_snapshot(message("answer.snapshot", 5), copy.deepcopy(rows))
    assert client.faults == []
    return client


def message(kind, batch, **more):
    return {"type": kind, "query": 1, "epoch": "e", "batch": batch, "resync": False, **more}


@pytest.mark.parametrize("kind", RIGHT)
def test_the_oracle_accepts_a_right_answer_of_each_kind_and_refuses_one_that_lacks_a_row(kind):
    plan, rows = {"stream": FLEET} | RIGHT[kind][0], RIGHT[kind][1]
    truth = Truth({FLEET: OBJECTS, WIRE: {}}, RINGS)
    assert truth.differences(client_with(rows), 1, plan) == ""
    assert truth.differences(client_with(rows[1:]), 1, plan) != ""


def test_the_oracle_refuses_an_object_too_many_an_old_row_and_an_answer_that_never_came():
    plan, truth = {"stream": FLEET, "compare": BOX}, Truth({FLEET: OBJECTS, WIRE: {}}, RINGS)
    assert "f2 too many" in truth.differences(client_with([row("f0"), row("f1"), row("f2")]), 1, plan)
    assert "f0" in truth.differences(client_with([row("f0") | {"time_us": 0}, row("f1")]), 1, plan)
    assert truth.differences(ReturningClient("", ""), 1, plan) == "no answer"


# The last reports say that the windows of the others have ended.
REPORTS = [
    Reported("f0", 10_900_000),
    Reported("f1", 10_950_000),
    Reported("f1", 11_200_000),
    Reported("f0", 17_000_000),
    Reported("f1", 18_000_000),
]
PAIRS = {
    "interval_join": [("f0", "f1", 10_900_000)] * 2 + [("f1", "f0", 10_950_000), ("f1", "f0", 11_200_000)],
    "window_join": [("f0", "f1", 10_900_000), ("f1", "f0", 10_950_000)],
}


@pytest.mark.parametrize("plan", PAIR_PLANS, ids=lambda plan: plan["kind"])
def test_the_oracle_of_pairs_refuses_one_that_is_missing_and_one_that_comes_twice(plan):
    told = PAIRS[plan["kind"]]
    assert pair_faults(plan, told, REPORTS) == []
    assert pair_faults(plan, told[:-1], REPORTS) == [f"{told[-1]} is missing"]
    assert pair_faults(plan, [*told, told[0]], REPORTS) == [f"{told[0]} is too many"]


def test_a_window_that_is_not_complete_has_no_pairs_and_one_that_may_be_complete_may_have_them():
    (plan,) = [plan for plan in PAIR_PLANS if plan["kind"] == "window_join"]
    told = PAIRS["window_join"]
    assert len(pair_faults(plan, told, REPORTS[:3])) == 2
    assert pair_faults(plan, [], REPORTS[:3]) == []
    assert pair_faults(plan, told, REPORTS[:4]) == pair_faults(plan, [], REPORTS[:4]) == []


def test_a_client_notices_tuples_that_come_twice_or_in_a_wrong_order():
    client = client_with([row("f0")])
    client._take_change(message("answer.change", 6), [row("f0", "+")])
    assert "+ of f0" in client.faults[-1]
    client._take_change(message("answer.change", 7), [row("f1", "-")])
    assert "- of f1" in client.faults[-1]
    client._take_change(message("answer.change", 7), [])
    assert "batch 7 after 7" in client.faults[-1]


def test_a_client_notices_a_resumption_that_leaves_something_out_and_a_snapshot_that_is_not_what_changes_led_to():
    client = client_with([row("f0")])
    client._take_resumed(message("answer.resumed", 5), [])
    assert client.faults == []
    client._take_resumed(message("answer.resumed", 6), [])
    assert "resumed" in client.faults[-1]
    client._take_snapshot(message("answer.snapshot", 6), [row("f1")])
    assert "not what changes led to" in client.faults[-1]


def test_the_workload_draws_every_kind_of_query_the_same_for_a_seed():
    one, other = Workload(3, 100), Workload(3, 100)
    plans = [one.plan() for _ in range(24)]
    assert plans == [other.plan() for _ in range(24)]
    assert {plan.get("kind", "range") for plan in plans} == {"range", "join", "knn"}
    assert any("aggregate" in plan for plan in plans) and any("radius" in plan.get("around", {}) for plan in plans)
