"""Bring geometries into a space: transform their coordinates, repair them, and cut them at the antimeridian."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyproj
import shapely
from pyproj.transformer import TransformerGroup

from streaming.language import gettext, gettext_noop
from streaming.layers.features import InvalidLayer
from streaming.shorter_way import take_shorter_way
from streaming.spaces import Space

# Rounding in a reprojection moves coordinates past the edge of the world by less than this, in units of the space. Such
# coordinates are moved back onto the edge.
EDGE = 1e-6
NOTHING = gettext_noop("it has no geometry, an empty one, or one that cannot be read")
SHORTER = gettext_noop(
    "cut: it goes more than 180 degrees between two vertices, so it was taken the shorter way, over the antimeridian"
)
NO_GRID = gettext_noop(
    "its datum was shifted without the grid %(grid)s, which is not installed: places are within about "
    "%(accuracy)s m, with it within %(best)s m"
)
LONGITUDE_LATITUDE = pyproj.CRS.from_user_input("OGC:CRS84")
Transform = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Placed:
    """Geometries in a space, with notes about those that were changed or left out.

    Parameters
    ----------
    geometries : ndarray of shapely.Geometry or None, shape (N,)
        None where a geometry is left out.
    notes : dict of int to str
        By row: "left out: ...", "repaired: ..." or "cut: ...", with the reason.
    """

    geometries: np.ndarray
    notes: dict[int, str]


def transform_to(space: Space, crs: str | None, tell: Callable[..., None] = lambda *_, **__: None) -> Transform | None:
    """Return the function that transforms coordinates of shape (N, 2) into those of a space, None if none is needed.

    Parameters
    ----------
    space : Space
    crs : str or None
        The coordinate reference system of the file, in a form that PROJ knows, such as ``EPSG:3067``.
    tell : callable, optional
        Called with a message, and its values by name, if the best transformation needs a grid that is not installed.

    Raises
    ------
    InvalidLayer
        When the space is on earth and the reference system is missing, unknown or not of the earth.
    """
    if not space.geographic:
        return None
    if not crs:
        raise InvalidLayer(
            "a layer needs a coordinate reference system, in its file or given, such as EPSG:4326; got none"
        )
    try:
        known = pyproj.CRS.from_user_input(crs)
        if known.equals(LONGITUDE_LATITUDE, ignore_axis_order=True):
            return None
        transformer = pyproj.Transformer.from_crs(known, LONGITUDE_LATITUDE, always_xy=True)
        _tell_grid(known, tell)
    except pyproj.exceptions.ProjError as error:
        raise InvalidLayer(
            "a coordinate reference system must be one that PROJ knows; got %(crs)s: %(error)s",
            crs=f"{crs!r:.100}",
            error=error,
        ) from None
    return lambda coordinates: np.column_stack(transformer.transform(coordinates[:, 0], coordinates[:, 1]))


def _tell_grid(crs: pyproj.CRS, tell: Callable[..., None]) -> None:
    """Tell how exact places are if the best transformation from a reference system needs a grid that is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it says the same
        group = TransformerGroup(crs, LONGITUDE_LATITUDE, always_xy=True)
    if group.best_available or not group.transformers or not group.unavailable_operations:
        return
    best = group.unavailable_operations[0]
    grids = ", ".join(grid.short_name for grid in best.grids if not grid.available)
    tell(NO_GRID, grid=grids, accuracy=f"{group.transformers[0].accuracy:g}", best=f"{best.accuracy:g}")


def placed(
    geometries: Any,
    space: Space,
    transform: Transform | None = None,
    known: Mapping[int, str] = MappingProxyType({}),
    keep_long_edges: bool = False,
) -> Placed:
    """Return the geometries as valid, two-dimensional ones that lie in the space.

    Parameters
    ----------
    geometries : array_like of shapely.Geometry or None, shape (N,)
    space : Space
        Of two dimensions at least.
    transform : function, optional
        See `transform_to`.
    known : mapping of int to str, optional
        Notes about rows from their reading, which stay unless there is another one.
    keep_long_edges : bool, optional
        Leave edges that go more than 180 degrees as they are, where RFC 7946 takes the shorter way.

    Returns
    -------
    Placed
    """
    # The order matters: only a geometry that is there can be transformed, only a finite one can be checked and
    # repaired, and only one in the coordinates of the space can be cut.
    shapes = shapely.force_2d(np.asarray(geometries, dtype=object))
    notes: dict[int, str] = {}
    _leave_out(shapes, notes, shapely.is_empty(shapes) | shapely.is_missing(shapes), NOTHING)
    notes |= known
    if transform is not None:
        shapes = shapely.transform(shapes, transform)
    _leave_out(
        shapes,
        notes,
        _not_finite(shapes),
        gettext("its coordinates must be finite, once they are longitude and latitude"),
    )
    if space.geographic and not keep_long_edges:
        notes |= dict.fromkeys(take_shorter_way(shapes).tolist(), gettext(SHORTER))
    _repair(shapes, notes)
    if space.geographic:
        _cut(shapes, notes, space)
    _check_inside(shapes, notes, space)
    return Placed(shapes, notes)


