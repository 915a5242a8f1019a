"""Tasks that run the batches of an interval give the answers of one process that runs them one by one."""

import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import orjson
import pytest
import redis
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bench.live import PATIENCE_S
from streaming.elements import point_elements
from streaming.engine.batch import IngestBlock, Saving, home_task, region_task
from streaming.engine.batch_traces import EVALUATE, HOME, SEND
from streaming.engine.cuts import CUTS, CutLog, Point, beginning, logs_read
from streaming.engine.exchange import TaskPlace
from streaming.engine.housekeeping import Housekeeping
from streaming.engine.interval import BatchPace, Interval
from streaming.engine.layout import Layout
from streaming.engine.resume import resume
from streaming.engine.store import Store
from streaming.gateway.config import GatewayConfig
from streaming.history import HistoryWriter
from streaming.logs import Log, read_fragment
from streaming.operators.region_map import RegionMap
from streaming.settings import EngineSettings
from streaming.spaces import EARTH
from streaming.state.stores import LocalStore
from streaming.state.upkeep import DURABLE_KEPT
from streaming.trace_export import Exporting
from streaming.traces import OFF, PUBLISH, Traces
from tests.engine.test_state_survives import PLANS, Reader
from tests.full_redis import full
from tests.servers.harness import another

PARTITIONS, REGIONS, SHIPS, STEPS = 2, 4, 60, 110
# So many blocks of a partition are read by a batch at most.
BLOCKS = 3
FILLED = 10


class Crash(Exception):
    """The process of a task ends here."""


class Stopped(Exception):
    """The engine has ended, and with it the process of a task that was waiting."""


class Connection:
    """An event log as one task sees it, which may end the task before or after a command that changes something."""

    def __init__(self, event_log, crash, stopped):
        self._event_log, self._crash, self._stopped = event_log, crash, stopped

    def __getattr__(self, name):
        command = getattr(self._event_log, name)

        def run(*arguments, **more):
            if self._stopped.is_set():
                raise Stopped
            if name == "poll":
                *arguments, wait_s = arguments
                return command(*arguments, min(wait_s, 0.05))
            before = name.startswith("append") and self._crash()
            result = command(*arguments, **more) if not before or self._crash.after() else None
            if before:
                raise Crash
            return result

        return run


class Crashes:
    """Decides where a task ends: before or after its n-th change."""

    def __init__(self, rng, changes):
        self.rng, self.left = rng, rng.randrange(changes) if changes else -1

    def __call__(self):
        self.left -= 1
        return self.left == -1

    def after(self):
        return self.rng.random() < 0.5


