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

from bench.deployments import cluster, settings_on
from bench.kafka_broker import started
from tests.chaos.faults import FAULTS, NEEDS, small_disk
from tests.chaos.run import Chaos, Options, Outcome
from tests.live.stack import Stack

DISK_MB = 3_000
# Queries are many beside few objects, so one of them may take a large part of a batch; none is to be paused for that.
SETTINGS = {"LOOKOUT_SCALING": "false", "LOOKOUT_REGIONS": "4", "LOOKOUT_QUERY_COST_MS": "1000000"}


def say(words: str) -> None:
    """Print a line with the time of day."""
    print(f"{time.strftime('%H:%M:%S')}  {words}", flush=True)


def survive(folder: Path, options: Options, kafka: bool, workers: int) -> Outcome:
    """Start a Lookout in a folder, run faults on it, and end it.

    Parameters
    ----------
    folder : Path
    options : Options
    kafka : bool
        Whether the logs are in Kafka.
    workers : int
        Of a cluster of Spark, each with a core; 0 for none. The two engines share them.
    """
    home, broker, spark, settings = folder / "home", None, None, dict(SETTINGS)
    home.mkdir(parents=True)
    with contextlib.ExitStack() as held:
        there = {
            "a disk of its own": held.enter_context(small_disk(home, DISK_MB)),
            "Kafka": kafka,
            "a cluster of Spark": workers,
        }
        for name, needed in NEEDS.items():
            if not there[needed]:
                say(f"{name} is left out: there must be {needed}; got none")
                options = replace(options, only=tuple(only for only in options.only if only != name))
        if kafka:
            broker = held.enter_context(started(folder))
            settings["LOOKOUT_LOG_URL"] = broker.url
        if workers:
            spark = held.enter_context(cluster(folder, workers))
            settings |= settings_on(spark, max(1, workers // 2))
        live = Stack(folder, standby=True)
        live.environment |= settings
        try:
            live.start()
            return asyncio.run(Chaos(live, options, say, broker, spark).run())
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
    parser.add_argument("--kafka", action="store_true", help="the logs are in Kafka")
    parser.add_argument("--workers", type=int, default=0, help="of a cluster of Spark, on which the engines run")
    # After SIGTERM, too, end everything that was started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = vars(parser.parse_args())
    options["only"] = tuple(options["only"])
    where = options.pop("kafka"), options.pop("workers")
    folder = Path(tempfile.mkdtemp(prefix="lookout-chaos-"))
    say(f"seed {options['seed']}, logs in {folder}")
    outcome = survive(folder, Options(**options), *where)
    print(outcome.report())
    if outcome.exact:
        shutil.rmtree(folder)
    sys.exit(not outcome.exact)


if __name__ == "__main__":
    main()
