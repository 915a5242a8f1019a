"""How long the batch is in which a region is split or merged: ``python -m bench.rescaling`` prints processor times.

Two tasks with two regions run in this process, one after the other, so that each batch takes as long as the longer one.
Every batch is saved but the one with the new map, as in an engine, where its turn comes within a second; so the batch
after it saves what was handed over.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.load import make_blocks
from bench.scenarios import SEED
from streaming.elements import to_ipc
from streaming.engine.batch import IngestBlock, Saving, home_task, region_task
from streaming.engine.layout import Layout
from streaming.engine.store import Store
from streaming.history import HistoryWriter
from streaming.results import Fragment
from streaming.spaces import EARTH

TASKS, ROWS, QUERIES = 2, 20_000, 100


class Tasks:
    """The tasks of an engine, and its batches."""

    def __init__(self, root: Path) -> None:
        history = HistoryWriter(root / "history", EARTH)
        self.layouts = [Layout(Store(root, EARTH, regions=TASKS), TASKS, history) for _ in range(TASKS)]
        self.batch, self.saved = 0, -1

    @property
    def region_map(self):
        """The region map after the newest batch."""
        return self.layouts[0].store.registry(self.batch).region_map

    def run(self, blocks, control=()) -> float:
        """Run a batch; return the processor time of the task that took longest, in seconds."""
        rescaled = any(entry["op"] == "regions" for entry in control)
        spent_s, _ = self.ran(blocks, list(control), None if rescaled else Saving(self.saved))
        return max(spent_s)

    def ran(self, blocks, control, saving, heard_us: int = 1) -> tuple[list[float], list[Fragment]]:
        """Run a batch; return the processor time of each task, in seconds, and what the regions told."""
        spent_s, inputs, fragments = [0.0] * TASKS, defaultdict(list), []
        entries = [(block.partition, IngestBlock("bench", heard_us, to_ipc(block.table))) for block in blocks]
        for task, layout in enumerate(self.layouts):
            mine = [entry for partition, entry in entries if partition == task]
            began_s = time.process_time()
            made = home_task(layout, task, self.batch, mine, control, saving)
            spent_s[task] += time.process_time() - began_s
            for sent in made:
                inputs[sent.region].append(sent)
        places = self.layouts[0].store.registry(self.batch + 1).region_map.places
        for region in sorted(inputs):
            task = places[region] % TASKS
            began_s = time.process_time()
            fragments += region_task(self.layouts[task], region, self.batch, inputs[region], control, saving)
            spent_s[task] += time.process_time() - began_s
        self.saved = self.batch if saving else self.saved
        self.batch += 1
        return spent_s, fragments


def box_queries(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the control entries of `QUERIES` ranges of the stream `bench`: boxes of a tenth of each side."""
    corners = rng.uniform([-180, -90], [144, 72], (QUERIES, 2)).tolist()
    areas = [{"lo": [x, y], "hi": [x + 36, y + 18]} for x, y in corners]
    plans = [{"stream": "bench", "area": area} for area in areas]
    return [{"op": "register", "query": number, "revision": 1, "plan": plan} for number, plan in enumerate(plans)]


def measured(objects: int) -> dict[str, float]:
    """Return the length of batches of `ROWS` elements in seconds, by what happens in them."""
    rng, blocks = np.random.default_rng(SEED), list(make_blocks("bench", objects, ROWS, TASKS))
    control = box_queries(rng)
    with tempfile.TemporaryDirectory() as root:
        tasks = Tasks(Path(root))

        def run(chosen, control=()):
            for block in chosen:
                block.advance(rng, "walk", tasks.batch + 1)
            return tasks.run(chosen, control)

        run(blocks, control)
        few = blocks[:TASKS]
        usual = [run(few) for _ in range(5)][1:]
        later = tasks.region_map.split(0, 1, 0.0, place=1)
        split = run(few, [{"op": "regions", "map": later.document()}])
        after_split = run(few)
        usual += [run(few) for _ in range(2)]
        merged = run(few, [{"op": "regions", "map": later.merged(0, TASKS).document()}])
        after = run(few)
    usual_s = float(np.median(usual))
    return {"usual": usual_s, "split": split, "after it": after_split, "merged": merged, "after that": after}


def main() -> None:
    """Print a line for each number of objects."""
    parser = argparse.ArgumentParser(prog="python -m bench.rescaling", description=__doc__.split("\n")[0])
    parser.add_argument("objects", nargs="*", type=int, default=[100_000, 1_000_000])
    for objects in parser.parse_args().objects:
        told = ", ".join(f"{what} {1000 * span_s:.0f} ms" for what, span_s in measured(objects).items())
        print(f"{objects:,} objects: {told}")


if __name__ == "__main__":
    main()