class Machine:
    """Runs intervals as Spark does: all tasks at the same time, and one that fails again."""

    def __init__(self, root, url, seed, partitions=PARTITIONS, log_url="", traces=OFF):
        self.root, self.url, self.log_url, self.rng = root, url, log_url, random.Random(seed)
        self.partitions, self.traces, self.pace = partitions, traces, BatchPace(0.002, BLOCKS, 0.15)
        self.settings = EngineSettings(
            home=root,
            redis_url=url,
            log_url=log_url,
            state_dir=root,
            history_dir=root / "history",
            regions=REGIONS,
            partitions=partitions,
        )
        self.log = Log(redis.Redis.from_url(url), "earth", partitions, url=log_url)
        self.crashes = self.restarts = self.batches = 0
        self.resume()

    def resume(self):
        self.point = resume(self.settings, self.log).point
        self.layouts = {}

    def layout(self, task, anew=False):
        if anew or task not in self.layouts:
            store = Store(self.root, EARTH, files=LocalStore(self.root), regions=REGIONS)
            self.layouts[task] = Layout(store, self.partitions, self.history())
        return self.layouts[task]

    def history(self):
        return HistoryWriter(self.root / "history", EARTH, ThreadPoolExecutor(1))

    def interval(self, trouble):
        """Run an interval; return whether it ended, and the engine need not start again."""
        stopped, tasks = threading.Event(), list(range(self.partitions))
        for task in tasks:
            self.layout(task)
        if self.rng.random() < 0.3:  # Spark gives a task to any of its processes
            self.layouts = {task: self.layouts[(task + 1) % len(tasks)] for task in tasks}
        with ThreadPoolExecutor(self.partitions) as threads:
            ran = list(threads.map(lambda task: self.task(task, trouble, stopped), tasks))
        if None in ran:
            self.restarts += 1
            self.resume()
            return
        assert len(set(ran)) == 1 and ran[0] > 0
        epoch = self.layout(0).store.epoch()
        cuts = CutLog(self.log.event_log, self.log.names.cuts, epoch).after(self.point.positions[CUTS])
        end = next(cut for cut in cuts if cut.closes and cut.batch > self.point.batch)
        self.point = Point(end.batch, end.positions)
        self.batches += ran[0]

    def task(self, task, trouble, stopped):
        rng = random.Random(self.rng.random())
        for attempt in range(4):
            crash = Crashes(rng, 25 if trouble and attempt < 3 and rng.random() < 0.4 else 0)
            log = Log(redis.Redis.from_url(self.url), "earth", self.partitions, patient=True, url=self.log_url)
            log.event_log = Connection(log.event_log, crash, stopped)
            place = TaskPlace(task, self.partitions, self.partitions)
            layout = self.layout(task, anew=attempt > 0 and rng.random() < 0.5)
            try:
                return Interval(layout, log, place, self.point, self.pace, self.traces).run()
            except Crash:
                self.crashes += 1
                if rng.random() < 0.4:
                    stopped.set()
                    return None
            except Stopped:
                return None
            except BaseException:
                stopped.set()
                raise
        raise AssertionError("the last attempt has no crash")


def sail(rng, places, step):
    ships = np.sort(rng.choice(SHIPS, rng.integers(1, 12), replace=False))
    places[ships] = np.clip(places[ships] + rng.normal(0, 2, (len(ships), 2)), -10, 10)
    return point_elements(
        "ships", [f"ship {s}" for s in ships], np.full(len(ships), step), places[ships], [{}] * len(ships)
    )


def feed(log, rng):
    """Append what the whole history reads, so that it is the coordinator that cuts it."""
    places, known, changes = rng.uniform(-10, 10, (SHIPS, 2)), RegionMap.grid(EARTH, REGIONS), random.Random(STEPS)
    for step in range(STEPS):
        log.send("tick", now_us=step * 1_000_000)
        if step % 7 == 3:
            known = another(known, changes)
            log.send("regions", map=known.document())
        for ttl_s in (9, 40) if step == 2 else ():  # so many that a batch reads no elements
            log.send("stream", stream="ships", ttl_s=ttl_s)
        for number, plan in enumerate(PLANS):
            if step == 30 + 5 * number or (step - number) % 47 == 20:
                log.send("register", query=number, revision=step + 1, plan=plan)
            if step % 53 == 1 + number:
                log.send("cancel", query=number, revision=step + 1)
        log.ingest(sail(rng, places, step), "ships", step * 1_000_000)


def answers(log):
    """Return the answers after each batch that the result log has."""
    reader = Reader()
    fragments = [read_fragment(entry.fields, EARTH) for entry in log.event_log.read(log.names.results)]
    # A batch of an attempt that ended late may come after later ones.
    for fragment in sorted(fragments, key=lambda fragment: (fragment.batch, fragment.region)):
        reader.publish([fragment])
    return reader.log


def entries_of(event_log, after, upto, name, key):
    return [entry.fields for entry in event_log.read(key, after[name], upto[name])]


