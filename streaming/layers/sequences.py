"""GeoJSON text sequences: GDAL stops at a line that it cannot read, so such lines are left out before."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import orjson

from streaming.language import gettext, thousands
from streaming.layers.features import NO_FEATURE_BUT, InvalidLayer

# RFC 7946 section 1.4: what a text may be.
TYPES = frozenset(
    ["Feature", "Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"]
)
# RFC 8142 section 2.1: it stands before each text, where a text may have several lines.
SEPARATOR = b"\x1e"
CHUNK_BYTES = 1 << 20


def sifted(path: Path) -> tuple[Path, list[tuple[int, str]]]:
    """Return a sequence without the lines that are no features: the file itself, or a copy beside it.

    Parameters
    ----------
    path : Path

    Returns
    -------
    path : Path
    notes : list of (int, str)
        The number of each line that was left out, from 1 on, and why.

    Raises
    ------
    InvalidLayer
        When no line is a feature.
    """
    notes = [(number, why) for number, text in _texts_of(path) if (why := _why_left_out(text))]
    if not notes:
        return path, []
    left_out = {number for number, _ in notes}
    target = path.with_name(f"sifted{path.suffix}")
    with target.open("wb") as copy:
        for number, text in _texts_of(path):
            if number not in left_out:
                copy.write(SEPARATOR + text + b"\n")
    if not target.stat().st_size:
        row, problem = notes[0]
        raise InvalidLayer(NO_FEATURE_BUT, rows=thousands(len(notes)), row=thousands(row), problem=problem)
    return target, notes


def _why_left_out(text: bytes) -> str | None:
    """Return why a line is no feature, None if it is one."""
    told = {"text": repr(text[:80].decode(errors="replace"))}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        words = gettext("left out: the line must be a GeoJSON feature; got %(text)s: %(error)s")
        return words % {**told, "error": error}
    if isinstance(value, dict) and value.get("type") in TYPES:
        return None
    return gettext("left out: the line must be a GeoJSON feature; got %(text)s") % told


def _texts_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the texts that are not blank, with their numbers from 1 on: lines, or what is between separators."""
    with path.open("rb") as file:
        separated = file.peek(1)[:1] == SEPARATOR
        for number, text in enumerate(_separated(file) if separated else file, 0 if separated else 1):
            if text := text.strip(SEPARATOR + b" \t\r\n"):
                yield number, text


def _separated(file: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while chunk := file.read(CHUNK_BYTES):
        *texts, rest = (rest + chunk).split(SEPARATOR)
        yield from texts
    yield rest
