"""Where two objects are closest to each other, if both keep their course and speed.

Each object goes along the geodesic that begins at the middle of its box in the direction of its course. Both are first
moved to the time of the later report. There each is given a straight line in space, and the time at which these are
closest has a closed form. The two are moved along their geodesics by this time, and the same is done again from there,
so that the curvature of the earth does not count. The distance is that of the two places then.

References
----------
IMO resolution A.823(19), 1995: distance at the closest point of approach (CPA), and time to it (TCPA).
C. F. F. Karney, "Algorithms for geodesics", Journal of Geodesy 87, 2013.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyproj

from streaming.kinds.approach.plan import FASTEST_MPS
from streaming.kinds.base import Prediction
from streaming.kinds.closest_approach.plan import SLOWEST_MPS
from streaming.operators.approaches import COURSE, SPEED
from streaming.operators.elements import Elements
from streaming.operators.geodesics import EARTH_RADIUS_M, WGS84_AXIS_M, WGS84_FLATTENING, margins_deg, rectangular
from streaming.operators.metres import FULL_TURN_DEG, points_apart_m

MICROSECONDS = 1_000_000
# That a pair is closest elsewhere is told when the distance is in another step of these, or the time is.
STEP_M, STEP_US = 10.0, 10.0 * MICROSECONDS
# After so many rounds, the time is exact to a microsecond on ways of a thousand kilometres.
ROUNDS = 3
# Longer ways, and those near a pole, are in the box about all places within their length.
LONG_M, NEAR_POLE_DEG = 200_000.0, 80.0
_GEOD = pyproj.Geod(a=WGS84_AXIS_M, f=WGS84_FLATTENING)


@dataclass(frozen=True)
class Motions:
    """How objects move.

    Parameters
    ----------
    lon, lat : ndarray of float64, shape (N,)
        Degrees: the middle of the box of the newest report.
    course_deg, speed_mps : ndarray of float64, shape (N,)
        The speed is 0, and the course any, where one of the two is not known or the speed is not above 0. It is NaN
        where an object says that it is faster than `FASTEST_MPS`: such an object is not predicted.
    """

    lon: np.ndarray
    lat: np.ndarray
    course_deg: np.ndarray
    speed_mps: np.ndarray

    @classmethod
    def of(cls, elements: Elements, rows: np.ndarray) -> "Motions":
        """Return how the elements at rows (N,) move."""
        return cls.told(elements.bounds[rows], *elements.numbers(rows, [COURSE, SPEED]))

    @classmethod
    def told(cls, bounds: np.ndarray, course_deg: np.ndarray, speed_mps: np.ndarray) -> "Motions":
        """Return how objects move, given their boxes, float64 of shape (N, 2n), and what they tell."""
        n = bounds.shape[1] // 2
        lon, lat = ((bounds[:, axis] + bounds[:, n + axis]) / 2 for axis in (0, 1))
        moves = np.isfinite(course_deg) & (speed_mps > 0)
        speed_mps = np.where(moves, np.where(speed_mps <= FASTEST_MPS, speed_mps, np.nan), 0.0)
        # Boxes that are unbounded in the plane have no middle.
        speed_mps[~np.isfinite(lon) | ~np.isfinite(lat)] = np.nan
        return cls(lon, lat, np.where(moves, course_deg, 0.0), speed_mps)

    @property
    def predicted(self) -> np.ndarray:
        """Which of the objects are predicted, bool of shape (N,)."""
        return ~np.isnan(self.speed_mps)

    def take(self, rows: np.ndarray) -> "Motions":
        """Return those at rows, positions or a mask."""
        return Motions(*(getattr(self, field.name)[rows] for field in fields(self)))

    def after(self, seconds: np.ndarray) -> "Motions":
        """Return the objects so many seconds later, float64 of shape (N,), on the same geodesics."""
        lon, lat, course_deg = self.lon.copy(), self.lat.copy(), self.course_deg.copy()
        rows = np.flatnonzero(np.abs(self.speed_mps * seconds) > 0)  # of NaN, none
        there = _GEOD.fwd(lon[rows], lat[rows], course_deg[rows], (self.speed_mps * seconds)[rows])
        lon[rows], lat[rows], back_deg = map(np.asarray, there)
        course_deg[rows] = back_deg + FULL_TURN_DEG / 2
        return Motions(lon, lat, course_deg, self.speed_mps)

    @property
    def velocity(self) -> np.ndarray:
        """The velocities in space, in metres a second, float64 of shape (3, N)."""
        longitude, latitude, course = np.radians(self.lon), np.radians(self.lat), np.radians(self.course_deg)
        east, north = self.speed_mps * np.sin(course), self.speed_mps * np.cos(course)
        x, y = np.cos(longitude), np.sin(longitude)
        up = -np.sin(latitude) * north
        return np.stack([-y * east + x * up, x * east + y * up, np.cos(latitude) * north])

    def ways(self, ahead_s: float | np.ndarray, n: int) -> np.ndarray:
        """Return boxes (N, 2n) that contain the ways of the objects from their reports on.

        Parameters
        ----------
        ahead_s : float or ndarray of float64, shape (N,)
            For so many seconds.
        n : int
            The number of dimensions; only longitude and latitude are bounded. A box may reach beyond 180 degrees.
        """
        length_m = np.nan_to_num(self.speed_mps) * ahead_s
        end = replace(self, speed_mps=np.nan_to_num(self.speed_mps)).after(np.broadcast_to(ahead_s, len(self.lon)))
        to_lon = self.lon + (end.lon - self.lon + FULL_TURN_DEG / 2) % FULL_TURN_DEG - FULL_TURN_DEG / 2
        low = np.stack([np.minimum(self.lon, to_lon), np.minimum(self.lat, end.lat)])
        high = np.stack([np.maximum(self.lon, to_lon), np.maximum(self.lat, end.lat)])
        highest = np.maximum(np.abs(low[1]), np.abs(high[1]))
        round_ = (length_m > LONG_M) | (highest > NEAR_POLE_DEG)
        low[:, round_], high[:, round_] = ([self.lon[round_], self.lat[round_]] for _ in range(2))
        # A geodesic is beside the straight line in degrees by half of this at most.
        beside_m = length_m**2 * np.tan(np.radians(np.minimum(highest, NEAR_POLE_DEG))) / (4 * EARTH_RADIUS_M) + 1.0
        margins = np.stack(
            margins_deg(np.where(round_, np.abs(self.lat), highest), np.where(round_, length_m, beside_m))
        )
        low, high = low - margins, high + margins
        around = high[0] - low[0] >= FULL_TURN_DEG
        low[0, around], high[0, around] = -np.inf, np.inf
        boxes = np.tile(np.repeat([-np.inf, np.inf], n), (len(self.lon), 1))
        boxes[:, :2], boxes[:, n : n + 2] = low.T, high.T
        return boxes


def ways_of(elements: Elements, rows: np.ndarray, ahead_s: float) -> np.ndarray:
    """Return boxes (K, 2n) that contain the ways of the elements at rows (K,); NaN for those that are not predicted."""
    if elements.known_ways is not None:
        return elements.known_ways(rows, ahead_s)
    motions = Motions.of(elements, rows)
    ways = motions.ways(ahead_s, elements.bounds.shape[1] // 2)
    ways[~motions.predicted] = np.nan
    return ways


@dataclass(frozen=True)
class Closest:
    """Where and when pairs of objects are closest to each other.

    Parameters
    ----------
    after_s : ndarray of float64, shape (P,)
        Seconds after the later of the two reports. NaN if the two keep their distance, or one is not predicted.
    time_us : ndarray of float64, shape (P,)
        The same as a time, in microseconds since 1970 UTC.
    distance_m : ndarray of float64, shape (P,)
    places : ndarray of float64, shape (P, 4)
        Longitude and latitude of the one object then, and of the other.
    """

    after_s: np.ndarray
    time_us: np.ndarray
    distance_m: np.ndarray
    places: np.ndarray

    def take(self, rows: np.ndarray) -> "Closest":
        """Return those at rows, positions or a mask."""
        return Closest(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def shown(self) -> np.ndarray:
        """What a change is told of: the steps of the distance and of the time, float64 of shape (2, P)."""
        return np.stack([self.distance_m // STEP_M, self.time_us // STEP_US])

    @classmethod
    def of(cls, elements: Elements, row: np.ndarray, partner: np.ndarray) -> "Closest":
        """Return it for pairs of rows of elements, int64 of shape (P,) each. The sides can be exchanged."""
        times_us, both = _times(elements, row, partner), [Motions.of(elements, side) for side in (row, partner)]
        latest_us = times_us.max(0)
        one, other = (side.after((latest_us - told) / MICROSECONDS) for side, told in zip(both, times_us, strict=True))
        after_s = np.zeros(len(row))
        for _ in range(ROUNDS):
            step_s = _linear(one.after(after_s), other.after(after_s))[0]
            after_s = np.where(np.isnan(after_s), np.nan, after_s) + step_s
        known = np.isfinite(after_s)
        after_s = np.where(known, after_s, np.nan)
        moved_s = np.where(known, after_s, 0.0)
        one, other = one.after(moved_s), other.after(moved_s)
        places = np.stack([one.lon, one.lat, other.lon, other.lat], axis=1)
        distance_m = np.full(len(row), np.nan)
        distance_m[known] = points_apart_m(places[known, :2], places[known, 2:])
        return cls(after_s, latest_us + np.round(after_s * MICROSECONDS), distance_m, places)


def may_come_close(elements: Elements, row: np.ndarray, partner: np.ndarray, asked: Prediction) -> np.ndarray:
    """Tell which pairs may satisfy a prediction, bool of shape (P,): by straight lines in space, with their error."""
    times_us = _times(elements, row, partner)
    near = not_too_old(elements, row, partner, asked.gap_s)
    mine = np.flatnonzero(near)
    one, other = (Motions.of(elements, side[mine]) for side in (row, partner))
    latest_us = times_us[:, mine].max(0)
    ages_s = [(latest_us - told) / MICROSECONDS for told in times_us[:, mine]]
    step_s, distance_m, apart_m, faster_mps = _linear(one, other, ages_s)
    ways_m = (one.speed_mps + other.speed_mps) * asked.ahead_s + apart_m
    error_m = 10.0 + ways_m**2 / EARTH_RADIUS_M
    error_s = 1.0 + error_m / faster_mps
    near[mine] = (distance_m <= asked.within_m + error_m) & (step_s >= -error_s) & (step_s <= asked.within_s + error_s)
    return near


def not_too_old(elements: Elements, row: np.ndarray, partner: np.ndarray, gap_s: float | np.ndarray) -> np.ndarray:
    """Tell of which pairs the two reports are not more than so many seconds apart, bool of shape (P,)."""
    one_us, other_us = _times(elements, row, partner)
    return np.abs(one_us - other_us) <= gap_s * MICROSECONDS


def satisfying(found: Closest, within_m: float | np.ndarray, within_s: float | np.ndarray) -> np.ndarray:
    """Tell which pairs come as close as predictions ask for, and in time, bool of shape (P,)."""
    return (found.distance_m <= within_m) & (found.after_s >= 0) & (found.after_s <= within_s)


def due_us(found: Closest, elements: Elements, row: np.ndarray, partner: np.ndarray) -> np.ndarray:
    """Return when pairs are past their closest point by the engine's clock, in microseconds, float64 of shape (P,).

    The time to it counts from when the later of the two was heard. So what was recorded long ago is not past at once.
    """
    assert elements.heard_us is not None
    heard_us = np.maximum(elements.heard_us[row], elements.heard_us[partner])
    return heard_us + found.after_s * MICROSECONDS


def _times(elements: Elements, row: np.ndarray, partner: np.ndarray) -> np.ndarray:
    assert elements.time_us is not None, "predictions need the times of elements"
    return np.stack([elements.time_us[row], elements.time_us[partner]])


def _linear(
    one: Motions, other: Motions, ages_s: Sequence[float | np.ndarray] = (0.0, 0.0)
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return when straight lines in space are closest, how far they are then and now, and the relative speed.

    `ages_s` tells for how long each of the two has been going already. The time and the distance then are NaN if the
    two are slower than `SLOWEST_MPS` relative to each other.
    """
    velocities = one.velocity, other.velocity
    (start, to) = (
        rectangular(side.lon, side.lat) + velocity * age_s
        for side, velocity, age_s in zip((one, other), velocities, ages_s, strict=True)
    )
    apart, relative = to - start, velocities[1] - velocities[0]
    square = (relative * relative).sum(0)
    square[~(square >= SLOWEST_MPS**2)] = np.nan
    after_s = -(apart * relative).sum(0) / square
    then = apart + relative * after_s
    return after_s, np.sqrt((then * then).sum(0)), np.sqrt((apart * apart).sum(0)), np.sqrt(square)
