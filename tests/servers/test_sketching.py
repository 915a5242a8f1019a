"""Sketchlets know every accepted element once, however the input is cut: restarts, reruns, splits and merges."""

import functools
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from streaming.elements import point_elements, stream_number
from streaming.sketch.leaves import grouped, together
from streaming.sketch.sets.hashing import hash_of
from streaming.sketch.sets.questions import chosen, frequency
from streaming.sketch.sets.sets import merge
from streaming.sketch.settings import parse_settings
from tests.draws import examples, rngs, times
from tests.servers.harness import Engine

HOUR_US = 3_600_000_000
SKETCH = {"features": ["speed_mps", "draught_m"], "planes": [{"feature": "speed_mps", "bins": 4}], "cell_bits": 6}
SKETCH |= {"comoments": ["speed_mps", "draught_m"], "first": 5, "follow": 20}
NAMES = ("ships", "buses")
ON = {"op": "stream", "stream": "ships", "sketch": SKETCH}


def random_elements(rng, count):
    """Elements of a few ships, some of them older than ones before, some without a feature."""
    keys = [rng.choice("abcdef") for _ in range(count)]
    times = [rng.randrange(48) * HOUR_US // 2 for _ in range(count)]
    places = np.array([(rng.uniform(-180, 180), rng.uniform(-90, 90)) for _ in range(count)]).reshape(-1, 2)
    properties = [
        {"speed_mps": rng.choice([0.5, 3, 7.25, "fast"])}
        | ({"draught_m": rng.uniform(1, 9)} if rng.random() < 0.7 else {})
        for _ in range(count)
    ]
    return list(zip(keys, times, places.tolist(), properties, strict=True))


def table_of(elements, stream="ships"):
    keys, times, places, properties = zip(*elements, strict=True) if elements else ((), (), (), ())
    return point_elements(stream, keys, list(times), np.array(places).reshape(-1, 2), properties)


def accepted(elements):
    """The elements that are not older than the newest of their object before them."""
    newest, chosen = {}, []
    for element in elements:
        if element[1] >= newest.get(element[0], element[1]):
            newest[element[0]] = element[1]
            chosen.append(element)
    return chosen


def sketches(engine, stream_count=1):
    regions = range(engine.region_map.regions)
    states = [engine.layout.store.before(f"sketch/{number}", engine.batch).sketches for number in regions]
    assert all(len(state) == stream_count for state in states)
    return [sketch for state in states for sketch in state.values()]


def told(found):
    """What all leaves say together, by time bin and cell."""
    leaves = grouped(together([sketch.leaves() for sketch in found]), parse_settings(SKETCH).pairs)
    rows = {}
    for row in range(len(leaves)):
        known = rows.setdefault((int(leaves.start_us[row]), int(leaves.cell[row])), [0, 0, 0.0, np.inf, -np.inf])
        known[0] += int(leaves.count[row])
        known[1] += int(leaves.n[0][row])
        known[2] += float(leaves.n[0][row] * leaves.mean[0][row])
        known[3] = min(known[3], float(leaves.low[0][row]))
        known[4] = max(known[4], float(leaves.high[0][row]))
    return {name: [*known[:2], round(known[2], 6), *known[3:]] for name, known in rows.items()}


def expected(elements):
    rows = {}
    bits = SKETCH["cell_bits"] // 2
    for _, time_us, (x, y), properties in elements:
        cell = 0
        grid = int((x + 180) / 360 * (1 << bits)), int((y + 90) / 180 * (1 << bits))
        for bit in reversed(range(bits)):
            cell = cell << 2 | (grid[0] >> bit & 1) << 1 | grid[1] >> bit & 1
        known = rows.setdefault((time_us // HOUR_US * HOUR_US, cell), [0, 0, 0.0, np.inf, -np.inf])
        known[0] += 1
        speed = properties["speed_mps"]
        if speed != "fast":
            known[1:] = [known[1] + 1, known[2] + speed, min(known[3], speed), max(known[4], speed)]
    return {name: [*known[:2], round(known[2], 6), *known[3:]] for name, known in rows.items()}


@examples(12)
@given(rngs())
def test_all_sketchlets_together_know_each_accepted_element_once(rng):
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), partitions=rng.choice([1, 2]), regions=rng.choice([1, 4]))
        engine.run([], [ON])
        seen = []
        for _ in times(rng, 11, 2):
            elements = random_elements(rng, rng.randrange(0, 12))
            blocks = [("ships", 0, table_of(elements))]
            engine.run(blocks, [])
            if rng.random() < 0.2:
                engine.restart()
            seen += elements
        # Elements of one object come in their order, and those of others do not matter.
        found = sketches(engine)
        assert told(found) == expected(accepted(seen))
        assert sum(sketch.count for sketch in found) == len(accepted(seen))


def test_a_sketch_may_begin_while_states_are_in_memory_alone(tmp_path):
    engine, elements = Engine(tmp_path, saved_every=100, rescaled=0.0), random_elements(random.Random(5), 30)
    for _ in range(3):
        engine.run([], [])
    engine.run([("ships", 0, table_of(elements))], [ON])
    assert told(sketches(engine)) == expected(accepted(elements))


def test_a_batch_that_runs_again_sketches_its_elements_once(tmp_path):
    engine, elements = Engine(tmp_path, saved_every=1, rescaled=0.0), random_elements(random.Random(1), 40)
    engine.run([], [ON])
    engine.run([("ships", 0, table_of(elements[:20]))], [])
    engine.run([("ships", 0, table_of(elements[20:]))], [])
    engine.rewind()
    engine.forget()
    engine.run([("ships", 0, table_of(elements[20:]))], [])
    assert told(sketches(engine)) == expected(accepted(elements))


def test_a_stream_that_is_no_longer_sketched_loses_its_sketch(tmp_path):
    engine, elements = Engine(tmp_path, rescaled=0.0), random_elements(random.Random(2), 20)
    engine.run([("ships", 0, table_of(elements))], [ON])
    assert sum(sketch.count for sketch in sketches(engine))
    engine.run([], [{"op": "stream", "stream": "ships"}])
    assert not sketches(engine, stream_count=0)
    engine.run([], [ON])
    assert not sum(sketch.count for sketch in sketches(engine))


def test_another_budget_keeps_the_sketch_and_other_features_begin_a_new_one(tmp_path):
    engine, elements = Engine(tmp_path, rescaled=0.0), random_elements(random.Random(3), 30)
    engine.run([("ships", 0, table_of(elements))], [ON])
    engine.run([], [ON | {"sketch": SKETCH | {"most_leaves": 1000}}])
    assert told(sketches(engine)) == expected(accepted(elements))
    engine.run([], [ON | {"sketch": SKETCH | {"features": ["speed_mps"], "comoments": []}}])
    assert not sum(sketch.count for sketch in sketches(engine))


def test_settings_that_break_a_rule_leave_the_sketch_as_it_is(tmp_path):
    engine, elements = Engine(tmp_path, rescaled=0.0), random_elements(random.Random(4), 30)
    engine.run([("ships", 0, table_of(elements))], [ON])
    engine.run([], [ON | {"sketch": SKETCH | {"cell_bits": 99}}])
    assert told(sketches(engine)) == expected(accepted(elements))


def test_elements_wait_until_the_sketch_is_asked_and_are_handed_over_when_regions_change(tmp_path):
    engine, elements = Engine(tmp_path, regions=1, rescaled=0.0), random_elements(random.Random(4), 60)
    engine.run([("ships", 0, table_of(elements[:20]))], [ON])
    engine.run([("ships", 0, table_of(elements[20:40]))], [])
    (sketch,) = sketches(engine)
    assert sum(map(len, sketch.waiting)) and told([sketch]) == expected(accepted(elements[:40]))
    engine.restart()
    later = engine.region_map.split(0, 1, 0.0)
    engine.run([("ships", 0, table_of(elements[40:]))], [{"op": "regions", "map": later.document()}])
    assert len(sketches(engine)) == 2 and told(sketches(engine)) == expected(accepted(elements))
    plan = {"stream": "ships", "kind": "sketch", "ask": [{"question": "count"}]}
    engine.run([], [{"op": "register", "query": 1, "revision": 1, "plan": plan}])
    found = sketches(engine)
    assert not any(sketch.waiting for sketch in found if sketch.bins is not None)
    assert told(found) == expected(accepted(elements))


@pytest.mark.parametrize("cut", [1, 7, 60])
def test_streams_of_other_features_are_observed_side_by_side(tmp_path, cut):
    """However they are cut into batches, and whether a batch has elements of one stream, of the other, or of both."""
    rng = random.Random(8)
    ships, buses = random_elements(rng, 60), random_elements(rng, 60)
    lines = ["7", 7, "N7", None]
    buses = [(*bus[:3], {"load": row % 5, "line": lines[row % 4]}) for row, bus in enumerate(buses)]
    sets = {"features": ["key", "line"], "cell_bits": 0}
    engine = Engine(tmp_path, partitions=2, regions=4)
    engine.run([], [ON, {"op": "stream", "stream": "buses", "sketch": {"features": ["load"], "sets": sets}}])
    for begin in range(0, 60, cut):
        blocks = [
            (name, 0, table_of(rows[begin : begin + cut], name))
            for name, rows in zip(NAMES, (ships, buses), strict=True)
        ]
        for part in [blocks] if begin % 2 else [blocks[:1], blocks[1:]]:
            engine.run(part, [])
    of_ships, of_buses = (sketchlets(engine, name) for name in NAMES)
    assert told(sketch for sketch, _ in of_ships) == expected(accepted(ships))
    kept = accepted(buses)
    leaves = grouped(together([sketch.leaves() for sketch, _ in of_buses]), ())
    assert (leaves.n * leaves.mean).sum() == pytest.approx(sum(bus["load"] for *_, bus in kept))
    found = functools.reduce(merge, [sets for _, sets in of_buses])
    values = [key for key, *_ in kept]
    assert counted(found, "key", values) == [values.count(value) for value in values]
    values = [str(bus["line"]) for *_, bus in kept if bus["line"] is not None]
    assert counted(found, "line", [*values, ""]) == [*(values.count(value) for value in values), 0]


def sketchlets(engine, name):
    """The sketch and the sets of a stream in each region."""
    states = [
        engine.layout.store.before(f"sketch/{number}", engine.batch) for number in range(engine.region_map.regions)
    ]
    return [(state.sketches[stream_number(name)], state.sets.get(stream_number(name))) for state in states]


def counted(sets, feature, values):
    """How often each value of a feature came; equal numbers are one value, however they are written."""
    of_feature = chosen(sets, feature)
    hashes = [hash_of(float(value) if value.isdigit() else value) for value in values]
    return [frequency(sets, of_feature, hashed).value for hashed in hashes]
