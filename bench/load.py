"""The load generator: a process that writes ready-made Arrow blocks into the ingest log, as the gateway does.

Every object is in one block, whose table is made once. Before a block is written, its objects move and their times are
set to now, in place. So the generator takes as little as possible of the cores that it shares with the engine.
"""

import argparse
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import orjson
import pyarrow as pa
import redis

from bench.scenarios import COUNTRY, CROWDED, FULL_SPEED, SEED, STREAM
from streaming.elements import bounds_array, bounds_of, element_schema, from_ipc, key_hashes, to_ipc
from streaming.gateway.config import GatewayConfig
from streaming.logs import Log, block_entries
from streaming.operators.geodesics import local_metres
from streaming.spaces import EARTH, Space

CONFIG = GatewayConfig()
# The standard deviation of a step of the walk: as far as an aircraft goes in five seconds, or a bus in a minute.
STEP_DEG = 0.01
FULL_WAIT_S = 0.002
# Of more objects than these, or in smaller blocks than these, only so many are kept as report within some minutes; the
# engine is filled with large blocks, which are thrown away.
KEPT_OBJECTS, KEPT_ROWS, KEPT_S = 2_000_000, 200, 300
# A street of 60 m is 0.0005 degrees. The towns lie in `COUNTRY`.
TOWNS, TOWN_DEG, STREET_DEG, ROAD_VERTICES = 400, 0.2, 0.0005, 6
# The standard deviation of a satellite receiver's error in each direction: 90 % of its positions lie within five metres
# of a line.
ERROR_M = 3.0
# The area in which the objects start and stay: ``[lon_lo, lat_lo, lon_hi, lat_hi]``.
WORLD = (-180.0, -90.0, 180.0, 90.0)
# A hundredth of it, in which nine of ten objects are that are ``crowd``.
CROWD = (20.0, 40.0, 56.0, 58.0)
# With ``wander``, this area goes around the globe in ten minutes, and its objects with it.
WANDER_DEG_S = 360.0 / 600.0


class LoadBlock(ABC):
    """One entry of the ingest log, whose elements are rewritten in place.

    Parameters
    ----------
    partition : int
    fields : dict
        The fields of the entry, as `logs.block_entries` makes them.
    space : Space
    """

    def __init__(self, partition: int, fields: dict, space: Space = EARTH) -> None:
        self.partition, self.rows, self.space, self._fields = partition, fields["count"], space, fields
        self.table = from_ipc(fields["block"])
        # Arrow's arrays share the memory of these.
        self._times = np.zeros(self.rows, dtype=np.int64)
        self._bounds = np.array(bounds_of(self.table["bounds"]))
        for name, column in {
            "time_us": pa.array(self._times),
            "version": pa.array(self._times),
            "bounds": bounds_array(self._bounds),
        }.items():
            at = self.table.schema.get_field_index(name)
            self.table = self.table.set_column(at, self.table.schema.field(at), column)

    @property
    def fields(self) -> dict:
        """The fields of the entry, with the block as it is now."""
        return {**self._fields, "heard_us": int(self._times[0]), "block": to_ipc(self.table)}

    @property
    def place(self) -> np.ndarray:
        """The places of the objects in the first two dimensions, float64 of shape (N, 2)."""
        return self._bounds[:, :2]

    def move(self, place: np.ndarray, now_us: int) -> None:
        """Set the places of the objects, float64 of shape (N, 2), and set their times to `now_us`."""
        self._bounds[:, :2] = self._bounds[:, self.space.n : self.space.n + 2] = place
        self._times[:] = now_us

    @abstractmethod
    def advance(self, rng: np.random.Generator, motion: str, now_us: int) -> None:
        """Write the next report of each object into the block."""


