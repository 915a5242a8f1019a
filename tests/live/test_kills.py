"""``kill -9`` of a program during a stream: it comes back by itself, and the answers are exact again within seconds."""

import asyncio
import shutil
import time

import pytest

from bench.live import wait_for
from bench.ports import free_port
from streaming.engine.store import Store
from streaming.spaces import EARTH
from streaming.state.errors import LostState
from streaming.state.manifest import MANIFESTS, batch_of
from streaming.state.stores import LocalStore
from tests.live.swarm import DECODER, Swarm
from tests.live.truth import AtRest, answer, differences, moving_differences
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.spark

# Far above what docs/operations.md tells, since a machine may be slow in ways that a stopwatch does not know.
EXACT_AGAIN_S = 30
# What is another process when one of them was killed: the engine that stood by brings a Java of its own.
FALLS = {
    "web": {"web"},
    "worker": {"worker"},
    "gateway": {"gateway"},
    "spark worker": set(),
    "engine": {"engine", "java"},
    "java": {"engine", "java"},
    "redis": {"redis"},
}
# Celery's worker ends if it has not acknowledged a task when its broker ends; the supervisor starts it again.
MAY_FALL = {"redis": {"worker"}}
BOX = {"lo": [-1, -1], "hi": [1, 1]}


def registered(live, stream) -> set[int]:
    """Return the numbers of the queries and views that the engine evaluates over a stream, from its newest state."""
    folder = live.home / "engine" / "earth"
    newest = max(map(batch_of, LocalStore(folder).list(MANIFESTS)))
    try:
        registry = Store(folder, EARTH, live.home / "layers").registry(newest + 1)
    except (LostState, FileNotFoundError):  # the engine has written newer ones
        return registered(live, stream)
    return {query for query in registry.ids.tolist() if registry.plan(query).stream == stream}


@pytest.fixture(autouse=True)
def nothing_left(live):
    """Leave no stream and no query behind, however a test ends: others count them."""
    yield
    live.clear()


@pytest.mark.long
@pytest.mark.parametrize("program", FALLS)
async def test_a_killed_program_comes_back_and_answers_are_exact_again(live, program, record_property):
    stream, port = f"swarm_{program}".replace(" ", "_"), free_port()
    await asyncio.to_thread(wait_for, live.standing_by, "an engine that stands by")
    assert not live.client.keys("*rehearsal*")
    live.add_stream(stream, {"kind": "tcp_listener", "port": port}, DECODER)
    wait_for(lambda: live.health(stream).get("state") == "running", f"{stream} listens")
    swarm = Swarm(stream, port)
    plans, moving = {}, {}
    async with live.monitor("ann") as texts, live.monitor("bob", "arrow") as tables:

        async def register(name, **keys):
            plan = {"stream": stream, "compare": BOX, **keys}
            query = await texts.register(name, plan)
            plans[query] = plan
            return query

        async def follow(name, around, **keys):
            plan = {"stream": stream, "around": {"key": "o0", **around}, **keys}
            query = await texts.register(name, plan)
            moving[query] = plan
            return query

        async with swarm.moving():
            before = [
                await register("inside"),
                await register("outside", report="outside"),
                await register("fast", where="speed_mps > 10"),
            ]
            followers = [
                await follow("around", {"radius": 50_000}),
                await follow("nearest", {}, kind="knn", k=10),
                await follow("counted", {"half_widths": [80_000, 50_000]}, aggregate={"function": "count"}),
            ]
            (view,) = (await tables.view([stream], BOX)).values()
            await texts.running(*before, *followers)
            await texts.until(lambda: all(texts.answers.get(query) for query in before), "the first answers")

            pids, watch, killed_s = live.pids(), Stopwatch(), time.monotonic()
            live.kill(program) if program in pids else live.kill_spark_worker()
            if program == "web":
                await texts.until(lambda: texts.connections == 2, "a new connection")
            elif program in pids:
                await asyncio.to_thread(wait_for, lambda: live.pids().get(program) != pids[program], "the end")
            after = await register("registered after the kill")
            await texts.running(after)
            running_s = time.monotonic() - killed_s

        objects = swarm.objects()
        world = AtRest(stream, objects)
        expected = {query: answer(objects, plan) for query, plan in plans.items()}
        if program == "web":
            (new_view,) = (await tables.view([stream], BOX)).values()
        else:
            new_view = view
        here = expected[before[0]]

        def wrong():
            found = {query: differences(texts.answers.get(query), rows)[:5] for query, rows in expected.items()}
            found["view"] = differences(tables.answers.get(new_view), here)[:5]
            found |= moving_differences(texts, moving, world)
            return {query: differences for query, differences in found.items() if differences}

        await texts.until(lambda: not wrong(), lambda: f"{wrong()}, {texts.engine}, {live.health(stream)}")
        exact_s, alone_s = time.monotonic() - killed_s, watch.seconds()
        await asyncio.gather(*(texts.snapshot(query) for query in (*plans, *moving)))
        assert wrong() == {}
        assert texts.faults == tables.faults == []

        record_property("running_s", round(running_s, 1))
        record_property("exact_s", round(exact_s, 1))
        print(f"\nkill -9 of {program}: a new query runs after {running_s:.1f} s, answers exact after {exact_s:.1f} s")

        assert alone_s < EXACT_AGAIN_S
        now = live.pids()
        fallen = {name for name in pids if now.get(name) != pids[name]}
        assert FALLS[program] <= fallen <= FALLS[program] | MAY_FALL.get(program, set())
        saved = {query: found["status"] for query, found in live.queries().items() if found["stream"] == stream}
        assert saved == dict.fromkeys([*plans, *moving], "running")
        # The views of a web process that was killed are retired once it has been silent for long enough.
        wait_for(lambda: registered(live, stream) == {*plans, *moving, new_view}, lambda: f"{registered(live, stream)}")


@pytest.mark.long
async def test_queries_return_by_themselves_after_the_engines_state_has_gone(live):
    stream, state = "kept", live.home / "engine" / "earth"
    live.add_stream(stream, {"kind": "tcp_listener", "port": free_port()}, DECODER)
    async with live.monitor("ann") as monitor:
        queries = {await monitor.register(f"query {number}", {"stream": stream, "compare": BOX}) for number in range(3)}
        await monitor.running(*queries)
        epoch = (state / "epoch").read_text()
        # What the control log still has of the registrations must not bring them back.
        live.client.delete(live.log.names.control)
        live.kill_engines()
        # A folder that the dying workers still write to cannot be removed, but it can be put aside.
        shutil.rmtree(state.rename(state.with_name("gone")), ignore_errors=True)
        await asyncio.to_thread(
            wait_for, lambda: live.report().get(b"epoch", epoch.encode()).decode() != epoch, "a new state"
        )

        def known():
            return any((state / MANIFESTS).glob("*.json")) and registered(live, stream) == queries

        await asyncio.to_thread(wait_for, known, "the queries in the new state")
        await asyncio.gather(*(monitor.snapshot(query) for query in queries))
