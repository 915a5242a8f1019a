"""Joins of streams with layers equal brute force after every batch, through edits of the layer and restarts."""

import math
import random
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from shapely import affinity

from streaming.elements import box_elements, wrapped
from streaming.kinds.join.partners import PREDICATES
from streaming.layers import store
from streaming.layers.features import feature_table
from streaming.logs import fragment_fields, read_fragment
from streaming.operators.comparison import Comparison
from streaming.operators.features import Features, differing
from streaming.plans import parse_plan, plan_document
from streaming.results import CANCELLED, EDITED, ENTERED, LEFT, MOVED, REGISTERED, STAYED, VIEW_NUMBERS, events_of
from streaming.results.netting import net
from streaming.spaces import EARTH
from tests import draws
from tests.draws import examples, rngs
from tests.geodesy import within
from tests.oracle import box_shape, boxes_meet, enlarge, filters_of, in_area, where_holds
from tests.servers.harness import Client, Engine, one

KEYS = ("a", "b", "c", "d")
LONGITUDES = (-180.0, -179.5, -1.0, 0.0, 0.5, 1.0, 179.0)
LATITUDES = (-1.0, 0.0, 0.5, 1.0, 2.0)
LAYERS = ("zones", "roads")
EMPTY = feature_table("zones", [], [], [])


def random_geometry(rng):
    x, y, side = rng.choice(LONGITUDES), rng.choice(LATITUDES), rng.choice([0.5, 1.0, 2.0])
    return rng.choice(
        [
            shapely.box(x, y, x + side, y + side),
            shapely.Polygon([(x, y), (x + side, y), (x, y + side)]),
            shapely.LineString([(x, y), (x + side, y + side), (x + side, y)]),
            shapely.Point(x, y),
            None,
        ]
    )


def random_feature(rng, key):
    geometry = random_geometry(rng)
    properties = {"kind": rng.choice(["port", "reef"]), "depth": rng.randint(0, 6)}
    x, y = rng.choice(LONGITUDES), rng.choice(LATITUDES)
    x_lo, y_lo, x_hi, y_hi = (x, y, x + 1.0, y + 1.0) if geometry is None else geometry.bounds
    low, high = rng.choice([(-math.inf, math.inf), (0.0, 500.0)])
    bounds = wrapped(np.array([[x_lo, y_lo, low, x_hi, y_hi, high]]), EARTH)[0].tolist()
    return key, (geometry, bounds, properties)


def random_plan(rng):
    predicate = rng.choice([*PREDICATES, "dwithin", "dwithin"])
    join = {"layer": rng.choice(LAYERS), "predicate": predicate, "where": rng.choice(["", "", "kind = 'port'"])}
    if predicate == "dwithin":
        join["distance"] = rng.choice([0.0, 30_000.0, 80_000.0])
    if rng.random() < 0.2:
        join["filters"] = [rng.choice([{"key": "1"}, {"box": {"lo": [0, 0], "hi": [2, 2]}}])]
    document = {"stream": "ships", "kind": "join", "join": join, "where": rng.choice(["", "", "speed_mps > 3"])}
    if rng.random() < 0.4:
        document["area"] = {"lo": [rng.choice([-1.0, 179.0]), -1.0], "hi": [rng.choice([1.0, 2.0]) + 180.0, 2.0]}
    if rng.random() < 0.3:
        document["transform"] = [rng.choice([{"enlarge_value": 0.25}, {"enlarge_m": 60_000.0}])]
    if rng.random() < 0.2:
        document["filters"] = [{"key": rng.choice(KEYS)}]
    return parse_plan(document)


def random_box(rng):
    low = [rng.choice(LONGITUDES), rng.choice(LATITUDES), -math.inf]
    wide, high = rng.choice([(0.0, 0.0), (0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0), (0.0, 1.0)])
    high = [low[0] + wide, low[1] + high, math.inf]
    if rng.random() < 0.3:
        low[2] = high[2] = rng.choice([0.0, 5000.0])
    return low + high


