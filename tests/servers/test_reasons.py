"""Why an answer changed: who moved, or whose filter decided."""

import math
import random

import pytest
import shapely

from streaming.layers.features import feature_table
from streaming.results import (
    EDITED,
    ENTERED,
    FILTERED,
    FOCUS_MOVED,
    LEFT,
    MOVED,
    OTHERS_MOVED,
    PARTNER_FILTERED,
    PARTNER_MOVED,
    STAYED,
)
from streaming.spaces import parse_space
from tests.servers.harness import Client, Engine, one

AREA = {"lo": [0, 0], "hi": [5, 5]}
PLAN = {"stream": "ships", "area": AREA, "where": "speed > 5"}
SLOW, FAST = 1, 9


def registration(query, plan):
    return {"op": "register", "query": query, "revision": 1, "plan": plan}


def changes(tmp_path, places, *plans):
    """Return sign and reason of what one ship's places (longitude, speed) change in the answers of plans, by query."""
    engine, client = Engine(tmp_path, 2, 4), Client()
    control = [registration(query, plan) for query, plan in enumerate(plans, 1)]
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


# The definition. Of two sides that change in one batch the object comes first, then the other one; the side at whose
# step the pair begins or ceases to satisfy the query decided, and its filter did where the places were right meanwhile.
PLANE = parse_space(
    {"name": "plane", "dimensions": [{"name": name, "unit": "m", "lo": -99, "hi": 99} for name in ("x", "y")]}
)
NEAR = 4.0
JOIN = {"kind": "join", "where": "speed > 5", "join": {"predicate": "dwithin", "distance": NEAR, "where": "speed > 3"}}
KINDS = {
    "layer": JOIN | {"join": JOIN["join"] | {"layer": "zones"}},
    "stream": JOIN | {"join": JOIN["join"] | {"stream": "ships"}},
    "around": {"around": {"key": "focal", "radius": NEAR}, "where": "speed > 5"},
    "quiet": {"around": {"key": "focal", "radius": NEAR}, "where": "speed > 5", "emit": "membership"},
    "knn": {"kind": "knn", "around": {"key": "focal"}, "k": 2, "where": "speed > 5"},
    "knn of all": {"kind": "knn", "around": {"key": "focal"}, "k": 2, "max_distance": 6},
}
WAYS = {(0, False): MOVED, (0, True): FILTERED, (1, False): PARTNER_MOVED, (1, True): PARTNER_FILTERED}
# A history in which every reason comes.
SEED, BATCHES = 10, 45
ZONES = {"left": (-3.0, 0.0, 5), "right": (3.0, 0.0, 2), "high": (0.0, 3.0, 9)}


def decided(states, place, holds):
    """The reason, given a pair before, with the object as it is now, and with both as they are now."""
    step = next(step for step in (0, 1) if holds(*states[step]) != holds(*states[step + 1]))
    return WAYS[step, place(*states[step]) and place(*states[step + 1])]


def near(one, other):
    return math.dist(one[:2], other[:2]) <= NEAR


def joined(one, other):
    return near(one, other) and one[2] > 5 and other[2] > 3


def ranked(world, focus, plan, but=None):
    """The neighbours of a focus, and how far they may be."""
    limit = plan.get("max_distance", math.inf)
    ways = {key: math.dist(one[:2], focus[:2]) for key, one in world.items() if key != "focal"}
    passing = sorted((d, key) for key, d in ways.items() if d <= limit and ("where" not in plan or world[key][2] > 5))
    members = passing[: plan["k"]]
    return {key for _, key in members}, members[-1][0] if len(members) == plan["k"] else limit


def among_the_nearest(plan, key, entered, was, now):
    """Why one came among the nearest, or left: its filter, where it was near all the time; its own move; the focus."""
    (_, limit), (_, new_limit) = ranked(was, was["focal"], plan), ranked(now, now["focal"], plan)
    old, between, new = (math.dist(one[key][:2], of["focal"][:2]) for one, of in ((was, was), (now, was), (now, now)))
    if "where" in plan and (old <= limit if entered else new <= new_limit):
        return FILTERED
    if (between <= limit) == entered:
        return MOVED
    return FOCUS_MOVED if (new <= limit) == entered else OTHERS_MOVED


