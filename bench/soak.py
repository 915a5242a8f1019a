"""A long run at a high rate: whether memory grows, and whether answers are as new at the end as at the beginning.

Run it with ``make soak``, or ``python -m bench.soak --minutes 30 --rate 50000``.
"""

import argparse
import contextlib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import psutil

from bench.machine import machine
from bench.measure import loaded
from bench.processes import processes, program_of
from bench.scenarios import Scenario
from bench.stack import Stack, child, running, said, told

SAMPLE_S = 10.0
# The ages of answers are measured in as many spans of the run, each for so long.
SPANS, SPAN_S = 6, 30.0
# Caches fill and pools grow until then; slopes are of what follows.
WARM_SHARE = 0.2
MIB = 2**20


@dataclass(frozen=True)
class Slope:
    """How the memory of a process grew.

    Parameters
    ----------
    process : str
    first_mib, last_mib : float
        At the beginning of what is measured and at the end, the mean of three samples.
    mb_an_hour : float
        The least-squares slope, in MB/hour.
    """

    process: str
    first_mib: float
    last_mib: float
    mb_an_hour: float


def slopes(samples: Mapping[str, Sequence[tuple[float, float]]]) -> list[Slope]:
    """Return the slope of each process that lived during the whole run.

    Parameters
    ----------
    samples : mapping of str to sequence of (float, float)
        By process, times in seconds with bytes.

    Examples
    --------
    >>> slopes({"web 1": [(0.0, 9e6), (1800.0, 1e7), (3600.0, 1.1e7)]})[0].mb_an_hour
    2.0
    """
    longest = max(map(len, samples.values()), default=0)
    found = []
    for process, told_bytes in sorted(samples.items()):
        if len(told_bytes) < max(3, 0.9 * longest):
            continue
        seconds, size = np.array(told_bytes).T
        hours = (seconds - seconds.mean()) / 3600
        slope = float((hours * size).sum() / (hours**2).sum()) / 1e6
        found.append(Slope(process, size[:3].mean() / MIB, size[-3:].mean() / MIB, round(slope, 3)))
    return found


def memory(stack: Stack, since_s: float, samples: dict[str, list[tuple[float, float]]]) -> None:
    """Add the unique set size of each process of a stack to samples: what would be freed if it ended."""
    for process in processes(stack.home):
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            name = f"{program_of(process)} ({process.name()} {process.pid})"
            samples[name].append((time.monotonic() - since_s, process.memory_full_info().uss))


def soak(stack: Stack, rate: int, minutes: float) -> tuple[list[Slope], list[dict]]:
    """Put a stack under load; return the slopes of memory, and the ages of answers in each span."""
    samples: dict[str, list[tuple[float, float]]] = defaultdict(list)
    ages, began_s = [], time.monotonic()
    with loaded(stack, Scenario("soak", rate)):
        for number in range(SPANS):
            begins_s = began_s + 60 * minutes * number / SPANS
            _sample(stack, began_s, begins_s, samples)
            queries = [str(query) for query in stack.made["queries"]]
            with child(
                "bench.client",
                stack.socket_url,
                stack.made["token"],
                *("--seconds", str(min(SPAN_S, 60 * minutes / SPANS / 2)), "--queries", *queries),
            ) as client:
                said(client, "measuring")
                ages.append({"minute": (time.monotonic() - began_s) / 60, **told(client)})
        _sample(stack, began_s, began_s + 60 * minutes, samples)
    warm_s = 60 * minutes * WARM_SHARE
    warm = {name: [sample for sample in told_bytes if sample[0] >= warm_s] for name, told_bytes in samples.items()}
    return slopes({name: told_bytes for name, told_bytes in warm.items() if told_bytes}), ages


def _sample(stack, began_s, until_s, samples):
    """Take samples until a time."""
    while time.monotonic() < until_s:
        memory(stack, began_s, samples)
        time.sleep(SAMPLE_S)


def report(found: Sequence[Slope], ages: Sequence[Mapping]) -> str:
    """Return the figures as tables."""
    lines = ["| process | MiB at first | MiB at last | slope, MB/hour |", "| --- | --- | --- | --- |"]
    named = Counter(_program(slope) for slope in found)
    for slope in found:
        name = slope.process if named[_program(slope)] > 1 else _program(slope)
        lines.append(f"| {name} | {slope.first_mib:.1f} | {slope.last_mib:.1f} | {slope.mb_an_hour:+.1f} |")
    lines += ["", "| minute | rows | p50, ms | p99, ms | longest, ms |", "| --- | --- | --- | --- | --- |"]
    for age in ages:
        told_ms = " | ".join(str(age[name]) for name in ("rows", "p50_ms", "p99_ms", "longest_ms"))
        lines.append(f"| {age['minute']:.1f} | {told_ms} |")
    return "\n".join(lines)


def _program(slope):
    return slope.process.split(" (")[0]


def main() -> int:
    """Print the figures as tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=int, default=50_000)
    arguments = parser.parse_args()
    print(machine(), flush=True)
    with running(100) as stack:
        print(report(*soak(stack, arguments.rate, arguments.minutes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
