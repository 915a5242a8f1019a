"""What a batch no longer needs is freed at once, not only when Python looks for cycles, which it seldom does.

A cycle of a few objects may hold large arrays, and the collector of cycles counts objects, not bytes.
"""

import gc
import os
import random
from collections import Counter

import pytest

from tests.house.nested import run_pytest
from tests.servers import (
    test_continuous_queries,
    test_distributed,
    test_encounters,
    test_joins,
    test_sketch_queries,
    test_stream_joins,
    test_time_joins,
)

SKETCHED = test_sketch_queries.test_answers_equal_brute_force_after_every_tick.hypothesis.inner_test
HISTORIES = {
    "ranges": test_continuous_queries.play,
    "distributed queries": test_distributed.play,
    "joins with layers": test_joins.play,
    "joins with streams": test_stream_joins.play,
    "joins over event time": test_time_joins.play,
    "encounters": test_encounters.play,
    "sketches": SKETCHED,
}


@pytest.fixture
def cycles():
    """Have cycles stay until they are asked for: return a function that counts what they hold of ours, by type."""

    def found():
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        types = Counter(f"{type(held).__module__}.{type(held).__qualname__}" for held in gc.garbage)
        gc.garbage.clear()
        return {name: count for name, count in types.items() if name.startswith(("streaming.", "pyarrow."))}

    gc.collect()
    gc.disable()
    yield found
    gc.enable()


@pytest.fixture(scope="module")
def told_apart():
    """Where coverage is measured, run these tests in another process: its probes hold what functions have held.

    Return what that process printed, or nothing.
    """
    if "SLIPCOVER_ENABLED" not in os.environ:
        return ""
    return run_pytest("-v", "-n", "0", __file__).stdout


@pytest.mark.parametrize("kind", HISTORIES)
def test_no_cycle_holds_what_batches_have_read(cycles, kind, told_apart):
    if told_apart:
        assert f"[{kind}] PASSED" in told_apart, told_apart
        return
    for seed in (1, 2):
        HISTORIES[kind](random.Random(seed))
    assert cycles() == {}
