"""Propose how a CSV is read, by the names of its columns and by what stands in its first rows."""

import csv
import itertools
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.decoders.angles import degrees
from streaming.decoders.base import LATITUDE_LIMIT_DEG, LONGITUDE_LIMIT_DEG
from streaming.decoders.columns import EPOCHS, numbers, times_us
from streaming.decoders.csv_words import GENERAL_KEYS, NAMES, is_code, property_of, unit_of, words_of
from streaming.decoders.encodings import AUTO, Recoder
from streaming.decoders.framing import Unpacker
from streaming.decoders.registry import make_decoder
from streaming.decoders.time_texts import TimeTexts
from streaming.decoders.units import MICROSECONDS
from streaming.errors import InvalidOptions
from streaming.spaces import Space

# How much of an input is looked at.
MOST_BYTES, MOST_ROWS = 65_536, 200
DELIMITERS = (",", ";", "\t", "|")
# Where a text is not UTF-8 and does not say what it is: what most of such files are, and what every file may be.
WESTERN = ("cp1252", "latin-1")
LIMITS_DEG = {"lon": LONGITUDE_LIMIT_DEG, "lat": LATITUDE_LIMIT_DEG}
# A column is what nearly all of its cells are: some may be broken, or mean none.
NEARLY_ALL = 0.9
# A time before 2000 or after 2100 is more likely another number.
_PLAUSIBLE_US = (946_684_800 * MICROSECONDS, 4_102_444_800 * MICROSECONDS)
_COMMA, _POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d+\.\d+")
_HALF_OF_DAY = re.compile(r"\d\s*[AP]\.?M\b", re.IGNORECASE)
# The options that say where elements lie; a proposal replaces them all.
_PLACES: dict[str, Any] = {"coordinates": [], "lo": [], "hi": [], "time_format": "iso8601", "altitude_unit": "metres"}


@dataclass(frozen=True)
class _Sample:
    """The first rows of a CSV, cut into cells.

    Parameters
    ----------
    cells : mapping of str to list of str
        By column, without empty ones.
    options : mapping
        The options that cut them.
    """

    cells: Mapping[str, Sequence[str]]
    options: Mapping[str, Any]

    def texts(self, name: str) -> pa.Array:
        """Return the cells of a column."""
        return pa.array(self.cells[name], pa.string())

    def is_numeric(self, name: str) -> bool:
        """Tell whether a column has numbers."""
        return _are_read(numbers(self.texts(name), self.options["decimal"]))

    def named(self, role: str, used: Collection[str] = ()) -> list[str]:
        """Return the columns whose names say a part of an element, the clearest first."""
        rank = {word: place for place, word in enumerate(NAMES[role])}
        names = [name for name in self.cells if name not in used and words_of(name) in rank]
        return sorted(names, key=lambda name: rank[words_of(name)])


def proposed(data: bytes, given: Mapping[str, Any], space: Space) -> dict[str, Any] | None:
    r"""Return options of the decoder `csv` that read more of an input than given ones.

    Parameters
    ----------
    data : bytes
        The beginning of the input; it may end anywhere.
    given : mapping
        Options of the decoder; those that the input says nothing about stay as they are.
    space : Space

    Returns
    -------
    dict or None
        None if the given options read as many rows, or if the input has no columns for what an element needs.

    Examples
    --------
    >>> from streaming.spaces import EARTH
    >>> told = proposed(b"ship;lat;lon\nAino;60,17;24,95\n", {}, EARTH)
    >>> told["columns"], told["delimiter"], told["decimal"]
    ({'key': 'ship', 'lon': 'lon', 'lat': 'lat'}, ';', ',')
    """
    data = b"".join(Unpacker().feed(data))[:MOST_BYTES]
    sample = _sample(data, given.get("encoding", AUTO))
    columns = _columns(sample, space) if sample else None
    if sample is None or columns is None:
        return None
    told = {**given, **_PLACES, **sample.options, **columns, "properties": _properties(sample, columns)}
    rows, before = (_rows(data, options, space) for options in (told, given))
    says_more = told["properties"] and not given.get("properties")
    return told if rows > before or (rows == before > 0 and says_more) else None