def close(shape, geometry, distance):
    """Tell whether two are within a distance; what is a micrometre apart touches."""
    return within(shape, geometry, max(distance, 1e-6))


def anywhere(box):
    """A box of the same height that has no end in the plane."""
    return [-math.inf, -math.inf, box[2], math.inf, math.inf, box[5]]


def joined(plan, key, box, text, feature_key, feature):
    """Tell whether an element and a feature are a pair of the join, straight from the definition."""
    partners, (geometry, bounds, properties) = plan.partners, feature
    if not in_area(plan, box) or not where_holds(plan.where, text):
        return False
    if any(entry.key != key for entry in filters_of(plan)):
        return False
    if not where_holds(partners.where, orjson.dumps(properties)):
        return False
    for entry in partners.filters:
        if entry.key != feature_key if hasattr(entry, "key") else not boxes_meet(bounds, entry.box, EARTH):
            return False
    for step in plan.transform:
        box = enlarge(box, step.by, step.amount, EARTH)
    if partners.predicate == "boxes":
        return boxes_meet(box, bounds, EARTH)
    shape = shapely.box(*box_shape(box).bounds) if plan.transform else box_shape(box)
    other = box_shape(bounds) if geometry is None else geometry
    if partners.predicate == "dwithin":
        return boxes_meet(anywhere(box), bounds, EARTH) and close(shape, other, partners.distance)
    turns = [affinity.translate(shape, turn) for turn in (-360, 0, 360)]
    if partners.predicate == "disjoint":
        return not (boxes_meet(box, bounds, EARTH) and any(turn.intersects(other) for turn in turns))
    return boxes_meet(box, bounds, EARTH) and any(getattr(turn, partners.predicate)(other) for turn in turns)


class World:
    """The oracle, and the engine beside it."""

    def __init__(self, root, rng, padding=None, random_plan=random_plan):
        self.engine = Engine(Path(root), *rng.choice([(1, 1), (2, 4), (3, 6)]), padding=padding)
        self.random_plan = random_plan
        self.client, self.rng = Client(), rng
        self.newest, self.plans, self.features, self.versions = {}, {}, {layer: {} for layer in LAYERS}, {}
        self.elements, self.control, self.revision = [], [], 0

    def move(self):
        key, box = self.rng.choice(KEYS), random_box(self.rng)
        properties = {"speed_mps": self.rng.randint(0, 6)}
        (box,) = wrapped(np.array([box]), EARTH).tolist()
        self.revision += 1
        self.elements.append(("ships", 0, one("ships", key, self.revision, box, properties)))
        self.newest[key] = box, orjson.dumps(properties).decode()

    def register(self):
        """Register or edit a query, every other time with the plan of another one."""
        query, plan = self.rng.randint(1, 5), self.random_plan(self.rng)
        if self.plans and self.rng.random() < 0.5:
            plan = self.rng.choice(list(self.plans.values()))
        self.revision += 1
        self.plans[query] = plan
        document = plan_document(plan)
        self.control.append({"op": "register", "query": query, "revision": self.revision, "plan": document})

    def cancel(self):
        query = self.rng.randint(1, 5)
        self.revision += 1
        self.plans.pop(query, None)
        self.control.append({"op": "cancel", "query": query, "revision": self.revision})

    def edit(self):
        layer = self.rng.choice(LAYERS)
        features = self.features[layer]
        share, most = self.rng.choice([(0.0, 1), (0.2, 2)])
        removed = {key for key in features if self.rng.random() < share}
        upserts = dict(random_feature(self.rng, str(self.rng.randint(0, 4))) for _ in range(most))
        removed -= set(upserts)
        columns = list(zip(*upserts.values(), strict=True))
        table = feature_table(layer, list(upserts), columns[0], columns[2], np.array(columns[1]))
        if layer in self.versions:
            self.versions[layer] = self.engine.layers.edit(layer, self.versions[layer], table, removed)
        else:
            self.versions[layer] = self.engine.layers.write(layer, table)
        self.features[layer] = {key: f for key, f in features.items() if key not in removed} | upserts
        self.control.append({"op": "layer", "layer": layer, "version": self.versions[layer]})

    def cut(self):
        asked = [{"op": "snapshot", "query": query} for query in self.plans]
        self.client.receive(self.engine.run(self.elements, [*self.control, *asked]))
        self.elements, self.control = [], []
        for query, plan in self.plans.items():
            expected = {
                (key, feature_key): (box, text)
                for key, (box, text) in self.newest.items()
                for feature_key, feature in self.features[plan.partners.name].items()
                if joined(plan, key, box, text, feature_key, feature)
            }
            assert self.client.answers[query] == expected, plan
        assert not any(held for query, held in self.client.answers.items() if query not in self.plans)


