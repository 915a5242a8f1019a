"""Objects that follow timetables, so that their positions depend on the time alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streaming.simulator.sphere import course_deg, distance_m


@dataclass(frozen=True)
class Timetable:
    """A round trip that an object repeats for ever.

    Parameters
    ----------
    lon_deg, lat_deg : ndarray of float64, shape (K,)
        The places in order; the last is the same as the first. Longitudes continue beyond 180 across the antimeridian.
    at_s : ndarray of float64, shape (K,)
        The time at which the object reaches each place, from 0 to the duration of the round trip, not decreasing. Two
        entries for one place are a stay.
    destination : sequence of str, length K - 1
        The destination of the object on each leg.
    """

    lon_deg: np.ndarray
    lat_deg: np.ndarray
    at_s: np.ndarray
    destination: Sequence[str]


@dataclass(frozen=True)
class Positions:
    """The positions, speeds, courses and destinations of a fleet's objects; every array is float64 of shape (N,)."""

    lon_deg: np.ndarray
    lat_deg: np.ndarray
    speed_mps: np.ndarray
    course_deg: np.ndarray
    destination: list[str]


@dataclass(frozen=True)
class Fleet:
    """Objects, each with its timetable.

    Parameters
    ----------
    ids : tuple of str, length N
    properties : tuple of dict, length N
        The properties that never change.
    timetables : tuple of Timetable, length N
    phase_s : ndarray of float64, shape (N,)
        How far into its round trip each object is at time 0, in seconds.
    """

    ids: tuple[str, ...]
    properties: tuple[dict, ...]
    timetables: tuple[Timetable, ...]
    phase_s: np.ndarray

    def step(self, time_s: float) -> Positions:
        """Return the positions of the fleet at a time.

        Parameters
        ----------
        time_s : float
            Seconds since 1970 UTC.

        Returns
        -------
        Positions
            Longitudes lie in [-180, 180).
        """
        lon, lat, at_s = self._padded
        rows = np.arange(len(self.ids))
        in_trip_s = np.mod(self.phase_s + time_s, self._period_s)
        leg = np.minimum((at_s <= in_trip_s[:, None]).sum(axis=1), self._lengths - 1) - 1
        since_s = in_trip_s - at_s[rows, leg]
        part = np.divide(since_s, self._leg_s[rows, leg], out=np.zeros(len(rows)), where=self._leg_s[rows, leg] > 0)
        lon_deg = lon[rows, leg] + part * (lon[rows, leg + 1] - lon[rows, leg])
        return Positions(
            (lon_deg + 180.0) % 360.0 - 180.0,
            lat[rows, leg] + part * (lat[rows, leg + 1] - lat[rows, leg]),
            self._speed_mps[rows, leg],
            self._course_deg[rows, leg],
            [timetable.destination[at] for timetable, at in zip(self.timetables, leg.tolist(), strict=True)],
        )

    @cached_property
    def _lengths(self) -> np.ndarray:
        return np.array([len(timetable.at_s) for timetable in self.timetables])

    @cached_property
    def _period_s(self) -> np.ndarray:
        return np.array([timetable.at_s[-1] for timetable in self.timetables])

    @cached_property
    def _padded(self) -> list[np.ndarray]:
        """Longitude, latitude and time of every place, each of shape (N, K), padded with the last place and inf."""
        width = int(self._lengths.max())
        columns = [
            np.stack([_filled(getattr(timetable, name), width) for timetable in self.timetables])
            for name in ("lon_deg", "lat_deg", "at_s")
        ]
        columns[2][np.arange(width) >= self._lengths[:, None]] = np.inf
        return columns

    @cached_property
    def _leg_s(self) -> np.ndarray:
        at_s = self._padded[2]
        ends = np.isfinite(at_s[:, 1:])
        return np.where(ends, np.subtract(at_s[:, 1:], at_s[:, :-1], out=np.zeros(ends.shape), where=ends), 0.0)

    @cached_property
    def _speed_mps(self) -> np.ndarray:
        lon, lat, _ = self._padded
        length_m = distance_m(lon[:, :-1], lat[:, :-1], lon[:, 1:], lat[:, 1:])
        return np.divide(length_m, self._leg_s, out=np.zeros(length_m.shape), where=self._leg_s > 0)

    @cached_property
    def _course_deg(self) -> np.ndarray:
        """Course of every leg, in degrees; a stay has the course of the leg before it."""
        lon, lat, _ = self._padded
        course = course_deg(lon[:, :-1], lat[:, :-1], lon[:, 1:], lat[:, 1:])
        moving = self._speed_mps > 0
        newest = np.maximum.accumulate(np.where(moving, np.arange(course.shape[1]), 0), axis=1)
        return np.take_along_axis(course, newest, axis=1)


def _filled(column: np.ndarray, width: int) -> np.ndarray:
    return np.pad(column, (0, width - len(column)), "edge")
