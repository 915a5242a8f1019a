"""Joins over event time equal brute force in spaces of one to four dimensions, on lines and circles."""

import random
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given

from streaming.plans import parse_plan, plan_document
from streaming.results.netting import net
from streaming.servers.ways.time_joins import windows
from tests.draws import examples, rngs, times
from tests.servers.harness import Engine, one
from tests.servers.test_spaces import box_in, corners
from tests.servers.test_stream_joins_in_spaces import SPACES, joined
from tests.servers.test_time_joins import SECOND_US, SMALL

LAYOUTS = [(1, 1), (2, 4), (2, 6), (2, 9)]
STREAMS = ("cars", "bikes")
# No report is late, and the last window is told in the silence.
LATENESS_S = 1_000


def random_plan(rng, space):
    join = {"stream": rng.choice(STREAMS), "predicate": rng.choice(["boxes", "intersects", "dwithin", "dwithin"])}
    if join["predicate"] == "dwithin":
        join["distance"] = rng.choice([0.0, 0.5, 2.0])
    document = {"stream": "cars", "join": join, "lateness_s": LATENESS_S, "mirrored": True}
    times = [{"kind": "window_join", "window_s": 5}, {"kind": "interval_join", "lower_s": -2, "upper_s": 4, "bin_s": 3}]
    document |= rng.choice(times)
    if rng.random() < 0.3:
        document["area"] = corners(rng, space)
    if rng.random() < 0.3:
        document["transform"] = [rng.choice([{"enlarge_factor": 2.0}, {"enlarge_value": 0.5}])]
    return parse_plan(document, space)


def together(plan, time_s, partner_s):
    """Tell whether two times may be those of a pair."""
    if plan.kind == "window_join":
        return time_s // plan.window_s == partner_s // plan.window_s
    return plan.lower_s <= partner_s - time_s <= plan.upper_s


def play_in(space, rng):
    """Play a random history of one query; return how many pairs it told."""
    draw, reports, told, drives = box_in(space), {}, [], False
    plan = random_plan(rng, space)
    control = [{"op": "register", "query": 1, "revision": 1, "plan": plan_document(plan, space)}]
    with tempfile.TemporaryDirectory() as root:
        engine = Engine(Path(root), *rng.choice(LAYOUTS), space=space)
        for _ in range(6):
            blocks = []
            for _ in times(rng, 5, 1):
                name = rng.choice(STREAMS), rng.choice("abcd"), rng.randrange(20)
                reports.setdefault(name, draw(rng))
                stream, key, time_s = name
                blocks.append((stream, 0, one(stream, key, time_s * SECOND_US, reports[name], {}, space)))
            told += net(engine.run(blocks, control)).to_pylist()
            drives = not drives
            control = [{"op": "drive", "query": 1, "revision": 1, "by_partner": drives}]
        unjoined, control = 1, [{"op": "tick", "now_us": 3 * LATENESS_S * SECOND_US}]
        while unjoined:
            fragments, control = engine.run([], control), []
            told += net(fragments).to_pylist()
            unjoined = sum(fragment.counters["unjoined"] for fragment in fragments)
    pairs = sorted(
        (a[1], a[2] * SECOND_US, b[1], b[2] * SECOND_US)
        for a, box in reports.items()
        for b, other in reports.items()
        if (a[0], b[0]) == (plan.stream, plan.partners.name) and a[:2] != b[:2]
        if together(plan, a[2], b[2]) and joined(plan, box, other, space)
    )
    found = sorted((row["key"], row["time_us"], row["partner"], row["partner_time_us"]) for row in told)
    assert found == pairs, plan
    return len(found)


@pytest.fixture(params=SPACES, ids=lambda s: "".join("o" if d.wraps else "-" for d in s.dimensions), scope="module")
def space(request):
    """Return a space; its name shows which dimensions are circles."""
    return request.param


@examples(3)
@given(rng=rngs())
def test_pairs_equal_the_oracle_in_spaces_of_any_dimension(space, rng):
    with mock.patch.multiple(windows, **SMALL):
        play_in(space, rng)


def test_the_histories_have_pairs_in_every_space(space):
    assert any(play_in(space, random.Random(seed)) for seed in range(4))


def test_a_pair_is_told_though_the_region_of_its_report_has_dropped_it():
    """The window has no pairs there, and then the regions change while another region tells the window."""
    (space,) = [space for space in SPACES if [dimension.wraps for dimension in space.dimensions] == [False, True]]
    with mock.patch.multiple(windows, **SMALL):
        play_in(space, random.Random(5747290))