def expected(kind, row, was, now):
    """The reason of a tuple by the definition, given the ships before and now: x, y and speed by key."""
    key, entered = row["key"], row["sign"] == ENTERED
    if "knn" in kind:
        return among_the_nearest(KINDS[kind], key, entered, was, now)
    if kind == "layer":
        zone = ZONES[row["partner"]]
        return decided([(was[key], zone), (now[key], zone)], near, joined)
    partner = row["partner"] if kind == "stream" else "focal"
    states = [(was[key], was[partner]), (now[key], was[partner]), (now[key], now[partner])]
    if kind == "stream":
        return decided(states, near, joined)
    reason = decided(states, near, lambda one, focus: near(one, focus) and one[2] > 5)
    return FOCUS_MOVED if reason == PARTNER_MOVED else reason


def sail(rng, ship):
    """A ship somewhere else, or with another speed, or both, or neither."""
    x, y, speed = ship
    if rng.random() < 0.5:
        x, y = x + rng.choice([-2.5, -1, 1, 2.5]), y + rng.choice([-2.5, -1, 0, 1, 2.5])
    return (max(-8.0, min(8.0, x)), max(-8.0, min(8.0, y)), rng.choice([speed, 2, 4, 9]))


@pytest.mark.long
def test_every_reason_is_that_of_the_definition(tmp_path):
    seen, rng = set(), random.Random(SEED)
    engine, client = Engine(tmp_path, 2, 1, PLANE), Client()
    zones = [shapely.Point(x, y) for x, y, _ in ZONES.values()]
    speeds = [{"speed": speed} for *_, speed in ZONES.values()]
    version = engine.layers.write("zones", feature_table("zones", list(ZONES), zones, speeds, space=PLANE), PLANE)
    control = [{"op": "layer", "layer": "zones", "version": version}]
    control += [registration(query, {"stream": "ships", **plan}) for query, plan in enumerate(KINDS.values())]
    now = {key: (rng.uniform(-6, 6), rng.uniform(-6, 6), 9) for key in ("focal", *"abcdefg")}
    for batch in range(BATCHES):
        was = now
        now = {key: sail(rng, ship) if rng.random() < 0.5 else ship for key, ship in was.items()}
        moved = [key for key in now if now[key] != was[key] or not batch]
        ships = [("ships", 0, one("ships", k, batch, [*now[k][:2]] * 2, {"speed": now[k][2]}, PLANE)) for k in moved]
        client.told.clear()
        client.receive(engine.run(ships, control))
        control = []
        for row in client.told if batch else ():
            if row["sign"] != STAYED:
                kind = list(KINDS)[row["query"]]
                assert row["reason"] == expected(kind, row, was, now), (kind, batch, row, was, now)
                seen.add((kind, row["sign"], row["reason"]))
    assert seen >= TOLD


OF_OBJECTS = {(sign, reason) for sign in (ENTERED, LEFT) for reason in (MOVED, FILTERED)}
TOLD = {(kind, *told) for kind in KINDS for told in OF_OBJECTS if (kind, told[1]) != ("knn of all", FILTERED)}
TOLD |= {("stream", sign, reason) for sign in (ENTERED, LEFT) for reason in (PARTNER_MOVED, PARTNER_FILTERED)}
TOLD |= {(kind, sign, FOCUS_MOVED) for kind in ("around", "quiet", "knn", "knn of all") for sign in (ENTERED, LEFT)}
TOLD |= {(kind, sign, OTHERS_MOVED) for kind in ("knn", "knn of all") for sign in (ENTERED, LEFT)}


