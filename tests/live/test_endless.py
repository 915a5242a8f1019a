"""A filter that never returns, or ends its process: the others get their answers, and it is named."""

import asyncio
import textwrap

import pytest

from bench.live import wait_for
from bench.ports import free_port
from tests.live.stack import Stack
from tests.live.swarm import DECODER, Swarm
from tests.live.truth import answer, differences

pytestmark = [pytest.mark.spark, pytest.mark.long]

LIMIT_S = 10
STREAM = "swarm"
PLAN = {"stream": STREAM, "compare": {"lo": [-1, -1], "hi": [1, 1]}}
# A regular expression with two ways to read each letter: 2^n steps of compiled code that gives nobody a turn.
FILTERS = """
    import os
    import re
    import signal

    import numpy as np


    class Endless:
        def filter_element(self, elements, argument):
            if elements.num_rows:
                re.fullmatch("(a|aa)+", "a" * 99 + "b")
            return np.ones(elements.num_rows, dtype=bool)


    class Fatal:
        def filter_element(self, elements, argument):
            if elements.num_rows:
                os.kill(os.getpid(), signal.SIGSEGV)
            return np.ones(elements.num_rows, dtype=bool)
"""
OFFERED = "[lookout.filters]\nendless = hostile:Endless\nfatal = hostile:Fatal\n"


@pytest.fixture
def alone(tmp_path_factory):
    """Run a Lookout whose machine has another package with filters."""
    folder = tmp_path_factory.mktemp("endless")
    package = folder / "package"
    about = package / "hostile-1.0.dist-info"
    about.mkdir(parents=True)
    (package / "hostile.py").write_text(textwrap.dedent(FILTERS))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(OFFERED)
    stack = Stack(folder, standby=True)
    stack.environment |= {"PYTHONPATH": str(package), "LOOKOUT_STEP_S": str(LIMIT_S)}
    try:
        stack.start()
    except BaseException:
        stack.leave_nothing()
        raise
    yield stack
    stack.end()


async def test_a_query_that_never_ends_is_named_and_stays_out_and_the_others_are_answered(alone):
    swarm = await swarm_of(alone)
    async with alone.monitor("ann") as ann, alone.monitor("bob") as bob:
        inside = await ann.register("inside", PLAN)
        async with swarm.moving():
            await ann.until(lambda: ann.answers.get(inside), "the first answer")
            endless = await failed(alone, bob, "endless", f"did not end within {LIMIT_S} s")
            good = await bob.register("good", PLAN)
            fatal = await failed(alone, bob, "fatal", "ended the process of the engine")
        await exact(swarm, ann, inside)
        await exact(swarm, bob, good)

        blamed = words(alone)
        assert {int(line.split(" query ")[1].split(",")[0]) for line in blamed} == {endless, fatal}
        pid = alone.kill("engine")
        await asyncio.to_thread(wait_for, lambda: alone.pids().get("engine", pid) != pid, "another engine")
        async with swarm.moving():
            after = await ann.register("registered after the kill", PLAN)
            await ann.running(after)
        await exact(swarm, ann, inside, after)
        assert {alone.queries()[query]["status"] for query in (endless, fatal)} == {"failed"}
        assert words(alone) == blamed

        for query in (endless, fatal):
            await bob.request("query.edit", query=query, plan=PLAN)
        await bob.running(endless, fatal)
        await exact(swarm, bob, endless, fatal, good)
        assert ann.faults == bob.faults == []


async def swarm_of(stack):
    """Return a swarm with a stream that listens for it, where the filters are enabled."""
    port = free_port()
    stack.add_stream(STREAM, {"kind": "tcp_listener", "port": port}, DECODER)
    for name in ("endless", "fatal"):
        stack.enable_filter(name)
    await asyncio.to_thread(wait_for, lambda: stack.health(STREAM).get("state") == "running", "the stream listens")
    return Swarm(STREAM, port)


async def failed(stack, monitor, name, why):
    """Register a query with a filter; return its number once it has failed and says why.

    It may have failed before that, since the engine that was ended for it did not acknowledge it in time.
    """
    query = await monitor.register(name, PLAN | {"filters": [{"udf": name}]})

    def told():
        return monitor.status(query) == "failed" and why in monitor.statuses[query]["error"]

    await monitor.until(told, lambda: f"{words(stack)}, {monitor.statuses}")
    return query


async def exact(swarm, monitor, *queries):
    """Wait until the answers of queries are what brute force finds."""
    expected = answer(swarm.objects(), PLAN)

    def wrong():
        return [found for query in queries if (found := differences(monitor.answers.get(query), expected)[:5])]

    await monitor.until(lambda: not wrong(), lambda: f"{wrong()}")


def words(stack):
    """Return what the engines have said of queries that they do not evaluate any more."""
    lines = [line for log in stack.home.glob("log/*.log") for line in log.read_text(errors="replace").splitlines()]
    return sorted(line for line in lines if "ERROR query " in line and "not evaluated any more" in line)
