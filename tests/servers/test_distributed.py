"""Queries that move, nearest neighbours and aggregates equal brute force after every batch, however it is cut."""

import random
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given

from streaming.elements import key_hashes
from streaming.operators import stream_boxes
from streaming.operators.distributed import SomeQueries
from streaming.plans import parse_plan
from streaming.results import CANCELLED, DROPPED, EDITED, ENTERED, EXPIRED, LEFT, MOVED, REGISTERED, STAYED
from streaming.servers import sorted_runs
from streaming.servers.region.objects import ObjectTable
from streaming.spaces import EARTH, parse_space
from tests.draws import examples, rngs, seen_in
from tests.servers.harness import Client, Engine, one
from tests.servers.moving_oracle import MovingWorld
from tests.servers.test_continuous_queries import (
    KEYS,
    LATITUDES,
    LAYOUTS,
    LONGITUDES,
    STREAMS,
    play_history,
    random_box,
    random_corners,
    random_history,
)

PLANE = parse_space(
    {
        "name": "plane",
        "dimensions": [
            {"name": "x", "unit": "m", "lo": -10, "hi": 10},
            {"name": "y", "unit": "m", "lo": -10, "hi": 10},
        ],
    }
)
LENGTHS = {"earth": (60_000.0, 250_000.0, 5_000_000.0), "plane": (0.7, 2.2, 9.0)}
SQUARE = ((-1, -1), (1, -1), (1, 1), (0, 0.5), (-1, 1))


def plane_box(rng):
    """A box of the plane, mostly a point, on both sides of the regions' borders."""
    low = [rng.choice([-7.0, -3.4, -1.0, 0.0, 0.5, 3.3, 6.0]), rng.choice([-5.0, -0.5, 0.0, 0.5, 4.0])]
    return [*low, low[0] + rng.choice([0.0, 0.0, 0.0, 0.5, 3.0]), low[1] + rng.choice([0.0, 0.0, 0.5])]


def random_focus(rng, space):
    if rng.random() < 0.2:
        return {"at": [rng.choice(LONGITUDES), rng.choice(LATITUDES)] if space is EARTH else [0.5, -0.5]}
    return {"stream": rng.choice(STREAMS), "key": rng.choice(KEYS)}


def random_shape(rng, space, focus):
    length = rng.choice(LENGTHS[space.name])
    vertical = [500.0] if space is EARTH and "key" in focus and rng.random() < 0.3 else []
    shapes = (
        {"radius": length},
        {"half_widths": [length, rng.choice([length, length / 2, None]), *vertical]},
        {"polygon": [[length * x, length * y] for x, y in SQUARE]},
    )
    return rng.choice(shapes)


def random_aggregate(rng, space):
    functions = rng.choice([{"function": "count"}, {"function": rng.choice(["min", "max", "sum", "avg"])}])
    if functions["function"] != "count":
        functions |= rng.choice([{"property": "speed_mps"}, {"dimension": space.dimensions[0].name}])
    thresholds = [{"above": 1}, {"below": 1, "for_s": 3}, {"above": 2.5, "for_s": 1}]
    return functions | rng.choice([{}, {"group_by": "kind"}]) | {"thresholds": rng.sample(thresholds, 2)}


def random_distributed_plan(rng, space=EARTH):
    """A moving range, a kNN query or an aggregate."""
    document = {"stream": rng.choice(STREAMS), "where": rng.choice(["", "", "", "kind = 'cargo'", "speed_mps > 3"])}
    document["emit"] = rng.choice(["changes", "changes", "membership"])
    if rng.random() < 0.2:
        corners = random_corners(rng) if space is EARTH else {"lo": [-7, -7], "hi": [rng.choice([0, 4]), 7]}
        document["area"] = corners
    kind = rng.choice(["range", "knn", "aggregate", "fixed aggregate"])
    if kind == "fixed aggregate":
        corners = random_corners(rng) if space is EARTH else {"lo": [-4, -4], "hi": [rng.choice([0, 4]), 4]}
        document |= {"area": corners, "aggregate": random_aggregate(rng, space), "emit": "changes"}
    elif kind == "knn":
        document |= {"kind": "knn", "around": random_focus(rng, space), "k": rng.choice([1, 2, 3, 6])}
        document["alpha"] = rng.choice([0, 0.2, 1])
        if rng.random() < 0.3:
            document["max_distance"] = rng.choice(LENGTHS[space.name])
    else:
        focus = random_focus(rng, space)
        document["around"] = focus | random_shape(rng, space, focus)
        if kind == "aggregate":
            document |= {"aggregate": random_aggregate(rng, space), "emit": "changes"}
    return parse_plan(document, space)


