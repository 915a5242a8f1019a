"""The recording of Beijing's air: its elements, its sketch, and its series of means."""

import functools

import numpy as np
import polars as pl

from bench.sketch.recordings import STATIONS
from streaming.sketch.observations import Observations
from streaming.sketch.settings import DAY_US, HOUR_US, Plane, SketchSettings
from streaming.sketch.sketch import Sketch, add

FEATURES = ("TEMP", "PRES", "DEWP", "WSPM")
SETTINGS = SketchSettings(
    FEATURES, (Plane("TEMP", 16), Plane("WSPM", 8)), cell_bits=28, time_bin_us=30 * DAY_US, comoments=FEATURES
)


@functools.cache
def frame(folder):
    """Return all rows, with `time_us`."""
    columns = ["year", "month", "day", "hour", *FEATURES, "PM2.5", "station"]
    paths = sorted((folder / "weather").glob("PRSA_Data_*.csv.gz"))
    rows = pl.concat([pl.read_csv(path, columns=columns, null_values="NA", infer_schema_length=None) for path in paths])
    local = pl.datetime("year", "month", "day", "hour").dt.epoch("us")
    return rows.with_columns((local - 8 * HOUR_US).alias("time_us"))


@functools.cache
def observations(folder):
    """Return the elements, as a sketch takes them."""
    rows = frame(folder)
    place = np.array([STATIONS[station] for station in rows["station"]]).T
    values = rows.select(pl.col(FEATURES).cast(pl.Float64)).to_numpy().T
    return Observations(rows["time_us"].to_numpy(), place, values)


@functools.cache
def sketch(folder):
    """Return their sketch."""
    return add(Sketch.empty(SETTINGS), observations(folder))
