"""The engine on a cluster of Spark with two executors and its state in S3: exact, also if a part of it is killed."""

import asyncio
import contextlib
import sys
import sysconfig
import uuid

import psutil
import pytest

from bench.live import wait_for
from bench.ports import free_port
from bench.processes import alive, executors
from bench.s3_server import BUCKET
from streaming.engine.java import java_home
from streaming.engine.standalone import standalone
from tests.live.stack import Stack
from tests.live.swarm import DECODER, Swarm
from tests.live.truth import AtRest, answer, differences, moving_differences

pytestmark = pytest.mark.spark

BOX = {"lo": [-1, -1], "hi": [1, 1]}


# Of a machine that has the packages Lookout needs, but not Lookout: without `site`, no package is a link to a checkout.
PYTHON = """#!/bin/sh
PYTHONPATH="$PYTHONPATH:{packages}" exec {python} -S "$@"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, s3_environment):
    """Lookout on a cluster with two workers, which have neither its code nor its folder of states; and the cluster."""
    folder, port = tmp_path_factory.mktemp("cluster"), free_port()
    python = folder / "python"
    python.write_text(PYTHON.format(packages=sysconfig.get_path("purelib"), python=sys.executable))
    python.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as ended:
        for name, value in s3_environment.items():
            patch.setenv(name, value)
        spark = ended.enter_context(standalone(folder / "spark", java_home("", folder), port, 2))
        stack = Stack(folder)
        stack.environment |= {
            "LOOKOUT_SPARK_MASTER": f"spark://127.0.0.1:{port}",
            "LOOKOUT_EXECUTOR_MEMORY": "512m",
            "LOOKOUT_EXECUTOR_PYTHON": str(python),
            "LOOKOUT_STATE_URI": f"s3://{BUCKET}/{uuid.uuid4().hex}",
        }
        try:
            stack.start()
            yield stack, spark
        finally:
            stack.end()


def kill_executor(spark):
    executors(psutil.Process())[0].kill()


def kill_worker(spark):
    before = executors(psutil.Process())
    spark.kill_worker(0)
    wait_for(lambda: not all(alive(executor.pid) for executor in before), "the end of the worker's executor")
    spark.start_worker(0)


def go_on_after(kill, live, spark):
    """Kill a part of the cluster, and wait until another executor is there and batches go on."""

    def running():
        return {executor.pid for executor in executors(psutil.Process())}

    before = running()
    assert len(before) == 2
    kill(spark)
    wait_for(lambda: len(running()) == 2 and running() != before, "another executor")
    batch = int(live.report()[b"batch"])
    wait_for(lambda: int(live.report()[b"batch"]) > batch + 20, "batches")


@pytest.mark.long
async def test_answers_are_exact_after_an_executor_and_a_worker_are_killed_in_mid_stream(cluster):
    live, spark = cluster
    port = free_port()
    live.add_stream("swarm", {"kind": "tcp_listener", "port": port}, DECODER)
    wait_for(lambda: live.health("swarm").get("state") == "running", "swarm listens")
    swarm, moving = Swarm("swarm", port), {}
    async with live.monitor("ann") as texts:
        inside = await texts.register("inside", {"stream": "swarm", "compare": BOX})
        nearest = {"stream": "swarm", "around": {"key": "o0"}, "kind": "knn", "k": 10}
        moving[await texts.register("nearest", nearest)] = nearest
        await texts.running(inside, *moving)
        async with swarm.moving():
            await texts.until(lambda: texts.answers.get(inside), "the first answer")
            told = live.report()
            assert len({told[b"worker:0"], told[b"worker:1"]}) == 2
            for kill in (kill_executor, kill_worker):
                await asyncio.to_thread(go_on_after, kill, live, spark)
        objects = swarm.objects()
        expected, world = answer(objects, {"stream": "swarm", "compare": BOX}), AtRest("swarm", objects)

        def wrong():
            found = differences(texts.answers.get(inside), expected)[:5]
            return found or {query: told for query, told in moving_differences(texts, moving, world).items() if told}

        await texts.until(lambda: not wrong(), lambda: f"{wrong()}, {texts.engine}")
        assert texts.faults == []
