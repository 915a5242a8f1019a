"""How many elements of eight features a second the whole engine takes, without a sketch of them and with one.

Both are measured in turn, in one engine that runs on under as much load as it takes: its stream is sketched, and then
no longer. A shared machine is up to twice as fast in one minute as in another, so a whole run of each says little, and
each turn with a sketch is compared with the mean of the turns before and after it.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from bench.load import feature_names
from bench.rescaling import box_queries
from bench.scenarios import FULL_SPEED, SEED
from bench.stack import child, said
from bench.time_joins_live import Pairs, live
from streaming.sketch.settings import HOUR_US

STREAM, FEATURES = "bench", 8
# How often a sketch is measured, for how long, and how long the engine goes on before after a change.
TURNS, SECONDS, SETTLING_S = 16, 10.0, 4.0
# At full speed a batch has many elements of each of the fewer objects, and few of each of the others.
OBJECTS = (100_000, 500_000)


def rows() -> Iterator[str]:
    """Yield a row of the table for each number of objects: without a sketch, with one, and the ratios of the turns."""
    for objects in OBJECTS:
        plain, sketched = _measured(objects)
        speed = np.array([told["elements/s"] for told in plain])
        beside = (speed[1:] + speed[:-1]) / 2
        ratios = sorted(told["elements/s"] / other for told, other in zip(sketched, beside, strict=True))
        rates, longest = (
            [median(told[name] for told in turns) for turns in (plain, sketched)]
            for name in ("elements/s", "longest batch ms")
        )
        told = f"{rates[0]:,.0f} | {rates[1]:,.0f} | {median(ratios):.2f} | {ratios[0]:.2f} to {ratios[-1]:.2f}"
        yield f"| {objects:,} | {told} | {longest[0]:,.0f} and {longest[1]:,.0f} |"


def _measured(objects):
    """Put an engine with range queries under as much load as it takes; return the figures of the turns of each kind."""
    told = [], []
    settings = {"sketch": {"features": feature_names(FEATURES), "time_bin_us": HOUR_US}}
    with (
        TemporaryDirectory(prefix="lookout-sketched-", ignore_cleanup_errors=True) as folder,
        live(Path(folder), {}) as stack,
    ):
        stack.log.send("stream", stream=STREAM)
        for entry in box_queries(np.random.default_rng(SEED)):
            stack.log.send(**entry)
        options = ("--rate", str(FULL_SPEED), "--objects", str(objects), "--features", str(FEATURES))
        where = ("--partitions", str(stack.partitions), "--log-url", stack.log_url)
        with child("bench.load", stack.redis_url, "--stream", STREAM, *options, *where) as load:
            said(load, "filled")
            for is_sketched in (*(False, True) * TURNS, False):
                stack.log.send("stream", stream=STREAM, **(settings if is_sketched else {}))
                time.sleep(SETTLING_S)
                with Pairs(stack) as followed:
                    time.sleep(SECONDS)
                told[is_sketched].append(followed.figures())
    return told