EVENTS = {"move": 6, "register": 3, "cancel": 1, "edit": 2}


def play(rng, edited=False, **world):
    """Play a random history, with an edit in every batch if so wished; return what was told."""
    with tempfile.TemporaryDirectory() as root:
        world = World(root, rng, **world)
        for _ in range(6):
            if rng.random() < 0.3:
                world.engine.restart()
            draws.play(world, EVENTS, rng, 10)
            if edited:
                world.edit()
            world.cut()
    return world.client.told


@pytest.mark.long
@examples(12)
@given(rngs())
def test_answers_equal_the_oracle_after_every_batch_edit_and_restart(rng):
    play(rng)


@pytest.mark.long
@examples(8)
@given(rngs())
def test_answers_equal_the_oracle_when_every_batch_edits_a_layer(rng):
    play(rng, edited=True)


@pytest.mark.long
def test_a_history_in_which_a_corner_of_a_box_touches_a_slanting_line_beyond_the_antimeridian():
    play(random.Random(40797))


# Histories that between them make every kind of tuple.
TELLING = 5, 12, 24


@pytest.mark.long
def test_the_histories_tell_of_pairs_that_come_and_go_by_motion_and_by_edits():
    told = [row for seed in TELLING for row in play(random.Random(seed))]
    assert {(LEFT, MOVED), (LEFT, EDITED)} <= {(row["sign"], row["reason"]) for row in told}
    assert all(row["partner"] is not None and row["partner_properties"] for row in told)
    assert any(row["distance"] for row in told) and any(row["distance"] is None for row in told)


@pytest.fixture
def engine(tmp_path):
    return Engine(tmp_path)


def test_a_pair_filter_judges_pairs_and_distances_are_told(engine):
    roads = [shapely.LineString([(10, 50), (10.1, 50)]), shapely.LineString([(10, 50.0001), (10.1, 50.0001)])]
    version = engine.layers.write("roads", feature_table("roads", ["a", "b"], roads, [{"name": "A"}, {"name": "B"}]))
    plan = {"stream": "buses", "kind": "join", "join": {"layer": "roads", "predicate": "dwithin", "distance": 20.0}}
    named = {**plan, "join": {**plan["join"], "pair_filters": [{"udf": "property_equals", "argument": "name:B"}]}}
    control = [
        {"op": "layer", "layer": "roads", "version": version},
        {"op": "register", "query": 1, "revision": 1, "plan": plan},
        {"op": "register", "query": 2, "revision": 1, "plan": named},
    ]
    client = Client()
    bus = box_elements("buses", ["7"], [1], [[10.05, 50.0, -math.inf, 10.05, 50.0, math.inf]], [{}])
    client.receive(engine.run([("buses", 0, bus)], control))
    assert set(client.answers[1]) == {("7", "a"), ("7", "b")}
    assert set(client.answers[2]) == {("7", "b")}
    distances = {row["partner"]: row["distance"] for row in client.told if row["query"] == 1}
    assert distances["a"] == 0 and distances["b"] == pytest.approx(11.12, abs=0.01)


