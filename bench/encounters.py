"""Encounters, in one process: ``python -m bench.encounters``.

All servers run, with their states saved after each batch, without Spark and Redis. So it tells what queries for
encounters cost, and what they write.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.elements import partition_of, point_elements, to_ipc
from streaming.engine.batch import IngestBlock, Saving, home_task, region_task
from streaming.engine.layout import Layout
from streaming.engine.store import Store
from streaming.history import HistoryWriter
from streaming.spaces import EARTH

US = 1_000_000
BATCH_S, PARTITIONS, REGIONS = 0.2, 2, 4
WARM, MEASURED = 70, 60
# West, south, east, north: a sea without other ships.
SEA = 0.0, 50.0, 10.0, 56.0
PLANS = {
    "none": None,
    "encounters": {"kind": "encounter", "for_s": 5, "lateness_s": 2},
    "encounters of slow ships": {"kind": "encounter", "for_s": 5, "lateness_s": 2, "where": "speed_mps < 1"},
    "last positions": {"kind": "join"},
}


def batches(ships: int, rate: int) -> Iterator[pa.Table]:
    """Yield the reports of ships that drift, `rate` a second of event time, batch by batch."""
    rng, count = np.random.default_rng(1), int(rate * BATCH_S)
    west, south, east, north = SEA
    places = rng.uniform([west, south], [east, north], (ships, 2))
    for number in range(WARM + MEASURED):
        mine = (np.arange(count) + number * count) % ships
        places[mine] += rng.normal(0, 1e-3, (count, 2))
        time_us = round((1_000 + number * BATCH_S) * US)
        properties = [{"speed_mps": float(speed)} for speed in rng.uniform(0, 10, count)]
        yield point_elements("ships", [f"{ship}" for ship in mine], [time_us] * count, places[mine], properties)


def figures(plan: dict | None, ships: int, rate: int) -> dict[str, float]:
    """Run a load with one query; return what batches took and wrote."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), EARTH, regions=REGIONS)
        layout, cpu_s, told, before = Layout(store, PARTITIONS, HistoryWriter(Path(folder), EARTH)), 0.0, 0, 0
        join = {"stream": "ships", "predicate": "dwithin", "distance": 1000}
        document = plan and {"stream": "ships", "join": join} | plan
        control = [{"op": "register", "query": 1, "revision": 1, "plan": document}] if plan else []
        for batch, table in enumerate(batches(ships, rate)):
            if batch == WARM:
                before = store.written_bytes
            began = time.process_time()
            results = _run(layout, batch, table, control)
            if batch >= WARM:
                cpu_s, told = cpu_s + time.process_time() - began, told + results
            control = []
        return {
            "reports/s": rate * BATCH_S * MEASURED / cpu_s,
            "ms a batch": 1_000 * cpu_s / MEASURED,
            "KiB a batch": (store.written_bytes - before) / MEASURED / 1024,
            "tuples a batch": told / MEASURED,
        }


def _run(layout, batch, table, control):
    """Run the servers of a batch; return how many tuples they tell."""
    inputs, saving = defaultdict(list), Saving(batch - 1)
    of = partition_of(table["key_hash"].to_numpy(), PARTITIONS)
    for partition in range(PARTITIONS):
        block = IngestBlock("ships", batch * US, to_ipc(table.filter(pa.array(of == partition))))
        for sent in home_task(layout, partition, batch, [block], control, saving):
            inputs[sent.region].append(sent)
    fragments = [
        part for number in inputs for part in region_task(layout, number, batch, inputs[number], control, saving)
    ]
    return sum(fragment.changes.num_rows for fragment in fragments)


def main() -> None:
    """Print the figures of all loads."""
    for ships, rate in ((20_000, 5_000), (100_000, 20_000)):
        print(f"{ships:,} ships, {rate:,} reports a second of event time")
        for name, plan in PLANS.items():
            told = figures(plan, ships, rate)
            print(f"| {name} | " + " | ".join(f"{value:,.0f}" for value in told.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
