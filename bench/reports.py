"""How long a report on a day of one stream takes, and how much memory: wall clock and CPU time of one process.

Stores a day of ships as the engine does, and merges the files as the worker does; then makes reports on a port, on a
bay and on everything. Run it with ``python -m bench.reports``, perhaps followed by a number of ships; each one reports
every 20 s.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from streaming.elements import point_elements, stream_number
from streaming.history import History, HistoryWriter, Turn, upkeep
from streaming.reports import Report, ReportLimits, ReportTerms, box_area, read_fixes
from streaming.servers.elements import tracked_schema
from streaming.spaces import EARTH

SHIPS, EVERY_S, DAY_S = 1_000, 20, 86_400
STREAM, BEGINNING = "ships", 1_795_219_200_000_000
BATCH_S = 240
AREAS = {
    "a port": box_area(24.9, 60.1, 25.0, 60.2),
    "a bay": box_area(24.5, 59.5, 25.5, 60.5),
    "everywhere": None,
}


def keep(root: Path, ships: int) -> int:
    """Store a day of ships, of which half move and half lie still; return the number of elements."""
    rng = np.random.default_rng(1)
    place = rng.uniform([23, 58], [27, 62], (ships, 2))
    keys, pace = [f"ship {ship}" for ship in range(ships)], np.where(rng.random((ships, 1)) < 0.5, 5e-4, 5e-6)
    kept, course = HistoryWriter(root, EARTH), rng.normal(0, 1, (ships, 2))
    for batch, start_s in enumerate(range(0, DAY_S, BATCH_S)):
        elements = []
        for second in range(start_s, start_s + BATCH_S, EVERY_S):
            course = 0.99 * course + rng.normal(0, 0.14, (ships, 2))
            place = np.clip(place + pace * course, [20, 55], [30, 65])
            times = np.full(ships, BEGINNING + second * 1_000_000) + rng.integers(0, 1_000_000, ships)
            elements.append(point_elements(STREAM, keys, times, place, [{"speed_mps": 7.5}] * ships))
        kept.store(Turn("e", 0, 1, batch, batch * 61_000_000), [_tracked(part) for part in elements], _NAMES)
    upkeep.compact(root / EARTH.name / STREAM, EARTH)
    return ships * DAY_S // EVERY_S


_NAMES = {stream_number(STREAM): STREAM}


def _tracked(elements):
    """Return elements as they reach a region."""
    schema = tracked_schema(EARTH)
    for name, value in zip(schema.names[elements.num_columns :], (stream_number(STREAM), BEGINNING), strict=True):
        elements = elements.append_column(name, [np.full(elements.num_rows, value)])
    return elements.cast(schema)


def main(ships: int = SHIPS) -> None:
    """Print the times."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        stored = keep(Path(folder), ships)
        print(f"{stored:,} elements of {ships:,} ships, stored in {time.perf_counter() - began:.0f} s")
        span = (BEGINNING, BEGINNING + DAY_S * 1_000_000)
        for name, area in AREAS.items():
            began, worked = time.perf_counter(), time.process_time()
            fixes = read_fixes(History(Path(folder), EARTH), STREAM, span, area, ReportLimits(elements=stored))
            report = Report(fixes, ReportTerms(span, area, ZoneInfo("Europe/Helsinki"), 600_000_000))
            objects, stops, days = report.objects.height, report.stops.height, report.totals.height
            visits, fixed = report.visits.height, fixes.frame.height
            told = f"{fixed:,} fixes, {objects:,} objects, {visits:,} visits, {stops:,} stops"
            seconds = f"{time.perf_counter() - began:.1f} s, {time.process_time() - worked:.1f} s of a core"
            peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(f"{name}: {seconds}; {told}, {days} days; at most {peak_gb:.1f} GB so far")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