class Walkers(LoadBlock):
    """Objects that walk, jump, or move along roads.

    Parameters
    ----------
    partition, fields :
        As for `LoadBlock`.
    area : tuple of float
        The area in which they stay.
    roads : ndarray, optional
        As `road_coordinates` returns them, for objects that move ``along`` them.
    """

    def __init__(
        self, partition: int, fields: dict, area: tuple[float, ...] = WORLD, roads: np.ndarray | None = None
    ) -> None:
        super().__init__(partition, fields)
        self.area, self.roads = area, roads
        self._moved_us = 0
        # An object stays on its road, which the hash of its key gives: neighbours in a block are not so on the map.
        key_hash = self.table["key_hash"].to_numpy()
        self._road = key_hash % len(roads) if roads is not None else None

    def advance(self, rng: np.random.Generator, motion: str, now_us: int) -> None:
        """Move the objects and set their times."""
        low, extent = np.array(self.area[:2]), np.subtract(self.area[2:], self.area[:2])
        if motion == "along":
            place = along(self.roads, self._road, rng)
        elif motion == "jump":
            place = low + rng.random((self.rows, 2)) * extent
        elif motion == "wander" and self.area != WORLD:
            place = self._wandered(self.place + rng.normal(0.0, STEP_DEG, (self.rows, 2)), now_us)
        else:
            place = self.place + rng.normal(0.0, STEP_DEG, (self.rows, 2))
            place[:, 0] = low[0] + (place[:, 0] - low[0]) % extent[0]  # the area wraps around, as the globe does
            place[:, 1] = np.clip(place[:, 1], low[1], low[1] + extent[1])
        self.move(place, now_us)

    def _wandered(self, place, now_us):
        """Return places after the area, and the objects with it, has gone on to the east."""
        spent_s = (now_us - self._moved_us) / 1e6 if self._moved_us else 0.0
        self._moved_us = now_us
        place[:, 0] = (place[:, 0] + WANDER_DEG_S * spent_s + 180.0) % 360.0 - 180.0
        place[:, 1] = np.clip(place[:, 1], self.area[1], self.area[3])
        return place


def road_coordinates(count: int) -> np.ndarray:
    """Return short road lines in towns, float64 of shape (count, 6, 2) in degrees; they are always the same."""
    rng = np.random.default_rng(7)
    towns = rng.uniform(COUNTRY[:2], COUNTRY[2:], (TOWNS, 2))
    steps = rng.normal(0, STREET_DEG, (count, ROAD_VERTICES, 2))
    steps[:, 0] = towns[rng.integers(TOWNS, size=count)] + rng.normal(0, TOWN_DEG, (count, 2))
    return np.round(steps.cumsum(axis=1), 6)


