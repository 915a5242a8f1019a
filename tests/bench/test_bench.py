"""The parts of the benchmark that can be wrong without anyone noticing: its load, its baselines, its report."""

import time

import numpy as np
import pytest
import shapely

from bench import baselines, joins, load, meter, report, scenarios, wire
from bench.client import figures
from bench.prepare import WIRE_DECODER
from streaming.decoders import make_decoder
from streaming.elements import bounds_of, from_ipc, partition_of
from streaming.logs import Log
from streaming.operators.metres import distance_m
from streaming.plans import parse_plan
from streaming.results import Fragment, result_schema
from streaming.spaces import EARTH

OBJECTS = 500


def written(client, partitions=2):
    """Return the elements in the ingest log, with the partition and the time of hearing of each entry."""
    log = Log(client, "earth", partitions)
    for partition in range(partitions):
        for _, fields, _ in log.event_log.read(log.names.ingest(partition)):
            yield partition, int(fields[b"heard_us"]), from_ipc(fields[b"block"])


@pytest.mark.parametrize("motion", ["walk", "jump"])
def test_the_load_is_what_the_gateway_would_write_and_moves_in_each_round(redis_client, motion):
    log = Log(redis_client, "earth", 2)
    generator = load.Generator(log, load.make_blocks("bench", OBJECTS, 100, 2), motion)
    generator.write(10)
    generator.write(10)
    places, times = {}, {}
    for partition, heard_us, table in written(redis_client):
        assert (partition_of(table["key_hash"].to_numpy(), 2) == partition).all()
        assert set(table["time_us"].to_pylist()) == set(table["version"].to_pylist()) == {heard_us}
        boxes = bounds_of(table["bounds"])
        assert (boxes[:, :2] == boxes[:, 3:5]).all() and np.isinf(boxes[:, [2, 5]]).all()
        assert (np.abs(boxes[:, :2]) <= [180, 90]).all()
        for key, place in zip(table["key"].to_pylist(), boxes[:, :2], strict=True):
            places.setdefault(key, []).append(place)
            times.setdefault(key, []).append(heard_us)
    assert len(places) == OBJECTS and all(len(steps) == 2 for steps in places.values())
    assert all(earlier < later for earlier, later in times.values())
    moved = np.array([np.subtract(after, before) for before, after in places.values()])
    far = np.abs(moved).max(axis=1) > 20 * load.STEP_DEG
    assert moved.any(axis=1).all()
    assert far.mean() > 0.9 if motion == "jump" else far.mean() < 0.01  # one may cross the antimeridian


def test_what_moves_along_roads_reports_beside_a_road_of_its_own(redis_client):
    lines = load.road_coordinates(50)
    log = Log(redis_client, "earth", 2)
    blocks = load.make_blocks("bench", OBJECTS, 100, 2, roads=lines)
    generator = load.Generator(log, blocks, "along")
    generator.write(10)
    generator.write(10)
    places = {}
    for _, _, table in written(redis_client):
        for key, place in zip(table["key"].to_pylist(), bounds_of(table["bounds"])[:, :2], strict=True):
            places.setdefault(key, []).append(place)
    first, second = (np.array([steps[turn] for steps in places.values()]) for turn in (0, 1))
    far = distance_m(shapely.points(first)[:, None].repeat(50, 1).ravel(), np.tile(shapely.linestrings(lines), OBJECTS))
    nearest = far.reshape(OBJECTS, 50).argmin(axis=1)
    again = distance_m(shapely.points(second), shapely.linestrings(lines)[nearest])
    assert (first != second).any(axis=1).all() and np.mean(again <= 3 * load.ERROR_M) > 0.95
    assert np.mean(again <= joins.DISTANCE_M) == pytest.approx(0.9, abs=0.06)


def test_joins_have_layers_of_the_size_that_is_said_and_plans_that_are_valid():
    areas = joins.areas()
    assert len(areas) == 20 and shapely.is_valid(areas).all()
    assert set(shapely.get_num_coordinates(areas)) == {joins.VERTICES + 1}
    assert shapely.area(shapely.union_all(areas)) / 100 == pytest.approx(0.7, abs=0.03)
    for scenario in scenarios.JOINS.values():
        plans = [parse_plan(document) for document in joins.plans(scenario)]
        assert len(plans) == scenario.joins
        assert len(set(plans)) == (1 if scenario.differ == "names" else scenario.joins)


def test_the_naive_join_finds_the_pairs():
    small = scenarios.Joins("small", "roads", 500, 2)
    assert joins.naive(small, 0.1).pairs_per_element == pytest.approx(2 * 0.9, abs=0.2)
    for differ in ("areas", "filters"):
        split = scenarios.Joins("split", "roads", 500, 100, differ)
        assert joins.naive(split, 0.1).pairs_per_element == pytest.approx(0.9, abs=0.1)


