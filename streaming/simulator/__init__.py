"""A seeded simulator of ships on sea lanes and buses on streets, whose positions are pure functions of the time."""

from collections.abc import Callable

from streaming.simulator.buses import bus_fleet
from streaming.simulator.features import feature_lines
from streaming.simulator.fleet import Fleet
from streaming.simulator.ships import ship_fleet

FLEETS: dict[str, Callable[[int, int], Fleet]] = {"ships": ship_fleet, "buses": bus_fleet}


def make_fleet(name: str, count: int, seed: int) -> Fleet:
    """Return a fleet of `FLEETS` with `count` objects; the same seed gives the same fleet."""
    return FLEETS[name](count, seed)


__all__ = ["FLEETS", "Fleet", "feature_lines", "make_fleet"]