SMALL_RUNS = {"LEAST_SWEPT": 4, "LEAST_CHUNK": 3, "CHUNKS": 4, "MOST_TIERED": 16}


def play(rng, few_pairs=None, small_runs=None):
    """Play a random history; return the client."""
    few_pairs = rng.choice([0, 10**6]) if few_pairs is None else few_pairs
    small_runs = rng.random() < 0.5 if small_runs is None else small_runs
    space = rng.choice([EARTH, PLANE])
    lives = {stream: rng.choice([5, 20]) for stream in sorted(set(STREAMS)) if rng.random() < 0.7}
    history = random_history(
        rng, lambda rng: random_distributed_plan(rng, space), random_box if space is EARTH else plane_box
    )
    # Boxes are compared one by one, or through an index over them, whether or not there are many.
    pairs = patch.object(stream_boxes, "FEW_PAIRS", few_pairs)
    # Sorted runs are merged as if there were many objects, or hardly ever.
    runs = SMALL_RUNS if small_runs else {"CHUNKS": sorted_runs.CHUNKS}
    with tempfile.TemporaryDirectory() as root, pairs, patch.multiple(sorted_runs, **runs):
        return play_history(history, lives, Engine(Path(root), *rng.choice(LAYOUTS), space=space), MovingWorld)


@pytest.mark.long
@examples(12)
@given(rngs())
def test_answers_equal_the_oracle_after_every_batch_and_restart(rng):
    play(rng)


@pytest.mark.long
def test_a_history_in_which_the_object_of_the_greatest_value_moves_without_a_change_of_its_event_time():
    play_seed(5594)


def play_seed(seed):
    """Play the history of a seed, in one of the ways in which boxes are compared and runs are merged."""
    return play(random.Random(seed), few_pairs=(seed % 2) * 10**6, small_runs=seed % 4 < 2)


def test_a_focal_object_that_says_something_else_in_the_same_version_is_told(tmp_path):
    engine, client = Engine(tmp_path, 1, 1, PLANE), Client()
    for speed_mps in (1, 5):
        report = one("ships", "focal", 7, [0, 0, 0, 0], {"speed_mps": speed_mps}, PLANE)
        control = [register(KINDS["range"] | {"stream": "ships"})] if speed_mps == 1 else []
        client.receive(engine.run([("ships", 0, report)], control))
        assert client.places[1]["properties"] == f'{{"speed_mps":{speed_mps}}}'


# Histories that between them make every kind of tuple.
TELLING = 0, 37


def test_the_histories_make_every_kind_of_tuple():
    reasons = {
        ENTERED: {MOVED, REGISTERED, EDITED},
        STAYED: {MOVED},
        LEFT: {MOVED, EDITED, EXPIRED, DROPPED, CANCELLED},
    }
    wanted = {(sign, reason) for sign, found in reasons.items() for reason in found}
    plays = ({(row["sign"], row["reason"]) for row in play_seed(seed).told} for seed in TELLING)
    assert wanted <= seen_in(plays, wanted)