def test_queries_of_any_number_have_as_many_matches():
    places = np.random.default_rng(5).random((20_000, 2)) * [360, 180] - [180, 90]
    for count in (100, 2_500):
        west, south, east, north = scenarios.query_boxes(count).T
        lon, lat = places[:, :1], places[:, 1:]
        matches = ((west <= lon) & (lon <= east) & (south <= lat) & (lat <= north)).sum() / len(places)
        assert matches == pytest.approx(scenarios.MATCHES_PER_ELEMENT, rel=0.05)


def test_both_baselines_give_the_same_tuples():
    rng = np.random.default_rng(3)
    boxes = scenarios.query_boxes(30)
    updates = [(rng.permutation(50)[:40], rng.random((40, 2)) * [360, 180] - [180, 90]) for _ in range(20)]
    plain = [sorted(block) for block in baselines.row_by_row(updates, boxes)]
    vectors = baselines.by_numpy(updates, boxes, 50)
    quick = [sorted(zip(*(column.tolist() for column in block), strict=True)) for block in vectors]
    assert plain == quick
    assert {sign for block in plain for *_, sign in block} == {-1, 0, 1}


def test_lines_for_the_gateway_are_decoded_whole():
    decoder = make_decoder({"kind": "csv", **WIRE_DECODER}, "wire")
    numbers, places = np.array([7, 8]), np.array([[24.5, 60.25], [-179.0, -10.0]])
    decoded = decoder.feed(wire.lines(numbers, places, 1_795_249_561_000_000), 0)
    assert not decoded.malformed
    assert decoded.elements["key"].to_pylist() == ["object 7", "object 8"]
    assert decoded.elements["time_us"].to_pylist() == [1_795_249_561_000_000] * 2
    assert bounds_of(decoded.elements["bounds"])[:, :2].tolist() == places.tolist()


def test_the_meter_counts_what_is_published_while_it_looks(redis_server, redis_client):
    def publish(batch, elements):
        rows = result_schema(EARTH).empty_table()
        counters = ({"elements": elements, "results": 3}, {"results": 4})
        log.publish(Fragment("e", batch, n, 2, rows, rows, counters=c) for n, c in enumerate(counters))

    log = Log(redis_client, "earth", 2)
    publish(1, 1_000)
    with meter.Meter(redis_server) as counting:
        publish(2, 50)
        while len(counting.told) < 2:
            time.sleep(0.01)
        publish(3, 60)
    told = counting.told
    assert [batch for _, batch, _ in told] == [2, 2, 3, 3]
    work = meter.work_of([(500 * place, batch, counters) for place, (_, batch, counters) in enumerate(told)])
    assert (work.elements_per_s, work.results_per_s) == (40.0, pytest.approx(11 / 1.5))


def test_figures_without_rows_are_none():
    assert figures(np.empty(0, dtype=np.int64))["p99_ms"] is None


def test_the_report_replaces_only_what_stands_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.keep("new\n", page)
    report.keep("newer\n", page)
    assert page.read_text() == f"before\n{report.BEGIN}\n\nnewer\n\n{report.END}\nafter\n"
    page.write_text("none")
    with pytest.raises(ValueError, match="must have the lines"):
        report.keep("new\n", page)
    assert report.BEGIN in report.PAGE.read_text()


def test_a_report_says_which_goals_are_met():
    def row(name, rate, p99_ms, engine_cores):
        work = meter.Work(rate, rate, 3.0)
        latency = {"rows": 9, "p50_ms": 100.0, "p99_ms": p99_ms, "longest_ms": p99_ms, "resyncs": 0}
        scenario = scenarios.SCENARIOS[name]
        return report.Row(scenario, work, latency, {"engine": engine_cores}, {"engine": 5_000.0})

    made = report.Report("a machine")
    made.rows = [
        row("20k-100q-100k", 20_000, 1_200.0, 0.5),
        row("max-100q-100k", 400_000, 3_000.0, 1.0),
        row("100k-100q-1M", 100_000, 500.0, 1.0),
        row("100k-10000q-1M", 100_000, 500.0, 1.3),
    ]
    made.demo_mib = {"engine": 5_000.0}
    met = {
        line.split("|")[1].strip(): line.split("|")[3].strip() for line in made.markdown().splitlines() if "|" in line
    }
    assert met["20,000/s, 100 queries (blocks, small steps): p50 < 400 ms"] == "yes"
    assert met["20,000/s, 100 queries (blocks, small steps): p99 < 1 s"] == "no"
    assert met["100 queries of 1 %, 100k objects: at least 300,000 elements/s"] == "yes"
    assert met["10,000 queries, 1M objects, 100,000/s: at most 25 % more CPU per element"] == "no"
    assert met["demonstration: within 4 GiB"] == "no"
    assert met["20,000 elements/s: within 6 GiB"] == "yes"


def test_every_quick_scenario_exists():
    assert set(scenarios.QUICK) <= {*scenarios.SCENARIOS, *scenarios.OTHERS}