def along(roads: np.ndarray, road: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return random places on each object's road with an error of positioning, float64 of shape (N, 2) in degrees."""
    at, share = rng.integers(ROAD_VERTICES - 1, size=len(road)), rng.random((len(road), 1))
    place = (1 - share) * roads[road, at] + share * roads[road, at + 1]
    return place + rng.normal(0.0, ERROR_M, place.shape) / np.stack(local_metres(place[:, 1]), axis=1)


def make_blocks(
    stream: str,
    objects: int,
    rows: int,
    partitions: int,
    areas: Sequence[tuple[float, ...]] = (WORLD,),
    roads: np.ndarray | None = None,
    features: int = 0,
) -> Iterator[Walkers]:
    """Yield blocks that together hold every object once.

    Parameters
    ----------
    stream : str
    objects, rows : int
        The number of objects, and the number of rows that the blocks of all partitions hold together in one turn.
    partitions : int
        Of the ingest log.
    areas : sequence of tuple of float
        In which the objects are: those of each turn in the next one.
    roads : ndarray, optional
        On which they are instead.
    features : int
        If not 0, each object has so many random numbers as properties, which are called as `feature_names` says.
    """
    rng = np.random.default_rng(SEED)
    for start, area in zip(range(0, objects, rows), itertools.cycle(areas)):
        table = _elements(stream, np.arange(start, min(start + rows, objects)), area, rng, features)
        entries = block_entries(table, stream, 0, partitions)
        yield from (Walkers(partition, fields, area, roads) for partition, fields in entries)


def feature_names(features: int) -> tuple[str, ...]:
    """Return what random properties are called."""
    return tuple(f"feature_{number}" for number in range(features))


def _elements(stream, numbers, area, rng, features):
    """Return the elements of objects, given their numbers, at random places."""
    count, now = len(numbers), np.zeros(len(numbers), dtype=np.int64)
    keys = np.array([f"object {number}" for number in numbers.tolist()], dtype=object)
    low, high = np.array(area[:2]), np.array(area[2:])
    place, unbounded = low + rng.random((count, 2)) * (high - low), np.full(count, np.inf)
    if features:
        names, values = feature_names(features), rng.normal(size=(count, features)).round(3).tolist()
        texts = [orjson.dumps(dict(zip(names, row, strict=True))).decode() for row in values]
    else:
        texts = [f'{{"kind":"ship","speed_mps":{n % 30},"course_deg":{n * 7 % 360}}}' for n in numbers.tolist()]
    columns = [
        pa.array(keys, pa.string()),
        pa.array(key_hashes(stream, keys)),
        pa.array(now),
        pa.array(now),
        bounds_array(np.column_stack([place, -unbounded, place, unbounded])),
        pa.nulls(count, pa.binary()),
        pa.array(texts, pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=element_schema(EARTH))


class Generator:
    """Writes blocks in turn, at a rate or as fast as the engine takes them.

    Parameters
    ----------
    log : Log
    blocks : iterable of LoadBlock
    motion : {"walk", "jump", "along", "crowd", "wander"}
        Objects take small steps, jump anywhere, or jump anywhere on their own road; most of a crowd stay in a small
        area, which may go around the globe.
    """

    def __init__(self, log: Log, blocks: Iterable[LoadBlock], motion: str) -> None:
        self.log, self.blocks, self.motion = log, list(blocks), motion
        self.sent = 0
        self._rng = np.random.default_rng(SEED)
        self._turn = self._turns()

    def fill(self, blocks: Iterable[LoadBlock] = ()) -> None:
        """Write every object once and wait until the engine has taken all.

        Parameters
        ----------
        blocks : iterable of LoadBlock
            Written once, in place of the generator's own, which hold a part of the same objects.
        """
        for block in blocks or [next(self._turn) for _ in self.blocks]:
            self._wait_for_room()
            self._write([block])
        while self.log.backlog():
            time.sleep(FULL_WAIT_S)

    def run(self, rate: int) -> Iterator[None]:
        """Write for ever, at a rate in elements a second; yield after each write."""
        due_s = time.monotonic()
        while True:
            if rate == FULL_SPEED:
                self._wait_for_room()
                self.write(self.log.partitions)
            else:
                written = self.write(self.log.partitions)
                # Make up for a stall of up to a second. To make up for a longer one would flood the engine.
                due_s = max(due_s + written / rate, time.monotonic() - 1)
                time.sleep(max(0.0, due_s - time.monotonic()))
            yield

    def write(self, count: int) -> int:
        """Write the next blocks in one pipeline, and return the number of their elements."""
        return self._write([next(self._turn) for _ in range(count)])

    def _write(self, blocks):
        for block in blocks:
            block.advance(self._rng, self.motion, time.time_ns() // 1000)
        self.log.event_log.append_all((self.log.names.ingest(block.partition), block.fields) for block in blocks)
        written = sum(block.rows for block in blocks)
        self.sent += written
        return written

    def _turns(self):
        while True:
            yield from self.blocks

    def _wait_for_room(self):
        while not CONFIG.takes(self.log.pressure(), live=False):
            time.sleep(FULL_WAIT_S)


def main() -> None:
    """Fill the engine with the objects, print ``filled``, and go on until ended."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=main.__doc__)
    parser.add_argument("redis_url")
    parser.add_argument("--stream", action="append", help="may be repeated: then blocks of the streams take turns")
    parser.add_argument("--rate", type=int, default=FULL_SPEED)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--motion", choices=("walk", "jump", "along", *CROWDED), default="walk")
    parser.add_argument("--roads", type=int, default=0)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--log-url", default="", help="of Kafka, if the logs are there")
    parser.add_argument("--rows", type=int, help="of the blocks that are written at once; as the gateway's by default")
    parser.add_argument("--features", type=int, default=0, help="so many random numbers as properties")
    parser.add_argument("--area", type=float, nargs=4, default=WORLD)
    arguments = parser.parse_args()
    client = redis.Redis.from_url(arguments.redis_url)
    log = Log(client, EARTH.name, arguments.partitions, patient=True, url=arguments.log_url)
    rows = arguments.rows or min(CONFIG.block_rows, round(arguments.rate * CONFIG.flush_s)) or CONFIG.block_rows
    areas = [WORLD, *[CROWD] * 9] if arguments.motion in CROWDED else [tuple(arguments.area)]
    roads = road_coordinates(arguments.roads) if arguments.motion == "along" else None

    def blocks(objects, rows):
        told = [
            make_blocks(stream, objects, rows, arguments.partitions, areas, roads, arguments.features)
            for stream in arguments.stream or [STREAM]
        ]
        return filter(None, itertools.chain.from_iterable(itertools.zip_longest(*told)))  # lengths may differ

    apart = arguments.rate != FULL_SPEED and (arguments.objects > KEPT_OBJECTS or rows < KEPT_ROWS)
    kept = min(arguments.objects, arguments.rate * KEPT_S) if apart else arguments.objects
    generator = Generator(log, blocks(kept, rows), arguments.motion)
    generator.fill(blocks(arguments.objects, CONFIG.block_rows) if apart else ())
    print("filled", flush=True)
    for _ in generator.run(arguments.rate):
        pass


if __name__ == "__main__":
    main()
