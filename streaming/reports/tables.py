"""The tables of reports as they are sent: their columns, and their rows for JSON and CSV."""

from collections.abc import Iterable
from typing import Any

import polars as pl

from streaming.reports.fixes import Fixes
from streaming.reports.report import Report

US = 1_000_000
_SUMS = ("visits", "entries", "exits", "dwell_s", "distance_m", "jumps", "stops", "stopped_s")
# The columns of each report, in their order; times are ISO 8601 in UTC.
COLUMNS = {
    "objects": ("key", "first", "last", "fixes", *_SUMS),
    "visits": ("key", "begin", "end", "began", "ended", "dwell_s", "distance_m", "jumps", "fixes"),
    "days": ("key", "day", *_SUMS),
    "stops": ("key", "begin", "end", "stopped_s", "lon", "lat", "fixes"),
    "way": ("key", "time", "lon", "lat", "inside"),
}
TOTALS = ("day", "objects", *_SUMS)
_RENAMED = {"objects": {"begin": "first", "end": "last"}}


def table_of(report: Report, name: str) -> pl.DataFrame:
    """Return the table of a report, one of `COLUMNS`, with times as datetimes and spans in seconds."""
    made = {
        "objects": lambda: report.objects,
        "visits": lambda: report.visits.with_columns(dwell_us=pl.col("end") - pl.col("begin")).sort(
            "begin", pl.col("key").cast(pl.String)
        ),
        "days": lambda: report.objects_by_day.sort("day", maintain_order=True),
        "stops": lambda: report.stops.with_columns(stopped_us=pl.col("end") - pl.col("begin")).sort(
            "begin", pl.col("key").cast(pl.String)
        ),
        "way": lambda: report.tracks,
    }[name]()
    return told(made.rename(_RENAMED.get(name, {})), COLUMNS[name])


def told(frame: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Return chosen columns of a frame: instants as datetimes in UTC, spans in seconds, metres to the decimetre."""
    return frame.select(_told(name, frame.schema) for name in columns)


def _told(name: str, schema: pl.Schema) -> pl.Expr:
    if name == "key":
        return pl.col(name).cast(pl.String)
    if name in ("begin", "end", "first", "last", "time"):
        return pl.col(name).cast(pl.Datetime("us", "UTC"))
    if name.endswith("_s"):
        return (pl.col(f"{name[:-2]}_us") / US).round(3).alias(name)
    if name.endswith("_m"):
        return pl.col(name).round(1)
    return pl.col(name)


def rows_of(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table for `orjson`."""
    return in_text(table).to_dicts()


def in_text(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with its instants as texts, in UTC."""
    instants = [name for name, kind in table.schema.items() if isinstance(kind, pl.Datetime)]
    return table.with_columns(pl.col(instants).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")) if instants else table


def counts_of(fixes: Fixes, report: Report) -> dict[str, int]:
    """Return what a report was made from, and what it left out."""
    return {
        "elements": fixes.frame.height,
        "repeated": fixes.repeated,
        "unplaced": fixes.unplaced,
        "jumps": int(report.legs["jump"].sum()),
        "objects": report.objects.height,
    }
