"""The scenarios that are measured, grouped by the stack that they share, and the queries that all of them use."""

from dataclasses import dataclass

import numpy as np

STREAM, WIRE_STREAM, FRAMES_STREAM = "bench", "wire", "frames"
# The areas of all queries add up to this many times the plane. So an element is in this many answers on average,
# however many queries there are.
MATCHES_PER_ELEMENT = 1.0
SEED, QUERY_SEED = 1, 2
FULL_SPEED = 0


@dataclass(frozen=True)
class Scenario:
    """One row of the table.

    Parameters
    ----------
    name : str
    rate : int
        Elements a second; `FULL_SPEED` for as many as the engine takes.
    queries, objects : int
    motion : {"walk", "jump"}
        Small steps, or a uniformly random place each time.
    wire : bool
        CSV lines through the gateway's TCP listener instead of blocks into the ingest log.
    """

    name: str
    rate: int
    queries: int = 100
    objects: int = 100_000
    motion: str = "walk"
    wire: bool = False


def _grid():
    """Yield every rate with every number of queries and objects, and jumps at full speed."""
    sizes = {100_000: "100k", 1_000_000: "1M"}
    rates = {20_000: "20k", 100_000: "100k", FULL_SPEED: "max"}
    for queries in (100, 10_000):
        for objects, size in sizes.items():
            for rate, speed in rates.items():
                yield Scenario(f"{speed}-{queries}q-{size}", rate, queries, objects)
        yield Scenario(f"max-{queries}q-100k-jump", FULL_SPEED, queries, motion="jump")


WIRE = Scenario("gateway-20k-100q-100k", 20_000, wire=True)
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (WIRE, *_grid())}
# The area of the features of joins, and of what moves among them: ``[lon_lo, lat_lo, lon_hi, lat_hi]``. The regions
# meet in its middle, so both cores have work.
COUNTRY = (-5.0, -5.0, 5.0, 5.0)
# A load runs for this many seconds before joins are measured.
JOIN_SETTLE_S = 4.0


@dataclass(frozen=True)
class Joins:
    """One row of the table of joins.

    Parameters
    ----------
    name : str
    layer : {"areas", "roads"}
        20 polygons of 10,000 vertices, within which objects walk; or lines of six vertices, along which they report.
    features : int
    joins : int
    differ : {"names", "areas", "filters"}
        How several joins differ: in nothing that the engine knows; each looks at a hundredth of the country; each joins
        a hundredth of the features.
    objects, rate : int
        As in `Scenario`.
    """

    name: str
    layer: str
    features: int
    joins: int = 1
    differ: str = "names"
    objects: int = 100_000
    rate: int = FULL_SPEED

    @property
    def stack(self) -> tuple:
        """What identifies the stack of a scenario: scenarios with equal values share a stack."""
        return self.layer, self.features, self.joins, self.differ


JOINS: dict[str, Joins] = {
    joins.name: joins
    for joins in (
        Joins("join-areas-100k", "areas", 20),
        Joins("join-areas-1M", "areas", 20, objects=1_000_000),
        Joins("join-roads-100k", "roads", 100_000),
        Joins("join-roads-1M", "roads", 100_000, objects=1_000_000),
        Joins("joins-100-names", "roads", 100_000, 100),
        Joins("joins-100-areas", "roads", 100_000, 100, "areas"),
        Joins("joins-100-filters", "roads", 100_000, 100, "filters"),
        Joins("join-1M-roads", "roads", 1_000_000, rate=20_000),
    )
}
# Measured beside the rows of the table.
FRAMES = {"frames-5000": 5_000, "frames-10000": 10_000}
OTHERS = ("baselines", *FRAMES, "demo", *JOINS)
QUICK = (
    "gateway-20k-100q-100k",
    "20k-100q-100k",
    "max-100q-1M",
    "max-10000q-1M",
    "baselines",
    "frames-5000",
    "demo",
)


def query_boxes(count: int) -> np.ndarray:
    """Return query boxes of one size, whose areas add up to `MATCHES_PER_ELEMENT` times the plane.

    Parameters
    ----------
    count : int

    Returns
    -------
    ndarray of float64, shape (count, 4)
        ``[lon_lo, lat_lo, lon_hi, lat_hi]`` in degrees, at random places. A box is as large a part of the plane's width
        as of its height.
    """
    side = (MATCHES_PER_ELEMENT / count) ** 0.5
    low = np.random.default_rng(QUERY_SEED).random((count, 2)) * (1 - side)
    return np.hstack([low, low + side]) * [360, 180, 360, 180] - [180, 90, 180, 90]


def watched(count: int) -> list[int]:
    """Return the positions of the queries that the client subscribes to: a twentieth of all, at most 50."""
    return list(range(max(1, min(50, count // 20))))