KINDS = {
    "range": {"around": {"key": "focal", "radius": 3.0}},
    "knn": {"kind": "knn", "around": {"key": "focal"}, "k": 2},
    "count": {"around": {"key": "focal", "radius": 3.0}, "aggregate": {"function": "count"}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_handoff_in_every_batch_is_neither_an_entry_nor_an_exit(tmp_path, kind):
    """The focal object and its company cross borders of regions together, again and again."""
    engine, client = Engine(tmp_path, 2, 4, PLANE), Client()
    plan = {"stream": "ships", **KINDS[kind]}

    def fleet(step):
        x, y = (-1, 1)[step % 2], (-1, 1)[step // 2 % 2]
        ships = {"focal": (x, y), "left": (x - 0.5, y), "right": (x + 0.7, y)}
        return [
            ("ships", 0, one("ships", key, step, [*place, *place], {"step": step}, PLANE))
            for key, place in ships.items()
        ]

    client.receive(engine.run(fleet(0), [{"op": "register", "query": 1, "revision": 1, "plan": plan}]))
    begun = {(row["sign"], row["key"]) for row in client.told}
    assert begun == ({(ENTERED, "")} if kind == "count" else {(ENTERED, "left"), (ENTERED, "right")})
    client.told.clear()
    for step in range(1, 9):
        client.receive(engine.run(fleet(step), []))
        assert client.places[1]["box"][:2] == [(-1, 1)[step % 2], (-1, 1)[step // 2 % 2]]
    assert {row["sign"] for row in client.told} <= {STAYED}
    assert len(client.told) == {"range": 16, "knn": 16, "count": 0}[kind]


def test_a_query_whose_object_falls_silent_keeps_its_place_until_the_time_to_live(tmp_path):
    engine, client = Engine(tmp_path, 1, 4, PLANE), Client()
    focal = ("buoys", 0, one("buoys", "b", 1, [0, 0, 0, 0], {}, PLANE))
    near = ("ships", 0, one("ships", "near", 1, [1, 0, 1, 0], {}, PLANE))
    control = [{"op": "stream", "stream": "buoys", "ttl_s": 10}]
    for query, kind in enumerate(KINDS.values(), 1):
        around = kind["around"] | {"stream": "buoys", "key": "b"}
        plan = {"stream": "ships", **kind, "around": around}
        control.append({"op": "register", "query": query, "revision": 1, "plan": plan})
    client.receive(engine.run([focal, near], control))
    client.receive(engine.run([("ships", 9, one("ships", "near", 2, [2, 0, 2, 0], {}, PLANE))], []))
    client.receive(engine.run([], [{"op": "tick", "now_us": 10_000_000}]))
    assert [set(client.answers[query]) for query in (1, 2)] == [{"near"}, {"near"}]
    client.told.clear()
    client.receive(engine.run([], [{"op": "tick", "now_us": 10_000_001}]))
    assert [(row["query"], row["sign"], row["reason"]) for row in client.told] == [
        (1, LEFT, EXPIRED),
        (2, LEFT, EXPIRED),
        (3, STAYED, EXPIRED),
    ]
    assert {client.places[query]["reason"] for query in (1, 2, 3)} == {EXPIRED}
    assert client.places[1]["box"] == [0, 0, 0, 0]
    client.receive(engine.run([("buoys", 11, one("buoys", "b", 2, [2, 1, 2, 1], {}, PLANE))], []))
    assert [set(client.answers[query]) for query in (1, 2)] == [{"near"}, {"near"}]


def test_thresholds_are_raised_after_their_time_and_end_with_their_cause(tmp_path):
    engine, client = Engine(tmp_path, 1, 4, PLANE), Client()
    thresholds = [{"below": 1, "for_s": 5}, {"above": 1}]
    aggregate = {"function": "count", "thresholds": thresholds}
    plan = {"stream": "ships", "area": {"lo": [-5, -5], "hi": [5, 5]}, "aggregate": aggregate}

    def told(elements, control):
        client.told.clear()
        client.receive(engine.run(elements, control))
        return [(row["sign"], row["partner"]) for row in client.told if row["partner"]]

    def ship(key, version, x):
        return ("ships", 0, one("ships", key, version, [x, 0, x, 0], {}, PLANE))

    register = {"op": "register", "query": 1, "revision": 1, "plan": plan}
    assert told([], [register, {"op": "tick", "now_us": 1_000_000}]) == []
    assert told([], [{"op": "tick", "now_us": 5_999_999}]) == []
    assert told([], [{"op": "tick", "now_us": 6_000_000}]) == [(ENTERED, "below 1 for 5 s")]
    assert told([ship("a", 1, 0)], []) == [(LEFT, "below 1 for 5 s")]
    assert told([ship("b", 1, 3)], []) == [(ENTERED, "above 1")]
    assert told([ship("b", 2, 6)], []) == [(LEFT, "above 1")]
    assert [row["partner_properties"] for row in client.told if row["partner"]] == ['{"value":1.0}']
    assert told([ship("a", 2, 7)], [{"op": "tick", "now_us": 8_000_000}]) == []
    engine.restart()
    assert told([], [{"op": "tick", "now_us": 13_000_000}]) == [(ENTERED, "below 1 for 5 s")]
    assert told([], [{"op": "cancel", "query": 1, "revision": 2}]) == [(LEFT, "below 1 for 5 s")]


def test_of_equally_near_objects_those_of_lower_keys_are_taken(tmp_path):
    engine, client = Engine(tmp_path, 2, 4, PLANE), Client()
    plan = {"stream": "ships", "kind": "knn", "k": 150, "around": {"at": [0, 0]}}
    keys = [f"ship {number}" for number in range(240)]
    corners = [(x * far, y * far) for x in (-1, 1) for y in (-1, 1) for far in (1, 1.5)] * 30
    ships = [("ships", 0, one("ships", key, 1, [*at, *at], {}, PLANE)) for key, at in zip(keys, corners, strict=True)]
    client.receive(engine.run(ships, [{"op": "register", "query": 1, "revision": 1, "plan": plan}]))
    hashes = dict(zip(keys, key_hashes("ships", keys).tolist(), strict=True))
    ordered = sorted(keys[::2], key=hashes.get) + sorted(keys[1::2], key=hashes.get)
    assert [client.ranks[1].get(key) for key in ordered[:151]] == [*range(1, 151), None]
    client.receive(engine.run([("ships", 0, one("ships", ordered[0], 2, [5, 5, 5, 5], {}, PLANE))], []))
    assert set(client.answers[1]) == set(ordered[1:151])


def test_an_edit_that_narrows_a_search_lets_go_of_what_is_too_far(tmp_path):
    engine, client = Engine(tmp_path, 1, 4, PLANE), Client()
    ships = [("ships", 0, one("ships", key, 1, [x, 0, x, 0], {}, PLANE)) for key, x in (("a", 1), ("b", 3), ("c", 4))]

    def register(revision, **limits):
        plan = {"stream": "ships", "kind": "knn", "k": 3, "around": {"at": [0, 0]}, **limits}
        return [{"op": "register", "query": 1, "revision": revision, "plan": plan}]

    client.receive(engine.run(ships, register(1)))
    client.receive(engine.run([], register(2, max_distance=3.5)))
    assert set(client.answers[1]) == {"a", "b"}
    client.receive(engine.run([], register(3, max_distance=0.5)))
    assert not client.answers[1]
    client.receive(engine.run([], register(4)))
    assert set(client.answers[1]) == {"a", "b", "c"}


def test_neighbours_that_are_all_there_are_follow_their_focal_object_without_being_looked_for(tmp_path, monkeypatch):
    """A search region without an end is the same wherever it is; distances and ranks are not."""
    engine, client = Engine(tmp_path, 1, 2, PLANE), Client()
    plan = {"stream": "ships", "kind": "knn", "around": {"key": "focal"}, "k": 3}

    def ships(version, **places):
        return [("ships", 0, one("ships", key, version, [x, 0, x, 0], {}, PLANE)) for key, x in places.items()]

    client.receive(engine.run(ships(1, focal=0, left=-2, right=3), [register(plan)]))
    client.receive(engine.run([], []))
    seen = []
    match = SomeQueries.match

    def watched(queries, elements, *rest):
        seen.append(len(elements))
        return match(queries, elements, *rest)

    monkeypatch.setattr(SomeQueries, "match", watched)
    monkeypatch.setattr(SomeQueries, "search", lambda queries, *rest: pytest.fail("all objects were looked at"))
    client.told.clear()
    client.receive(engine.run(ships(2, focal=1), []))
    told = [(row["key"], row["sign"], row["rank"], row["distance"]) for row in client.told]
    assert sorted(told) == [("left", STAYED, 2, 3.0), ("right", STAYED, 1, 2.0)]
    assert max(seen) == 1  # the focal object alone, as it was and as it is


def test_no_batch_gathers_all_objects(tmp_path, monkeypatch):
    engine, client = Engine(tmp_path, 1, 2, PLANE, rescaled=0.0), Client()
    monkeypatch.setattr(ObjectTable, "whole", property(lambda table: pytest.fail("all objects were gathered")))

    def ships(version, **places):
        return [("ships", 0, one("ships", key, version, [x, 0, x, 0], {}, PLANE)) for key, x in places.items()]

    client.receive(engine.run(ships(1, focal=0, left=-2, right=3, far=9), []))
    near = {"stream": "ships", "kind": "knn", "around": {"key": "focal"}, "k": 2}
    within = {"stream": "ships", "around": {"key": "focal", "radius": 2.5}}
    count = within | {"aggregate": {"function": "count"}}
    client.receive(engine.run([], [register(near), register(within, 2), register(count, 3)]))
    assert (set(client.answers[1]), set(client.answers[2])) == ({"left", "right"}, {"left"})
    client.receive(engine.run(ships(2, focal=4), [{"op": "snapshot", "query": 2}]))
    assert (set(client.answers[1]), set(client.answers[2])) == ({"right", "far"}, {"right"})


def register(plan, query=1):
    return {"op": "register", "query": query, "revision": 1, "plan": plan}