def _leave_out(shapes: np.ndarray, notes: dict[int, str], mask: np.ndarray, reason: str) -> None:
    for row in np.flatnonzero(mask):
        notes[int(row)] = gettext("left out: %(reason)s") % {"reason": reason}
    shapes[mask] = None


def _not_finite(shapes: np.ndarray) -> np.ndarray:
    present = ~shapely.is_missing(shapes)
    bad = np.zeros(len(shapes), dtype=bool)
    coordinates, owner = shapely.get_coordinates(shapes[present], return_index=True)
    wrong = np.unique(owner[~np.isfinite(coordinates).all(axis=1)])
    bad[np.flatnonzero(present)[wrong]] = True
    return bad


def _repair(shapes: np.ndarray, notes: dict[int, str]) -> None:
    """Make geometries valid in place; leave out those that collapse, such as a line between two equal points."""
    for row in np.flatnonzero(~shapely.is_valid(shapes) & ~shapely.is_missing(shapes)):
        reason = shapely.is_valid_reason(shapes[row])
        valid = shapely.make_valid(shapes[row], method="structure", keep_collapsed=False)
        lost = valid.is_empty or not valid.is_valid
        shapes[row] = None if lost else valid
        text = gettext("left out: %(reason)s") if lost else gettext("repaired: %(reason)s")
        notes[int(row)] = text % {"reason": reason}


def _cut(shapes: np.ndarray, notes: dict[int, str], space: Space) -> None:
    """Cut geometries that cross the antimeridian, in place; the parts beyond it move to the other side of the world."""
    axis = space.dimensions[0]
    bounds = shapely.bounds(shapes)
    with np.errstate(invalid="ignore"):
        over = (bounds[:, 0] < axis.lo - EDGE) | (bounds[:, 2] > axis.hi + EDGE)
        near = (bounds[:, 0] >= axis.lo - axis.extent) & (bounds[:, 2] <= axis.hi + axis.extent)
    for row in np.flatnonzero(over & near):
        shapes[row] = shapely.union_all(_pieces(shapes[row], space))
        notes.setdefault(int(row), gettext("cut: it reaches over the antimeridian"))


def _pieces(shape: shapely.Geometry, space: Space) -> np.ndarray:
    """Return the parts of a geometry that lie in the space when it is moved by -1, 0 and 1 turns of longitude."""
    axis, latitude = space.dimensions[:2]
    # The box reaches far beyond the poles, since `_check_inside` checks latitudes later.
    world = shapely.box(axis.lo, latitude.lo - axis.extent, axis.hi, latitude.hi + axis.extent)
    turns = [np.array([turn * axis.extent, 0.0]) for turn in (-1, 0, 1)]
    moved = [shapely.transform(shape, lambda coordinates, turn=turn: coordinates + turn) for turn in turns]
    pieces = shapely.get_parts(shapely.intersection(moved, world))
    # A geometry that only touches the edge leaves a line or a point there, with fewer dimensions than it has.
    return pieces[shapely.get_dimensions(pieces) == shapely.get_dimensions(shape)]


def _check_inside(shapes: np.ndarray, notes: dict[int, str], space: Space) -> None:
    """Move geometries onto the edge of the space if rounding put them outside; leave out those farther outside."""
    low = np.array([dimension.lo for dimension in space.dimensions[:2]])
    high = np.array([dimension.hi for dimension in space.dimensions[:2]])
    bounds = shapely.bounds(shapes)
    with np.errstate(invalid="ignore"):
        beyond = (bounds[:, :2] < low).any(axis=1) | (bounds[:, 2:] > high).any(axis=1)
        outside = (bounds[:, :2] < low - EDGE).any(axis=1) | (bounds[:, 2:] > high + EDGE).any(axis=1)
    names = " and ".join(
        gettext("%(name)s in [%(lo)g, %(hi)g]") % {"name": d.name, "lo": d.lo, "hi": d.hi} for d in space.dimensions[:2]
    )
    for row in np.flatnonzero(outside):
        box = ", ".join(f"{side:.6g}" for side in bounds[row])
        notes[int(row)] = gettext("left out: it must lie in %(names)s; got %(box)s") % {"names": names, "box": box}
    shapes[outside] = None
    for row in np.flatnonzero(beyond & ~outside):
        shapes[row] = shapely.transform(shapes[row], lambda c: np.clip(c, low, high))
