"""Continuous queries equal brute force in spaces of any dimension, whichever dimensions are circles or left out."""

import math
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given

from streaming.elements import UNKNOWN
from streaming.plans import parse_plan
from streaming.results import ENTERED, LEFT, STAYED
from streaming.spaces import Dimension, Space
from tests.draws import examples, rngs, seen_in
from tests.servers.harness import Engine
from tests.servers.test_continuous_queries import LAYOUTS, STREAMS, play_history, random_history

LO, HI = -4.0, 4.0
PLACES = (-4.0, -3.0, -1.0, 0.0, 0.5, 1.0, 3.0, 3.5)
CIRCLES = {
    1: [(False,), (True,)],
    2: [(False, False), (True, False), (False, True), (True, True)],
    4: [(False,) * 4, (False, True, True, False), (True,) * 4],
    6: [(False,) * 6, (True, True, False, False, True, False)],
}
SPACES = [
    Space(f"s{n}", tuple(Dimension(f"d{axis}", "", LO, HI, wraps) for axis, wraps in enumerate(circles)))
    for n, kinds in CIRCLES.items()
    for circles in kinds
]


def interval(rng, dimension, sizes):
    """Return an interval that starts within a dimension, and goes on beyond it where that is a circle."""
    low = rng.choice(PLACES)
    high = low + rng.choice(sizes)
    return [low, high if dimension.wraps else min(high, HI)]


def side(rng, dimension):
    """Return the interval of a query in a dimension, now and then without one bound or both."""
    if rng.random() < 0.2:
        return [None, None]
    low, high = interval(rng, dimension, [0.0, 1.0, 2.5, 5.0, 8.0])
    if dimension.wraps:
        return [low, high]
    return rng.choice([[low, high], [low, high], [low, high], [low, None], [None, high]])


def corners(rng, space):
    """Return the box of a query of one to n dimensions."""
    sides = [side(rng, dimension) for dimension in space.dimensions[: rng.randint(1, space.n)]]
    lo, hi = zip(*sides, strict=True)
    return {"lo": list(lo), "hi": list(hi)}


def plan_in(space):
    """Return a function that draws plans of a space."""

    def draw(rng):
        steps = [{"enlarge_factor": rng.choice([0.5, 2.0])}, {"enlarge_value": 0.5}]
        names = rng.choice([["area"], ["compare"], ["area", "compare"]])
        document = {name: corners(rng, space) for name in names} | {
            "stream": rng.choice(STREAMS),
            "report": rng.choice(["inside", "inside", "outside"]),
            "transform": rng.sample(steps, rng.choice([0, 0, 1, 2])),
            "where": rng.choice(["", "", "speed_mps > 3"]),
        }
        return parse_plan(document, space)

    return draw


def box_in(space):
    """Return a function that draws elements' boxes, mostly points, which lack a dimension now and then."""

    def draw(rng):
        lacking = [-math.inf, math.inf]
        sides = [
            lacking if rng.random() < 0.2 else interval(rng, dimension, [0.0, 0.0, 0.0, 0.5, 3.0])
            for dimension in space.dimensions
        ]
        for axis, dimension in enumerate(space.dimensions[2:], 2):
            if not dimension.wraps and rng.random() < 0.05:
                sides[axis] = [UNKNOWN] * 2
        low, high = zip(*sides, strict=True)
        return [*low, *high]

    return draw


@pytest.fixture(params=SPACES, ids=lambda s: "".join("o" if d.wraps else "-" for d in s.dimensions), scope="module")
def space(request):
    """Return a space; its name shows which dimensions are circles."""
    return request.param


def play_in(space, rng):
    """Play a random history in a space; return the signs told."""
    history = random_history(rng, plan_in(space), box_in(space))
    with tempfile.TemporaryDirectory() as root:
        client = play_history(history, {"ships": 20}, Engine(Path(root), *rng.choice(LAYOUTS), space=space))
    return {row["sign"] for row in client.told}


@examples(3)
@given(rng=rngs())
def test_answers_equal_the_oracle_in_spaces_of_any_dimension(space, rng):
    play_in(space, rng)


# Histories that between them do so in every space.
TELLING = 5, 8, 20, 31


def test_the_histories_have_objects_enter_stay_and_leave_in_every_space(space):
    wanted = {LEFT, STAYED, ENTERED}
    assert seen_in((play_in(space, random.Random(seed)) for seed in TELLING), wanted) == wanted
