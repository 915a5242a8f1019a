"""What range queries cost whose areas have a shape, beside as many rectangles: one match of all objects.

Times are those of the processor.

``python -m bench.areas`` prints a row for each form of area. All areas are about as large, about the same places.
"""

import argparse
import time

import numpy as np
import shapely

from streaming.elements import bounds_of, point_elements, stream_number
from streaming.operators.elements import Elements
from streaming.operators.range_query import RangeQueries
from streaming.plans import parse_plan
from streaming.spaces import EARTH

STREAM = "ships"
# The part of the earth in which objects and queries lie: the Baltic Sea.
LOW, HIGH = np.array([10.0, 54.0]), np.array([30.0, 66.0])
HALF_DEG = 0.1
CORNERS = 20


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    elements = objects(rng, given.objects)
    places = rng.uniform(LOW, HIGH, (given.queries, 2))
    print(f"{given.queries:,} queries, {given.objects:,} objects")
    print("| area | read [s] | first match [ms] | match [ms] | pairs |\n| --- | ---: | ---: | ---: | ---: |")
    for name, area in AREAS.items():
        began = time.process_time()
        plans = [parse_plan({"stream": STREAM, "area": area(rng, x, y)}) for x, y in places.tolist()]
        read = time.process_time() - began
        queries = RangeQueries(plans, EARTH)
        first, pairs = measured(queries, elements)
        again = min(measured(queries, elements)[0] for _ in range(given.repeats))
        print(f"| {name} | {read:.2f} | {first:.0f} | {again:.0f} | {pairs:,} |")


def measured(queries: RangeQueries, elements: Elements) -> tuple[float, int]:
    """Return the milliseconds of one match, and how many pairs it finds."""
    began = time.process_time()
    pairs = len(queries.match(elements)[0])
    return 1000 * (time.process_time() - began), pairs


def objects(rng: np.random.Generator, count: int) -> Elements:
    """Return points at random places."""
    table = point_elements(
        STREAM, list(map(str, range(count))), np.arange(count), rng.uniform(LOW, HIGH, (count, 2)), [{}] * count
    )
    stream = np.full(count, stream_number(STREAM))
    return Elements(stream, bounds_of(table["bounds"]), table.take, has_geometries=False)


def rectangle(_, x, y):
    """Return a box about a place."""
    return {"lo": [x - HALF_DEG, y - HALF_DEG], "hi": [x + HALF_DEG, y + HALF_DEG]}


def polygon(rng, x, y):
    """Return a star of `CORNERS` corners about a place."""
    angles = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    reach = HALF_DEG * rng.uniform(0.5, 1.0, CORNERS)
    ring = shapely.Polygon(np.c_[x + reach * np.cos(angles), y + reach * np.sin(angles)])
    return {"type": "Polygon", "coordinates": [list(map(list, ring.exterior.coords))]}


def circle(_, x, y):
    """Return a circle as high as the boxes."""
    return {"circle": {"center": [x, y], "radius_m": HALF_DEG * 111_000}}


def corridor(rng, x, y):
    """Return a corridor about a line of four places."""
    line = np.array([x, y]) + rng.uniform(-HALF_DEG, HALF_DEG, (4, 2))
    return {"corridor": {"line": line.tolist(), "width_m": 4_000}}


AREAS = {"rectangle": rectangle, f"polygon of {CORNERS} corners": polygon, "circle": circle, "corridor": corridor}

if __name__ == "__main__":
    main()
