"""Read the geometries of a batch, and say of each that cannot be read why."""

import struct
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import shapely

from streaming.language import gettext

# Of well-known binary (WKB): an order of bytes, a kind and a number of parts or points.
LINE, MULTI_LINE, HEAD_BYTES, DOUBLE_BYTES, HEIGHT_BIT = 2, 5, 9, 8, 1 << 31

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
    if (lines := _real_lines(text)) is not None:
        return lines, gettext("repaired: %(reason)s") % {"reason": gettext("a part of it was a line of one point")}
    shape = None if _is_curved(text) else shapely.from_wkb(text, on_invalid="fix")
    if shape is None or shape.is_empty:
        return None, gettext("left out: its geometry cannot be read: %(reason)s") % {"reason": reason}
    return shape, gettext("repaired: %(reason)s") % {"reason": gettext("a ring was not closed")}


def _real_lines(text: bytes) -> shapely.MultiLineString | None:
    """Return several lines without those of one point, as tracks have whose receiver lost its position; else None."""
    try:
        count, at = _head(text, MULTI_LINE, 0)[1:]
        real = []
        for _ in range(count):
            dimensions, points, start = _head(text, LINE, at)
            end = start + points * dimensions * DOUBLE_BYTES
            if points > 1:
                real.append(shapely.from_wkb(text[at:end]))
            at = end
    except (struct.error, IndexError, ValueError, shapely.errors.GEOSException):
        return None
    return shapely.MultiLineString(real) if real else None


def _head(text: bytes, kind: int, at: int) -> tuple[int, int, int]:
    """Return the dimensions, the number of parts or points, and where these begin, of a geometry within WKB.

    Raises
    ------
    ValueError
        When it is of another kind.

    References
    ----------
    OGC 06-103r4, section 8.2: 1000 and 2000 are added to the kind for heights and measures; GDAL sets the highest bit.
    """
    written, count = struct.unpack_from("<II" if text[at] else ">II", text, at + 1)
    extra, plain = divmod(written & ~HEIGHT_BIT, 1_000)
    if plain != kind:
        raise ValueError(written)
    return 2 + (extra + 1) // 2 + bool(written & HEIGHT_BIT), count, at + HEAD_BYTES
