"""What rules cost beside the queries that they watch: ``python -m bench.rules`` prints processor times of batches.

Two engines run in this process, batch by batch in turn, over the same elements: one with ranges alone, and one with as
many rules of all kinds over them. As in operation, the clock is set and the states are saved once a second.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.load import make_blocks
from bench.machine import machine
from bench.report import table
from bench.rescaling import TASKS, Tasks
from bench.scenarios import SEED
from streaming.engine.batch import Saving, must_save, save

OBJECTS, RULES, RATE, BATCH_S = 100_000, 10_000, 20_000, 0.1
# So many registrations a batch, as an engine reads at most.
REGISTERED = 2_500
WARM_UP, BATCHES, SAVED_EVERY = 60, 200, 10
SECOND_US = 1_000_000
OFFICE = {"from": "08:00", "to": "18:00", "time_zone": "Europe/Berlin"}


class Engine(Tasks):
    """The tasks of an engine whose clock is set, and whose states are saved, once a second."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.told = 0

    def batch_at(self, blocks: Sequence[Any], control: Sequence[dict], now_us: int) -> float:
        """Run a batch; return the processor time of all of its tasks, in seconds."""
        control = list(control)
        if self.batch % SAVED_EVERY == SAVED_EVERY - 1:
            control.append({"op": "tick", "now_us": now_us})
        before_s = self._save() if must_save(self.layouts[0], self.batch, control).before else 0.0
        spent_s, fragments = self.ran(blocks, control, Saving(self.saved) if control else None, now_us)
        self.told += sum(int((fragment.changes["query"].to_numpy() > RULES).sum()) for fragment in fragments)
        return before_s + sum(spent_s)

    def _save(self):
        """Save what the batch before has left, unless it is saved; return the processor time, in seconds."""
        began_s = time.process_time()
        if self.saved < self.batch - 1:
            for task, layout in enumerate(self.layouts):
                save(layout, self.batch - 1, [task], [task], Saving(self.saved))
            self.saved = self.batch - 1
        return time.process_time() - began_s


def ranges(rng: np.random.Generator, number: int) -> list[dict[str, Any]]:
    """Return the plans of ranges: boxes of a degree or two."""
    corners = rng.uniform([-180, -90], [178, 88], (number, 2)).tolist()
    return [{"stream": "bench", "compare": {"lo": [x, y], "hi": [x + 2, y + 1]}} for x, y in corners]


def rules(rng: np.random.Generator, number: int) -> list[dict[str, Any]]:
    """Return the plans of rules of all kinds, each of which names one to three ranges by their numbers from 1 on."""
    plans = []
    for place in range(number):
        one, other, third = (1 + (place + step) % number for step in rng.integers(0, number, 3).tolist())
        kinds: list[dict[str, Any]] = [
            {"when": {"query": one}, "for_s": 5},
            {"when": {"query": one}, "for_s": 5, "rearm_s": 60},
            {"when": {"all": [{"query": one}, {"not": {"query": other}}]}, "for_s": 3},
            {"when": {"query": one}, "for_s": 2, "until": {"query": other}},
            {"when": {"any": [{"query": one}, {"query": other}, {"query": third}]}},
            {"when": {"query": one}, "rate": {"more_than": 2, "within_s": 20}},
            {"when": {"query": one}, "for_s": 1, "schedule": OFFICE},
        ]
        plans.append({"stream": "bench", "kind": "rule", **kinds[place % len(kinds)]})
    return plans


def entries(plans: Sequence[dict], first: int) -> list[dict[str, Any]]:
    """Return the control entries that register plans, numbered from `first` on."""
    return [
        {"op": "register", "query": number, "revision": 1, "plan": plan} for number, plan in enumerate(plans, first)
    ]


def measured(count: int) -> dict[str, float]:
    """Return the mean processor time of a batch of both engines, in milliseconds, and what they told."""
    rng = np.random.default_rng(SEED)
    blocks = list(make_blocks("bench", OBJECTS, round(RATE * BATCH_S), TASKS))
    plans, ruled = ranges(rng, count), rules(rng, count)
    with tempfile.TemporaryDirectory() as folder:
        plain, with_rules = Engine(Path(folder) / "plain"), Engine(Path(folder) / "rules")
        waiting = [entries(plans, 1), entries(plans, 1) + entries(ruled, RULES + 1)]
        spent: list[tuple[float, float]] = []
        batches = WARM_UP + BATCHES
        for number in range(batches):
            now_us = 1_700_000_000 * SECOND_US + round(number * BATCH_S * SECOND_US)
            chosen = [blocks[(number * TASKS + task) % len(blocks)] for task in range(TASKS)]
            for block in chosen:
                block.advance(rng, "walk", now_us)
            part = slice(number * REGISTERED, (number + 1) * REGISTERED)
            spent.append(
                (
                    plain.batch_at(chosen, waiting[0][part], now_us),
                    with_rules.batch_at(chosen, waiting[1][part], now_us),
                )
            )
    one, other = np.mean(spent[WARM_UP:], axis=0) * 1_000
    return {"ranges": one, "ranges and rules": other, "ratio": other / one, "alarms told": with_rules.told}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description=__doc__.splitlines()[0])
    parser.add_argument("rules", nargs="*", type=int, default=[RULES])
    rows = []
    for count in parser.parse_args().rules:
        told = measured(count)
        rows.append([f"{count:,}", *(f"{told[name]:,.1f}" for name in ("ranges", "ranges and rules"))])
        rows[-1] += [f"{told['ratio']:.2f}", f"{told['alarms told']:,}"]
    print(table(["rules", "ms a batch, ranges", "ms a batch, ranges and rules", "ratio", "alarms told"], rows))
    print(machine())


if __name__ == "__main__":
    main()
