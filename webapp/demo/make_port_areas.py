"""Make `port_areas.geojson`: areas around those ports of Natural Earth where the simulated ship lanes end.

``python -m webapp.demo.make_port_areas ne_10m_ports.geojson``, with the file of Natural Earth's ports (public domain),
plain or gzipped.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import shapely

from streaming.simulator.lanes import PORTS, WAYPOINTS
from streaming.simulator.sphere import EARTH_RADIUS_M, distance_m

TARGET = Path(__file__).with_name("port_areas.geojson")
RADIUS_M = 25_000.0
CORNERS = 32
DECIMALS = 3


def port_areas(ports: list[dict]) -> list[dict]:
    """Return a GeoJSON feature, an area, for each end of a lane that has a port within `RADIUS_M`.

    Parameters
    ----------
    ports : list of dict
        GeoJSON features, points in WGS 84 degrees.
    """
    lon, lat = np.array([port["geometry"]["coordinates"] for port in ports]).T
    features = []
    for waypoint, name in PORTS.items():
        away_m = distance_m(*WAYPOINTS[waypoint][:2], lon, lat)
        nearest = int(np.argmin(away_m))
        if away_m[nearest] <= RADIUS_M:
            ring = area_around(float(lon[nearest]), float(lat[nearest]))
            features.append(
                {
                    "type": "Feature",
                    "id": waypoint,
                    "properties": {"name": f"Port of {name}"},
                    "geometry": {"type": "Polygon", "coordinates": [ring]},
                }
            )
    return features


def area_around(lon_deg: float, lat_deg: float) -> list[list[float]]:
    """Return the closed, counter-clockwise ring of a round area of `RADIUS_M` around a place, WGS 84 degrees."""
    turn = np.linspace(0, 2 * np.pi, CORNERS + 1)
    reach_deg = np.degrees(RADIUS_M / EARTH_RADIUS_M)
    ring = np.stack(
        [lon_deg + reach_deg * np.cos(turn) / np.cos(np.radians(lat_deg)), lat_deg + reach_deg * np.sin(turn)], axis=1
    )
    return np.round(ring, DECIMALS).tolist()


def main(source: str) -> None:
    """Read Natural Earth's ports and write the areas, one feature per line."""
    content = Path(source).read_bytes()
    ports = json.loads(gzip.decompress(content) if source.endswith(".gz") else content)["features"]
    features = port_areas(ports)
    assert all(shapely.from_geojson(json.dumps(feature["geometry"])).is_valid for feature in features)
    lines = ",\n".join(json.dumps(feature) for feature in features)
    TARGET.write_text(f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
