"""The encoding of the texts of a file: as asked, else as the file says, else UTF-8 if that fits, else Windows-1252."""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyogrio

from streaming.language import gettext_noop, thousands
from streaming.layers.features import InvalidLayer

# These files are text as a whole; in a shapefile, texts are in the table with the suffix .dbf.
XML = (".kml", ".gpx")
TEXTS = (".geojson", ".json", ".topojson", ".geojsonl", *XML)
UTF_8, WESTERN = "utf-8", "cp1252"
CHUNK_BYTES = 1 << 20
# The codecs of the byte order marks that GDAL does not know, the longer ones first.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
# XML 1.0, section 4.3.3: the encoding declaration.
DECLARED = re.compile(rb"^\s*<\?xml[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
# In a dBASE table (.dbf), 32 bytes for each field follow a head of 32; the head tells at byte 8 where the rows begin.
DBF_BYTES, DBF_NAME_BYTES, DBF_ROWS_AT = 32, 11, 8
# This mark of a dBASE table means the code page of the machine that wrote it, so nothing.
DBF_MARK_AT, DBF_ANSI = 29, 0x57
SAYS_UTF_8 = re.compile(rb"\s*(utf-?8|65001)", re.IGNORECASE)
GUESSED = gettext_noop(
    "its texts were read as %(encoding)s, since they are not UTF-8, and it names no other encoding: "
    "choose another one if they look wrong"
)
REPLACED = gettext_noop("places of its texts that are not %(encoding)s: %(count)s; each was read as a question mark")


def codec_of(encoding: str) -> str:
    """Return the name of the codec for an encoding.

    Raises
    ------
    InvalidLayer
        When there is no such encoding of text.

    Examples
    --------
    >>> codec_of("Windows-1252"), codec_of("latin1")
    ('cp1252', 'iso8859-1')
    """
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise InvalidLayer(
            "encoding must be the name of one, such as utf-8, cp1252 or cp1251; got %(encoding)s",
            encoding=f"{encoding!r:.80}",
        ) from None


def recoded(path: Path, wanted: str, tell: Callable[..., None]) -> Path:
    """Return a file of text in UTF-8: the file itself, or a copy beside it.

    Parameters
    ----------
    path : Path
        With one of the suffixes `TEXTS`.
    wanted : str
        The encoding that replaces what the file says; empty if none does.
    tell : callable
        Called with a message, and its values by name, if the encoding had to be guessed or does not fit.

    Raises
    ------
    InvalidLayer
        When there is no such encoding.
    """
    with path.open("rb") as file:
        head = file.read(1_000)
    codec = codec_of(wanted) if wanted else _said(head, path.suffix)
    right, wrong = _fits(_chunks(path), codec or UTF_8)
    if wrong > right and not wanted and codec in (None, UTF_8):
        codec, wrong = WESTERN, 0
        tell(GUESSED, encoding="Windows-1252")
    if wrong:
        tell(REPLACED, count=thousands(wrong), encoding=codec or UTF_8)
    if codec in (None, UTF_8) and not wrong:
        return path
    target = path.with_name(f"utf-8{path.suffix}")
    with path.open(encoding=codec or UTF_8, errors="replace", newline="") as source, target.open("wb") as copy:
        first = source.read(CHUNK_BYTES)
        copy.write((DECLARATION.sub("", first) if path.suffix in XML else first).encode(UTF_8, "replace"))
        while text := source.read(CHUNK_BYTES):
            copy.write(text.encode(UTF_8, "replace"))
    return target


def _said(head: bytes, suffix: str) -> str | None:
    """Return the codec that a file names at its beginning, None if it names none that is known."""
    for mark, codec in MARKS:
        if head.startswith(mark):
            return codec
    # Both formats begin with an ASCII character (RFC 4627, section 3).
    if b"\0" in head[:2]:
        return "utf-16-be" if head[0] == 0 else "utf-16-le"
    if suffix in XML and (declared := DECLARED.match(head)):
        try:
            return codec_of(declared[1].decode())
        except InvalidLayer:
            return None
    return None


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _fits(chunks: Iterable[bytes], codec: str) -> tuple[int, int]:
    """Return how many characters beyond ASCII a codec finds, and how many places that it cannot read."""
    decoder, right, wrong = codecs.getincrementaldecoder(codec)("replace"), 0, 0
    for chunk in chunks:
        if codec == UTF_8 and chunk.isascii():
            continue
        text = decoder.decode(chunk)
        # A replacement character that the file itself has, in UTF-8, is a character like any other.
        lost = text.count("\ufffd") - (chunk.count(b"\xef\xbf\xbd") if codec == UTF_8 else 0)
        right, wrong = right + len(text) - len(text.encode("ascii", "ignore")) - lost, wrong + lost
    return right, wrong


def table_encoding(path: Path, wanted: str, tell: Callable[..., None]) -> str | None:
    """Return the encoding in which GDAL shall read the texts of a shapefile, None for the one that the file names.

    Parameters are those of `recoded`.
    """
    if wanted:
        return codec_of(wanted)
    if not path.with_suffix(".dbf").is_file():
        return None
    content, said = path.with_suffix(".dbf").read_bytes(), _said_beside(path.with_suffix(".cpg"))
    known = pyogrio.read_info(path)["encoding"] == "UTF-8" and (said or content[DBF_MARK_AT] != DBF_ANSI)
    codec = None if known else _code_page(said)
    if codec or (known and not SAYS_UTF_8.match(said)):
        return codec
    rows_at = int.from_bytes(content[DBF_ROWS_AT : DBF_ROWS_AT + 2], "little")
    names = [content[at : at + DBF_NAME_BYTES] for at in range(DBF_BYTES, rows_at, DBF_BYTES)]
    right, wrong = _fits([*names, content[rows_at:]], UTF_8)
    if wrong <= right:
        return "UTF-8"
    tell(GUESSED, encoding="Windows-1252")
    return WESTERN


def _said_beside(page: Path) -> bytes:
    """Return what a .cpg file says; remove an empty one, for which GDAL loses all characters that are not ASCII."""
    said = page.read_bytes().strip(b" \t\r\n\0") if page.is_file() else b""
    if not said:
        page.unlink(missing_ok=True)
    return said


def _code_page(said: bytes) -> str | None:
    """Return the codec of a code page that GDAL does not know, since there are words beside its number: OEM 850."""
    number = re.search(rb"(?<!\d)\d{3,5}(?!\d)", said)
    try:
        return codec_of(f"cp{number[0].decode()}") if number else None
    except InvalidLayer:
        return None


def texts_of(column: pa.Array) -> list[str | None]:
    """Return the texts of a column; what is not UTF-8 in them is replaced."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [None if raw is None else _text(raw) for raw in column.cast(pa.binary()).to_pylist()]


def _text(raw: bytes) -> str:
    """Return a text without the beginning of a character at its end, where a field of fixed length cut it off."""
    text, _ = codecs.utf_8_decode(raw, "replace", False)
    return text
