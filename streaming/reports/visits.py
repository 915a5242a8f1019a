"""Visits of objects to an area, and the legs between their fixes there."""

import numpy as np
import polars as pl

from streaming.operators.geodesics import geodesic_m
from streaming.reports.areas import Area
from streaming.reports.fixes import columns_of

BEGINNINGS = ("entry", "first", "gap")
ENDS = ("exit", "last", "gap")
ENTERED, FIRST, GAP = range(3)


def track(fixes: pl.DataFrame, area: Area | None, gap_us: int) -> pl.DataFrame:
    """Tell of each fix how it continues the one before, and to which visit it belongs.

    Parameters
    ----------
    fixes : polars.DataFrame
        See `fixes.Fixes.frame`.
    area : Area, optional
        By default, every place lies in the area.
    gap_us : int
        The longest time between two fixes of an object without a gap, in microseconds.

    Returns
    -------
    polars.DataFrame
        The columns of `fixes`, and
        begins : bool, the fix is the first one of its object;
        linked : bool, the object has an earlier fix, and no gap lies between the two;
        inside : bool, the place lies in the area;
        visit : int64, the number of the visit; -1 outside.
    """
    code, time, lon, lat = columns_of(fixes)
    begins = np.diff(code, prepend=-1) != 0
    linked = ~begins & (np.diff(time, prepend=0) <= gap_us)
    inside = np.ones(len(code), dtype=bool) if area is None else area.contains(lon, lat)
    starts = inside & ~(linked & _before(inside))
    visit = np.where(inside, np.cumsum(starts) - 1, -1)
    return fixes.with_columns(begins=begins, linked=linked, inside=inside, visit=visit)


def visits(tracks: pl.DataFrame, area: Area | None) -> pl.DataFrame:
    """Return the visits of objects to an area.

    Parameters
    ----------
    tracks : polars.DataFrame
        As `track` returns it for the same area.
    area : Area or None

    Returns
    -------
    polars.DataFrame
        A row for each visit, in the order of their numbers:
        key; begin, end : int64, microseconds since 1970 UTC, interpolated at an entry and an exit;
        began : one of `BEGINNINGS`; ended : one of `ENDS`;
        fixes : int64, the number of fixes in the area.
    """
    _, time, _, _ = columns_of(tracks)
    first, last = _ends_of_visits(tracks)
    begins, linked = (tracks[name].to_numpy() for name in ("begins", "linked"))
    began = np.where(linked[first], ENTERED, np.where(begins[first], FIRST, GAP))
    linked_after, begins_after = _after(linked)[last], _after(begins, True)[last]
    ended = np.where(linked_after, ENTERED, np.where(begins_after, FIRST, GAP))
    begin, end = time[first].copy(), time[last].copy()
    entered, left = np.flatnonzero(began == ENTERED), np.flatnonzero(ended == ENTERED)
    begin[entered] = _crossing_us(tracks, area, first[entered] - 1, first[entered])
    end[left] = _crossing_us(tracks, area, last[left] + 1, last[left])
    return pl.DataFrame(
        {
            "key": tracks["key"].gather(first),
            "begin": begin,
            "end": end,
            "began": np.array(BEGINNINGS)[began],
            "ended": np.array(ENDS)[ended],
            "fixes": last - first + 1,
        }
    )


def legs(tracks: pl.DataFrame, visited: pl.DataFrame, fastest_mps: float) -> pl.DataFrame:
    """Return the parts of the ways between consecutive fixes that lie in visits.

    Parameters
    ----------
    tracks : polars.DataFrame
        As `track` returns it.
    visited : polars.DataFrame
        As `visits` returns it.
    fastest_mps : float
        A faster leg is a jump: its length is not counted.

    Returns
    -------
    polars.DataFrame
        A row for each leg with a part in a visit, in the order of the fixes at which they end:
        key; visit : int64; begin, end : int64, of the part in the visit, in microseconds since 1970 UTC;
        metres : float64, of this part along the geodesic, in proportion to time; 0 for a jump;
        jump : bool.
    """
    _, time, lon, lat = columns_of(tracks)
    linked, visit = (tracks[name].to_numpy() for name in ("linked", "visit"))
    to = np.flatnonzero(linked & ((visit >= 0) | (_before(visit, -1) >= 0)))
    start, stop = visit[to - 1], visit[to]
    of = np.maximum(start, stop)
    begin = np.where(start >= 0, time[to - 1], visited["begin"].to_numpy()[of])
    end = np.where(stop >= 0, time[to], visited["end"].to_numpy()[of])
    whole_us = time[to] - time[to - 1]
    length = geodesic_m(lon[to - 1], lat[to - 1], lon[to], lat[to])
    jump = length > fastest_mps * whole_us / 1e6
    metres = np.where(jump, 0.0, length * ((end - begin) / whole_us))
    columns = {"visit": of, "begin": begin, "end": end, "metres": metres, "jump": jump}
    return pl.DataFrame({"key": tracks["key"].gather(to)} | columns)


def _ends_of_visits(tracks: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the first and the last fix of each visit."""
    visit = tracks["visit"].to_numpy()
    inside = visit >= 0
    first = np.flatnonzero(inside & (visit != _before(visit, -1)))
    last = np.flatnonzero(inside & (visit != _after(visit, -1)))
    return first, last


def _crossing_us(tracks: pl.DataFrame, area: Area | None, outside: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return when objects crossed the border between fixes, given the rows of those outside and those inside."""
    _, time, lon, lat = columns_of(tracks)
    if not len(outside):
        return np.empty(0, dtype=np.int64)
    assert area is not None  # without an area, no fix is outside
    share = area.crossed_at(lon[outside], lat[outside], lon[inside], lat[inside])
    return time[outside] + np.rint(share * (time[inside] - time[outside])).astype(np.int64)


def _before(values: np.ndarray, first: int = False) -> np.ndarray:
    """Return the value of each row's predecessor."""
    return np.concatenate([[first], values[:-1]]) if len(values) else values


def _after(values: np.ndarray, last: int = False) -> np.ndarray:
    """Return the value of each row's successor."""
    return np.concatenate([values[1:], [last]]) if len(values) else values
