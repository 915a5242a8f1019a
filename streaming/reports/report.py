"""A report about an area and a span of time: its visits, legs and stops, summed up by object and by day."""

from dataclasses import dataclass
from functools import cached_property
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from streaming.reports.areas import Area
from streaming.reports.days import Days, by_day, days_of
from streaming.reports.fixes import Fixes
from streaming.reports.stops import stops
from streaming.reports.visits import legs, track, visits

SUMS = ("visits", "entries", "exits", "dwell_us", "distance_m", "jumps", "stops", "stopped_us")


@dataclass(frozen=True)
class ReportTerms:
    """What a report takes for granted; see docs/reports.md.

    Parameters
    ----------
    span : (int, int)
        Microseconds since 1970 UTC, both ends included.
    area : Area or None
        None for the whole earth.
    zone : ZoneInfo
        Whose days are reported.
    gap_us : int
        Two fixes of an object that are further apart in time than this have a gap between them.
    fastest_mps : float
        A leg that is faster than this is a jump.
    stop_radius_m, stop_us : float, int
        A stop lasts at least so long within this radius.
    """

    span: tuple[int, int]
    area: Area | None
    zone: ZoneInfo
    gap_us: int
    fastest_mps: float = 350.0
    stop_radius_m: float = 100.0
    stop_us: int = 600_000_000


class Report:
    """A report over fixes; every table is computed when it is first asked for.

    Parameters
    ----------
    fixes : Fixes
        All fixes, within the span, of the objects that came into the area.
    terms : ReportTerms
    """

    def __init__(self, fixes: Fixes, terms: ReportTerms) -> None:
        self.fixes, self.terms = fixes, terms

    @cached_property
    def tracks(self) -> pl.DataFrame:
        """The fixes as `visits.track` returns them."""
        return track(self.fixes.frame, self.terms.area, self.terms.gap_us)

    @cached_property
    def visits(self) -> pl.DataFrame:
        """The visits as `visits.visits` returns them, and distance_m : float64, jumps : int64."""
        found = visits(self.tracks, self.terms.area)
        each = {"distance_m": self.legs["metres"].to_numpy(), "jumps": self.legs["jump"].to_numpy()}
        sums = {name: np.bincount(self.legs["visit"], values, found.height) for name, values in each.items()}
        return found.with_columns(distance_m=sums["distance_m"], jumps=sums["jumps"].astype(np.int64))

    @cached_property
    def legs(self) -> pl.DataFrame:
        """The legs as `visits.legs` returns them."""
        return legs(self.tracks, visits(self.tracks, self.terms.area), self.terms.fastest_mps)

    @cached_property
    def stops(self) -> pl.DataFrame:
        """The stops as `stops.stops` returns them."""
        return stops(self.tracks, self.terms.stop_radius_m, self.terms.stop_us)

    @cached_property
    def days(self) -> Days:
        """The days of the span."""
        return days_of(*self.terms.span, self.terms.zone)

    @cached_property
    def objects_by_day(self) -> pl.DataFrame:
        """The sums of each object on each day on which it was in the area.

        key; day : string, the date; visits, entries, exits, jumps, stops : int64, each counted on the day on which it
        begins, or happens; dwell_us, stopped_us : int64, and distance_m : float64, divided at midnight.
        """
        return self.days.named(self._by_day.sort(pl.col("key").cast(pl.String), "day"))

    @cached_property
    def objects(self) -> pl.DataFrame:
        """The sums of each object that was in the area: the longest dwell first.

        key; begin, end : int64, of its first and last visit, in microseconds since 1970 UTC; fixes : int64; and the
        columns of `objects_by_day` except day.
        """
        spans = self.visits.group_by("key").agg(pl.col("begin").min(), pl.col("end").max(), pl.col("fixes").sum())
        sums = self._by_day.group_by("key", maintain_order=True).agg(pl.col(*SUMS).sum())
        return spans.join(sums, on="key").sort(-pl.col("dwell_us"), pl.col("key").cast(pl.String))

    @cached_property
    def totals(self) -> pl.DataFrame:
        """The sums of every day of the span, also of those on which nothing was in the area.

        day : string, the date; objects : int64, the number of objects that were in the area; and the sums of
        `objects_by_day`.
        """
        sums = self._by_day.group_by("day", maintain_order=True).agg(pl.len().alias("objects"), pl.col(*SUMS).sum())
        every = pl.DataFrame({"day": np.arange(len(self.days.names))})
        full = every.join(sums, on="day", how="left").sort("day")
        return self.days.named(
            full.with_columns(pl.exclude("day").fill_null(0)).with_columns(pl.col("objects").cast(pl.Int64))
        )

    @cached_property
    def _by_day(self) -> pl.DataFrame:
        parts = [
            self._sums(by_day(self.visits, self.days), dwell_us=pl.col("end") - pl.col("begin")),
            self._sums(self._at("begin", pl.lit(True)), visits=1, entries=(pl.col("began") == "entry").cast(pl.Int64)),
            self._sums(self._at("end", pl.col("ended") == "exit"), exits=1),
            self._sums(by_day(self.legs.drop("visit"), self.days), distance_m=pl.col("metres")),
            self._sums(self._starts(self.legs.filter("jump")), jumps=1),
            self._sums(by_day(self.stops, self.days), stopped_us=pl.col("end") - pl.col("begin")),
            self._sums(self._starts(self.stops), stops=1),
        ]
        together = pl.concat(parts).sort("day", maintain_order=True)
        return together.group_by("key", "day", maintain_order=True).agg(pl.col(*SUMS).sum())

    def _sums(self, frame: pl.DataFrame, **columns: pl.Expr | int) -> pl.DataFrame:
        """Return the columns key, day and `SUMS` of rows with a day; sums that are not given are 0."""
        given = {name: pl.lit(value) if isinstance(value, int) else value for name, value in columns.items()}
        sums = [
            given.get(name, pl.lit(0)).cast(pl.Float64 if name == "distance_m" else pl.Int64).alias(name)
            for name in SUMS
        ]
        return frame.select("key", "day", *sums)

    def _at(self, side: str, condition: pl.Expr) -> pl.DataFrame:
        """Return the visits that satisfy a condition, with the day of their beginning or end."""
        chosen = self.visits.filter(condition)
        return chosen.with_columns(day=self.days.number_of(chosen[side].to_numpy()))

    def _starts(self, spans: pl.DataFrame) -> pl.DataFrame:
        return spans.with_columns(day=self.days.number_of(spans["begin"].to_numpy()))
