"""With the logs in Kafka, the streaming query is exact, also if the broker is killed in mid-stream."""

import dataclasses
import uuid

import numpy as np
import pytest

from streaming.elements import bounds_of
from streaming.logs import Log
from streaming.plans import plan_document
from tests.engine.test_pipeline import PLANS, SHIPS, Reader, sail
from tests.oracle import satisfies

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_answers_are_exact_although_the_broker_is_killed_in_mid_stream(
    spark, spark_settings, redis_client, kafka_broker, tmp_path
):
    from streaming.engine.pipeline import start_query, stop_query

    url = f"kafka://{kafka_broker.servers}/{uuid.uuid4().hex}"
    settings = dataclasses.replace(spark_settings, state_dir=tmp_path / "engine", max_blocks=8, log_url=url)
    log = Log(redis_client, settings.space.name, settings.partitions, patient=True, url=url)
    reader, rng, truth = Reader(log), np.random.default_rng(5), {}
    places = rng.uniform(-10, 10, (SHIPS, 2))
    for number, plan in enumerate(PLANS):
        log.send("register", query=number, revision=1, plan=plan_document(plan))
    query = start_query(spark, settings)
    for step in range(60):
        elements = sail(rng, places, step)
        keys, boxes = elements["key"].to_pylist(), bounds_of(elements["bounds"]).tolist()
        told = zip(keys, boxes, elements["properties"].to_pylist(), strict=True)
        truth |= {key: (box, text) for key, box, text in told}
        log.ingest(elements, "ships", heard_us=step)
        if step == 20:
            reader.read_until(lambda: reader.done >= 0, query)
        if step == 40:
            kafka_broker.kill()
            kafka_broker.start()
    expected = [
        {key: (box, text) for key, (box, text) in truth.items() if satisfies(plan, "ships", box, text)}
        for plan in PLANS
    ]
    reader.read_until(lambda: [reader.client.answers[number] for number in range(len(PLANS))] == expected, query)

    def trimmed():
        log.send("tick", now_us=0)  # so that batches follow until the state of some is durable
        return log.event_log.length(log.names.ingest(0)) == 0

    reader.read_until(trimmed, query)
    stop_query(query, settings)
    assert not redis_client.keys("*:ingest:*") and not redis_client.keys("*:results")
