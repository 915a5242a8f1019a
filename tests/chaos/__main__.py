"""Faults on purpose: ``python -m tests.chaos --seed 1``; exits with 1 if anything was lost, doubled or different."""

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.chaos.faults import FAULTS, small_disk
from tests.chaos.run import Chaos, Options, Outcome
from tests.live.stack import Stack

DISK_MB = 3_000
# Queries are many beside few objects, so one of them may take a large part of a batch; none is to be paused for that.
SETTINGS = {"LOOKOUT_SCALING": "false", "LOOKOUT_REGIONS": "4", "LOOKOUT_QUERY_COST_MS": "1000000"}


def say(words: str) -> None:
    """Print a line with the time of day."""
    print(f"{time.strftime('%H:%M:%S')}  {words}", flush=True)


def survive(folder: Path, options: Options) -> Outcome:
    """Start a Lookout in a folder, run faults on it, and end it."""
    home = folder / "home"
    home.mkdir(parents=True)
    with small_disk(home, DISK_MB) as disk:
        if not disk:
            say("full-disk is left out: a disk of its own cannot be mounted")
            options = replace(options, only=tuple(name for name in options.only if name != "full-disk"))
        live = Stack(folder, standby=True)
        live.environment |= SETTINGS
        try:
            live.start()
            return asyncio.run(Chaos(live, options, say).run())
        finally:
            with contextlib.suppress(AssertionError):  # Redis may have ended last of all; the run is what counts
                live.end()
            shutil.copytree(home / "log", folder / "log")


def main() -> None:
    """Run, and print the figures; the logs stay if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    default = Options()
    for name in ("seed", "faults", "rate", "queries", "quiet"):
        parser.add_argument(f"--{name}", type=int, default=getattr(default, name))
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    # After SIGTERM, too, end everything that was started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = vars(parser.parse_args())
    options["only"] = tuple(options["only"])
    folder = Path(tempfile.mkdtemp(prefix="lookout-chaos-"))
    say(f"seed {options['seed']}, logs in {folder}")
    outcome = survive(folder, Options(**options))
    print(outcome.report())
    if outcome.exact:
        shutil.rmtree(folder)
    sys.exit(not outcome.exact)


if __name__ == "__main__":
    main()
