"""How much a sketch costs the engine's tasks beside exact queries: processor time of the same batches, in turn.

Run it with ``POLARS_MAX_THREADS=1 MIMALLOC_PURGE_DELAY=2000``, as the engine runs its tasks. Most batches only keep
their elements, and some make leaves of many, so the mean is measured, and not the median.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.load import feature_names, make_blocks
from bench.rescaling import TASKS, Tasks, box_queries
from bench.scenarios import SEED

FEATURES = feature_names(8)
# The elements in all batches; the first ones, in which the tasks begin, do not count.
ELEMENTS, FIRST = 1_600_000, 3


def rows(objects: int = 100_000, sizes: tuple[int, ...] = (20_000, 100_000)) -> Iterator[str]:
    """Yield a row of the table for each number of elements a batch: with a sketch, without one, and their ratio."""
    for size in sizes:
        without, beside = _spent(objects, size)
        speed = [size / spent for spent in (without, beside)]
        yield f"| {size:,} | {speed[0]:,.0f} | {speed[1]:,.0f} | {speed[1] / speed[0]:.2f} |"


def _spent(objects, size):
    """Return the mean processor time of a batch, of the task that takes longest, without a sketch and with one."""
    rng = np.random.default_rng(SEED)
    blocks = list(make_blocks("bench", objects, size // TASKS, TASKS, features=len(FEATURES)))
    plain, sketched = {"op": "stream", "stream": "bench"}, {"features": FEATURES, "time_bin_us": 60_000_000}
    spent: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as root:
        pair = {on: Tasks(Path(root) / str(on)) for on in (False, True)}
        for number in range(ELEMENTS // size):
            chosen = [(number * TASKS + place) % len(blocks) for place in range(TASKS)]
            for place in chosen:
                blocks[place].advance(rng, "walk", number + 1)
            for on, tasks in pair.items():
                control = [plain | {"sketch": sketched} if on else plain, *box_queries(rng)] if number == 0 else ()
                spent[on].append(tasks.run([blocks[place] for place in chosen], control))
    return [float(np.mean(spent[on][FIRST:])) for on in (False, True)]
