"""Make static/land/ from Natural Earth's land at 1:10 million: a small file for each cell of the world that has land.

    python tools/make_land.py ne_10m_land.json.gz

The input is GeoJSON, such as that of https://github.com/martynafford/natural-earth-geojson (CC0).
"""

import argparse
import gzip
import itertools
from pathlib import Path

import numpy as np
import orjson
import shapely

FOLDER = Path(__file__).parents[1] / "static" / "land"
CELL_DEG = 15
# Cells overlap by this much, so that no gap is seen between them.
OVERLAP_DEG = 0.02
# The tolerance is a pixel at zoom 10; the data is no finer. Coordinates, and the overlap, are whole numbers of steps.
TOLERANCE_DEG = 0.0015
STEP_DEG = 0.0005


def main() -> None:
    """Write the cells, and the list of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("land", type=Path)
    land = read_land(parser.parse_args().land)
    FOLDER.mkdir(parents=True, exist_ok=True)
    names = []
    for west, south in itertools.product(range(-180, 180, CELL_DEG), range(-90, 90, CELL_DEG)):
        rings = rings_of(land, west, south)
        if rings:
            names.append(f"{west}_{south}")
            (FOLDER / f"{names[-1]}.json").write_bytes(orjson.dumps(rings))
    index = {"cell": CELL_DEG, "overlap": OVERLAP_DEG, "step": STEP_DEG, "cells": names}
    (FOLDER / "index.json").write_bytes(orjson.dumps(index))


def read_land(path: Path) -> shapely.Geometry:
    """Return all land as one valid geometry, simplified."""
    document = orjson.loads(gzip.decompress(path.read_bytes()))
    shapes = [shapely.from_geojson(orjson.dumps(feature["geometry"])) for feature in document["features"]]
    return shapely.simplify(shapely.make_valid(shapely.union_all(shapes)), TOLERANCE_DEG)


def rings_of(land: shapely.Geometry, west: int, south: int) -> list[list[int]]:
    """Return the rings of the land in a cell and in the overlap around it, each as flat whole numbers.

    The first two numbers of a ring are a place, in steps from the cell's south-west corner; the others are differences.
    """
    wide = shapely.buffer(shapely.box(west, south, west + CELL_DEG, south + CELL_DEG), OVERLAP_DEG, join_style="mitre")
    parts = shapely.get_parts(shapely.intersection(land, wide))
    polygons = parts[shapely.get_type_id(parts) == shapely.GeometryType.POLYGON]
    return flat([ring for polygon in polygons for ring in shapely.get_rings(polygon)], np.array([west, south]))


def flat(lines, origin):
    """Return lines as flat whole numbers, a place and then differences; leave out lines that shrink to a point."""
    out = []
    for line in lines:
        steps = np.rint((shapely.get_coordinates(line) - origin) / STEP_DEG).astype(int)
        moves = np.diff(steps, axis=0)
        moves = moves[np.any(moves != 0, axis=1)]
        if len(moves):
            out.append(np.concatenate([steps[:1], moves]).ravel().tolist())
    return out


if __name__ == "__main__":
    main()