def _rows(data: bytes, options: Mapping[str, Any], space: Space) -> int:
    """Return how many elements a decoder with options makes of an input."""
    try:
        decoder = make_decoder({"kind": "csv", **options}, "proposed", space)
    except InvalidOptions:
        return 0
    return sum(part.elements.num_rows for part in (decoder.feed(data, 0), decoder.finish(0)))


def _sample(data: bytes, given: str) -> _Sample | None:
    """Return the cells of an input, or None if it is no table of text."""
    text, encoding = _text(data, given)
    lines = [line for line in text.splitlines() if line.strip()][:MOST_ROWS]
    tables = {delimiter: _table(lines, delimiter) for delimiter in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda one: (len(tables[one]), len(tables[one][0]) if tables[one] else 0))
    if not (rows := tables[delimiter]):
        return None
    has_header = len(rows) > 1 and not any(map(_is_value, rows[0]))
    names = rows[0] if has_header else [f"column_{number}" for number in range(1, len(rows[0]) + 1)]
    columns = zip(*(rows[1:] if has_header else rows), strict=True)
    cells = {name: list(filter(None, column)) for name, column in zip(names, columns, strict=True) if name}
    told = [cell for column in cells.values() for cell in column]
    commas, points = (sum(form.fullmatch(cell) is not None for cell in told) for form in (_COMMA, _POINT))
    options = {
        "delimiter": delimiter,
        "decimal": "," if commas > points else ".",
        "encoding": encoding,
        "header": "" if has_header else delimiter.join(names),
    }
    return _Sample({name: column for name, column in cells.items() if column}, options)


def _text(data: bytes, given: str) -> tuple[str, str]:
    """Return the complete lines of an input, and the encoding in which they are text; no lines if there is none."""
    halves = {"utf-16-le": data[1::2], "utf-16-be": data[::2]}
    wide = [name for name, half in halves.items() if 2 * half.count(0) > len(half)]
    for encoding in dict.fromkeys((given, AUTO, *wide, *WESTERN)):
        lines = Recoder(encoding).feed(data).split(b"\n")
        lines = lines[:-1] or lines  # the last one may end anywhere
        telling = [line for line in lines if not line.isascii() or b"\0" in line]
        broken = [line for line in telling if b"\0" in line or "\ufffd" in line.decode(errors="replace")]
        if len(broken) <= (1 - NEARLY_ALL) * len(telling):
            return b"\n".join(line for line in lines if line not in broken).decode(), encoding
    return "", given


