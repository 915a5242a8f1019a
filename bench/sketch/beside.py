"""How much a sketch costs the engine's tasks beside exact queries: processor time of the same batches, in turn.

Run it with ``POLARS_MAX_THREADS=1``, as the engine runs its tasks, so that no other thread takes what is measured. Most
batches only keep their elements, and some make leaves of many, so the mean is measured, and not the median.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

from bench.load import make_blocks
from bench.rescaling import QUERIES, TASKS, Tasks
from bench.scenarios import SEED

FEATURES = tuple(f"feature_{number}" for number in range(8))
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
    blocks = list(make_blocks("bench", objects, size // TASKS, TASKS))
    texts = [_properties(rng, block.table.num_rows) for block in blocks]
    plain, sketched = {"op": "stream", "stream": "bench"}, {"features": FEATURES, "time_bin_us": 60_000_000}
    spent: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as root:
        pair = {on: Tasks(Path(root) / str(on)) for on in (False, True)}
        for number in range(ELEMENTS // size):
            chosen = [(number * TASKS + place) % len(blocks) for place in range(TASKS)]
            for place in chosen:
                blocks[place].advance(rng, "walk", number + 1)
            for on, tasks in pair.items():
                control = [plain | {"sketch": sketched} if on else plain, *_queries(rng)] if number == 0 else ()
                spent[on].append(tasks.run([_Told(blocks[place], texts[place]) for place in chosen], control))
    return [float(np.mean(spent[on][FIRST:])) for on in (False, True)]


class _Told:
    """A block whose elements have eight numbers as properties."""

    def __init__(self, block, properties) -> None:
        self.partition = block.partition
        place = block.table.column_names.index("properties")
        self.table = block.table.set_column(place, block.table.schema.field("properties"), properties)


def _properties(rng, rows):
    values = rng.normal(size=(rows, len(FEATURES))).round(3).tolist()
    return pa.array([orjson.dumps(dict(zip(FEATURES, row, strict=True))).decode() for row in values])


def _queries(rng):
    corners = rng.uniform([-180, -90], [144, 72], (QUERIES, 2)).tolist()
    areas = [{"lo": [x, y], "hi": [x + 36, y + 18]} for x, y in corners]
    return [
        {"op": "register", "query": number, "revision": 1, "plan": {"stream": "bench", "area": area}}
        for number, area in enumerate(areas)
    ]
