"""Run the benchmark: ``make bench`` or ``python -m bench``."""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from itertools import groupby

from bench import baselines, frames, joins
from bench.measure import measure
from bench.processes import pss_mib
from bench.report import PAGE, Report, keep, machine
from bench.scenarios import FRAMES, JOINS, OTHERS, QUICK, SCENARIOS, Joins
from bench.stack import Stack, running

SECONDS, QUICK_SECONDS = 15.0, 5.0
# The demonstration runs for this many seconds before its memory is measured.
DEMO_S = 30.0


def run(names: list[str], seconds: float, say: Callable[[str], None]) -> Report:
    """Measure the named scenarios, stack by stack."""
    report = Report(machine())
    if "baselines" in names:
        say("baselines ...")
        report.baselines = baselines.measure(min(seconds, 4.0))
    chosen = [scenario for name, scenario in SCENARIOS.items() if name in names]
    filmed = [name for name in FRAMES if name in names]
    for (wire, queries), group in groupby(chosen, key=lambda scenario: (scenario.wire, scenario.queries)):
        say(f"a stack with {queries:,} queries ...")
        with running(queries, wire) as stack:
            if wire and filmed:
                _film(stack, filmed, seconds, report, say)
                filmed = []
            for scenario in group:
                say(f"{scenario.name} ...")
                report.rows.append(measure(stack, scenario, seconds))
    if filmed:
        with running(100) as stack:
            _film(stack, filmed, seconds, report, say)
    joined = [scenario for name, scenario in JOINS.items() if name in names]
    for _, group in groupby(joined, key=lambda scenario: scenario.stack):
        _join(list(group), seconds, report, say)
    if "demo" in names:
        report.demo_mib = _demo(min(DEMO_S, 2 * seconds), say)
    return report


def _film(stack: Stack, names: list[str], seconds: float, report: Report, say: Callable[[str], None]) -> None:
    for name in names:
        say(f"{name} ...")
        report.frames.append(frames.measure(stack, FRAMES[name], seconds))


def _join(group: list[Joins], seconds: float, report: Report, say: Callable[[str], None]) -> None:
    """Measure the scenarios that share a stack, and GeoPandas for comparison."""
    first = group[0]
    say(f"GeoPandas, as {first.name} ...")
    report.naive.append(joins.naive(first, min(seconds, 4.0)))
    say(f"a stack with {first.joins} joins ...")
    with running(first.joins, joins=first.name) as stack:
        for scenario in group:
            say(f"{scenario.name} ...")
            report.joins.append(joins.measure(stack, scenario, seconds))


def _demo(seconds: float, say: Callable[[str], None]) -> dict[str, float]:
    """Run the demonstration's streams for `seconds`; return the memory of each program, in MiB."""
    say("demo ...")
    with running(None) as stack:
        time.sleep(seconds)
        return pss_mib(stack.home)


def main() -> int:
    """Measure, print, and keep the figures of a whole run."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Lookout under load.")
    everything = [*SCENARIOS, *OTHERS]
    parser.add_argument("--scenario", action="append", choices=everything, help="only this one; may come several times")
    parser.add_argument("--quick", action="store_true", help="a few scenarios, a few seconds each")
    parser.add_argument("--seconds", type=float, help=f"that each scenario is measured ({SECONDS:g})")
    parser.add_argument("--list", action="store_true", help="print the names of the scenarios")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(everything))
        return 0
    names = arguments.scenario or list(QUICK if arguments.quick else everything)
    seconds = arguments.seconds or (QUICK_SECONDS if arguments.quick else SECONDS)
    began_s = time.monotonic()
    # After SIGTERM, too, end everything that was started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def say(text: str) -> None:
        print(f"{time.monotonic() - began_s:6.0f} s  {text}", file=sys.stderr, flush=True)

    text = run(names, seconds, say).markdown()
    print(text)
    if names == everything:
        keep(text)
        say(f"kept in {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