def _table(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Return the rows with as many cells as most have, if these are several."""
    try:
        read = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    except csv.Error:  # a cell is too long
        return []
    rows = [[cell.strip() for cell in row] for row in read]
    widths = Counter(map(len, rows))
    width = max(widths, key=lambda one: (widths[one], one), default=0)
    return [row for row in rows if len(row) == width] if width > 1 else []


def _is_value(cell: str) -> bool:
    """Tell whether a cell is a number, an angle or a time, and so no name of a column."""
    text = pa.array([cell])
    found = (numbers(text), numbers(text, ","), *(degrees(text, axis) for axis in LIMITS_DEG))
    return any(values.null_count == 0 for values in found) or TimeTexts(order="day_first").us(cell) is not None


def _are_read(values: pa.Array) -> bool:
    return len(values) > 0 and values.null_count <= (1 - NEARLY_ALL) * len(values)


def _columns(sample: _Sample, space: Space) -> dict[str, Any] | None:
    """Return the options that say which columns have what an element needs, or None if one is missing."""
    place = _place(sample) if space.geographic else _axes(sample, space)
    key = _key(sample, set(place.values()))
    if not place or key is None:
        return None
    options: dict[str, Any] = {"columns": {"key": key}}
    if time := _time(sample, {key, *place.values()}):
        options["columns"]["time"], options["time_format"] = time
    if not space.geographic:
        return options | {"coordinates": [place.get(axis.name) for axis in space.dimensions]}
    options["columns"] |= place
    heights = [name for name in sample.named("altitude", options["columns"].values()) if sample.is_numeric(name)]
    if heights:
        options["columns"]["altitude"] = heights[0]
        options["altitude_unit"] = "feet" if unit_of(heights[0]) == "feet" else "metres"
    return options


def _axes(sample: _Sample, space: Space) -> dict[str, str]:
    """Return the columns that are named as the dimensions of a space, by dimension."""
    names = [name for name in sample.cells if sample.is_numeric(name)]
    return {axis.name: name for axis in space.dimensions for name in names if words_of(name) == words_of(axis.name)}


def _place(sample: _Sample) -> dict[str, str]:
    """Return the columns of longitude and latitude; none if they are not found."""
    place: dict[str, str] = {}
    for axis in LIMITS_DEG:
        fit = [name for name in sample.named(axis) if _are_degrees(sample, name, axis)]
        longer = [name for name in sample.cells if axis in words_of(name) and _are_degrees(sample, name, axis)]
        place |= {axis: (fit or longer)[0]} if fit or longer else {}
    if len(place) == len(LIMITS_DEG):
        return place if place["lon"] != place["lat"] else {}
    # Where names say nothing: two columns with fractions that follow each other, mostly latitude first.
    names = [name for name in sample.cells if _has_fractions(sample, name)]
    for first, second in itertools.pairwise(names):
        for lat, lon in ((first, second), (second, first)):
            if _are_degrees(sample, lat, "lat") and _are_degrees(sample, lon, "lon"):
                return {"lon": lon, "lat": lat}
    return {}


def _are_degrees(sample: _Sample, name: str, axis: str) -> bool:
    values = degrees(sample.texts(name), axis, sample.options["decimal"])
    within = pc.less_equal(pc.abs(values), LIMITS_DEG[axis])
    return _are_read(pc.if_else(within, values, None))


def _has_fractions(sample: _Sample, name: str) -> bool:
    form = _COMMA if sample.options["decimal"] == "," else _POINT
    return sum(form.fullmatch(cell) is not None for cell in sample.cells[name]) >= NEARLY_ALL * len(sample.cells[name])


def _key(sample: _Sample, used: Collection[str]) -> str | None:
    """Return the column that names objects, or None if there is none.

    Objects report often, so their names come again, unlike the numbers of rows.
    """
    named = sample.named("key", used)
    others = [name for name in sample.cells if name not in used and not _has_fractions(sample, name)]
    found = named or [name for name in others if not _time_formats(sample, name)]
    again = [name for name in found if len(set(sample.cells[name])) < len(sample.cells[name])]
    sure = [name for name in named if name in again or words_of(name) not in GENERAL_KEYS]
    return next(iter((*sure, *again, *found)), None)


def _time(sample: _Sample, used: Collection[str]) -> tuple[str, str] | None:
    """Return the column of times, and how they are written; None if there is none."""
    others = [name for name in sample.cells if name not in used]
    for name in dict.fromkeys((*sample.named("time", used), *others)):
        if formats := _time_formats(sample, name):
            return name, formats[0]
    return None


def _time_formats(sample: _Sample, name: str) -> list[str]:
    """Return how the cells of a column may be written if they are times, the likeliest first."""
    orders = ["day_first", "month_first"]
    if any(_HALF_OF_DAY.search(cell) for cell in sample.cells[name]):
        orders.reverse()  # where hours are those of half a day, months come first
    texts, first, last = sample.texts(name), *_PLAUSIBLE_US
    unread: dict[str, int] = {}
    for form in ("iso8601", *orders, *EPOCHS):
        times = times_us(texts, form, TimeTexts(order=form if form in orders else ""))
        plausible = pc.and_(pc.greater_equal(times, first), pc.less(times, last))
        times = pc.if_else(plausible, times, None)
        if _are_read(times):
            unread[form] = times.null_count
    return sorted(unread, key=lambda form: unread[form])


def _properties(sample: _Sample, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return what becomes of the columns that an element does not need."""
    used = {*columns["columns"].values(), *columns.get("coordinates", ())}
    told: dict[str, Any] = {}
    names: set[str] = set()
    for name in sample.cells:
        if name in used:
            continue
        target = property_of(name, sample.is_numeric(name) and not is_code(name))
        short = target if isinstance(target, str) else target["name"]
        if short in names:  # two columns of one property: this one keeps its own name
            target, short = name, name
        names.add(short)
        told[name] = target
    return told
