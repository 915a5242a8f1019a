"""The streaming query over real logs is exact, however Spark cuts the batches, and through restarts."""

import dataclasses
import time

import numpy as np
import pytest

from bench.live import PATIENCE_S
from streaming.elements import bounds_of, point_elements
from streaming.eventlog import FIRST
from streaming.logs import Log, read_fragment
from streaming.plans import parse_plan, plan_document
from streaming.spaces import EARTH
from tests.oracle import satisfies
from tests.servers.harness import Client

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

    def read_until(self, condition):
        """Read fragments until `condition` holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "the engine did not answer in time"
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


def test_answers_are_exact_through_restarts_from_the_checkpoint(spark, spark_settings, redis_client, tmp_path):
    from streaming.engine.pipeline import start_query

    settings = dataclasses.replace(spark_settings, state_dir=tmp_path / "engine", max_blocks=8)
    log = Log(redis_client, settings.space.name, settings.partitions)
    reader, rng, truth = Reader(log), np.random.default_rng(5), {}
    places = rng.uniform(-10, 10, (SHIPS, 2))
    for number, plan in enumerate(PLANS):
        log.send("register", query=number, revision=1, plan=plan_document(plan))
    query = start_query(spark, settings)
    for step in range(90):
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
            query = start_query(spark, settings)
    expected = [
        {key: (box, text) for key, (box, text) in truth.items() if satisfies(plan, "ships", box, text)}
        for plan in PLANS
    ]
    reader.read_until(lambda: [reader.client.answers[number] for number in range(len(PLANS))] == expected)
    query.stop()
    assert reader.done >= 8
    assert log.event_log.length(log.names.ingest(0)) < 90, "the log is trimmed behind the engine's commit"
