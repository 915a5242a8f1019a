"""Joins with layers: their layers, queries and loads, and the same joins written with GeoPandas.

The naive way calls `geopandas.sjoin` for each batch of elements, as in a ``foreachBatch``. The layer is in memory, with
its spatial index; a batch is 10,000 points in memory. For a join by distance, the layer is in metres, and each batch is
projected first. The naive way computes pairs and throws them away: it keeps no answers, so it cannot tell what enters
and leaves; it reads no log and publishes nothing. 100 joins are 100 such calls, each with the points in its area, or
with the features that pass its filter.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import geopandas
import numpy as np
import pyarrow as pa
import shapely

from bench.load import along, road_coordinates
from bench.meter import Meter, Work
from bench.processes import cpu_s, pss_mib
from bench.scenarios import COUNTRY, FULL_SPEED, JOIN_SETTLE_S, SEED, STREAM, Joins
from bench.stack import Stack, child, said
from streaming.layers.features import feature_table

LAYER = "bench"
AREAS_ACROSS, AREAS_DOWN, VERTICES = 5, 4, 10_000
DISTANCE_M = 5.0
KINDS = ("residential", "service", "track", "primary", "footway")
WGS84, UTM = "EPSG:4326", "EPSG:32631"
BATCH = 10_000
# The country is cut into this many areas across and down, for joins that differ in their areas.
TILES = 10


def shapes_of(scenario: Joins) -> np.ndarray:
    """Return the geometries of a scenario's layer, shape (N,): areas with rough coasts, or road lines."""
    return areas() if scenario.layer == "areas" else shapely.linestrings(road_coordinates(scenario.features))


def areas() -> np.ndarray:
    """Return 20 polygons of 10,000 vertices, side by side; together they cover some 70 % of the country."""
    west, south, east, north = COUNTRY
    wide, high = (east - west) / AREAS_ACROSS, (north - south) / AREAS_DOWN
    angle = np.linspace(0, 2 * np.pi, VERTICES, endpoint=False)
    rough = 0.95 + 0.03 * np.sin(7 * angle) + 0.015 * np.sin(301 * angle) + 0.004 * np.sin(1999 * angle)
    column, row = np.divmod(np.arange(AREAS_ACROSS * AREAS_DOWN), AREAS_DOWN)
    x = west + (column[:, None] + 0.5 + 0.5 * rough * np.cos(angle)) * wide
    y = south + (row[:, None] + 0.5 + 0.5 * rough * np.sin(angle)) * high
    return shapely.polygons(np.stack([x, y], axis=2))


def layer_table(scenario: Joins) -> pa.Table:
    """Return the layer of a scenario as a table of features."""
    shapes = shapes_of(scenario)
    properties = [{"highway": KINDS[n % len(KINDS)], "name": f"Street {n % 100}"} for n in range(len(shapes))]
    return feature_table(LAYER, [str(number) for number in range(len(shapes))], shapes, properties)


def plans(scenario: Joins) -> list[dict]:
    """Return the plans of a scenario's joins."""
    join = {"layer": LAYER, **_predicate(scenario)}
    plan = {"stream": STREAM, "kind": "join", "join": join}
    if scenario.differ == "filters":
        return [{**plan, "join": {**join, "where": f"name = 'Street {number}'"}} for number in range(scenario.joins)]
    if scenario.differ == "areas":
        return [{**plan, "area": _tile(number)} for number in range(scenario.joins)]
    return [plan] * scenario.joins


def _predicate(scenario):
    return {"predicate": "within"} if scenario.layer == "areas" else {"predicate": "dwithin", "distance": DISTANCE_M}


def _tile(number):
    """Return one of the areas that together cover the country once, as a plan's box."""
    low, high = np.array(COUNTRY[:2]), np.array(COUNTRY[2:])
    side = (high - low) / TILES
    corner = low + np.array(divmod(number % TILES**2, TILES)) * side
    return {"lo": corner.tolist(), "hi": (corner + side).tolist()}


@dataclass(frozen=True)
class Joined:
    """What was measured in a scenario; see `measure.Row`."""

    scenario: Joins
    work: Work
    cores: Mapping[str, float]
    memory_mib: Mapping[str, float]

    @property
    def engine_cpu_us(self) -> float:
        """Processor time of the engine for an element, in microseconds."""
        return 1e6 * self.cores.get("engine", 0.0) / self.work.elements_per_s if self.work.elements_per_s else 0.0


def measure(stack: Stack, scenario: Joins, seconds: float) -> Joined:
    """Put a stack under the load of a scenario and measure for `seconds`; no client subscribes."""
    with child("bench.load", stack.redis_url, *_load(scenario)) as generator:
        said(generator, "filled")
        time.sleep(JOIN_SETTLE_S)
        before, began_s = cpu_s(stack.home), time.monotonic()
        with Meter(stack.redis_url) as meter:
            time.sleep(seconds)
        after, spent_s = cpu_s(stack.home), time.monotonic() - began_s
        memory = pss_mib(stack.home)
    cores = {program: (after[program] - before.get(program, 0.0)) / spent_s for program in after}
    return Joined(scenario, meter.work, cores, memory)


def _load(scenario):
    motion = ("--motion", "walk", "--area", *map(str, COUNTRY))
    if scenario.layer == "roads":
        motion = ("--motion", "along", "--roads", str(scenario.features))
    return ("--rate", str(scenario.rate), "--objects", str(scenario.objects), *motion)


@dataclass(frozen=True)
class Naive:
    """Speed of `geopandas.sjoin` in one process, and the number of pairs for each element."""

    scenario: Joins
    elements_per_s: float
    pairs_per_element: float


def naive(scenario: Joins, seconds: float) -> Naive:
    """Join batches of a scenario's elements with GeoPandas for `seconds`, and return the speed."""
    geometry = shapes_of(scenario)
    metres = scenario.layer == "roads"
    layer = geopandas.GeoDataFrame({"name": np.arange(len(geometry)) % 100}, geometry=geometry, crs=WGS84)
    layer = layer.to_crs(UTM) if metres else layer
    wanted = {"predicate": "dwithin", "distance": DISTANCE_M} if metres else {"predicate": "within"}
    layers = _layers(scenario, layer)
    rng, elements, pairs = np.random.default_rng(SEED), 0, 0
    began_s = time.perf_counter()
    while (spent_s := time.perf_counter() - began_s) < seconds:
        places = _places(scenario, rng)
        batch = geopandas.GeoDataFrame(geometry=shapely.points(places), crs=WGS84)
        batch = batch.to_crs(UTM) if metres else batch
        for number in range(scenario.joins):
            mine = batch[_inside(places, _tile(number))] if scenario.differ == "areas" else batch
            pairs += len(mine.sjoin(layers[number % len(layers)], **wanted))
        elements += BATCH
    return Naive(scenario, elements / spent_s, pairs / elements)


def _layers(scenario, layer):
    """Return the features of each join, selected once; one layer for all joins, unless they filter features."""
    if scenario.differ != "filters":
        return [layer]
    return [layer[layer["name"] == number] for number in range(scenario.joins)]


def _inside(places, area):
    return ((places >= area["lo"]) & (places <= area["hi"])).all(axis=1)


def _places(scenario, rng):
    if scenario.layer == "roads":
        return along(road_coordinates(scenario.features), rng.integers(scenario.features, size=BATCH), rng)
    return rng.uniform(COUNTRY[:2], COUNTRY[2:], (BATCH, 2))


def rate_text(scenario: Joins) -> str:
    """Return the rate of a scenario as text."""
    return "as fast as possible" if scenario.rate == FULL_SPEED else f"{scenario.rate:,}"
