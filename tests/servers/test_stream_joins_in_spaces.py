"""Joins with last known elements equal brute force in spaces of one to four dimensions, on lines and circles."""

import itertools
import math
import random
import tempfile
from pathlib import Path

import pytest
import shapely
from hypothesis import given
from shapely import affinity

from streaming.plans import parse_plan, plan_document
from streaming.spaces import Dimension, Space
from tests.draws import examples, rngs, times
from tests.oracle import boxes_meet, enlarge
from tests.servers.harness import Client, Engine, one
from tests.servers.test_spaces import HI, LO, box_in, corners

CIRCLES = [
    (False,),
    (True,),
    (False, False),
    (True, False),
    (False, True),
    (True, True),
    (True, False, True),
    (True, False, False, True),
]
SPACES = [
    Space(f"s{len(circles)}", tuple(Dimension(f"d{axis}", "", LO, HI, wraps) for axis, wraps in enumerate(circles)))
    for circles in CIRCLES
]
KEYS = ("a", "b", "c", "d")


def random_plan(rng, space):
    join = {"stream": "cars", "predicate": rng.choice(["boxes", "intersects", "dwithin"])}
    if join["predicate"] == "dwithin":
        join["distance"] = rng.choice([0.0, 0.5, 2.0])
    document = {"stream": "cars", "kind": "join", "join": join}
    if rng.random() < 0.4:
        document["area"] = corners(rng, space)
    if rng.random() < 0.4:
        document["transform"] = [rng.choice([{"enlarge_factor": 2.0}, {"enlarge_value": 0.5}])]
    return parse_plan(document, space)


def shape_of(box, space, far):
    """A box in the first two dimensions, as far as the bounds given where it has none."""
    low = [*(far[0] if math.isinf(bound) else bound for bound in box[: space.n]), 0.0][:2]
    high = [*(far[1] if math.isinf(bound) else bound for bound in box[space.n :]), 0.0][:2]
    if low == high:
        return shapely.Point(low)
    return shapely.LineString([low, high]) if low[0] == high[0] or low[1] == high[1] else shapely.box(*low, *high)


def joined(plan, box, other, space):
    """Tell whether two boxes are a pair of the join, straight from the definition."""
    if not boxes_meet(box, plan.area, space):
        return False
    for step in plan.transform:
        box = enlarge(box, step.by, step.amount, space)
    margin = plan.partners.distance + 1e-9 if plan.partners.predicate == "dwithin" else 0.0
    plane = min(2, space.n)
    near = [bound - margin * (axis < plane) for axis, bound in enumerate(box[: space.n])]
    near += [bound + margin * (axis < plane) for axis, bound in enumerate(box[space.n :])]
    if not boxes_meet(near, other, space):
        return False
    # What is transformed and unbounded ends where the space does.
    shape = shape_of(box, space, (LO, HI) if plan.transform else (-1e9, 1e9))
    other = shape_of(other, space, (-1e9, 1e9))
    moves = [(-8.0, 0.0, 8.0) if dimension.wraps else (0.0,) for dimension in space.dimensions[:2]]
    turns = [affinity.translate(shape, *move) for move in itertools.product(*moves)]
    if plan.partners.predicate == "dwithin":
        return min(shapely.distance(turn, other) for turn in turns) <= plan.partners.distance
    return plan.partners.predicate == "boxes" or any(turn.intersects(other) for turn in turns)


def play_in(space, rng):
    """Play a random history; return how many pairs there were."""
    client, found = Client(), 0
    draw, newest, plans, revision = box_in(space), {}, {}, 0
    with tempfile.TemporaryDirectory() as root:
        engine = Engine(Path(root), *rng.choice([(1, 1), (2, 4), (2, 6), (2, 9)]), space=space)
        for _ in range(8):
            elements, control = [], []
            for _ in times(rng, 6, 1):
                revision += 1
                if rng.random() < 0.2 or not plans:
                    query = rng.randint(1, 2)
                    plans[query] = random_plan(rng, space)
                    document = plan_document(plans[query], space)
                    control.append({"op": "register", "query": query, "revision": revision, "plan": document})
                key = rng.choice(KEYS)
                newest[key] = draw(rng)
                elements.append(("cars", 0, one("cars", key, revision, newest[key], {}, space)))
            client.receive(engine.run(elements, control))
            for query, plan in plans.items():
                pairs = {(a, b) for a in newest for b in newest if a != b and joined(plan, newest[a], newest[b], space)}
                assert set(client.answers[query]) == pairs, plan
                found += len(pairs)
    return found


@pytest.fixture(params=SPACES, ids=lambda s: "".join("o" if d.wraps else "-" for d in s.dimensions), scope="module")
def space(request):
    """Return a space; its name shows which dimensions are circles."""
    return request.param


@examples(2)
@given(rng=rngs())
def test_answers_equal_the_oracle_in_spaces_of_any_dimension(space, rng):
    play_in(space, rng)


def test_the_histories_have_pairs_in_every_space(space):
    assert any(play_in(space, random.Random(seed)) for seed in range(2))