def test_a_road_that_an_edit_moves_changes_the_distance_of_an_object_at_rest(engine):
    def roads(latitude):
        return feature_table("roads", ["a"], [shapely.LineString([(10, latitude), (10.1, latitude)])], [{}])

    version = engine.layers.write("roads", roads(50.0001))
    plan = {"stream": "buses", "kind": "join", "join": {"layer": "roads", "predicate": "dwithin", "distance": 20.0}}
    control = [{"op": "layer", "layer": "roads", "version": version}, *register(1, plan=plan)]
    bus = box_elements("buses", ["7"], [1], [[10.05, 50.0, -math.inf, 10.05, 50.0, math.inf]], [{}])
    client = Client()
    client.receive(engine.run([("buses", 0, bus)], control))
    version = engine.layers.edit("roads", version, roads(50.00005), set())
    asked = [{"op": "layer", "layer": "roads", "version": version}, {"op": "snapshot", "query": 1}]
    client.receive(engine.run([], asked))
    assert [row["distance"] for row in client.told] == [pytest.approx(m, abs=0.01) for m in (11.12, 5.56)]
    assert [row["sign"] for row in client.told] == [ENTERED, STAYED]


def register(*queries, revision=1, plan=None):
    """Return control entries."""
    plan = plan or {"stream": "buses", "kind": "join", "join": {"layer": "zones"}}
    return [{"op": "register", "query": query, "revision": revision, "plan": plan} for query in queries]


def bus(version, lon, key="7"):
    """Return a stretch of the feed with one bus."""
    box = [lon, 1.0, -math.inf, lon, 1.0, math.inf]
    return [("buses", 0, box_elements("buses", [key], [version], [box], [{}]))]


def rows_of(fragments):
    """Return the number of tuples that are written."""
    return sum(fragment.changes.num_rows for fragment in fragments)


def test_queries_with_equal_plans_share_an_answer_that_is_evaluated_kept_and_written_once(engine):
    client, many = Client(), range(1, 101)
    version = engine.layers.write("zones", feature_table("zones", ["z"], [shapely.box(0, 0, 2, 2)], [{}]))
    control = [{"op": "layer", "layer": "zones", "version": version}, *register(*many)]
    client.receive(engine.run([], control))
    fragments = engine.run(bus(1, 1.0), [])
    client.receive(fragments)
    assert rows_of(fragments) == 1 and sum(part.counters["results"] for part in fragments) == 100
    assert all(set(client.answers[query]) == {("7", "z")} for query in many)
    regions = range(engine.region_map.regions)
    assert sum(len(engine.layout.store.region(n, engine.batch).pairs.table) for n in regions) == 1
    assert set(net(fragments, [3, 5])["query"].to_pylist()) == {3, 5}


def test_who_joins_or_leaves_a_shared_answer_is_told_alone(engine):
    client = Client()
    version = engine.layers.write("zones", feature_table("zones", ["z"], [shapely.box(0, 0, 2, 2)], [{}]))
    client.receive(engine.run(bus(1, 1.0), [{"op": "layer", "layer": "zones", "version": version}, *register(1, 2)]))

    def told(fragments):
        before = len(client.told)
        client.receive(fragments)
        return [(row["query"], row["sign"], row["reason"]) for row in client.told[before:]]

    assert told(engine.run([], register(3))) == [(3, ENTERED, REGISTERED)]
    assert told(engine.run([], register(3, revision=2))) == []
    engine.restart()
    assert told(engine.run([], [{"op": "cancel", "query": 1, "revision": 2}])) == [(1, LEFT, CANCELLED)]
    elsewhere = {"stream": "buses", "kind": "join", "join": {"layer": "zones"}, "area": {"lo": [5, 5], "hi": [6, 6]}}
    assert told(engine.run([], register(2, revision=2, plan=elsewhere))) == [(2, LEFT, EDITED)]
    assert told(engine.run(bus(2, 1.5), register(1, revision=3))) == [(1, ENTERED, REGISTERED), (3, STAYED, MOVED)]


