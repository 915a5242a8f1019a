"""The parts of the benchmark that can be wrong without anyone noticing: its load, its baselines, its report."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import redis
import shapely

from bench import (
    against,
    baselines,
    crowd,
    joins,
    load,
    meter,
    panning,
    report,
    runner,
    scenarios,
    stack,
    tile38,
    wire,
    written,
)
from bench.client import figures
from bench.live import PATIENCE_S, StackFailed
from bench.machine import Conditions
from bench.prepare import WIRE_DECODER
from streaming.decoders import make_decoder
from streaming.elements import bounds_of, from_ipc, partition_of
from streaming.logs import Log
from streaming.operators.metres import distance_m
from streaming.plans import parse_plan
from streaming.results import Fragment, frame, result_schema
from streaming.spaces import EARTH

OBJECTS = 500


def elements_written(client, partitions=2):
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
    for partition, heard_us, table in elements_written(redis_client):
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
    for _, _, table in elements_written(redis_client):
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


def row_of(name, rate=20_000, p99_ms=200.0):
    latency = {"rows": 9, "p50_ms": 100.0, "p99_ms": p99_ms, "longest_ms": p99_ms, "resyncs": 0}
    work = meter.Work(rate, rate, 3.0)
    return report.Row(scenarios.SCENARIOS[name], work, latency, {"engine": 0.5}, {"engine": 5_000.0})


def cells(made):
    """Return the cells of all rows of a report, by the first."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in made.markdown().splitlines() if "|" in line]
    return {line[0]: line[1:] for line in reversed(lines)}


def test_a_report_states_figures_marks_what_was_disturbed_and_says_what_failed():
    made = report.Report("a machine")
    made.rows = [row_of("gateway-20k-100q-100k"), row_of("20k-100q-100k")]
    made.measured = [report.Measured("panning-100", "panning", {"pages": 100, "pan p99 ms": 312.0})]
    made.conditions = {"gateway-20k-100q-100k": Conditions(0.051, 3.0, 20.0), "20k-100q-100k": Conditions(0.05)}
    made.failed = {"20k-100q-10M": "StackFailed: the engine | ended"}
    told = cells(made)
    assert told["gateway-20k-100q-100k (disturbed)"][:3] == ["20,000", "100", "100,000"]
    assert told["20k-100q-100k"][7:9] == ["100", "200"]
    assert told["panning-100"] == ["100", "312"]
    assert told["20k-100q-10M"] == ["StackFailed: the engine / ended"]
    assert "goal" not in made.markdown() and not made.whole


def test_tile38_stands_beside_the_rows_of_the_same_size():
    made = report.Report("a machine")
    made.rows = [row_of("20k-100q-100k"), row_of("20k-10000q-100k")]
    made.tile38 = [tile38.Tile38Row(20_000, 100, 100_000, 19_990.0, figures(np.array([5_400])), 0.9, 60.0)]
    beside = made.markdown().split("| beside Tile38")[1].split("\n\n")[0]
    assert [line.split("|")[1].strip() for line in beside.splitlines()[2:]] == ["tile38", "20k-100q-100k"]


def test_a_scenario_that_fails_ends_neither_the_run_nor_the_others(monkeypatch):
    started, ended = [], []

    @contextlib.contextmanager
    def start(scenario):
        started.append(scenario.name)
        yield "stack"
        ended.append(scenario.name)

    def take(_, scenario):
        if scenario.rate == 100_000:
            raise ValueError("too fast")
        taken.append(scenario.name)

    monkeypatch.setattr(runner, "machine", lambda: "a machine")
    taken, names = [], ["20k-100q-100k", "100k-100q-100k", "max-100q-100k"]
    running = runner.Runner(names, 1.0, 1.0, lambda _: None)
    running._on_stacks([scenarios.SCENARIOS[name] for name in names], start, take)
    assert taken == ["20k-100q-100k", "max-100q-100k"]
    assert running.report.failed == {"100k-100q-100k": "ValueError: too fast"}
    assert started == ended == ["20k-100q-100k", "max-100q-100k"]
    assert list(running.report.conditions) == names


def test_small_blocks_are_filled_with_large_ones_that_hold_the_same_objects(redis_client):
    def places(rows):
        blocks = load.make_blocks("bench", OBJECTS, rows, 2)
        tables = [block.table for block in blocks]
        boxes = [dict(zip(t["key"].to_pylist(), map(tuple, bounds_of(t["bounds"])), strict=True)) for t in tables]
        return {key: box for boxes_of_block in boxes for key, box in boxes_of_block.items()}

    assert places(7) == places(200) and len(places(7)) == OBJECTS


def test_a_pan_is_answered_by_what_lies_in_its_area_and_one_answer_may_serve_several():
    page = panning.Page(np.array([0.0, 0.0]))
    for now_s in (1.0, 2.0, 3.0):
        page.pan(now_s)
    edge = panning.EXTENT[0] + page.step * np.array([0.5, 1.5, 2.5])
    page.entered(np.array([[edge[0], 1.0]]), 1.25)
    assert page.pans_us == [250_000.0] and len(page.waiting) == 2
    page.entered(np.array([[edge[1], 1.0], [edge[2], 2.0]]), 3.5)
    assert page.pans_us == [250_000.0, 1_500_000.0, 500_000.0] and not page.waiting


