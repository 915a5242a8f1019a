"""Buses that run along their lines and back, with stops."""

import numpy as np

from streaming.simulator.fleet import Fleet, Timetable
from streaming.simulator.sphere import distance_m
from streaming.simulator.streets import BUS_LINES, CORNERS

_STOP_EVERY_M = 350.0
_STOP_S = 14.0
_TURN_S = 150.0
_SPEED_MPS = (7.0, 11.0)


def bus_fleet(count: int, seed: int) -> Fleet:
    """Return a fleet of `count` buses, spread evenly over and along the lines; the same seed gives the same fleet."""
    random = np.random.default_rng(seed)
    routes = list(BUS_LINES)
    timetables = {route: _round_trip(route, random.uniform(*_SPEED_MPS)) for route in routes}
    ids = tuple(f"bus-{number:05d}" for number in range(count))
    of_bus = [routes[number % len(routes)] for number in range(count)]
    on_line = np.arange(count) // len(routes)
    buses_per_line = -(-count // len(routes))
    headway = (on_line + random.uniform(-0.2, 0.2, count)) / buses_per_line
    phase_s = headway * [timetables[route].at_s[-1] for route in of_bus]
    labels = random.permutation(900 * (1 + count // 900))[:count] + 100
    properties = tuple(
        {"name": f"Bus {route}", "label": str(label), "route_id": route}
        for route, label in zip(of_bus, labels.tolist(), strict=True)
    )
    return Fleet(ids, properties, tuple(timetables[route] for route in of_bus), phase_s)


def _round_trip(route: str, speed_mps: float) -> Timetable:
    names = BUS_LINES[route].split(",")
    there = _with_stops(np.array([CORNERS[name] for name in names]))
    places = np.vstack([there, there[-2::-1]])
    lon, lat = np.repeat(places, 2, axis=0).T  # each place twice, for arrival and departure
    drive_s = distance_m(places[:-1, 0], places[:-1, 1], places[1:, 0], places[1:, 1]) / speed_mps
    stop_s = np.full(len(places), _STOP_S)
    stop_s[[len(there) - 1, -1]] = _TURN_S
    steps_s = np.empty(2 * len(places) - 1)
    steps_s[0::2], steps_s[1::2] = stop_s, drive_s
    legs_there = 2 * len(there) - 2
    destinations = [names[-1]] * legs_there + [names[0]] * (len(steps_s) - legs_there)
    return Timetable(lon, lat, np.r_[0.0, np.cumsum(steps_s)], destinations)


def _with_stops(corners: np.ndarray) -> np.ndarray:
    """Return the corners, shape (K, 2), with evenly spaced stops added between them, in order."""
    legs_m = distance_m(corners[:-1, 0], corners[:-1, 1], corners[1:, 0], corners[1:, 1])
    pieces = np.maximum(1, np.round(legs_m / _STOP_EVERY_M).astype(int))
    parts = [
        np.linspace(begin, end, count, endpoint=False)
        for begin, end, count in zip(corners[:-1], corners[1:], pieces, strict=True)
    ]
    return np.vstack([*parts, corners[-1:]])
