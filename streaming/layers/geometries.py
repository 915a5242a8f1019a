"""Read the geometries of a batch, and say of each that cannot be read why."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import shapely

from streaming.language import gettext

Linear = Callable[[Sequence[int]], Sequence[bytes | None]]


def read_geometries(wkb: pa.Array, linear: Linear) -> tuple[np.ndarray, dict[int, str]]:
    """Return the geometries of a batch, with notes about those that were changed or left out.

    Parameters
    ----------
    wkb : pyarrow.Array of binary, length N
    linear : function
        Given rows, returns their geometries, as WKB, with lines in the place of curves.

    Returns
    -------
    geometries : ndarray of shapely.Geometry or None, shape (N,)
    notes : dict of int to str
        By row: "repaired: ..." or "left out: ...", with the reason.
    """
    texts = wkb.to_numpy(zero_copy_only=False)
    try:
        shapes = shapely.from_wkb(texts, on_invalid="ignore")
    except NotImplementedError:
        curved = [row for row, text in enumerate(texts) if text is not None and _is_curved(text)]
        texts[curved] = np.array([*linear(curved), None], dtype=object)[:-1]
        shapes = np.array([None if _is_curved(text) else _read(text) for text in texts], dtype=object)
    notes: dict[int, str] = {}
    for row in np.flatnonzero(shapely.is_missing(shapes)).tolist():
        if texts[row] is not None:
            shapes[row], notes[row] = _mended(texts[row])
    return shapes, notes


def _read(text: bytes | None) -> shapely.Geometry | None:
    return shapely.from_wkb(text, on_invalid="ignore")


def _is_curved(text: bytes | None) -> bool:
    try:
        _read(text)
    except NotImplementedError:
        return True
    return False


def _mended(text: bytes) -> tuple[shapely.Geometry | None, str]:
    """Return a geometry that cannot be read as it is, with its rings closed, and a note; None if that does not help."""
    try:
        shapely.from_wkb(text)
        reason = gettext("it is of a kind that is not known")
    except NotImplementedError:
        reason = gettext("it has curves, which cannot be made lines")
    except shapely.errors.GEOSException as error:
        reason = str(error).split(": ", 1)[-1].strip()
    shape = None if _is_curved(text) else shapely.from_wkb(text, on_invalid="fix")
    if shape is None or shape.is_empty:
        return None, gettext("left out: its geometry cannot be read: %(reason)s") % {"reason": reason}
    return shape, gettext("repaired: %(reason)s") % {"reason": gettext("a ring was not closed")}
