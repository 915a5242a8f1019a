"""Fixes: where an object was at a time. Read from the history, and put in order."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from streaming.history.reader import History, Span, asked, reading
from streaming.language import thousands
from streaming.reports.areas import TURNS_DEG, Area
from streaming.reports.errors import InvalidReport


@dataclass(frozen=True)
class ReportLimits:
    """How much one report may read.

    Parameters
    ----------
    scanned : int
        The most elements in the files that the span touches.
    elements : int
        The most elements of the objects that came near the area; all of them are in memory at the same time.
    """

    scanned: int = 100_000_000
    elements: int = 5_000_000


@dataclass(frozen=True)
class Fixes:
    """The fixes of objects, in order.

    Parameters
    ----------
    frame : polars.DataFrame
        key : string or categorical; time : int64, microseconds since 1970 UTC; lon, lat : float64, degrees. The fixes
        of an object follow each other in the order of time; no two of them have the same time.
    repeated : int
        Elements that were left out because a later one of the same object has the same time.
    unplaced : int
        Elements that were left out because they have no longitude or no latitude.
    """

    frame: pl.DataFrame
    repeated: int = 0
    unplaced: int = 0


def read_fixes(
    history: History,
    stream: str,
    span: Span,
    area: Area | None = None,
    limits: ReportLimits = ReportLimits(),
    key: str | None = None,
) -> Fixes:
    """Return the fixes of a stream's stored elements within a span.

    Parameters
    ----------
    history : History
        Of a geographic space.
    stream : str
    span : (int or None, int or None)
        Microseconds since 1970 UTC, both ends included; None leaves an end open.
    area : Area, optional
        Read only objects that came into the box around the area, but all of their fixes.
    limits : ReportLimits
    key : str, optional
        Read only this object.

    Returns
    -------
    Fixes

    Raises
    ------
    InvalidReport
        When there are more elements than a limit allows.
    """

    def read() -> Fixes:
        with reading():
            return _read(history.scan(stream, span), span, area, limits, key)

    return asked(read)


def _read(elements: pl.LazyFrame, span: Span, area: Area | None, limits: ReportLimits, key: str | None) -> Fixes:
    if (scanned := elements.select(pl.len()).collect().item()) > limits.scanned:
        rule = InvalidReport(
            "a report may read the files of at most %(scanned)s elements: choose fewer days",
            scanned=thousands(limits.scanned),
        )
        raise InvalidReport(
            "%(rule)s; got %(scanned)s in the files of these days", rule=rule, scanned=thousands(scanned)
        )
    elements = _within(elements, span, key)
    if area is not None:
        elements = elements.join(elements.filter(_near(area)).select("key").unique(), on="key", how="semi")
    received = pl.coalesce("late", "heard").alias("heard")
    columns = ("time", received, "lo_0", "hi_0", "lo_1", "hi_1")
    first = elements.select(pl.col("key").cast(pl.Categorical), *columns).head(limits.elements + 1)
    found = first.collect(engine="streaming")
    if found.height > limits.elements:
        rule = InvalidReport(
            "a report may have at most %(elements)s elements: choose a shorter time or a smaller area",
            elements=thousands(limits.elements),
        )
        raise InvalidReport("%(rule)s; got more", rule=rule)
    return in_order(found)


def _within(elements: pl.LazyFrame, span: Span, key: str | None) -> pl.LazyFrame:
    start, stop = (None if end is None else pl.lit(end).cast(pl.Datetime("us", "UTC")) for end in span)
    conditions = [pl.lit(True)]
    conditions += [] if start is None else [pl.col("time") >= start]
    conditions += [] if stop is None else [pl.col("time") <= stop]
    conditions += [] if key is None else [pl.col("key") == key]
    return elements.filter(pl.all_horizontal(conditions))


def _near(area: Area) -> pl.Expr:
    """Return the condition that an element's box meets the box around an area, so that row groups can be skipped."""
    west, south, east, north = area.bounds
    turned = [(pl.col("hi_0") + turn >= west) & (pl.col("lo_0") + turn <= east) for turn in TURNS_DEG]
    return pl.any_horizontal(turned) & (pl.col("hi_1") >= south) & (pl.col("lo_1") <= north)


def in_order(elements: pl.DataFrame) -> Fixes:
    """Return the fixes of elements: the middle of each one's box, by object and time.

    Parameters
    ----------
    elements : polars.DataFrame
        key : string or categorical; time, heard : datetime; lo_0, hi_0, lo_1, hi_1 : float64, degrees; in any order.

    Returns
    -------
    Fixes
        Of several elements of an object with the same time, the one that was received last; if they were received at
        the same moment, the one with the largest longitude, then latitude.
    """
    placed = elements.select(
        "key",
        pl.col("time").dt.epoch("us"),
        "heard",
        ((pl.col("lo_0") + pl.col("hi_0")) / 2).alias("lon"),
        ((pl.col("lo_1") + pl.col("hi_1")) / 2).alias("lat"),
    ).filter(pl.col("lon").is_finite() & pl.col("lat").is_finite())
    code = placed["key"].to_physical() if placed["key"].dtype == pl.Categorical else placed["key"]
    ordered = placed.with_columns(code.alias("code")).sort("code", "time", "heard", "lon", "lat")
    last = (pl.col("code") != pl.col("code").shift(-1)) | (pl.col("time") != pl.col("time").shift(-1))
    fixes = ordered.filter(last.fill_null(True)).select("key", "time", _in_world(pl.col("lon")).alias("lon"), "lat")
    return Fixes(fixes, placed.height - fixes.height, elements.height - placed.height)


def _in_world(lon: pl.Expr) -> pl.Expr:
    """Return longitudes within [-180, 180]; those that are there already stay exactly as they are."""
    return pl.when(lon.abs() <= 180).then(lon).otherwise((lon + 180) % 360 - 180)


def columns_of(fixes: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of each fix's object, its time, longitude and latitude; objects are numbered as they come.

    Returns
    -------
    ndarray of int64, ndarray of int64, ndarray of float64, ndarray of float64, each of shape (N,)
    """
    other = (fixes["key"] != fixes["key"].shift()).fill_null(False).to_numpy()
    time, lon, lat = (fixes[name].to_numpy() for name in ("time", "lon", "lat"))
    return np.cumsum(other), time, lon, lat