def one_by_one(root, url, epoch, log_url=""):
    """Run the batches of a history again, each saved, in one process; return the answers after each of them.

    The regions stay as they are in this process, so that answers must not depend on them.
    """
    log = Log(redis.Redis.from_url(url), "earth", PARTITIONS, url=log_url)
    layout = Layout(Store(root, EARTH, regions=REGIONS), PARTITIONS, HistoryWriter(root / "history", EARTH))
    reader, positions = Reader(), beginning(PARTITIONS).positions
    for cut in CutLog(log.event_log, log.names.cuts, epoch).after("0-0"):
        if cut.closes:
            continue
        entries = partial(entries_of, log.event_log, positions, cut.positions)
        told = [*entries("definitions", log.names.definitions), *entries("control", log.names.control)]
        control = [orjson.loads(fields[b"entry"]) for fields in told]
        control = [entry for entry in control if entry["op"] != "regions"]
        saving, inputs = Saving(cut.batch - 1), [[] for _ in range(REGIONS)]
        for partition in range(PARTITIONS):
            blocks = [
                IngestBlock(f[b"stream"].decode(), int(f[b"heard_us"]), f[b"block"])
                for f in entries(str(partition), log.names.ingest(partition))
            ]
            for sent in home_task(layout, partition, cut.batch, blocks, control, saving):
                inputs[sent.region].append(sent)
        for number in range(REGIONS):
            reader.publish(region_task(layout, number, cut.batch, inputs[number], control, saving))
        positions = cut.positions
    return reader.log


def often(monkeypatch):
    """Have states saved and control entries read in small steps."""
    monkeypatch.setattr("streaming.engine.interval.SAVE_EVERY_S", 0.03)
    monkeypatch.setattr("streaming.engine.interval.MOST_TIMES", 1)
    monkeypatch.setattr("streaming.engine.interval.MOST_ENTRIES", 3)
    monkeypatch.setattr("streaming.engine.interval.MOST_DEFINITIONS", 2)
    monkeypatch.setattr("streaming.engine.interval.most_next", lambda count: 3)


def run_all(machine, trouble):
    """Run intervals until they have read all entries of the logs."""
    names, event_log = machine.log.names, machine.log.event_log
    newest = {name: event_log.newest(log) for name, log in [("control", names.control), ("0", names.ingest(0))]}
    while not newest.items() <= machine.point.positions.items():
        machine.interval(trouble)


@pytest.mark.long
@pytest.mark.separate_seeds(1, 2, 5, 6)
def test_intervals_of_tasks_that_crash_give_the_answers_of_one_process_and_traces_without_gaps(
    tmp_path, redis_client, redis_server, seed, monkeypatch
):
    often(monkeypatch)
    spans = InMemorySpanExporter()
    exporting = Exporting(spans, {})
    machine = Machine(tmp_path / "engine", redis_server, seed, traces=Traces(1, exporting))
    feed(machine.log, np.random.default_rng(seed))
    run_all(machine, trouble=True)
    told = answers(machine.log)
    epoch = machine.layout(0).store.epoch()
    assert told == one_by_one(tmp_path / "truth", redis_server, epoch)
    assert len(told) == machine.point.batch + 1 > 40 and any(told)
    assert machine.crashes > 3 and machine.restarts > 0
    assert all(machine.log.task_report(task)["batches"] for task in range(PARTITIONS))
    exporting.flush()
    made = spans.get_finished_spans()
    assert {span.name for span in made} == {HOME, SEND, EVALUATE, PUBLISH}
    known = {span.context.span_id for span in made}
    assert [span for span in made if span.name != HOME and span.parent.span_id not in known] == []


@pytest.mark.long
def test_intervals_of_tasks_that_crash_give_the_answers_of_one_process_with_logs_in_kafka(
    tmp_path, redis_client, redis_server, kafka_servers, monkeypatch
):
    often(monkeypatch)
    url = f"kafka://{kafka_servers}/{uuid.uuid4().hex}"
    machine = Machine(tmp_path / "engine", redis_server, 1, log_url=url)
    feed(machine.log, np.random.default_rng(1))
    run_all(machine, trouble=True)
    told = answers(machine.log)
    assert told == one_by_one(tmp_path / "truth", redis_server, machine.layout(0).store.epoch(), url)
    assert len(told) == machine.point.batch + 1 > 40 and any(told)
    assert machine.crashes > 3 and machine.restarts > 0


