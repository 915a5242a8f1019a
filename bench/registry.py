"""What one query more, less or changed costs a worker process, and a match, by the number of queries: CPU time.

Without Spark and without a stack; run it with ``python -m bench.registry``, perhaps followed by numbers of queries.
"""

import functools
import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import stream_number
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.servers.control.registrations import level_table
from streaming.servers.control.registry import Registry
from streaming.spaces import EARTH

QUERIES = (1_000, 10_000, 100_000)
ELEMENTS, CHANGES = 4_000, 200
# The queries of an element, on the average; their squares are the smaller the more there are.
DEPTH = 5


class Load:
    """Plans and elements, at random places."""

    def __init__(self, queries: int) -> None:
        self._rng = np.random.default_rng(0)
        self._side = float(np.sqrt(360 * 180 * DEPTH / queries))
        places = self._rng.uniform([-180, -90], [180, 90], (ELEMENTS, 2))
        bounds = np.full((ELEMENTS, 6), np.inf)
        bounds[:, [0, 1]] = bounds[:, [3, 4]] = places
        bounds[:, 2] = -np.inf
        self.elements = Elements(np.full(ELEMENTS, stream_number("ships")), bounds, pa.table({}).take)
        self.few = Elements(self.elements.stream[:1], bounds[:1], pa.table({}).take)

    def plan(self) -> dict[str, Any]:
        """Return a square that no other plan has."""
        lon, lat = self._rng.uniform([-180, -90], [180 - self._side, 90 - self._side]).tolist()
        return {"stream": "ships", "area": {"lo": [lon, lat], "hi": [lon + self._side, lat + self._side]}}

    def register(self, query: int, revision: int = 1) -> dict[str, Any]:
        """Return the control entry that registers a query."""
        return {"op": "register", "query": query, "revision": revision, "plan": self.plan()}


def milliseconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a call, and its result."""
    began = time.process_time()
    result = call()
    return 1000 * (time.process_time() - began), result


def looked_at(before: Registry, entries: list, load: Load) -> Registry:
    """Apply control entries, and look at what the steps of servers look at, with a single element."""
    after, applied = before.apply(entries)
    for registry in (before, after):
        recipients = registry.recipients(np.union1d(applied.changed, applied.cancelled))
        recipients.names_of(registry.columns.answers_of(applied.changed))
        assert not registry.reach and not len(registry.distributed_ids) and not registry.streams_in_full
    after.queries.match(load.few, after.features, Failures())
    return after


def changes(kind: str, queries: int, load: Load, step: int) -> list[dict[str, Any]]:
    """Return the control entries of one batch."""
    entries = {
        "add": lambda: [load.register(queries + step)],
        "edit": lambda: [load.register(queries + step // 8, 2 + step)],
        "cancel": lambda: [{"op": "cancel", "query": step, "revision": 2}],
        "nothing": lambda: [{"op": "tick", "now_us": step}],
    }
    return entries[kind]()


def matched(registry: Registry, load: Load) -> float:
    """Return the CPU time of matching all elements, the least of some runs."""
    runs = (milliseconds(lambda: registry.queries.match(load.elements, registry.features))[0] for _ in range(6))
    return min(runs)


def written(registry: Registry, before: Registry) -> int:
    """Return the size of the levels of registrations that a store would write."""
    known = {level.number for level in before.registrations.levels}
    levels = (level for level in registry.registrations.levels if level.number not in known)
    return sum(level_table(level).nbytes for level in levels)


def row(queries: int) -> list[str]:
    """Return the cells of a row of the table."""
    load = Load(queries)
    registry, _ = Registry(EARTH).apply([load.register(query) for query in range(queries)])
    alone, cells, size = matched(registry, load), [f"{queries:,}"], 0
    for kind in ("add", "edit", "cancel", "nothing"):
        costs = []
        for step in range(CHANGES):
            entries, before = changes(kind, queries, load, step), registry
            cost, registry = milliseconds(functools.partial(looked_at, before, entries, load))
            costs.append(cost)
            size += written(registry, before)
        cells.append(f"{np.median(costs):.1f} / {np.percentile(costs, 99):.1f}")
    return [*cells, f"{alone:.1f}", f"{matched(registry, load):.1f}", f"{size // (3 * CHANGES):,}"]


def main() -> None:
    """Print a row for each number of queries."""
    print("| queries | add | edit | cancel | nothing | match, one level | match, levels | bytes a change |")
    gc.disable()
    for queries in map(int, sys.argv[1:]) if len(sys.argv) > 1 else QUERIES:
        print("| " + " | ".join(row(queries)) + " |", flush=True)


if __name__ == "__main__":
    main()
