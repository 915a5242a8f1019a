"""The table of faults. A new one is a function of a `Place`, and a line in `FAULTS`."""

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from bench.kafka_broker import Broker
from bench.live import wait_for
from bench.processes import alive, executors
from streaming.engine.lease import signed
from streaming.engine.standalone import Cluster
from streaming.state.manifest import MANIFESTS, batch_of, read_manifest
from streaming.state.stores import LocalStore
from tests.chaos.client import ReturningClient
from tests.live.stack import Stack

STOPPED_S, FULL_S, AWAY_S = 20.0, 5.0, 2.0
# In the command lines of what forks tasks, and of the tasks.
FORKED = {"streaming.engine.pipeline", "streaming.engine.spark_daemon", "pyspark.daemon"}
# What is left of a disk that is called full.
LEFT_BYTES = 4096


@dataclass(frozen=True)
class Place:
    """What faults are injected into.

    Parameters
    ----------
    live : Stack
    clients : sequence of ReturningClient
    random : numpy.random.Generator
    stopped_s : float
        For how long programs are stopped, in seconds.
    broker : Broker, optional
        Of Kafka, if the logs are there.
    cluster : Cluster, optional
        Of Spark, if the engines run on one.
    """

    live: Stack
    clients: Sequence[ReturningClient]
    random: np.random.Generator
    stopped_s: float = STOPPED_S
    broker: Broker | None = None
    cluster: Cluster | None = None


Fault = Callable[[Place], Awaitable[None]]


def process_of(place: Place, program: str) -> psutil.Process:
    """Wait until a program runs, and return its process."""
    if program == "standby":
        return psutil.Process(wait_for(lambda: _standby(place.live), "an engine that stands by"))
    if program in SPARK:
        return wait_for(lambda: next(SPARK[program](place.live), None), f"a {program} of Spark")
    return psutil.Process(wait_for(lambda: place.live.pids().get(program), f"{program} runs"))


def _standby(live):
    """Return the number of the process of an engine that does not evaluate."""
    java = signed(live.home / "spark" / "earth" / "lease")
    evaluating = java.ppid() if java else None
    for process in live.processes():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[-1:] == ["streaming.engine"] and process.pid != evaluating:
                return process.pid
    return None


def _fork_servers(live) -> Iterator[psutil.Process]:
    with contextlib.suppress(psutil.Error, KeyError):
        for child in psutil.Process(live.pids()["engine"]).children():
            if "streaming.forkserver" in child.cmdline():
                yield child


def _python_workers(live) -> Iterator[psutil.Process]:
    """Yield the processes in which Spark runs the engine's tasks, the busiest first.

    They may be children of nobody: they outlive a fork server that is killed.
    """
    spent_s = {}
    for process in {*live.processes(), *psutil.Process().children(recursive=True)}:
        with contextlib.suppress(psutil.Error):
            if FORKED.intersection(process.cmdline()) and not process.children() and not _of_engine(process):
                spent_s[process] = process.cpu_times().user
    yield from sorted(spent_s, key=lambda process: -spent_s[process])


def _of_engine(process):
    """Tell whether a process is a child of an engine, as fork servers are."""
    parent = process.parent()
    return parent is not None and parent.cmdline()[-1:] == ["streaming.engine"]


def _executors(_):
    yield from executors(psutil.Process())


SPARK = {"python-worker": _python_workers, "fork-server": _fork_servers, "executor": _executors}


def kill(program: str) -> Fault:
    """Return the fault that kills a program, and waits for its end."""

    async def fault(place: Place) -> None:
        process = await asyncio.to_thread(process_of, place, program)
        process.kill()
        await asyncio.to_thread(wait_for, lambda: not alive(process.pid), f"the end of {program}")

    return fault


def stop(program: str) -> Fault:
    """Return the fault that stops a program for a while."""

    async def fault(place: Place) -> None:
        process = await asyncio.to_thread(process_of, place, program)
        process.suspend()
        try:
            await asyncio.sleep(place.stopped_s)
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    return fault


async def kill_engines(place: Place) -> None:
    """Kill the engine that evaluates and the one that stands by, at once."""
    await asyncio.to_thread(place.live.kill_engines)


async def kill_broker(place: Place) -> None:
    """Kill the broker of Kafka, and start it again after a while."""
    assert place.broker is not None
    await asyncio.to_thread(place.broker.kill)
    await asyncio.sleep(AWAY_S)
    await asyncio.to_thread(place.broker.start)


