"""The cost of property filters: ``python -m bench.filters`` evaluates many on many elements, and prints the seconds."""

import time

import numpy as np
import orjson
import pyarrow as pa

from streaming.operators.conditions import Conditions
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.plans import parse_plan
from streaming.spaces import EARTH

ELEMENTS, FILTERS = 20_000, 1_000


def ships(count: int) -> Elements:
    """Return elements with the properties of ships."""
    random = np.random.default_rng(1)
    speed, course = random.uniform(0, 20, count).round(1).tolist(), random.integers(0, 360, count).tolist()
    kind = random.choice(["cargo", "tanker", "passenger", "fishing"], count).tolist()
    ships = [
        {"name": f"SHIP {number}", "mmsi": 230_000_000 + number, "speed_mps": s, "course_deg": c, "ship_type": k}
        | {"status": "under way", "destination": "HELSINKI", "draught_m": 7.5}
        for number, (s, c, k) in enumerate(zip(speed, course, kind, strict=True))
    ]
    table = pa.table({"key": [ship["name"] for ship in ships], "properties": [orjson.dumps(s).decode() for s in ships]})
    return Elements(np.zeros(count, np.int64), np.zeros((count, 6)), lambda rows: table.take(pa.array(rows)))


def seconds(texts: list[str], elements: Elements) -> float:
    """Return how many seconds it takes to evaluate every filter on every element."""
    plans = [parse_plan({"stream": "s", "compare": {"lo": [0, 0], "hi": [1, 1]}, "where": text}) for text in texts]
    conditions = Conditions(plans, EARTH)
    row, query = (part.ravel() for part in np.mgrid[: len(elements), : len(plans)])
    began = time.perf_counter()
    conditions.passing(row, query, elements, Failures())
    return time.perf_counter() - began


def main() -> None:
    """Print the cost of three loads."""
    members = ",".join(str(number) for number in range(450))
    kinds = [f"speed_mps > {n / 50} AND ship_type = 'cargo' AND course_deg < {n % 360}" for n in range(FILTERS)]
    wide = [f"mmsi IN ({members}, {n})" for n in range(5)]
    print(f"5 filters of 451 numbers over 1,000 elements: {seconds(wide, ships(1_000)):.3f} s")
    print(f"10 filters of three comparisons over {ELEMENTS:,} elements: {seconds(kinds[:10], ships(ELEMENTS)):.2f} s")
    print(f"{FILTERS:,} such filters over {ELEMENTS:,} elements: {seconds(kinds, ships(ELEMENTS)):.2f} s")


if __name__ == "__main__":
    main()
