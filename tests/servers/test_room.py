"""No plan makes a step look at more pairs than it has room for: it is left out, and the others go on."""

import math
import random
import re
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import point_elements
from streaming.layers.features import feature_table
from streaming.operators import allowance, border_passages, lines
from streaming.operators.allowance import PIECE, PairAllowance
from streaming.operators.edges import least_m
from streaming.operators.lines import FAR
from streaming.results.netting import net
from streaming.servers.ways.time_joins import region as time_join
from streaming.spaces import EARTH
from tests.draws import examples
from tests.servers.harness import Client, Engine

SECOND_US = 1_000_000
EVERYWHERE_M = 20_000_000
SHIPS = [f"ship {number}" for number in range(500)]
AREA = {"lo": [-90, -45], "hi": [0, 0]}
REFUSED = re.compile(
    r"it would compare or tell about [\d,]+ pairs in a batch; "
    "there is room for 1,100,000, of which its user or team may have "
)


@pytest.fixture(autouse=True)
def room(monkeypatch):
    """The room of a step, whatever it is set to elsewhere."""
    monkeypatch.setattr(allowance, "MOST", 1_000_000)
    monkeypatch.setattr(allowance, "EACH", 200)
    monkeypatch.setattr(allowance, "KNOWN", 200)


def everything(distance=EVERYWHERE_M, **more):
    """A join of each ship with each other ship."""
    return {
        "stream": "ships",
        "kind": "join",
        "join": {"stream": "ships", "predicate": "dwithin", "distance": distance},
        **more,
    }


def fleet(step, spread=1.0):
    rng = random.Random(step)
    places = [(rng.uniform(-170, 170) * spread, rng.uniform(-60, 60) * spread) for _ in SHIPS]
    # The ships have sailed in a circle, so that each has a course, and all come near each other.
    properties = [{"course_deg": rng.uniform(0, 360), "speed_mps": 20.0} for _ in SHIPS]
    table = point_elements("ships", SHIPS, [step * SECOND_US] * len(SHIPS), places, properties, EARTH)
    return [("ships", step * SECOND_US, table)]


def registered(query, plan, revision=1, owner=0):
    return {"op": "register", "query": query, "revision": revision, "plan": plan, "owner": owner}


def observe(patch):
    """Have all steps tell by how much they looked at more than they had room for; return the list of what they tell."""
    over = [0]

    class Observed(PairAllowance):
        def take(self, pairs):
            room = super().take(pairs)
            over.append(-self.left if room else 0)  # what there is no room for is not looked at
            return room

        def find(self, pairs):
            had_room, room = self.has_room, super().find(pairs)
            over.append(-self.left if had_room else 0)
            return room

    for name in ("region.server", "region.place", "ways.tracks.following"):
        patch.setattr(f"streaming.servers.{name}.PairAllowance", Observed)
    return over


def in_area(step):
    table = fleet(step)[0][2]
    boxes = zip(table["key"].to_pylist(), table["bounds"].to_pylist(), strict=True)
    return {key for key, (x, y, *_) in boxes if -90 <= x <= 0 and -45 <= y <= 0}


@pytest.mark.long
def test_joins_of_everything_with_everything_are_refused_and_the_others_are_answered(tmp_path, monkeypatch):
    over = observe(monkeypatch)
    engine, client = Engine(tmp_path, 1, 1, rescaled=0.0), Client()
    engine.may_fail = True
    client.receive(engine.run(fleet(0), [registered(1, {"stream": "ships", "area": AREA})]))
    large = [registered(2 + number, everything(EVERYWHERE_M + number)) for number in range(3)]
    told = {}
    for step in range(1, 4):
        fragments = engine.run(fleet(step), large if step == 1 else [])
        client.receive(fragments)
        told |= {query: one["error"] for f in fragments for one in f.failures for query, _ in one["queries"]}
        assert client.answers[1].keys() == in_area(step)
    assert told.keys() == {2, 3, 4}
    assert all(REFUSED.match(error) for error in told.values())
    assert not any(client.answers[query] for query in told)
    assert max(over) <= PIECE * allowance.FOUND
    # Whoever makes the distance smaller gets the answer at once.
    client.receive(engine.run(fleet(4), [registered(2, everything(100_000), revision=2)]))
    other = Engine(tmp_path / "alone", 1, 1, rescaled=0.0)
    alone = Client()
    alone.receive(other.run(fleet(4), [registered(2, everything(100_000))]))
    assert client.answers[2].keys() == alone.answers[2].keys() != set()


