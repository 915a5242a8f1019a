"""Measure one row: run the load, the client and the meter together for a span of time."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from bench.live import wait_for
from bench.meter import Meter, Work
from bench.processes import cpu_s, pss_mib
from bench.scenarios import WIRE_STREAM, Case, Scenario
from bench.stack import Stack, child, said, told

# The load runs for this many seconds before anything is measured.
SETTLE_S = 4.0
STREAM_S = 30.0


@dataclass(frozen=True)
class Row:
    """What was measured in a scenario.

    Parameters
    ----------
    scenario : Scenario
    work : Work
    latency : mapping
        See `client.figures`.
    cores, memory_mib : mapping
        Processor time a second, and proportional set size in MiB, of each program.
    merged : int
        Elements that the gateway conflated.
    """

    scenario: Scenario
    work: Work
    latency: Mapping
    cores: Mapping[str, float]
    memory_mib: Mapping[str, float]
    merged: int = 0

    @property
    def engine_cpu_us(self) -> float:
        """Processor time of the engine for an element, in microseconds."""
        return 1e6 * self.cores.get("engine", 0.0) / self.work.elements_per_s if self.work.elements_per_s else 0.0


def measure(stack: Stack, scenario: Scenario, seconds: float) -> Row:
    """Put a stack under the load of a scenario and measure for `seconds`."""
    with loaded(stack, scenario):
        queries = [str(query) for query in stack.made["queries"]]
        options = ("--seconds", str(seconds), "--queries", *queries)
        with child("bench.client", stack.socket_url, stack.made["token"], *options) as client:
            said(client, "measuring")
            before, began_s = cpu_s(stack.home), time.monotonic()
            with Meter(stack.redis_url, log_url=stack.log_url) as meter:
                latency = told(client)
            after, spent_s = cpu_s(stack.home), time.monotonic() - began_s
        memory = pss_mib(stack.home)
    cores = cores_of(before, after, spent_s)
    merged = stack.health(WIRE_STREAM).get("merged", 0) if scenario.wire else 0
    return Row(scenario, meter.work, latency, cores, memory, merged)


def cores_of(before: Mapping[str, float], after: Mapping[str, float], spent_s: float) -> dict[str, float]:
    """Return the cores that each program kept busy, given two readings of `processes.cpu_s`.

    Examples
    --------
    >>> cores_of({"web": 1.0}, {"web": 2.0, "engine": 4.0}, 2.0)
    {'web': 0.5, 'engine': 2.0}
    """
    return {program: (spent - before.get(program, 0.0)) / spent_s for program, spent in after.items()}


@contextmanager
def loaded(stack: Stack, scenario: Scenario | Case) -> Iterator[None]:
    """Put a stack under the load of a scenario, once the engine knows all objects."""
    with child(*_load(stack, scenario)) as generator:
        said(generator, "filled")
        time.sleep(SETTLE_S)
        yield


def _load(stack, scenario):
    """Return the module that makes the load, and its arguments."""
    options = ("--rate", str(scenario.rate), "--objects", str(scenario.objects))
    if not isinstance(scenario, Scenario) or not scenario.wire:
        options += ("--partitions", str(stack.partitions), "--log-url", stack.log_url)
    if isinstance(scenario, Case):
        return ("bench.load", stack.redis_url, *options, *(("--rows", str(scenario.rows)) if scenario.rows else ()))
    if not scenario.wire:
        return ("bench.load", stack.redis_url, *options, "--motion", scenario.motion)
    wait_for(lambda: stack.health(WIRE_STREAM).get("state") == "running", stack.words, STREAM_S)
    return ("bench.wire", str(stack.wire_port), *options)
