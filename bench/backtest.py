"""How fast stored elements are played: ``python -m bench.backtest`` prints elements a second and the ratio of times.

A day of ships, each of which reports every ten seconds, is stored as Parquet; then queries and rules are tried on it.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.machine import machine
from bench.report import table
from bench.scenarios import SEED
from streaming.backtest import BacktestRequest, Playing, StoredElements
from streaming.elements import box_elements
from streaming.history import History
from streaming.history.rows import stored, waiting_schema, write_rows
from streaming.spaces import EARTH

OBJECTS, EVERY_S, HOURS = 1_000, 10, 24
BEGIN_S, US = 1_700_000_000, 1_000_000
# A degree or two in a sea of twenty: one ship of a hundred is there.
SMALL, LARGE = {"lo": [9, 54], "hi": [11, 56]}, {"lo": [0, 45], "hi": [20, 65]}
RULE = {"stream": "ships", "kind": "rule", "when": {"query": 1}, "for_s": 300, "rearm_s": 600}
CASES: dict[str, dict[int, dict[str, Any]]] = {
    "a small area": {1: {"stream": "ships", "compare": SMALL}},
    "a rule over it": {1: {"stream": "ships", "compare": SMALL}, 2: RULE},
    "a rule over all ships": {1: {"stream": "ships", "compare": LARGE}, 2: RULE},
}


def parts(hours: int) -> Iterator[pa.Table]:
    """Yield the elements of an hour after the other, with `rows.waiting_schema`: ships on their ways."""
    rng, keys = np.random.default_rng(SEED), [f"ship {number}" for number in range(OBJECTS)]
    places, heading = rng.uniform([0, 45], [20, 65], (OBJECTS, 2)), rng.uniform(-np.pi, np.pi, OBJECTS)
    turns = 3_600 // EVERY_S
    for hour in range(hours):
        heard_us, bounds = [], []
        for turn in range(turns):
            heading += rng.normal(0, 0.05, OBJECTS)
            places += 0.0005 * np.stack([np.cos(heading), np.sin(heading)], axis=1)
            second = BEGIN_S + hour * 3_600 + turn * EVERY_S
            heard_us.append(
                (second + np.arange(OBJECTS) % EVERY_S) * US + rng.integers(0, US, OBJECTS) // 25_000 * 25_000
            )
            whole = np.hstack([places, np.full((OBJECTS, 1), -np.inf), places, np.full((OBJECTS, 1), np.inf)])
            bounds.append(whole)
        heard = np.concatenate(heard_us)
        made = box_elements(
            "ships", keys * turns, heard - 200_000, np.concatenate(bounds), [{"speed_mps": 7.5}] * len(heard)
        )
        schema = waiting_schema(EARTH)
        columns = {name: made[name] for name in schema.names[:-3]}
        stream = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(heard), dtype=np.int32)), pa.array(["ships"]))
        yield pa.table(
            columns | {"heard_us": heard, "late_us": pa.nulls(len(heard), pa.int64()), "stream": stream}, schema=schema
        )


def store(root: Path, hours: int) -> None:
    """Write the history."""
    for number, elements in enumerate(parts(hours)):
        day = str(np.datetime64(BEGIN_S + number * 3_600, "s").astype("datetime64[D]"))
        folder = root / "earth" / "ships" / f"day={day}" / "region=0"
        folder.mkdir(parents=True, exist_ok=True)
        write_rows(folder / f"bench.{number}.{number}.parquet", stored(elements, EARTH), EARTH)


def measured(root: Path, plans: dict[int, dict[str, Any]], hours: int) -> list[str]:
    """Return the figures of a back-test of all hours."""
    asked = BacktestRequest(plans, (BEGIN_S * US, (BEGIN_S + hours * 3_600) * US), {"ships": 600.0}, moves=False)
    began_s = time.perf_counter()
    elements, playing, told, batches = StoredElements(History(root, EARTH), asked), Playing(asked), 0, 0
    for played in playing.play(elements):
        told, batches = told + played.rows.num_rows, batches + 1
    spent_s = time.perf_counter() - began_s
    stored_rows = OBJECTS * hours * 3_600 // EVERY_S
    span_s = (playing.clock_us - BEGIN_S * US) / US
    rates = [f"{stored_rows * span_s / hours / 3_600 / spent_s:,.0f}", f"{span_s / spent_s:,.0f}"]
    return [f"{playing.played:,}", f"{batches:,}", f"{1_000 * spent_s / batches:.1f}", f"{spent_s:.0f}", *rates]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.backtest", description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=int, default=HOURS)
    hours = parser.parse_args().hours
    with tempfile.TemporaryDirectory() as folder:
        store(Path(folder), hours)
        rows = [[name, *measured(Path(folder), plans, hours)] for name, plans in CASES.items()]
    heads = ["tried", "elements played", "batches", "ms a batch", "s", "stored elements/s", "recorded time / time"]
    print(table(heads, rows))
    print(machine())


if __name__ == "__main__":
    main()