def test_events_of_a_shared_answer_are_those_of_saved_queries(engine):
    version = engine.layers.write("zones", feature_table("zones", ["z"], [shapely.box(0, 0, 2, 2)], [{}]))
    view = VIEW_NUMBERS + 1
    control = [{"op": "layer", "layer": "zones", "version": version}, *register(1, 2, view, view + 1)]
    fragments = engine.run(bus(1, 5.0), control)
    fragments = [read_fragment(encoded(part), EARTH) for part in engine.run(bus(2, 1.0), [])]
    assert net(fragments)["query"].to_pylist() == [1, 2, view, view + 1]
    assert net([events_of(part) for part in fragments])["query"].to_pylist() == [1, 2]
    plan = {"stream": "buses", "compare": {"lo": [0, 0], "hi": [2, 2]}}
    engine.run([], [{"op": "cancel", "query": query, "revision": 2} for query in (1, 2)])
    engine.run([], register(view + 2, view + 3, plan=plan))
    events = [events_of(part) for part in engine.run(bus(3, 5.0), [])]
    assert rows_of(events) == 0 and not any(part.shared for part in events)


def encoded(fragment):
    """Return a fragment as the log gives it back."""
    return {
        name.encode(): value.encode() if isinstance(value, str) else value
        for name, value in fragment_fields(fragment).items()
    }


@pytest.mark.parametrize(
    ("join", "seen"),
    [
        ({"predicate": "intersects"}, {"5": 1}),
        ({"predicate": "dwithin", "distance": 150_000.0}, {"4": 1, "5": 1, "6": 1}),
        ({"predicate": "disjoint"}, {str(key): 1 for key in range(20)}),
    ],
)
def test_an_edit_evaluates_the_objects_near_features_that_differ_and_no_others(engine, monkeypatch, join, seen):
    boxes = {str(key): shapely.box(key - 0.1, 0.9, key + 0.1, 1.1) for key in range(20)}
    version = engine.layers.write("zones", feature_table("zones", list(boxes), list(boxes.values()), [{}] * 20))
    client, plan = Client(), {"stream": "buses", "kind": "join", "join": {"layer": "zones", **join}}
    elements = [table for key in range(20) for table in bus(1, float(key), str(key))]
    control = [{"op": "layer", "layer": "zones", "version": version}, *register(1, plan=plan)]
    client.receive(engine.run(elements, control))
    evaluated = defaultdict(int)
    measured = Comparison.measured

    def watched(comparison, elements, rows, look):
        for longitude in elements.bounds[rows, 0]:
            evaluated[str(round(longitude))] += 1
        return measured(comparison, elements, rows, look)

    monkeypatch.setattr(Comparison, "measured", watched)
    # Moved by a little, its box before and after near the same objects.
    changed = feature_table("zones", ["5"], [shapely.box(4.95, 0.9, 5.1, 1.1)], [{}])
    version = engine.layers.edit("zones", version, changed)
    client.receive(engine.run([], [{"op": "layer", "layer": "zones", "version": version}]))
    assert {key: min(1, times) for key, times in evaluated.items()} == seen


def test_features_differ_that_are_new_gone_or_changed_in_any_way():
    shapes, properties = [shapely.Point(x, 0) for x in range(6)], [{"n": n} for n in range(6)]
    before = Features(feature_table("zones", list("abcdef"), shapes, properties), EARTH)
    shapes[1], properties[2] = shapely.Point(1, 1), {"n": 9}
    after = Features(feature_table("zones", list("abcdg"), [*shapes[:4], shapely.Point(9, 9)], properties[:5]), EARTH)
    told = differing(before, after).table.to_pylist()
    assert sorted(row["key"] for row in told) == ["b", "b", "c", "c", "e", "f", "g"]
    assert len(differing(before, before)) == 0
    box = np.array([[0, 0, -np.inf, 1, 1, np.inf]])
    bare, drawn = (Features(feature_table("z", ["a"], [g], [{}], box), EARTH) for g in (None, shapely.box(0, 0, 1, 1)))
    assert len(differing(bare, drawn)) == 2 and len(differing(bare, bare)) == 0


