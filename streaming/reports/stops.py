"""Stops: where objects stayed within some metres for some time."""

import numpy as np
import polars as pl

from streaming.operators.geodesics import arc_of_chord, error_m, rectangular, within_m
from streaming.reports.areas import short_turn
from streaming.reports.fixes import columns_of

MOST_STOP_US = 86_400_000_000


def stops(tracks: pl.DataFrame, radius_m: float, least_us: int) -> pl.DataFrame:
    """Return the stops of objects during their visits.

    An object stays at a fix if it has a fix of the same visit at least `least_us` later, and all fixes from this one up
    to the first such one lie within `radius_m` of it. A stop lasts over all fixes of such stays that share fixes.

    Parameters
    ----------
    tracks : polars.DataFrame
        As `visits.track` returns it.
    radius_m : float
        Metres.
    least_us : int
        The shortest stop in microseconds, at least 1 and at most `MOST_STOP_US`.

    Returns
    -------
    polars.DataFrame
        A row for each stop, in the order of `tracks`:
        key; visit : int64; begin, end : int64, the times of its first and last fix, in microseconds since 1970 UTC;
        lon, lat : float64, the mean of its fixes, in degrees; fixes : int64.
    """
    inside = tracks.filter(pl.col("visit") >= 0)
    _, time, lon, lat = columns_of(inside)
    visit = inside["visit"].to_numpy()
    until = _first_after(time, visit, least_us)
    stays = _stays(lon, lat, until, radius_m)
    first, last = _together(np.flatnonzero(stays), until[stays])
    east, north = _means(lon, lat, first, last)
    columns = {"visit": visit[first], "begin": time[first], "end": time[last]}
    columns |= {"lon": east, "lat": north, "fixes": last - first + 1}
    return pl.DataFrame({"key": inside["key"].gather(first)} | columns)


def _first_after(time: np.ndarray, visit: np.ndarray, least_us: int) -> np.ndarray:
    """Return the row of the first fix of the same visit that is at least `least_us` after each fix; -1 if none is."""
    if not len(time):
        return np.empty(0, dtype=np.int64)
    # A clock that goes on from visit to visit. No step on it needs to be longer than `least_us`.
    step_us = np.where(np.diff(visit, prepend=-1) != 0, least_us, np.minimum(np.diff(time, prepend=0), least_us))
    clock = np.cumsum(step_us)
    found = np.minimum(np.searchsorted(clock, clock + least_us), len(time) - 1)
    timely = (visit[found] == visit) & (clock[found] - clock >= least_us)
    return np.where(timely, found, -1)


def _stays(lon: np.ndarray, lat: np.ndarray, until: np.ndarray, radius_m: float) -> np.ndarray:
    """Tell of which fixes all up to the row `until` lie within the radius: bool of shape (N,)."""
    near = _Near(lon, lat, radius_m)
    stays = np.zeros(len(until), dtype=bool)
    at = np.flatnonzero(until >= 0)
    at = at[near(at, until[at])]
    step = 1
    while len(at):
        ended = at + step >= until[at]
        stays[at[ended]] = True
        at = at[~ended]
        at = at[near(at, at + step)]
        step += 1
    return stays


class _Near:
    """Tells which pairs of fixes lie within a radius, as `geodesics.within_m` does, but takes sines only once a fix."""

    def __init__(self, lon: np.ndarray, lat: np.ndarray, radius_m: float) -> None:
        self._lon, self._lat, self._radius_m = lon, lat, radius_m
        self._place = rectangular(lon, lat)

    def __call__(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        chord = self._place[:, one] - self._place[:, other]
        arc = arc_of_chord(np.sqrt((chord * chord).sum(axis=0)))
        near = arc <= self._radius_m
        unsure = np.flatnonzero(np.abs(arc - self._radius_m) <= error_m(arc))
        ends = (degrees[rows[unsure]] for rows in (one, other) for degrees in (self._lon, self._lat))
        near[unsure] = within_m(*ends, limit_m=self._radius_m)
        return near


def _together(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last rows of the spans that overlapping spans make together; both ascend."""
    if not len(first):
        return first, last
    begins = np.concatenate([[True], first[1:] > last[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return first[begins], last[ends]


def _means(lon: np.ndarray, lat: np.ndarray, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean longitude and latitude of spans of rows."""
    if not len(first):
        return np.empty(0), np.empty(0)
    sizes = last - first + 1
    of = np.repeat(np.arange(len(first)), sizes)
    rows = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[of]
    turned = np.bincount(of, short_turn(lon[rows] - lon[first][of])) / sizes
    return short_turn(lon[first] + turned), np.bincount(of, lat[rows]) / sizes
