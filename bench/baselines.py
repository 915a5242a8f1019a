"""Evaluate continuous range queries without an engine: row by row, and by numpy without an index.

Both start from elements in memory and throw their results away; the engine reads its elements from a log, keeps its
state on disk and publishes its results. So the comparison favours the baselines, and their figures are upper bounds.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bench.load import STEP_DEG
from bench.scenarios import SEED, query_boxes

# The sign of a result tuple, indexed by (was in the answer, is in the answer); 2 stands for no tuple.
SIGN = np.array([[2, 1], [-1, 0]], dtype=np.int8)
OBJECTS = 10_000
# Pairs of an element and a query that numpy compares at once: its intermediate arrays must stay in the cache.
PAIRS_AT_ONCE = 500_000

Update = tuple[np.ndarray, np.ndarray]


def row_by_row(updates: Iterable[Update], boxes: np.ndarray) -> Iterator[list[tuple[int, int, int]]]:
    """Evaluate each element against each query; yield the result tuples of each block of updates.

    Parameters
    ----------
    updates : iterable of (objects, places)
        Numbers of objects, int of shape (N,), and their longitudes and latitudes in degrees, float of shape (N, 2).
    boxes : ndarray of float64, shape (M, 4)
        ``[lon_lo, lat_lo, lon_hi, lat_hi]`` of each query, in degrees.

    Yields
    ------
    list of (object, query, sign)
        The sign is 1 if the object entered the answer, 0 if it stays in it, -1 if it left.
    """
    queries: list[tuple[list[float], set[int]]] = [(box, set()) for box in boxes.tolist()]
    for objects, places in updates:
        results = []
        for number, (lon, lat) in zip(objects.tolist(), places.tolist(), strict=True):
            for query, ((west, south, east, north), answer) in enumerate(queries):
                inside = west <= lon <= east and south <= lat <= north
                if inside:
                    results.append((number, query, 0 if number in answer else 1))
                    answer.add(number)
                elif number in answer:
                    results.append((number, query, -1))
                    answer.remove(number)
        yield results


def by_numpy(
    updates: Iterable[Update], boxes: np.ndarray, objects_count: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Evaluate blocks of elements against all queries at once; yield the result tuples of each block.

    Parameters
    ----------
    updates, boxes
        As for `row_by_row`; an object is in a block of updates at most once.
    objects_count : int
        How many objects there are; their numbers are lower.

    Yields
    ------
    object, query, sign : ndarray of int, shape (P,)
    """
    west, south, east, north = boxes.T
    member = np.zeros((objects_count, len(boxes)), dtype=bool)
    for objects, places in updates:
        lon, lat = places[:, :1], places[:, 1:]
        inside = (west <= lon) & (lon <= east) & (south <= lat) & (lat <= north)
        before = member[objects]
        row, query = np.nonzero(before | inside)
        sign = SIGN[before[row, query].astype(int), inside[row, query].astype(int)]
        member[objects] = inside
        yield objects[row], query, sign


def walk(rows: int, objects_count: int = OBJECTS) -> Iterator[Update]:
    """Yield blocks of updates for ever: the objects walk, and report in turn, `rows` of them in each block."""
    rng = np.random.default_rng(SEED)
    places = rng.random((objects_count, 2)) * [360, 180] - [180, 90]
    cursor = 0
    while True:
        objects = np.arange(cursor, cursor + rows) % objects_count
        places[objects] += rng.normal(0.0, STEP_DEG, (rows, 2))
        yield objects, places[objects]
        cursor += rows


@dataclass(frozen=True)
class Baseline:
    """Speed of one way to do the work."""

    way: str
    queries: int
    elements_per_s: float
    results_per_s: float


def measure(seconds: float) -> list[Baseline]:
    """Measure both ways with 100 and 10,000 queries, for `seconds` each."""
    measured = []
    for queries in (100, 10_000):
        boxes = query_boxes(queries)
        rows = max(1, PAIRS_AT_ONCE // queries)
        for way, blocks in (
            ("row by row", row_by_row(walk(min(rows, 100)), boxes)),
            ("numpy", (block[0] for block in by_numpy(walk(rows), boxes, OBJECTS))),
        ):
            size = min(rows, 100) if way == "row by row" else rows
            measured.append(_timed(way, queries, blocks, size, seconds))
    return measured


def _timed(way, queries, blocks, rows, seconds):
    """Take blocks for `seconds`; return how many elements and results there were in a second."""
    elements = results = 0
    began_s = time.perf_counter()
    while (spent_s := time.perf_counter() - began_s) < seconds:
        results += len(next(blocks))
        elements += rows
    return Baseline(way, queries, elements / spent_s, results / spent_s)