@pytest.mark.long
def test_a_query_for_which_there_was_no_room_is_tried_again_after_five_minutes_and_then_each_half_hour(tmp_path):
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    engine.may_fail = True
    engine.run(fleet(0), [registered(1, everything())])
    tried = []
    for second in (2, 30, 299, 301, 330, 602, 2_100, 2_102):
        fragments = engine.run([], [{"op": "tick", "now_us": second * SECOND_US}])
        tried += [second for fragment in fragments if fragment.failures]
    assert tried == [301, 2_102]


def test_a_track_for_which_there_was_no_room_is_tried_again_after_five_minutes(tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "MOST", 20_000)
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    engine.may_fail = True
    engine.run([], [{"op": "tick", "now_us": 10 * SECOND_US}])
    # The clock is not set in the batch in which it begins.
    fragments, tried = engine.run(fleet(0), [registered(1, track(0, 1_000_000))]), []
    (told,) = [one for fragment in fragments for one in fragment.failures]
    assert (told["left_out"], told["until_us"]) == ("room", 310 * SECOND_US)
    for second in (11, 12, 309, 310, 311):
        fragments = engine.run(fleet(second), [{"op": "tick", "now_us": second * SECOND_US}])
        fragments += engine.run(fleet(second), [])
        tried += [second for fragment in fragments if fragment.failures]
    assert tried == [310]


@pytest.mark.long
def test_of_joins_that_have_no_room_together_the_larger_ones_are_left_out(tmp_path):
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    engine.may_fail = True
    plans = {1: everything(5_000_000), 2: everything(50_000), 3: everything(7_000_000), 4: everything(9_000_000)}
    fragments = engine.run(fleet(0), [registered(query, plan) for query, plan in plans.items()])
    told = {query for f in fragments for one in f.failures for query, _ in one["queries"]}
    answered = set(net(fragments)["query"].to_pylist())
    assert told and 2 not in told
    assert answered == plans.keys() - told
    assert max(answered) < min(told) or answered == {1, 2} or answered == {1, 2, 3}


def refusals(fragments):
    """Return why queries failed in a batch, by query."""
    return {query: one["error"] for f in fragments for one in f.failures for query, _ in one["queries"]}


def test_who_asks_for_little_is_answered_whatever_others_ask_for(tmp_path):
    engine, client, alone = Engine(tmp_path, 1, 1, rescaled=0.0), Client(), Client()
    engine.may_fail = True
    # Each join of the greedy owner is smaller than that of the modest one.
    greedy = [registered(number, everything(3_000_000 + number), owner=1) for number in range(1, 12)]
    modest = registered(99, everything(3_100_000), owner=2)
    fragments = engine.run(fleet(0), [*greedy, modest])
    client.receive(fragments)
    told = refusals(fragments)
    assert told and 99 not in told
    assert any(client.answers[query] for query in range(1, 12))
    other = Engine(tmp_path / "alone", 1, 1, rescaled=0.0)
    alone.receive(other.run(fleet(0), [modest]))
    assert client.answers[99] == alone.answers[99] != {}


def zigzag(rng, vertices=999, width_m=20_000):
    """A corridor of as many vertices as a plan may have, to and fro over the world."""
    line = [[-170 + 340 * place / vertices, rng.uniform(-60, 60)] for place in range(vertices)]
    return {"stream": "ships", "area": {"corridor": {"line": line, "width_m": width_m}}}