def test_an_edit_of_a_version_that_is_not_kept_any_more_evaluates_everything(engine):
    client = Client()
    shapes = [shapely.box(0, 0, 2, 2), shapely.box(5, 0, 7, 2)]
    first = engine.layers.write("zones", feature_table("zones", ["a", "b"], shapes, [{}, {}]))
    client.receive(engine.run(bus(1, 1.0), [{"op": "layer", "layer": "zones", "version": first}, *register(1)]))
    engine.layers.write("zones", feature_table("zones", ["b"], shapes[1:], [{}]))
    engine.layers.discard("zones", 1)
    shutil.rmtree(engine.root / "features")
    engine.restart()
    fragments = engine.run([], [{"op": "layer", "layer": "zones", "version": first + 1}])
    # Which feature it was nobody can tell any more.
    told = [(row["sign"], row["reason"], row["partner"]) for row in net(fragments).to_pylist()]
    assert told == [(LEFT, EDITED, None)]
    assert not any(len(engine.layout.store.region(number, engine.batch).pairs.table) for number in range(4))


def test_processes_map_the_parts_of_a_version_from_the_same_files_and_old_files_go(engine, monkeypatch):
    monkeypatch.setattr(store, "MAX_PARTS", 2)
    version, folder = None, engine.root / "features" / "zones"
    for number in range(4):
        changed = feature_table("zones", [str(number)], [shapely.box(0, 0, 2, 2)], [{}])
        version = engine.layers.edit("zones", version, changed) if version else engine.layers.write("zones", changed)
        layer = engine.layout.store.layers.layer("zones", version)
        assert sum(map(len, layer.pages())) == number + 1
    used = {Path(part).stem for kept in (version - 1, version) for part in engine.layers.manifest("zones", kept).parts}
    assert {path.stem for path in folder.glob("*.pages")} == used and len(used) == 2
    assert sorted(path.name for path in folder.glob("*.json")) == [f"{version - 1}.json", f"{version}.json"]
    engine.layers.drop("zones")
    engine.restart()
    before = pa.total_allocated_bytes()
    mapped = engine.layout.store.layers.layer("zones", version)
    assert sum(map(len, mapped.pages())) == 4 and pa.total_allocated_bytes() == before


def test_an_earlier_version_that_is_read_after_a_later_one_has_all_its_features(engine):
    first = engine.layers.write("zones", feature_table("zones", ["a", "b"], [shapely.box(0, 0, 2, 2)] * 2, [{}, {}]))
    later = engine.layers.edit("zones", first, EMPTY, {"b"})
    counts = [sum(map(len, engine.layout.store.layers.layer("zones", version).pages())) for version in (later, first)]
    assert counts == [1, 2]


def test_a_join_with_an_unknown_layer_waits_for_it_and_one_with_a_dropped_layer_ends_empty(engine):
    client = Client()
    plan = {"stream": "buses", "kind": "join", "join": {"layer": "zones"}}
    bus = box_elements("buses", ["7"], [1], [[1.0, 1.0, -math.inf, 1.0, 1.0, math.inf]], [{}])
    client.receive(engine.run([("buses", 0, bus)], [{"op": "register", "query": 1, "revision": 1, "plan": plan}]))
    assert not client.answers[1]
    version = engine.layers.write("zones", feature_table("zones", ["z"], [shapely.box(0, 0, 2, 2)], [{}]))
    client.receive(engine.run([], [{"op": "layer", "layer": "zones", "version": version}]))
    assert set(client.answers[1]) == {("7", "z")}
    client.receive(engine.run([], [{"op": "drop_layer", "layer": "zones"}]))
    assert not client.answers[1]
