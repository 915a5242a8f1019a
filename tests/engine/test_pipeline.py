"""The streaming query over real logs is exact, however Spark cuts the batches, and through restarts."""

import dataclasses
import random
import time

import numpy as np
import pytest

from bench.live import PATIENCE_S
from streaming.elements import bounds_of, point_elements
from streaming.engine.scaling import loads_of
from streaming.eventlog import FIRST
from streaming.logs import Log, read_fragment
from streaming.operators.padding import Padding
from streaming.operators.region_map import RegionMap
from streaming.plans import parse_plan, plan_document
from streaming.spaces import EARTH, space_text
from tests.oracle import satisfies
from tests.servers.harness import Client, another

pytestmark = pytest.mark.spark

PLANS = [
    parse_plan({"stream": "ships", **document})
    for document in (
        {"area": {"lo": [-5, -5], "hi": [5, 5]}},
        {"compare": {"lo": [-3, -9], "hi": [4, 2]}, "report": "outside", "where": "speed_mps > 3"},
        {"area": {"lo": [-180, -90], "hi": [180, 90]}},
    )
]
SHIPS = 300


class Reader:
    """Reads the result log as a web process does: repeats dropped, whole batches only."""

    def __init__(self, log):
        self.log, self.client, self.last, self.parts, self.done = log, Client(), FIRST, {}, -1

    def read_until(self, condition, query=None):
        """Read fragments until `condition` holds; raise the error of a query that ends before."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "the engine did not answer in time"
            if query is not None and query.exception():
                raise query.exception()
            results = self.log.names.results
            for entry in self.log.event_log.poll({results: self.last}, 64, 0.2).get(results, ()):
                self.last = entry.position
                self._take(read_fragment(entry.fields, EARTH))

    def _take(self, fragment):
        if fragment.batch <= self.done:
            return
        parts = self.parts.setdefault(fragment.batch, {})
        parts.setdefault(fragment.region, fragment)
        if len(parts) == fragment.regions:
            assert fragment.batch == self.done + 1
            self.client.receive([parts[region] for region in sorted(parts)])
            self.done = fragment.batch


def sail(rng, places, step):
    """Move some ships; return their elements."""
    ships = rng.choice(SHIPS, rng.integers(1, 150), replace=False)
    places[ships] = np.clip(places[ships] + rng.normal(0, 2, (len(ships), 2)), -10, 10)
    properties = [{"speed_mps": int(speed)} for speed in rng.integers(0, 7, len(ships))]
    return point_elements(
        "ships", [f"ship {ship}" for ship in ships], np.full(len(ships), step), places[ships], properties
    )


@pytest.mark.long
def test_answers_are_exact_through_restarts_and_other_region_maps(spark, spark_settings, redis_client, tmp_path):
    from streaming.engine.pipeline import start_query, stop_query
    from streaming.engine.resume import resume

    settings = dataclasses.replace(spark_settings, state_dir=tmp_path / "engine", max_blocks=8)
    log = Log(redis_client, settings.space.name, settings.partitions)
    reader, rng, truth = Reader(log), np.random.default_rng(5), {}
    places = rng.uniform(-10, 10, (SHIPS, 2))
    known, changes = RegionMap.grid(settings.space, settings.regions), random.Random(1)
    for number, plan in enumerate(PLANS):
        log.send("register", query=number, revision=1, plan=plan_document(plan))
    query = start_query(spark, settings)
    for step in range(90):
        if step % 10 == 7:
            known = another(known, changes)
            log.send("regions", map=known.document())
        elements = sail(rng, places, step)
        columns = (
            elements["key"].to_pylist(),
            bounds_of(elements["bounds"]).tolist(),
            elements["properties"].to_pylist(),
        )
        truth |= {key: (box, text) for key, box, text in zip(*columns, strict=True)}
        log.ingest(elements, "ships", heard_us=step)
        if step % 30 == 15:
            reader.read_until(lambda: reader.done >= 0)
            query.stop()
            query = start_query(spark, settings, resume(settings, log).point)
    expected = [
        {key: (box, text) for key, (box, text) in truth.items() if satisfies(plan, "ships", box, text)}
        for plan in PLANS
    ]
    reader.read_until(lambda: [reader.client.answers[number] for number in range(len(PLANS))] == expected, query)

    def trimmed():
        log.send("tick", now_us=0)  # so that batches follow until the state of some is durable
        return log.event_log.length(log.names.ingest(0)) == 0

    reader.read_until(trimmed)
    stop_query(query, settings)
    assert reader.done >= 8
    assert RegionMap.of(settings.space, log.regions()["map"]) == known and loads_of(log.regions(), known)


@pytest.mark.long
def test_an_engine_continues_exactly_from_the_state_before_a_truncated_one(
    spark, spark_settings, redis_client, tmp_path, caplog
):
    """Batches after that state run again as they were cut: readers drop what they have, and the epoch stays."""
    from streaming.engine.pipeline import start_query, stop_query
    from streaming.engine.resume import resume
    from streaming.engine.store import Store
    from streaming.state.manifest import manifest_batches, read_manifest

    folder = tmp_path / "engine"
    settings = dataclasses.replace(spark_settings, state_dir=folder, max_blocks=4)
    log = Log(redis_client, settings.space.name, settings.partitions)
    reader, rng = Reader(log), np.random.default_rng(7)
    places = rng.uniform(-10, 10, (SHIPS, 2))
    log.send("register", query=0, revision=1, plan=plan_document(PLANS[2]))
    truth, epochs = {}, set()
    for run in range(4):
        store = Store(folder, settings.space)
        resumed = resume(settings, log)
        assert bool(resumed.problems) == (run > 0) or run == 3, resumed.problems
        epochs.add(store.epoch())
        query = start_query(spark, settings, resumed.point)
        for step in range(30 * run, 30 * run + 30):
            elements = sail(rng, places, step)
            keys, boxes = elements["key"].to_pylist(), bounds_of(elements["bounds"]).tolist()
            told = zip(keys, boxes, elements["properties"].to_pylist(), strict=True)
            truth.update({key: (box, text) for key, box, text in told})
            log.ingest(elements, "ships", heard_us=step)
        reader.read_until(lambda: reader.client.answers[0] == truth, query)

        def saved(files=store.files):
            log.send("tick", now_us=0)  # so that an interval follows
            return len(manifest_batches(files)) > 1

        reader.read_until(saved, query)
        stop_query(query, settings)
        newest = read_manifest(store.files, manifest_batches(store.files)[-1])
        path = folder / newest.states["region/1"]["head"].name
        if run == 0:
            path.write_bytes(path.read_bytes()[:100])
        elif run == 1:
            (folder / newest.name).write_bytes(b"")
    assert len(epochs) == 1
    # The blocks of saved batches are kept, but are no backlog.
    kept = [log.event_log.length(log.names.ingest(partition)) for partition in range(settings.partitions)]
    assert log.backlog() == 0 < min(kept)


def test_what_a_process_knows_of_the_files_of_a_query_ends_with_it(tmp_path):
    """States that were not whole are removed before the next query, whose batches have their numbers."""
    from streaming.engine.source import layout_of

    def layout(start):
        return layout_of(start, str(tmp_path), "", "", str(tmp_path), space_text(EARTH), (2, 4), Padding())

    first, second = layout("first"), layout("second")
    assert layout("first") is first is not second
    for known in (first, second):
        known.slot.close()
