"""Ships that sail between ports along the sea lanes."""

import heapq
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from streaming.simulator.fleet import Fleet, Timetable
from streaming.simulator.lanes import BALTIC_PORTS, EUROPEAN_PORTS, LANES, PORTS, WAYPOINTS
from streaming.simulator.sphere import course_deg, distance_m

# For each trade: its ports, its share of all ships, and its types of ships with their shares.
_TRADES = (
    (BALTIC_PORTS, 0.45, {"cargo": 0.4, "tanker": 0.2, "passenger": 0.25, "fishing": 0.1, "tug": 0.05}),
    (EUROPEAN_PORTS, 0.25, {"cargo": 0.5, "tanker": 0.3, "passenger": 0.1, "fishing": 0.1}),
    (tuple(PORTS), 0.3, {"cargo": 0.65, "tanker": 0.35}),
)
_SPEED_MPS = {"cargo": (6, 9), "tanker": (5.5, 7.5), "passenger": (8.5, 11.5), "fishing": (3, 5.5), "tug": (3.5, 6)}
# Shortest and longest length, and how many times the width the length is.
_LENGTHS_M = {
    "cargo": (80, 300, 6.5),
    "tanker": (110, 330, 6.0),
    "passenger": (60, 220, 6.8),
    "fishing": (12, 40, 3.6),
    "tug": (20, 36, 3.0),
}
_STAY_S = (1_800.0, 10_800.0)
_LANE_PARTS = (0.1, 1.0)
_M_PER_DEG = 111_195.0
_FIRST_NAMES = ("Aurora", "Baltic", "Nordic", "Star", "Ocean", "Polar", "Silver", "Golden", "Northern", "Royal", "Blue")
_LAST_NAMES = ("Breeze", "Carrier", "Dawn", "Express", "Horizon", "Pearl", "Pioneer", "Spirit", "Trader", "Wave")


def ship_fleet(count: int, seed: int) -> Fleet:
    """Return a fleet of `count` ships; the same seed gives the same fleet."""
    random = np.random.default_rng(seed)
    ships = [_ship(number, random) for number in range(count)]
    timetables = tuple(timetable for _, timetable in ships)
    phase_s = random.uniform(0, 1, count) * [timetable.at_s[-1] for timetable in timetables]
    names = tuple(f"ship-{number:05d}" for number in range(count))
    return Fleet(names, tuple(properties for properties, _ in ships), timetables, phase_s)


def _ship(number: int, random: np.random.Generator) -> tuple[dict[str, Any], Timetable]:
    ports, _, types = _TRADES[random.choice(len(_TRADES), p=[share for _, share, _ in _TRADES])]
    ship_type = str(random.choice(list(types), p=list(types.values())))
    begin, end = (str(port) for port in random.choice(ports, 2, replace=False))
    first, last = random.choice(_FIRST_NAMES), random.choice(_LAST_NAMES)
    name = f"{first} {last} {number + 1}"
    speed_mps, part = random.uniform(*_SPEED_MPS[ship_type]), random.uniform(*_LANE_PARTS)
    stays_s = random.uniform(*_STAY_S, 2)
    return {"name": name, "ship_type": ship_type} | _size(ship_type, number), _voyage(
        begin, end, speed_mps, part, stays_s
    )


def _size(ship_type: str, number: int) -> dict[str, float]:
    """Return the length and the width of a ship; its number decides between the bounds of its type."""
    shortest, longest, slenderness = _LENGTHS_M[ship_type]
    length_m = shortest + number * 37 % (longest - shortest)
    return {"length_m": length_m, "width_m": round(length_m / slenderness, 1)}


def _voyage(begin: str, end: str, speed_mps: float, part: float, stays_s: np.ndarray) -> Timetable:
    """Return the round trip between two ports, on the right side of the lane by a part of the lane's width."""
    out = _starboard(shortest_path(begin, end), part)
    back = _starboard(shortest_path(begin, end)[::-1], part)
    places = np.vstack([out, out[-1:], back, out[:1]])
    lon, lat = places.T
    lon = np.degrees(np.unwrap(np.radians(lon)))
    sail_s = distance_m(lon[:-1], lat[:-1], lon[1:], lat[1:]) / speed_mps
    sail_s[len(out) - 1] = stays_s[0]
    sail_s[-1] += stays_s[1]
    destinations = [PORTS[end]] * (len(out) - 1) + [PORTS[begin]] * (len(back) + 2)
    return Timetable(lon, lat, np.r_[0.0, np.cumsum(sail_s)], destinations)


def _starboard(path: Sequence[str], part: float) -> np.ndarray:
    """Return the places of a path, shape (K, 2), moved to the right of the course by a part of the lane's width."""
    lon, lat, width_km = np.array([WAYPOINTS[name] for name in path]).T
    lon = np.degrees(np.unwrap(np.radians(lon)))
    course = np.radians(course_deg(lon[:-1], lat[:-1], lon[1:], lat[1:]))
    east, north = np.sin(course), np.cos(course)
    # At a waypoint, the course is the middle between the courses of the two legs.
    along = np.array(
        [np.r_[east[:1], east] + np.r_[east, east[-1:]], np.r_[north[:1], north] + np.r_[north, north[-1:]]]
    )
    along /= np.maximum(np.hypot(*along), 1e-9)
    aside_deg = part * width_km * 1_000 / _M_PER_DEG
    return np.column_stack([lon + aside_deg * along[1] / np.cos(np.radians(lat)), lat - aside_deg * along[0]])


@cache
def shortest_path(begin: str, end: str) -> tuple[str, ...]:
    """Return the waypoints on the shortest path between two waypoints, both included.

    Raises
    ------
    LookupError
        When no lane connects them.

    References
    ----------
    E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1, 1959.

    Examples
    --------
    >>> shortest_path("helsinki", "tallinn")[1:3]
    ('harmaja', 'gulf_helsinki')
    """
    open_ways: list[tuple[float, tuple[str, ...]]] = [(0.0, (begin,))]
    seen = set()
    while open_ways:
        length_m, way = heapq.heappop(open_ways)
        if way[-1] == end:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            for neighbour, leg_m in lane_graph()[way[-1]].items():
                heapq.heappush(open_ways, (length_m + leg_m, (*way, neighbour)))
    raise LookupError(f"no lane leads from {begin} to {end}")


@cache
def lane_graph() -> dict[str, dict[str, float]]:
    """Return the neighbours of every waypoint, with their distances in metres."""
    graph: dict[str, dict[str, float]] = {name: {} for name in WAYPOINTS}
    for lane in LANES:
        names = lane.split()
        for near, far in pairwise(names):
            graph[near][far] = graph[far][near] = float(distance_m(*WAYPOINTS[near][:2], *WAYPOINTS[far][:2]))
    return graph
