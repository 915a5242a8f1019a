"""The recordings that are sketched: air in Beijing, wind over the globe, ships of the USA."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import netcdf_file

from streaming.sketch.observations import Observations
from streaming.sketch.once import Once
from streaming.sketch.settings import DAY_US, HOUR_US, Plane, SketchSettings
from streaming.sketch.sketch import Sketch, add

FOLDER = Path(os.environ.get("LOOKOUT_RECORDINGS", Path(__file__).parents[3] / "shared" / "data"))
BATCH = 50_000
AIR = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
STATIONS = {
    "Aotizhongxin": (116.397, 39.982),
    "Changping": (116.230, 40.217),
    "Dingling": (116.220, 40.292),
    "Dongsi": (116.417, 39.929),
    "Guanyuan": (116.339, 39.929),
    "Gucheng": (116.184, 39.914),
    "Huairou": (116.628, 40.328),
    "Nongzhanguan": (116.461, 39.937),
    "Shunyi": (116.655, 40.127),
    "Tiantan": (116.407, 39.886),
    "Wanliu": (116.287, 39.987),
    "Wanshouxigong": (116.352, 39.878),
}


@dataclass(frozen=True)
class Known:
    """The values of a feature that are not missing, and their standard deviation."""

    values: np.ndarray
    deviation: float


@dataclass(frozen=True)
class Recording(Once):
    """Elements in the order of their times, and how they are sketched."""

    name: str
    elements: Observations
    settings: SketchSettings

    def sketch(self) -> Sketch:
        """Return the sketch of all elements."""
        sketch = Sketch.empty(self.settings)
        for start in range(0, len(self.elements), BATCH):
            sketch = add(sketch, self.elements.take(slice(start, start + BATCH)))
        return sketch

    def known(self, feature: str) -> Known:
        """Return what is known of a feature."""
        return self.once(feature, lambda: self._known_of(feature))

    def _known_of(self, feature):
        column = self.elements.values[self.settings.position(feature)]
        values = column[~np.isnan(column)]
        return Known(values, float(values.std()))

    @functools.cached_property
    def complete(self) -> np.ndarray:
        """Which elements have all features of co-moments."""
        return np.isfinite(self.elements.values[list(self.settings.comoment_features)]).all(axis=0)

    @functools.cached_property
    def corners(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower and the upper corner of all places."""
        return self.elements.place.min(axis=1), self.elements.place.max(axis=1)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements: eight for each time, coordinate and value."""
        return 8 * len(self.elements) * (3 + len(self.settings.features))


def beijing(folder: Path = FOLDER) -> Recording:
    """Return four years of hours at twelve stations."""
    rows = pd.concat([pd.read_csv(path) for path in sorted((folder / "weather").glob("PRSA_*"))])
    local = pd.to_datetime(rows[["year", "month", "day", "hour"]]).to_numpy().astype("datetime64[us]").astype(np.int64)
    place = np.array([STATIONS[name] for name in rows["station"]]).T
    elements = Observations(local - 8 * HOUR_US, place, rows[list(AIR)].to_numpy(np.float64).T.copy())
    planes = (Plane("TEMP", 8), Plane("PM2.5", 8))
    settings = SketchSettings(AIR, planes, cell_bits=28, time_bin_us=7 * DAY_US, comoments=AIR)
    return Recording("air in Beijing", elements.take(np.argsort(elements.time_us, kind="stable")), settings)


def globe(folder: Path = FOLDER) -> Recording:
    """Return the wind and the geopotential of the globe in two months, at three levels; random within a month."""
    columns = fields_of(folder)
    months, levels, rows, cells = columns["z"].shape
    y, x = np.meshgrid(columns["latitude"], columns["longitude"], indexing="ij")
    place = np.tile(np.stack([x.ravel(), y.ravel()]), (1, months * levels))
    time_us = np.repeat(np.arange(months) * 181 * DAY_US, levels * rows * cells)
    level = np.tile(np.repeat(columns["level"], rows * cells), months)
    values = np.stack([*(columns[name].reshape(-1) for name in "uvz"), level])
    order = np.lexsort((np.random.default_rng(0).random(len(time_us)), time_us))
    planes = (Plane("level", 3), Plane("u", 8))
    features = ("u", "v", "z", "level")
    settings = SketchSettings(features, planes, cell_bits=10, time_bin_us=30 * DAY_US, comoments=("u", "v", "z"))
    return Recording("wind over the globe", Observations(time_us, place, values).take(order), settings)


def fields_of(folder: Path = FOLDER) -> dict[str, np.ndarray]:
    """Return the variables of the reanalysis, float64."""
    with netcdf_file(folder / "weather" / "eraint_uvz.nc", "r", mmap=False) as file:
        return {
            name: variable[:].astype(np.float64) * getattr(variable, "scale_factor", 1.0)
            + getattr(variable, "add_offset", 0.0)
            for name, variable in file.variables.items()
        }


def ships(folder: Path = FOLDER) -> Recording:
    """Return the speeds and courses of ships of the USA in a day."""
    rows = pd.read_csv(folder / "ais" / "AISdata.csv.gz")
    time_us = pd.to_datetime(rows["BaseDateTime"]).to_numpy().astype("datetime64[us]").astype(np.int64)
    place, values = (np.stack([rows[name] for name in names]).astype(np.float64) for names in (("LON", "LAT"), SHIP))
    settings = SketchSettings(SHIP, (Plane("SOG", 16),), cell_bits=16, comoments=("SOG", "COG"))
    elements = Observations(time_us, place, values)
    return Recording("ships of the USA", elements.take(np.argsort(time_us, kind="stable")), settings)


SHIP = ("SOG", "COG", "Length")
RECORDINGS = {"beijing": beijing, "globe": globe, "ships": ships}
