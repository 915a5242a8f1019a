"""Run the benchmark: ``make bench`` or ``python -m bench``."""

import argparse
import signal
import sys
import time
from pathlib import Path

from bench.against import compare
from bench.machine import machine
from bench.report import PAGE, Report, keep
from bench.runner import Runner
from bench.scenarios import CASES, OTHERS, QUICK, SCENARIOS, scaled

SECONDS, QUICK_SECONDS = 12.0, 5.0
# Compared with another checkout, if no scenario is named.
COMPARED = (
    "gateway-20k-100q-100k",
    "gateway-1k-100q-100k",
    "max-100q-100k",
    "max-100q-1M",
    "written-1M",
    "one-more-10k",
    "panning-100",
    "clients-1000-100/s",
)


def main() -> int:
    """Measure, print, and keep the figures of a whole run."""
    everything = [*SCENARIOS, *OTHERS]
    arguments = _arguments(everything)
    if arguments.list:
        print("\n".join(everything))
        return 0
    seconds = arguments.seconds or (QUICK_SECONDS if arguments.quick else SECONDS)
    began_s = time.monotonic()
    # After SIGTERM, too, end everything that was started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def say(text: str) -> None:
        print(f"{time.monotonic() - began_s:6.0f} s  {text}", file=sys.stderr, flush=True)

    if arguments.against:
        both = SCENARIOS | CASES
        chosen = [scaled(both[name], arguments.scale) for name in arguments.scenario or COMPARED if name in both]
        report = Report(machine(), compared=compare(arguments.against, chosen, seconds, say, arguments.rounds))
        print(report.markdown())
        return int(any(compared.failed for compared in report.compared))
    names = arguments.scenario or list(QUICK if arguments.quick else everything)
    report = Runner(names, seconds, arguments.scale, say).run()
    text = report.markdown()
    print(text)
    if names == everything and arguments.scale == 1.0:
        if report.whole:
            keep(text)
            say(f"kept in {PAGE}")
        else:
            say(f"not kept: {', '.join([*report.failed, *([report.missing] if report.missing else [])])}")
    return int(bool(report.failed))


def _arguments(everything):
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Lookout under load.")
    parser.add_argument("--scenario", action="append", choices=everything, help="only this one; may come several times")
    parser.add_argument("--quick", action="store_true", help="a few scenarios, a few seconds each")
    parser.add_argument("--seconds", type=float, help=f"that each scenario is measured ({SECONDS:g})")
    parser.add_argument("--scale", type=float, default=1.0, help="the part of objects, queries and clients (1)")
    parser.add_argument("--against", type=Path, help="another checkout, to be measured in turn; prints only")
    parser.add_argument("--rounds", type=int, default=2, help="how often each checkout is measured (2)")
    parser.add_argument("--list", action="store_true", help="print the names of the scenarios")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
