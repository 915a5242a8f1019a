"""A kind of query that is nothing but a module and a registration is read, described, evaluated and placed."""

import math
import tempfile
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from jsonschema import Draft202012Validator

from streaming.elements import stream_number
from streaming.errors import InvalidPlan
from streaming.kinds import registry
from streaming.layers.features import feature_table
from streaming.operators.continuous_queries import ContinuousQueries
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.features import Features, ordered
from streaming.operators.layer import LayerVersion
from streaming.operators.region_map import RegionMap
from streaming.operators.spatial_join import Pairs
from streaming.plans import parse_plan, plan_document
from streaming.plans.schema import plan_schema
from streaming.spaces import Dimension, Space
from tests.draws import examples, rngs, times
from tests.plans.disc import DiscKind, DiscPlan
from tests.servers.harness import Client, Engine, one
from webapp.hub.servers import Servers
from webapp.words.plans import plan_in_words

PLANE = Space("plane", (Dimension("x", "m", 0, 10), Dimension("y", "m", 0, 10)))
KEYS = ("a", "b", "c", "d", "e")
ZONE = shapely.box(2, 2, 6, 6)
BOX = {"stream": "s", "kind": "range", "compare": {"lo": [1, 1], "hi": [5, 5]}}
JOIN = {"stream": "s", "kind": "join", "join": {"layer": "zones"}}


@pytest.fixture(scope="module", autouse=True)
def discs():
    """Register the kind."""
    with pytest.MonkeyPatch.context() as patch:
        kind = DiscKind()
        patch.setattr(registry, "KINDS", (*registry.KINDS, kind))
        patch.setitem(registry._BY_PLAN, DiscPlan, kind)
        yield


def disc(x, y, radius, **more):
    return {"stream": "s", "kind": "disc", "x": x, "y": y, "radius": radius} | more


def test_it_is_read_and_described():
    plan = parse_plan(disc(1, 2, 3, where="speed > 1"), PLANE)
    assert parse_plan(plan_document(plan, PLANE), PLANE) == plan
    validator = Draft202012Validator(plan_schema())
    assert validator.is_valid(plan_document(plan, PLANE)) and validator.is_valid(BOX)
    assert not validator.is_valid(disc(1, 2, -3))
    assert plan_in_words(plan_document(plan, PLANE)) == "within 3 of 1, 2"
    kinds = (
        "range, knn, join, window_join, interval_join, encounter, sketch, rule, approach, track, closest_approach, disc"
    )
    with pytest.raises(InvalidPlan, match=f"kind must be one of {kinds}"):
        parse_plan({"stream": "s", "kind": "cone"}, PLANE)


def test_its_regions_are_those_that_its_area_meets():
    plan = parse_plan(disc(1, 1, 0.5), PLANE)
    assert np.flatnonzero(Servers(PLANE, 1, RegionMap.grid(PLANE, 4)).participating(plan, None)).tolist() == [0]


def within(plan, x, y):
    return math.dist((x, y), (plan["x"], plan["y"])) <= plan["radius"]


class World:
    """A walk of objects, and queries of the new kind beside others."""

    def __init__(self, root, rng):
        self.rng, self.client = rng, Client()
        self.engine = Engine(Path(root), *rng.choice([(1, 1), (2, 4)]), space=PLANE)
        self.objects, self.plans, self.version = {}, {}, 0
        zone = feature_table("zones", ["z"], [ZONE], [{}], space=PLANE)
        self.zone = self.engine.layers.write("zones", zone, PLANE)

    def step(self):
        rng, elements = self.rng, []
        for key in rng.sample(KEYS, rng.randint(0, len(KEYS))):
            self.version += 1
            x, y, speed = rng.uniform(0, 9), rng.uniform(0, 9), rng.randint(0, 3)
            box = (x, y, x + rng.choice([0, 1]), y)
            self.objects[key] = box, speed
            elements.append(("s", 0, one("s", key, self.version, box, {"speed": speed}, PLANE)))
        control = [{"op": "layer", "layer": "zones", "version": self.zone}]
        for query in rng.sample(range(1, 7), rng.randint(0, 2)):
            around = disc(rng.uniform(0, 10), rng.uniform(0, 10), rng.uniform(0.5, 5))
            self.plans[query] = rng.choice([around, around | {"where": "speed > 1"}, BOX, JOIN])
            self.version += 1
            control.append({"op": "register", "query": query, "revision": self.version, "plan": self.plans[query]})
        asked = [{"op": "snapshot", "query": query} for query in self.plans if rng.random() < 0.2]
        self.client.receive(self.engine.run(elements, [*control, *asked]))

    def expected(self, plan):
        """Return the answer by brute force."""
        for key, ((x, y, x_hi, _), speed) in self.objects.items():
            if plan is BOX and x <= 5 and x_hi >= 1 and 1 <= y <= 5:
                yield key
            elif plan is JOIN and shapely.box(x, y, x_hi, y).intersects(ZONE):
                yield key, "z"
            elif plan["kind"] == "disc" and (speed > 1 or not plan.get("where")) and within(plan, (x + x_hi) / 2, y):
                yield key