async def kill_spark_worker(place: Place) -> None:
    """Kill a worker of the cluster of Spark, and with it its executors; start it again after a while."""
    assert place.cluster is not None
    number = int(place.random.choice(list(place.cluster.workers)))
    await asyncio.to_thread(place.cluster.kill_worker, number)
    await asyncio.sleep(AWAY_S)
    place.cluster.start_worker(number)


async def cut_connections(place: Place) -> None:
    """Cut the websocket connections of all clients."""
    for client in place.clients:
        client.cut()


async def fill_redis(place: Place) -> None:
    """Let Redis have no more memory than it uses, for some seconds."""
    client = place.live.client
    (allowed,) = (await asyncio.to_thread(client.config_get, "maxmemory")).values()
    used = (await asyncio.to_thread(client.info, "memory"))["used_memory"]
    await asyncio.to_thread(client.config_set, "maxmemory", used)
    await asyncio.sleep(FULL_S)
    await asyncio.to_thread(client.config_set, "maxmemory", allowed)


async def fill_disk(place: Place) -> None:
    """Fill the disk of the state folder, for some seconds."""
    filling = place.live.home / "filling"
    try:
        with filling.open("wb") as file:
            free = os.statvfs(place.live.home)
            with contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - LEFT_BYTES))
        await asyncio.sleep(FULL_S)
    finally:
        filling.unlink()


def damage(broken: Callable[[LocalStore, Path], None]) -> Fault:
    """Return the fault that damages the newest state, and kills the engine that has written it."""

    async def fault(place: Place) -> None:
        await asyncio.to_thread(_damage, place, broken)

    return fault


def _damage(place, broken):
    driver = process_of(place, "engine")
    # It writes a state each second: so it is stopped whole before its newest one is damaged.
    family = [driver, *driver.children(recursive=True)]
    for process in family:
        with contextlib.suppress(psutil.Error):
            process.suspend()
    try:
        folder = place.live.home / "engine" / "earth"
        store = LocalStore(folder)
        newest = max(store.list(MANIFESTS), key=batch_of)
        broken(store, folder / newest)
    finally:
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
    wait_for(lambda: not any(alive(process.pid) for process in family), "the end of the engine")


def cut_part(store: LocalStore, newest: Path) -> None:
    """Cut a state file short: the last part that the newest batch wrote."""
    manifest = read_manifest(store, batch_of(str(newest)))
    last = max(manifest.files(), key=lambda file: (file.batch, file.offset))
    os.truncate(store.root / last.name, last.offset + last.size // 2)


def damage_manifest(_: LocalStore, newest: Path) -> None:
    """Overwrite the middle of the newest manifest."""
    with newest.open("r+b") as file:
        file.seek(newest.stat().st_size // 2)
        file.write(b"damaged")


PROGRAMS = ("engine", "java", "standby", "redis", "worker", "beat", "web", "gateway")
# By name; a name begins with what is done.
FAULTS: dict[str, Fault] = {
    **{f"kill-{program}": kill(program) for program in (*PROGRAMS, *SPARK)},
    **{f"stop-{program}": stop(program) for program in (*PROGRAMS, "python-worker")},
    "kill-both-engines": kill_engines,
    "kill-broker": kill_broker,
    "kill-spark-worker": kill_spark_worker,
    "cut-connections": cut_connections,
    "cut-state": damage(cut_part),
    "damage-manifest": damage(damage_manifest),
    "full-redis": fill_redis,
    "full-disk": fill_disk,
}


# What the faults need of which there is not one in every Lookout.
NEEDS = {
    "full-disk": "a disk of its own",
    "kill-broker": "Kafka",
    "kill-executor": "a cluster of Spark",
    "kill-spark-worker": "a cluster of Spark",
}


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[bool]:
    """Mount a disk of its own at a folder, where that is allowed; yield whether it is."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "lookout-chaos", str(folder)]
    mounted = subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        while mounted and subprocess.run(["umount", str(folder)], capture_output=True).returncode:
            time.sleep(0.2)


def schedule(names: Sequence[str], count: int, random: np.random.Generator) -> list[str]:
    """Return so many faults in random order: each name about equally often."""
    rounds = [random.permutation(list(names)).tolist() for _ in range(-(-count // len(names)))]
    return [name for turn in rounds for name in turn][:count]
