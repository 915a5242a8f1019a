"""The scenarios that are measured, grouped by the stack that they share, and the queries that all of them use."""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

STREAM, WIRE_STREAM, FRAMES_STREAM = "bench", "wire", "frames"
# The areas of all queries add up to this many times the plane. So an element is in this many answers on average,
# however many queries there are.
MATCHES_PER_ELEMENT = 1.0
SEED, QUERY_SEED = 1, 2
FULL_SPEED = 0
CROWDED = ("crowd", "wander")
# As many queries as a user may have by default.
QUERIES_EACH = 1_000


@dataclass(frozen=True)
class Scenario:
    """One row of the table.

    Parameters
    ----------
    name : str
    rate : int
        Elements a second; `FULL_SPEED` for as many as the engine takes.
    queries, objects : int
    motion : {"walk", "jump", "crowd", "wander"}
        Small steps, a uniformly random place each time, or small steps with nine of ten objects in a hundredth of the
        plane, which may go around the globe in ten minutes.
    wire : bool
        CSV lines through the gateway's TCP listener instead of blocks into the ingest log.
    """

    name: str
    rate: int
    queries: int = 100
    objects: int = 100_000
    motion: str = "walk"
    wire: bool = False

    @property
    def stack(self) -> tuple:
        """What identifies the stack of a scenario: scenarios with equal values share a stack."""
        return self.wire, self.queries, max(self.objects, 1_000_000), self.motion if self.motion in CROWDED else ""


def _grid():
    """Yield rates with numbers of queries and objects, and jumps at full speed."""
    sizes = {100_000: "100k", 1_000_000: "1M"}
    rates = {20_000: "20k", 100_000: "100k", FULL_SPEED: "max"}
    for queries in (100, 10_000):
        for objects, size in sizes.items():
            for rate, speed in rates.items():
                if queries == 10_000 and objects > 100_000 and rate == 20_000:
                    continue
                yield Scenario(f"{speed}-{queries}q-{size}", rate, queries, objects)
        yield Scenario(f"max-{queries}q-100k-jump", FULL_SPEED, queries, motion="jump")


WIRE = (
    Scenario("gateway-1k-100q-100k", 1_000, wire=True),
    Scenario("gateway-20k-100q-100k", 20_000, wire=True),
)
CROWDS = (
    Scenario("100k-100q-100k-crowd", 100_000, motion="crowd"),
    Scenario("max-100q-100k-crowd", FULL_SPEED, motion="crowd"),
    Scenario("100k-100q-100k-wander", 100_000, motion="wander"),
)
MANY = Scenario("20k-100q-10M", 20_000, objects=10_000_000)
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (*WIRE, *_grid(), *CROWDS, MANY)}


@dataclass(frozen=True)
class Case:
    """A scenario whose figures are its own.

    Parameters
    ----------
    name : str
    what : {"written", "panning", "registering", "crowd"}
        The module that measures it.
    rate, queries, objects : int
        As in `Scenario`.
    each : int
        How many queries each user has.
    clients : int
        Websocket connections.
    rows : int
        Elements that are written at once; 0 for as many as the gateway would write.
    """

    name: str
    what: str
    rate: int
    queries: int = 100
    objects: int = 100_000
    each: int = QUERIES_EACH
    clients: int = 1
    rows: int = 0

    @property
    def stack(self) -> tuple:
        """What identifies the stack of a case: cases with equal values share a stack."""
        return self.queries, self.each, max(self.objects, 1_000_000)


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("written-1M", "written", 16_000, objects=1_000_000, rows=4_000),
        Case("panning-100", "panning", 20_000, 10_000, clients=100),
        Case("one-more-10k", "registering", 1_000, 10_000),
        Case("one-more-100k", "registering", 1_000, 100_000),
        Case("clients-1000-100/s", "crowd", 100, 10_000, each=100, clients=1_000),
        Case("clients-1000-1k/s", "crowd", 1_000, 10_000, each=100, clients=1_000),
        Case("clients-1000-4k/s", "crowd", 4_000, 10_000, each=100, clients=1_000),
    )
}
# Queries of each kind under the workload of PLACE*: 1/30 and 1/10 of the paper's 9,000.
PLACE = {"place-1/30": 300, "place-1/10": 900}
TILE38 = "tile38"
S = TypeVar("S", "Scenario", "Case")


def scaled(scenario: S, scale: float) -> S:
    """Return a scenario with a part of its objects, queries and clients, to try it out.

    Examples
    --------
    >>> scaled(CASES["panning-100"], 0.1).clients, scaled(MANY, 0.01).objects, scaled(MANY, 1.0) == MANY
    (10, 100000, True)
    """
    names = ("objects", "queries", "clients") if isinstance(scenario, Case) else ("objects", "queries")
    return replace(scenario, **{name: max(1, round(getattr(scenario, name) * scale)) for name in names})


# The area of the features of joins, and of what moves among them: ``[lon_lo, lat_lo, lon_hi, lat_hi]``. The regions
# share it, so both cores have work.
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
OTHERS = ("baselines", *FRAMES, "demo", *JOINS, *CASES, *PLACE, TILE38)
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
