"""A fleet as GeoJSON lines."""

import numpy as np
import orjson

from streaming.simulator.fleet import Fleet

_SECOND_US = 1_000_000


def feature_lines(fleet: Fleet, time_us: int, pace: float = 1.0) -> bytes:
    """Return a GeoJSON feature for every object of a fleet, one per line.

    Parameters
    ----------
    fleet : Fleet
    time_us : int
        Microseconds since 1970 UTC. Every feature has this time, in seconds, as its property `time`.
    pace : float
        How many times faster than the clock the fleet moves. The features still have the time of the clock, and the
        speeds of the timetables.

    Returns
    -------
    bytes
        The decoder `geojson` reads them with ``{"key": "id", "time": "time"}``.
    """
    positions = fleet.step(time_us / _SECOND_US * pace)
    columns = zip(
        fleet.ids,
        fleet.properties,
        np.round(positions.lon_deg, 6).tolist(),
        np.round(positions.lat_deg, 6).tolist(),
        np.round(positions.speed_mps, 1).tolist(),
        np.round(positions.course_deg, 1).tolist(),
        positions.destination,
        strict=True,
    )
    lines = [
        orjson.dumps(
            {
                "type": "Feature",
                "geometry": {"type": "Point", "coordinates": [lon, lat]},
                "properties": {
                    "id": name,
                    "time": time_us / _SECOND_US,
                    **fixed,
                    "speed_mps": speed,
                    "course_deg": course,
                    "destination": destination,
                },
            }
        )
        for name, fixed, lon, lat, speed, course, destination in columns
    ]
    return b"\n".join(lines) + b"\n"