class Waits:
    """Counts how often somebody waits for room in Redis, in place of `time.sleep`."""

    def __init__(self):
        self.count = 0

    def __call__(self, _):
        self.count += 1
        time.sleep(0.01)


@pytest.mark.long
@pytest.mark.parametrize("trouble", [False, True])
def test_tasks_wait_while_redis_is_full_and_the_answers_are_those_of_one_process(
    tmp_path, redis_client, redis_server, trouble, monkeypatch
):
    often(monkeypatch)
    waits = Waits()
    monkeypatch.setattr("streaming.redis_memory.pause", waits)
    machine = Machine(tmp_path / "engine", redis_server, seed=3)
    feed(machine.log, np.random.default_rng(3))
    running = threading.Thread(target=run_all, args=[machine, trouble])
    running.start()
    filled = 0
    while running.is_alive() and filled < FILLED:
        with full(redis_client):
            seen = waits.count
            # Each of the tasks has come to a write that is refused, unless it waits for another one.
            while running.is_alive() and waits.count < seen + 3:
                time.sleep(0.002)
            filled += running.is_alive()
            batch = machine.log.newest_batch(machine.layout(0).store.epoch())
        while running.is_alive() and machine.log.newest_batch(machine.layout(0).store.epoch()) <= batch:
            time.sleep(0.002)
    running.join()
    told = answers(machine.log)
    assert told == one_by_one(tmp_path / "truth", redis_server, machine.layout(0).store.epoch())
    assert len(told) == machine.point.batch + 1 > 40 and any(told)
    assert filled == FILLED and (trouble or not machine.crashes + machine.restarts)


def test_logs_are_trimmed_and_counted_right_while_redis_is_full(tmp_path, redis_client, redis_server, monkeypatch):
    often(monkeypatch)
    machine = Machine(tmp_path / "engine", redis_server, seed=4)
    feed(log := machine.log, np.random.default_rng(4))
    keys = logs_read(log.names, PARTITIONS) | {CUTS: log.names.cuts}
    housekeeping = Housekeeping(LocalStore(machine.root), log, keys, tmp_path / "history")
    fed = [log.event_log.length(name) for name in log.names.all_ingest(PARTITIONS)]
    while machine.point.positions.items() & beginning(PARTITIONS).positions.items():
        machine.interval(trouble=False)
    for _ in range(DURABLE_KEPT - 1):
        machine.interval(trouble=False)
        housekeeping.work()
    before = log.backlog()
    machine.interval(trouble=False)
    assert [log.event_log.length(name) for name in log.names.all_ingest(PARTITIONS)] == fed
    with full(redis_client):
        housekeeping.work()
        lengths = [log.event_log.length(name) for name in log.names.all_ingest(PARTITIONS)]
        assert all(0 < now < was for now, was in zip(lengths, fed, strict=True))
        assert (read := log.count_read(machine.point.positions)) == list(log.kept().values())
        assert log.backlog() == max(was - kept for was, kept in zip(lengths, read, strict=True)) < before


