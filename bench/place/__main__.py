"""Measure the workload of PLACE*: ``make bench-place`` or ``python -m bench.place``."""

import argparse
import signal
import sys
import time

from bench.machine import machine
from bench.place.measure import series, shares
from bench.place.report import BEGIN, END, PlaceReport
from bench.place.workload import Workload
from bench.report import PAGE, keep

SECONDS = 30.0
# The queries of the second part are small: the answers of 9,000 of the paper's size would have 250 million members.
SMALL = Workload(areas=(0.0001,), ks=(10,))
GROWTH = (1_000, 3_000, 9_000)
# A limit that no row misses: the second part shows how the cost grows, not what is fast enough.
NO_LIMIT_MS = 60_000.0
PARTS = ("shares", "growth")


def main() -> int:
    """Measure, print, and keep the figures of a whole run."""
    parser = argparse.ArgumentParser(prog="python -m bench.place", description="Measure the workload of PLACE*.")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"that each row is measured ({SECONDS:g})")
    parser.add_argument("--crowd", type=int, default=Workload.crowd, help="objects of a region (50000)")
    arguments = parser.parse_args()
    began_s = time.monotonic()
    # After SIGTERM, too, end everything that was started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def say(text: str) -> None:
        print(f"{time.monotonic() - began_s:6.0f} s  {text}", file=sys.stderr, flush=True)

    parts = arguments.part or PARTS
    report = PlaceReport(
        machine(), Workload(arguments.crowd), Workload(arguments.crowd, areas=SMALL.areas, ks=SMALL.ks)
    )
    if "shares" in parts:
        report.rows = shares(report.paper, arguments.seconds, say)
    if "growth" in parts:
        report.growth = series(report.small, GROWTH, arguments.seconds, NO_LIMIT_MS, say)
    text = report.markdown()
    print(text)
    if set(parts) == set(PARTS) and arguments.crowd == Workload.crowd:
        keep(text, PAGE, BEGIN, END)
        say(f"kept in {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