def test_a_page_stays_in_the_world():
    page = panning.Page(np.array([100.0, 0.0]))
    for _ in range(100):
        page.pan(0.0)
        area = page.area()
        assert area["lo"][0] >= -180 and area["hi"][0] <= 180


def test_the_latest_client_is_told_for_each_batch():
    def frame_of(batch):
        columns = result_schema(EARTH).empty_table()
        return frame({"type": "answer.changes", "batch": batch}, columns)

    heard = [(1_000, 0, frame_of(1)), (5_000, 1, frame_of(1)), (9_000, 0, frame_of(2)), (9_500, 2, frame_of(2))]
    told = crowd.summary(heard, 2.0)
    assert told["frames_per_s"] == 2.0 and (told["late"]["rows"], told["late"]["longest_ms"]) == (2, 4.0)


def test_bytes_that_a_process_writes_are_counted(tmp_path):
    code = "import os, sys; f = open(sys.argv[1], 'wb'); f.write(bytes(1 << 20)); f.flush(); os.fsync(f.fileno())"
    process = subprocess.Popen(
        [sys.executable, "-c", code + "; print(); input()", tmp_path / "file", "streaming.engine"],
        env=os.environ | {"LOOKOUT_HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    process.stdout.readline()
    counted = written.written_bytes(tmp_path)
    process.communicate(b"\n")
    if os.stat(tmp_path).st_dev == os.stat("/dev/shm").st_dev:
        pytest.skip("the kernel does not count a memory file system")
    assert 1 << 20 <= counted[process.pid] < 2 << 20


def test_another_checkout_is_referred_to_and_keeps_its_own_code(tmp_path):
    checkout, folder = tmp_path / "checkout", tmp_path / "folder"
    for name in ("streaming", "bench"):
        (checkout / name).mkdir(parents=True)
        (checkout / name / "stack.py").write_text(name)
    folder.mkdir()
    against._refer(folder / "ours", checkout, True)
    against._refer(folder / "theirs", checkout, False)
    assert (folder / "ours" / "streaming" / "stack.py").read_text() == "streaming"
    assert "class Stack" in (folder / "ours" / "bench" / "stack.py").read_text()
    assert (folder / "theirs" / "bench" / "stack.py").read_text() == "bench"
    assert "figures_of" in (folder / "theirs" / "bench" / "one.py").read_text()


def test_ratios_are_of_what_both_sides_have():
    compared = against.Compared(
        "x", [{"p50 ms": 100.0, "new": 1}, {"p50 ms": 200.0, "new": 1}], [{"p50 ms": 300.0}] * 2
    )
    assert compared.ratios() == [("p50 ms", 150.0, 300.0, 0.5)]


def test_a_checkout_without_an_environment_is_refused(tmp_path):
    with pytest.raises(StackFailed, match="make install"), against.other(tmp_path):
        pass


def test_fences_of_tile38_take_the_walk_and_tell_how_old_it_is():
    try:
        tile38.program()
    except tile38.Missing as missing:
        pytest.skip(str(missing))
    with tile38.serving() as (port, _), redis.Redis(port=port, protocol=2) as client, client.pubsub() as messages:
        tile38.set_fences(port, 4)
        messages.subscribe(*(tile38.channel(number) for number in range(4)))
        while messages.get_message(timeout=PATIENCE_S)["data"] != 4:
            pass
        west, south, east, north = scenarios.query_boxes(4)[1]
        middle = np.array([[(west + east) / 2, (south + north) / 2]])
        expected = {
            tile38.channel(n).encode()
            for n, box in enumerate(scenarios.query_boxes(4))
            if (middle >= box[:2]).all() and (middle <= box[2:]).all()
        }
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(tile38.sets(np.array([7]), middle, 1_795_249_561_000_000))
            assert connection.recv(64) == b"+OK\r\n"
        heard = {}
        while heard.keys() < expected:
            message = messages.get_message(timeout=PATIENCE_S)
            heard[message["channel"]] = tile38.time_of(message["data"])
        assert heard.keys() == expected and set(heard.values()) == {1_795_249_561_000_000}


def test_a_missing_tile38_tells_how_to_build_it(monkeypatch, tmp_path):
    monkeypatch.setenv(tile38.VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(tile38.Missing, match="git clone"):
        tile38.program()


def test_every_quick_scenario_exists():
    assert set(scenarios.QUICK) <= {*scenarios.SCENARIOS, *scenarios.OTHERS}


def test_a_process_that_measures_for_ten_minutes_has_ten_minutes_more_to_tell_its_figures():
    command = [sys.executable, "-m", "bench.client", "--seconds", "600", "--queries", "1"]
    assert stack.patience_s(command) == stack.patience_s(command[:3]) + 600
    with stack.child("bench.client", "--seconds", "600") as process:
        assert stack.patience_s(process.args) == stack.patience_s(command)


def test_processor_time_is_that_of_all_threads():
    """Polars computes in threads of its own, so the time of one thread leaves out what queries and sketches cost."""
    sources = [path for path in Path("bench").rglob("*.py") if "thread_time" in path.read_text()]
    assert sources == []