def test_elements_that_were_held_back_for_room_come_into_the_answers_once(
    tmp_path, redis_client, redis_server, monkeypatch
):
    often(monkeypatch)
    monkeypatch.setattr("streaming.redis_memory.FRESH_S", 0.0)
    machine, stops = Machine(tmp_path / "engine", redis_server, seed=5), []
    log, config, ships, steps = machine.log, GatewayConfig(), 1_000, 60
    names = [f"ship {ship}" for ship in range(ships)]
    places = np.random.default_rng(5).uniform(-10, 10, (steps, ships, 2))

    def produce():
        for step in range(steps):
            elements = point_elements("ships", names, np.full(ships, step), places[step], [{"name": "x" * 99}] * ships)
            if not config.takes(log.pressure(), live=False):
                stops.append(step)
            while not config.takes(log.pressure(), live=False):
                time.sleep(0.002)
            log.ingest(elements, "ships", step)
            log.send("tick", now_us=step)

    keys = logs_read(log.names, PARTITIONS)
    housekeeping = Housekeeping(LocalStore(machine.root), log, keys | {CUTS: log.names.cuts}, tmp_path / "history")
    log.send("stream", stream="ships", ttl_s=40)
    log.send("register", query=1, revision=1, plan=PLANS[0])
    redis_client.config_set("maxmemory", 2 * (redis_client.info("memory")["used_memory"] + 2_000_000))
    try:
        producing = threading.Thread(target=produce, daemon=True)
        producing.start()
        deadline_s = time.monotonic() + PATIENCE_S
        while producing.is_alive():
            assert time.monotonic() < deadline_s, "the elements wait for ever"
            log.send("tick", now_us=0)  # as the gateway does: without entries there is no batch
            machine.interval(trouble=False)
            housekeeping.turn()
            log.event_log.trim({log.names.events: log.event_log.newest(log.names.events)})  # as the recorder does
        log.send("snapshot", query=1)
        run_all(machine, trouble=False)
    finally:
        redis_client.config_set("maxmemory", 0)
    assert len(stops) > 2 and not machine.crashes + machine.restarts
    read = redis_client.hmget(log.names.engine, [f"read:{partition}" for partition in range(PARTITIONS)])
    assert [int(count) for count in read] == [steps] * PARTITIONS and not log.stale()
    fragments = [read_fragment(entry.fields, EARTH) for entry in log.event_log.read(log.names.results)]
    answer = [key for part in fragments if 1 in part.snapshot_queries for key in part.snapshots["key"].to_pylist()]
    lo, hi = PLANS[0]["area"]["lo"], PLANS[0]["area"]["hi"]
    inside = ((places[-1] >= lo) & (places[-1] <= hi)).all(axis=1)
    assert any(answer) and sorted(answer) == sorted(f"ship {ship}" for ship in np.flatnonzero(inside))


def test_a_window_that_has_ended_is_told_to_its_end_while_nothing_comes(
    tmp_path, redis_client, redis_server, monkeypatch
):
    for name, size in (("BUDGET", 40), ("AHEAD", 0), ("LEAST_SLICE", 1)):
        monkeypatch.setattr(f"streaming.servers.ways.time_joins.windows.{name}", size)
    machine, ships = Machine(tmp_path / "engine", redis_server, seed=6), 200
    join = {"stream": "ships", "predicate": "dwithin", "distance": 100}
    plan = {"stream": "ships", "kind": "window_join", "join": join, "window_s": 10, "lateness_s": 0}
    machine.log.send("register", query=1, revision=1, plan=plan)
    machine.interval(trouble=False)
    # Two ships at each of the places; then each partition hears of a later time.
    places = np.repeat(np.random.default_rng(6).uniform(-10, 10, (ships // 2, 2)), 2, axis=0)
    names = [f"ship {ship}" for ship in range(ships)]
    for second, some in ((1, places), (20, places + 50)):
        elements = point_elements("ships", names, np.full(ships, second * 1_000_000), some, [{}] * ships)
        machine.log.ingest(elements, "ships", 0)
    expected = sorted((names[ship], names[ship + 1]) for ship in range(0, ships, 2))
    pairs, until = [], time.monotonic() + PATIENCE_S
    while len(pairs) < len(expected) and time.monotonic() < until:
        machine.interval(trouble=False)
        entries = machine.log.event_log.read(machine.log.names.results)
        told = [part for part in (read_fragment(entry.fields, EARTH) for entry in entries) if part.changes.num_rows]
        pairs = sorted(pair for part in told for pair in pairs_of(part.changes))
    assert pairs == expected
    batches = {part.batch for part in told}
    assert len(batches) > 3
    # What is left is an entry of the log, so that a batch follows at once, not when the next interval ends.
    control = [orjson.loads(e.fields[b"entry"])["op"] for e in machine.log.event_log.read(machine.log.names.control)]
    assert control.count("proceed") >= len(batches) - 1


def pairs_of(changes):
    return [
        tuple(sorted(pair)) for pair in zip(*(changes[name].to_pylist() for name in ("key", "partner")), strict=True)
    ]
