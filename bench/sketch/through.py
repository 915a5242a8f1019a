"""How many elements of eight features a second the whole engine takes, without a sketch of them and with one."""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.load import feature_names
from bench.rescaling import box_queries
from bench.scenarios import FULL_SPEED, SEED
from bench.stack import child, said
from bench.time_joins_live import Pairs, live
from streaming.sketch.settings import HOUR_US

STREAM, FEATURES, SECONDS = "bench", 8, 60.0
# At full speed a batch has many elements of each of the fewer objects, and few of each of the others.
OBJECTS = (100_000, 500_000)


def rows() -> Iterator[str]:
    """Yield a row of the table for each number of objects: without a sketch, with one, and their ratio."""
    for objects in OBJECTS:
        without, sketched = (_measured(objects, is_sketched) for is_sketched in (False, True))
        plain, rate = (told["elements/s"] for told in (without, sketched))
        longest = " and ".join(f"{told['longest batch ms']:,.0f}" for told in (without, sketched))
        yield f"| {objects:,} | {plain:,.0f} | {rate:,.0f} | {rate / plain:.2f} | {longest} |"


def _measured(objects, is_sketched):
    """Put an engine with range queries under as much load as it takes; return the figures of what it published."""
    with (
        TemporaryDirectory(prefix="lookout-sketched-", ignore_cleanup_errors=True) as folder,
        live(Path(folder), {}) as stack,
    ):
        settings = {"features": feature_names(FEATURES), "time_bin_us": HOUR_US}
        stack.log.send("stream", stream=STREAM, **({"sketch": settings} if is_sketched else {}))
        for entry in box_queries(np.random.default_rng(SEED)):
            stack.log.send(**entry)
        options = ("--rate", str(FULL_SPEED), "--objects", str(objects), "--features", str(FEATURES))
        where = ("--partitions", str(stack.partitions), "--log-url", stack.log_url)
        with child("bench.load", stack.redis_url, "--stream", STREAM, *options, *where) as load:
            said(load, "filled")
            with Pairs(stack) as followed:
                time.sleep(SECONDS)
    return followed.figures()