@pytest.mark.parametrize("kind", ["stream", "knn"])
def test_what_stays_is_told_with_the_side_that_changed(tmp_path, kind):
    engine, client = Engine(tmp_path, 1, 1, PLANE), Client()
    control = [registration(1, {"stream": "ships", **KINDS[kind]})]
    told = []
    for version, (focal, other) in enumerate([(0, 2), (0, 1), (0.5, 1), (0.5, 1)]):
        places = {"focal": focal, "a": other}
        ships = [("ships", 0, one("ships", k, version, [x, 0, x, 0], {"speed": 9}, PLANE)) for k, x in places.items()]
        changed = ships if version == 0 else ships[1:] if version == 1 else ships[:1] if version == 2 else []
        client.told.clear()
        client.receive(engine.run(changed, control))
        control = []
        told.append({(row["key"], row["reason"]) for row in client.told if row["sign"] == STAYED})
    other = {"stream": PARTNER_MOVED, "knn": FOCUS_MOVED}[kind]
    pair = [("focal", MOVED)] if kind == "stream" else []
    assert told == [set(), {("a", MOVED), *([("focal", other)] if pair else [])}, {("a", other), *pair}, set()]


def test_of_a_layer_that_is_edited_only_pairs_with_features_that_differ_are_edited(tmp_path):
    engine, client = Engine(tmp_path, 1, 1, PLANE), Client()

    def layer(*keys):
        points = [shapely.Point(*ZONES[key][:2]) for key in keys]
        table = feature_table("zones", list(keys), points, [{"speed": 9}] * len(keys), space=PLANE)
        version = engine.layers.write("zones", table, PLANE)
        return {"op": "layer", "layer": "zones", "version": version}

    def ship(version, x):
        return [("ships", 0, one("ships", "a", version, [x, 0, x, 0], {"speed": 9}, PLANE))]

    begun = [layer("left", "right"), registration(1, {"stream": "ships", **KINDS["layer"]})]
    client.receive(engine.run(ship(1, 1), begun))
    client.told.clear()
    client.receive(engine.run(ship(2, -1.5), [layer("right", "high")]))
    told = {(row["sign"], row["partner"], row["reason"]) for row in client.told}
    assert told == {(LEFT, "left", EDITED), (LEFT, "right", MOVED), (ENTERED, "high", EDITED)}


PASSING = {"speed_mps": 50, "course_deg": 90}
PAIRS = {
    "join": {"kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": 20_000}},
    "quiet join": {
        "kind": "join",
        "join": {"stream": "ships", "predicate": "dwithin", "distance": 20_000},
        "emit": "membership",
    },
    "closest approach": {"kind": "closest_approach", "within_m": 20_000, "within_s": 600, "mirrored": True},
}


@pytest.mark.parametrize("to", [(0.5, 0.5), (60, 60), (60, -60), (-60, 60), (-60, -60)])
@pytest.mark.parametrize("kind", PAIRS)
def test_when_one_of_a_pair_leaves_for_another_region_it_alone_has_moved(tmp_path, kind, to):
    engine, client = Engine(tmp_path, 2, 4, rescaled=0.0), Client()
    stays = one("ships", "stays", 1, [0.01, 0.01, 0, 0.01, 0.01, 0], {"speed_mps": 0})
    comes = one("ships", "leaves", 1, [-0.01, 0.01, 0, -0.01, 0.01, 0], PASSING)
    ships = [("ships", 0, stays), ("ships", 0, comes)]
    client.receive(engine.run(ships, [registration(1, {"stream": "ships", **PAIRS[kind]})]))
    assert sorted(client.answers[1]) == [("leaves", "stays"), ("stays", "leaves")]
    client.told.clear()
    gone = one("ships", "leaves", 2, [*to, 0, *to, 0], PASSING)
    client.receive(engine.run([("ships", 0, gone)], []))
    told = {(row["key"], row["sign"], row["reason"]) for row in client.told}
    assert told == {("leaves", LEFT, MOVED), ("stays", LEFT, PARTNER_MOVED)}