def test_corridors_that_are_too_many_together_are_refused_with_the_figures_and_others_are_answered(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(allowance, "MOST", 20_000)
    compared, rng = [], random.Random(1)

    def compare(points, edges, limit_m):
        compared.append(len(edges.way))
        return least_m(points, edges, limit_m)

    monkeypatch.setattr(lines, "least_m", compare)
    engine, client = Engine(tmp_path, 1, 1, rescaled=0.0), Client()
    engine.may_fail = True
    control = [registered(number, zigzag(rng), owner=1) for number in range(1, 30)]
    modest = {"stream": "ships", "area": {"corridor": {"line": [[-90, -45], [0, 0]], "width_m": 2_000_000}}}
    fragments = engine.run(fleet(0), [*control, registered(99, modest, owner=2)])
    client.receive(fragments)
    told = refusals(fragments)
    assert told and 99 not in told and client.answers[99]
    assert all("there is room for 120,000, of which its user or team may have" in error for error in told.values())
    # The step ran again until there was room for all that were left, and each time within its room.
    assert 0 < sum(compared) <= 3 * 120_000


def shore(rng, vertices=990):
    """The border of an area that goes to and fro over half of the world."""
    ring = [[-85 + 170 * n / vertices, rng.uniform(-60, 60)] for n in range(vertices)]
    return {"type": "Polygon", "coordinates": [[*ring, [85, -80], [-85, -80], ring[0]]]}


def track(seed, accuracy):
    return {"stream": "ships", "kind": "track", "area": shore(random.Random(seed)), "accuracy": accuracy}


PREDICTED = {"stream": "ships", "kind": "closest_approach", "within_m": 100_000}
TIMED = {"stream": "ships", "join": {"stream": "ships", "predicate": "dwithin", "distance": EVERYWHERE_M}}
HOSTILE = st.one_of(
    st.builds(everything, st.sampled_from([1_000, 1_000_000, EVERYWHERE_M])),
    st.builds(
        lambda step: everything(10, transform=[step]), st.sampled_from([{"enlarge_m": 9e6}, {"enlarge_value": 90}])
    ),
    st.builds(lambda within_s: PREDICTED | {"within_s": within_s}, st.sampled_from([60, 86_400])),
    st.builds(
        lambda upper_s: TIMED | {"kind": "interval_join", "lower_s": -upper_s, "upper_s": upper_s}, st.just(3_600)
    ),
    st.just(TIMED | {"kind": "window_join", "window_s": 1}),
    st.just(TIMED | {"kind": "encounter", "for_s": 1, "gap_s": 600}),
    st.builds(
        lambda seed, width_m: zigzag(random.Random(seed), width_m=width_m),
        st.integers(0, 9),
        st.sampled_from([20, 2e5, 2e7]),
    ),
    st.builds(track, st.integers(0, 9), st.sampled_from([0, 1_000, 1_000_000])),
)


MODEST = [
    {"stream": "ships", "area": AREA},
    everything(50_000),
    {"stream": "ships", "area": {"corridor": {"line": [[-90, -45], [0, 0]], "width_m": 400_000}}},
]


@pytest.mark.long
@given(
    plans=st.lists(st.tuples(HOSTILE, st.sampled_from([1, 2])), min_size=1, max_size=4),
    modest=st.sampled_from(MODEST),
    spread=st.sampled_from([0.001, 1.0]),
    room=st.sampled_from([50_000, 1_000_000]),
)
@examples(4)
def test_whatever_plans_ask_for_a_step_looks_at_what_it_has_room_for_and_who_asks_for_little_is_answered(
    plans, modest, spread, room
):
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(allowance, "MOST", room)
        over, client, alone, told = observe(patch), Client(), Client(), {}
        engine, other = (Engine(Path(folder) / name, 1, 1, rescaled=0.0) for name in ("all", "alone"))
        engine.may_fail = True
        tracemalloc.start()
        try:
            for step in range(3):
                control = [registered(number, plan, owner=owner) for number, (plan, owner) in enumerate(plans)]
                mine = registered(99, modest, owner=3)
                fragments = engine.run(fleet(step, spread=spread), [*control, mine] if step == 1 else [])
                client.receive(fragments)
                told |= refusals(fragments)
                alone.receive(other.run(fleet(step, spread=spread), [mine] if step == 1 else []))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    # What the last piece of a step finds may be more than there is room for.
    assert max(over) <= PIECE * allowance.FOUND
    assert peak < 400e6
    # An owner whose queries ask for less than a third of the room is never refused; near each other, all ships meet.
    if 99 not in told:
        assert client.answers[99] == alone.answers[99]
    assert 99 not in told or (modest == MODEST[1] and spread < 1)


def test_a_join_of_everything_with_a_whole_layer_is_refused_and_the_others_are_answered(tmp_path):
    engine, client = Engine(tmp_path, 1, 1, rescaled=0.0), Client()
    engine.may_fail = True
    places = [shapely.Point(x / 10, y / 10) for x in range(60) for y in range(60)]
    version = engine.layers.write(
        "places", feature_table("places", [str(n) for n in range(3_600)], places, [{}] * 3_600)
    )
    control = [{"op": "layer", "layer": "places", "version": version}, registered(1, {"stream": "ships", "area": AREA})]
    client.receive(engine.run(fleet(0), control))
    near = {"stream": "ships", "kind": "join", "join": {"layer": "places", "predicate": "dwithin"}}
    plans = {2: EVERYWHERE_M, 3: 10_000}
    control = [registered(query, near | {"join": near["join"] | {"distance": m}}) for query, m in plans.items()]
    fragments = engine.run(fleet(1), control)
    client.receive(fragments)
    assert {query for f in fragments for one in f.failures for query, _ in one["queries"]} == {2}
    assert client.answers[1].keys() == in_area(1)
    assert client.answers[3] and not client.answers[2]


def test_tracks_whose_places_are_uncertain_by_much_are_refused_and_others_are_answered(tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "MOST", 20_000)
    compared = []

    def compare(points, edges, limit_m):
        compared.append(len(edges.way))
        return least_m(points, edges, limit_m)

    monkeypatch.setattr(border_passages, "least_m", compare)
    engine, client = Engine(tmp_path, 1, 1, rescaled=0.0), Client()
    engine.may_fail = True
    plans = [track(seed, 1_000_000) for seed in range(5)]
    modest = {"stream": "ships", "kind": "track", "area": AREA}
    control = [{"op": "tick", "now_us": 0}, *(registered(1 + n, plan, owner=1) for n, plan in enumerate(plans))]
    fragments = engine.run(fleet(0), [*control, registered(99, modest, owner=2)])
    client.receive(fragments)
    client.receive(engine.run(fleet(1), []))
    told = refusals(fragments)
    assert told.keys() == {1, 2, 3, 4, 5} and all("there is room for 120,000, of" in error for error in told.values())
    marks = {one.get("left_out") for f in fragments for one in f.failures}
    assert marks == {"room"}
    assert client.answers[99].keys() == in_area(1)
    assert FAR * sum(compared) <= 120_000


def test_a_join_by_distance_from_features_with_many_edges_is_refused_and_the_others_are_answered(tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "MOST", 20_000)
    engine, client = Engine(tmp_path, 1, 1, rescaled=0.0), Client()
    engine.may_fail = True
    angle = [2 * math.pi * number / 20_000 for number in range(20_000)]
    rough = [((1 + 0.01 * (n % 2)) * math.cos(turn), math.sin(turn)) for n, turn in enumerate(angle)]
    coasts = [
        shapely.Polygon([(x + 0.4 * across, y + 0.4 * up) for across, up in rough])
        for x, y in zip(range(-90, 0, 5), range(-45, 45, 5), strict=True)
    ]
    version = engine.layers.write("coasts", feature_table("coasts", [str(n) for n in range(18)], coasts, [{}] * 18))
    control = [{"op": "layer", "layer": "coasts", "version": version}, registered(1, {"stream": "ships", "area": AREA})]
    client.receive(engine.run(fleet(0), control))
    near = {"stream": "ships", "kind": "join", "join": {"layer": "coasts", "predicate": "dwithin"}}
    plans = {2: 5_000_000, 3: 10}
    control = [registered(query, near | {"join": near["join"] | {"distance": m}}) for query, m in plans.items()]
    fragments = engine.run(fleet(1), control)
    client.receive(fragments)
    assert refusals(fragments).keys() == {2}
    assert client.answers[1].keys() == in_area(1)


@pytest.mark.parametrize("sure", [allowance.SURE, math.inf], ids=["alone", "together"])
def test_however_many_queries_have_no_room_a_batch_runs_them_a_few_times_only(sure, tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "MOST", 20_000)
    monkeypatch.setattr(allowance, "SURE", sure)
    engine, client, steps = Engine(tmp_path, 1, 1, rescaled=0.0), Client(), []
    engine.may_fail = True
    run = time_join.step

    def counted(*arguments):
        steps.append(len(arguments[3].after.time_joins))
        return run(*arguments)

    monkeypatch.setattr(time_join, "step", counted)
    far = TIMED | {"kind": "interval_join", "lower_s": -10, "upper_s": 10}
    near = far | {"join": {**far["join"], "distance": 500_000}}
    engine.run(fleet(0), [])
    greedy = [registered(number, far | {"where": f"speed_mps < {100 + number}"}, owner=1) for number in range(1, 25)]
    fragments = engine.run(fleet(1), [*greedy, registered(99, near, owner=2)])
    client.receive(fragments)
    told = refusals(fragments)
    assert told.keys() == set(range(1, 25)) and any("no room in a batch to look at it" in one for one in told.values())
    assert 0 < len(steps) <= 4
    assert any(row["query"] == 99 for row in client.told)


def test_interval_joins_that_look_into_many_bins_have_a_bound_although_they_compare_little(tmp_path, monkeypatch):
    for name, room in (("RUNNING", 60_000), ("EACH", 0), ("KNOWN", 0)):
        monkeypatch.setattr(allowance, name, room)
    engine, told = Engine(tmp_path, 1, 1, rescaled=0.0), {}
    engine.may_fail = True
    short = TIMED | {"kind": "interval_join", "lower_s": 0, "upper_s": 1}
    short, far = (plan | {"join": {**TIMED["join"], "distance": 10}} for plan in (short, short | {"upper_s": 3_600}))
    greedy = [registered(number, far | {"where": f"speed_mps < {100 + number}"}, owner=1) for number in range(1, 9)]
    for step in range(12):  # the short one has the reports kept in bins of a second
        told |= refusals(engine.run(fleet(step), [*greedy, registered(99, short, owner=2)] if step == 0 else []))
    assert told.keys() and told.keys() <= set(range(1, 9))


def test_a_failed_part_a_query_left_out_and_one_without_room_are_told_apart(acme, tmp_path):
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    engine.may_fail = True
    picky = {"stream": "ships", "filters": [{"udf": "picky"}]}
    plans = {1: picky | {"area": AREA}, 2: picky | {"around": {"at": [0, 0], "radius": EVERYWHERE_M}}, 3: everything()}
    control = [{"op": "tick", "now_us": 0}, *(registered(query, plan) for query, plan in plans.items())]
    fragments = engine.run(fleet(0), control)
    told = {query: one for f in fragments for one in f.failures for query, _ in one["queries"]}
    marks = {query: (one.get("left_out"), one.get("until_us")) for query, one in told.items()}
    assert marks == {1: (None, None), 2: ("failure", 2 * SECOND_US), 3: ("room", 300 * SECOND_US)}