@pytest.mark.long
@given(rngs())
@examples(18)
def test_its_answers_equal_brute_force_after_every_batch_beside_other_kinds(rng):
    with tempfile.TemporaryDirectory() as root:
        world = World(root, rng)
        for _ in times(rng, 24):
            world.step()
            for query, plan in world.plans.items():
                assert set(world.client.answers[query]) == set(world.expected(plan)), plan
            if world.rng.random() < 0.2:
                world.engine.restart()


def random_queries(rng):
    """Return plans of several kinds; some of them are equal, so that they share a range."""
    documents = [BOX, BOX | {"where": "speed > 1"}, JOIN, JOIN | {"where": "speed > 1"}]
    documents += [disc(x, 4, 3, where=where) for x in (2, 6) for where in ("", "speed > 1")]
    documents.append({**JOIN, "join": {"layer": "zones", "predicate": "disjoint"}})
    return [parse_plan(rng.choice(documents), PLANE) for _ in range(rng.randint(0, 12))]


def random_elements(rng, count=20):
    places = np.array([(rng.uniform(0, 9), rng.uniform(0, 9)) for _ in range(count)])
    cold = pa.table(
        {
            "key": [str(row) for row in range(count)],
            "properties": [orjson.dumps({"speed": rng.randint(0, 3)}).decode() for _ in range(count)],
            "geometry": pa.nulls(count, pa.binary()),
        }
    )
    streams = np.full(count, stream_number("s"))
    return Elements(streams, np.hstack([places, places]), lambda rows: cold.take(pa.array(rows)))


def seen(queries, elements, kept=None):
    """Return what a set of queries tells about some elements; those not kept have no pairs and no costs."""
    failures, zone = Failures(), Features(ordered(feature_table("zones", ["z"], [ZONE], [{}], space=PLANE)), PLANE)
    kept = np.ones(len(queries), dtype=bool) if kept is None else kept
    layer = LayerVersion.of(zone)
    pairs = queries.match(elements, lambda _: layer, failures)
    row, query = (part.ravel() for part in np.indices((len(elements), len(queries))))
    asked = Pairs(row, query, np.full(len(row), zone.key_hash[0]), np.full(len(row), np.nan))
    lies = queries.lies(elements, asked, lambda _: layer)[kept[query]]
    told = zip(pairs.row.tolist(), pairs.query.tolist(), pairs.partner.tolist(), strict=True)
    return list(told), lies.tolist(), sorted(failures.seconds)


def of(told, queries):
    """Return what was told of some queries, ascending, by their positions among these."""
    place = {query: position for position, query in enumerate(queries.tolist())}
    pairs, lies, costs = told
    lies = np.array(lies, dtype=bool).reshape(20, -1)[:, queries].ravel().tolist()
    pairs = [(row, place[query], partner) for row, query, partner in pairs if query in place]
    return pairs, lies, [place[query] for query in costs if query in place]


@pytest.mark.long
@given(rngs())
@examples(60)
def test_sets_of_several_kinds_that_are_made_of_others_equal_those_made_of_plans(rng):
    elements, parts = random_elements(rng), [random_queries(rng) for _ in range(rng.randint(1, 3))]
    plans = [plan for part in parts for plan in part]
    order = np.array(rng.sample(range(len(plans)), len(plans)), dtype=np.int64)
    made = ContinuousQueries.together([ContinuousQueries(part, PLANE) for part in parts], order)
    plans = [plans[query] for query in order.tolist()]
    expected = seen(ContinuousQueries(plans, PLANE), elements)
    assert len(made) == len(plans) and seen(made, elements) == expected
    chosen = np.flatnonzero([rng.random() < 0.5 for _ in plans])
    alone = seen(ContinuousQueries([plans[query] for query in chosen.tolist()], PLANE), elements)
    assert seen(made.take(chosen), elements) == alone == of(expected, chosen)
    kept = np.zeros(len(plans), dtype=bool)
    kept[chosen] = True
    pairs, lies, costs = seen(made.masked(kept), elements, kept)
    chosen = chosen.tolist()
    assert [(row, chosen.index(query), partner) for row, query, partner in pairs] == alone[0]
    assert lies == alone[1] and [chosen.index(query) for query in costs] == alone[2]
