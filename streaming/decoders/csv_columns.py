"""Decode CSV with a header, by a mapping of its columns."""

import csv as csv_text
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from streaming.decoders.angles import degrees
from streaming.decoders.base import (
    LATITUDE_LIMIT_DEG,
    LONGITUDE_LIMIT_DEG,
    MAX_SAMPLE_BYTES,
    OUT_OF_RANGE,
    Decoded,
    Malformed,
)
from streaming.decoders.columns import EPOCHS, box_table, json_objects, numbers, times_us
from streaming.decoders.encodings import AUTO, Recoder, check_encoding
from streaming.decoders.framing import TOO_LONG_LINE, Lines
from streaming.decoders.listed_columns import boxes, check_lists
from streaming.decoders.options import check_texts, option
from streaming.decoders.properties import check_null_values, check_properties, targets
from streaming.decoders.time_texts import LocalTimeOptions, TimeTexts
from streaming.decoders.units import FACTORS
from streaming.elements import UNKNOWN, element_schema
from streaming.errors import InvalidOptions
from streaming.language import gettext, gettext_noop
from streaming.spaces import EARTH, Space

ROLES = ("key", "time", "lon", "lat", "altitude")
PLACES = ("lon", "lat", "altitude")
USUAL_COLUMNS = {"key": "key", "time": "time", "lon": "lon", "lat": "lat"}
TIME_FORMATS = ("iso8601", "day_first", "month_first", *EPOCHS)


@dataclass(frozen=True)
class CsvOptions(LocalTimeOptions):
    """Options of `CsvDecoder`."""

    columns: Mapping = option(
        USUAL_COLUMNS, "column of each role: key, lon, lat, and if there are any time and altitude", shape="texts"
    )
    coordinates: Sequence = option(
        [],
        "instead of lon and lat: column of each dimension of the space, null for one without; elements are points",
        shape="names",
    )
    lo: Sequence = option([], "likewise, for elements that are boxes: columns of their lower bounds", shape="names")
    hi: Sequence = option([], "columns of their upper bounds", shape="names")
    properties: Mapping = option(
        {},
        "what becomes of other columns: a property's name, with a unit for a number; without one it is a text",
        shape="targets",
    )
    time_format: str = option("iso8601", "how times are written", TIME_FORMATS)
    altitude_unit: str = option("metres", "unit of the altitude", ("metres", "feet"))
    null_values: Mapping = option({}, "texts that mean none, by column", shape="text_lists")
    constants: Mapping = option({}, "properties that every element gets", shape="texts")
    delimiter: str = option(",", "one character")
    decimal: str = option(".", "decimal sign of numbers, a point or a comma", (".", ","))
    encoding: str = option(AUTO, "of the text; auto: UTF-8, or UTF-16 by its byte order mark; else such as cp1252")
    header: str = option("", "names of the columns, for input whose first line does not have them")
    max_line_bytes: int = option(100_000, "longer lines are malformed", minimum=100)

    def __post_init__(self) -> None:
        """Check every field."""
        super().__post_init__()
        check_texts("columns", self.columns)
        check_texts("constants", self.constants)
        if self.coordinates or self.lo or self.hi:
            check_lists(self.coordinates, self.lo, self.hi)
        _check_columns(self)
        check_properties(self.properties)
        check_encoding(self.encoding)
        check_null_values(self.null_values, str, "texts")
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise InvalidOptions(
                "delimiter must be one ASCII character; got %(delimiter)s", delimiter=repr(self.delimiter)
            )

    @property
    def listed(self) -> tuple[Sequence, Sequence]:
        """The columns of lower and of upper bounds; both are empty if elements have lon and lat."""
        return self.lo or self.coordinates, self.hi or self.coordinates

    @property
    def roles(self) -> dict[str, str]:
        """The column of each role that is read, without the default `lon` and `lat` if columns are listed."""
        usual = self.columns == USUAL_COLUMNS and any(self.listed)
        return {role: name for role, name in self.columns.items() if not usual or role not in PLACES}

    @property
    def needed(self) -> list[str]:
        """The columns that a header must have."""
        return [*self.roles.values(), *(name for names in self.listed for name in names if name is not None)]

    def check_space(self, space: Space) -> None:
        """Raise InvalidOptions unless the columns fit the space; see `Options.check_space`."""
        lo, _ = self.listed
        if not lo:
            super().check_space(space)
        elif len(lo) > space.n:
            raise InvalidOptions(
                "%(name)s has %(n)s dimensions, so at most as many columns; got %(lo)s",
                name=space.name,
                n=space.n,
                lo=repr(lo),
            )


def _check_columns(options: CsvOptions) -> None:
    columns = options.columns
    unknown = sorted(set(columns) - set(ROLES))
    if unknown:
        raise InvalidOptions(
            "columns may only have %(roles)s; got %(unknown)s", roles=", ".join(ROLES), unknown=repr(unknown[0])
        )
    listed = any(options.listed)
    for role in ("key",) if listed else ("key", "lon", "lat"):
        if role not in columns:
            raise InvalidOptions("columns must have %(role)s; got %(columns)s", role=role, columns=repr(dict(columns)))
        if options.header and columns[role] not in options.header:
            raise InvalidOptions(
                "header must have the column of %(role)s, %(columns)s; got %(header)s",
                role=role,
                columns=columns[role],
                header=repr(options.header),
            )
    if listed and (places := sorted(set(options.roles) & set(PLACES))):
        raise InvalidOptions(
            "columns must not have %(places)s where others are listed; got %(columns)s",
            places=", ".join(places),
            columns=repr(dict(columns)),
        )


class CsvDecoder:
    """Decodes CSV. The first line names the columns; each row after it is an element.

    Quoted values must not contain line ends.

    Parameters
    ----------
    options : CsvOptions
    stream : str
    space : Space
    """

    options = CsvOptions

    def __init__(self, options: CsvOptions, stream: str, space: Space = EARTH) -> None:
        self._options, self._stream, self._space = options, stream, space
        self._lines, self._recoder = Lines(options.max_line_bytes), Recoder(options.encoding)
        order = options.time_format if options.time_format in ("day_first", "month_first") else ""
        self._forms = TimeTexts(options.utc_offset_s, options.time_zone, order)
        self._targets = targets(options.properties)
        self._header = self._split(options.header) if options.header else None
        # A message to people about the header; None if there is nothing to say.
        self.noted = self._absent(self._header) if self._header else None
        self._fewest_missing = len(options.needed) + 1
        # Matches a well-quoted row: a quoted field that its line leaves open would swallow the lines after it.
        delimiter = re.escape(options.delimiter.encode())
        # A quote behind a digit is the sign of seconds in an angle.
        field = rb'(?:"(?:[^"]|"")*"|(?:[^"%s]|(?<=\d)")*)' % delimiter
        self._row = re.compile(rb"%s(?:%s%s)*" % (field, delimiter, field), re.DOTALL)

    def feed(self, data: bytes, received_us: int) -> Decoded:
        """Decode all complete lines; see `Decoder.feed`."""
        lines, too_long = self._lines.feed(self._recoder.feed(data))
        malformed = [_malformed(TOO_LONG_LINE, line) for line in too_long]
        return self._decoded(lines, received_us, malformed)

    def finish(self, received_us: int) -> Decoded:
        """Decode a last line without an end; the next input begins with a header. See `Decoder.finish`."""
        lines, too_long = self._lines.feed(self._recoder.finish())
        malformed = [_malformed(TOO_LONG_LINE, line) for line in too_long]
        decoded = self._decoded(lines + self._lines.finish(), received_us, malformed)
        if not self._options.header:
            self._header = None
        return decoded

    def _decoded(self, lines: list[bytes], received_us: int, malformed: list[Malformed]) -> Decoded:
        lines = self._without_header(lines, malformed) if self._header is None else lines
        texts = self._texts(lines, malformed)
        if texts is None or not texts.num_rows:
            return Decoded(element_schema(self._space).empty_table(), tuple(malformed))
        return Decoded(self._elements(texts, received_us, malformed), tuple(malformed))

    def _without_header(self, lines: list[bytes], malformed: list[Malformed]) -> list[bytes]:
        """Find the header, and return the lines after it; count the lines before it as malformed."""
        for number, line in enumerate(lines):
            text = line.decode("utf-8-sig", "replace").strip()
            if not text:
                continue
            header = self._split(text)
            missing = [name for name in self._options.needed if name not in header]
            if not missing:
                self._header, self.noted = header, self._absent(header)
                return lines[number + 1 :]
            malformed.append(_malformed("header", line))
            # Note the line that lacks the fewest columns: it is most likely meant as the header.
            if len(missing) < self._fewest_missing:
                self._fewest_missing = len(missing)
                lacking = ", ".join(missing)
                self.noted = gettext("the first line must name the columns; it lacks %(lacking)s; got %(text)s") % {
                    "lacking": lacking,
                    "text": repr(text[:200]),
                }
        return []

    def _absent(self, header: list[str]) -> str | None:
        """Return a message that names the columns of properties and null values that the input lacks, or None."""
        absent = [name for name in (*self._options.properties, *self._options.null_values) if name not in header]
        return (
            gettext("the input has no column %(dict)s; it has %(header)s")
            % {"dict": ", ".join(dict.fromkeys(absent)), "header": ", ".join(header)[:200]}
            if absent
            else None
        )

    def _split(self, header: str) -> list[str]:
        (names,) = csv_text.reader([header], delimiter=self._options.delimiter, skipinitialspace=True)
        return [name.strip() for name in names]

    def _texts(self, lines: list[bytes], malformed: list[Malformed]) -> pa.Table | None:
        """Return the needed cells as a table of texts, null where empty; None if there are no rows."""
        rows = self._rows(lines, malformed)
        if not rows:
            return None
        data = b"\n".join(rows) + b"\n"
        assert self._header is not None, "before the header is known, there are no rows"
        known = dict.fromkeys([*self._options.needed, *self._options.properties])
        wanted = [name for name in known if name in self._header]

        def count(row: csv.InvalidRow) -> str:
            malformed.append(_malformed(gettext_noop("number of columns"), (row.text or "").encode()))
            return "skip"

        table = csv.read_csv(
            pa.py_buffer(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self._header),
            csv.ParseOptions(delimiter=self._options.delimiter, invalid_row_handler=count),
            csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        )
        return table.combine_chunks()

    def _rows(self, lines: list[bytes], malformed: list[Malformed]) -> list[bytes]:
        """Return the lines that are UTF-8 and well quoted, without empty ones; count the others as malformed."""
        lines = [line for line in (line.rstrip(b"\r") for line in lines) if line]
        joined = b"\n".join(lines)
        if not _is_text(joined):
            malformed += [_malformed("encoding", line) for line in lines if not _is_text(line)]
            lines = [line for line in lines if _is_text(line)]
        if b'"' in joined:
            badly_quoted = {line for line in lines if b'"' in line and not self._row.fullmatch(line)}
            malformed += [_malformed("quotes", line) for line in lines if line in badly_quoted]
            lines = [line for line in lines if line not in badly_quoted]
        return lines

    def _elements(self, texts: pa.Table, received_us: int, malformed: list[Malformed]) -> pa.Table:
        options = self._options
        roles = {role: self._column(texts, name) for role, name in options.roles.items()}
        altitude = (
            _scaled(roles["altitude"], FACTORS[options.altitude_unit], options.decimal) if "altitude" in roles else None
        )
        times = (
            times_us(roles["time"], options.time_format, self._forms, options.decimal)
            if "time" in roles
            else pa.array(np.full(texts.num_rows, received_us))
        )
        bounds, misplaced = self._boxes(texts) if any(options.listed) else self._points(roles, altitude)
        faults = {gettext_noop("no key"): pc.is_null(roles["key"]), "time": pc.is_null(times), **misplaced}
        good = _count_faults(faults, texts, malformed)
        keep = pa.array(np.flatnonzero(good))
        properties = self._properties(texts) | ({} if altitude is None else {"altitude_m": altitude})
        return box_table(
            self._stream,
            roles["key"].take(keep),
            times.take(keep).to_numpy(),
            bounds[good],
            json_objects(properties, texts.num_rows).take(keep),
            self._space,
        )

    def _boxes(self, texts: pa.Table) -> tuple[np.ndarray, dict[str, pa.Array]]:
        """Return the boxes of rows from the listed columns, and the faults in them."""
        lo, hi = ([None if c is None else self._column(texts, c) for c in names] for names in self._options.listed)
        return boxes(lo, hi, texts.num_rows, self._space, self._options.decimal)

    def _points(
        self, roles: Mapping[str, pa.Array], altitude: pa.Array | None
    ) -> tuple[np.ndarray, dict[str, pa.Array]]:
        """Return the boxes of rows from longitude, latitude and altitude, and the faults in them."""
        n = self._space.n
        lon, lat = (degrees(roles[axis], axis, self._options.decimal) for axis in ("lon", "lat"))
        bounds = np.hstack([np.full((len(lon), n), -np.inf), np.full((len(lon), n), np.inf)])
        for axis, values in enumerate((lon, lat, altitude)[:n]):
            if values is not None:
                if axis > 1:
                    bounds[:, axis] = UNKNOWN
                known = pc.is_valid(values).to_numpy(zero_copy_only=False)
                bounds[known, axis] = bounds[known, n + axis] = _floats(values)[known]
        faults = {
            gettext_noop("no position"): pc.or_(pc.is_null(lon), pc.is_null(lat)),
            OUT_OF_RANGE: pc.or_(_beyond(lon, LONGITUDE_LIMIT_DEG), _beyond(lat, LATITUDE_LIMIT_DEG)),
        }
        return bounds, faults

    def _column(self, texts: pa.Table, name: str) -> pa.Array:
        """Return a column of texts, trimmed; null where a text is empty or means none."""
        column = pc.utf8_trim_whitespace(texts[name].combine_chunks())
        nulls = self._options.null_values.get(name, ())
        is_null = pc.is_in(column, pa.array(["", *nulls])) if nulls else pc.equal(column, "")
        return pc.if_else(is_null, None, column)

    def _properties(self, texts: pa.Table) -> dict[str, pa.Array]:
        columns: dict[str, Any] = {
            name: pa.array([text]).take(pa.array(np.zeros(texts.num_rows, dtype=np.int64)))
            for name, text in self._options.constants.items()
        }
        for column, (name, factor) in self._targets.items():
            if column in texts.column_names:
                values = self._column(texts, column)
                columns[name] = values if factor is None else _scaled(values, factor, self._options.decimal)
        return columns


def _malformed(reason: str, sample: bytes) -> Malformed:
    return Malformed(reason, sample[:MAX_SAMPLE_BYTES])


def _is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8 without NUL and carriage return, which Arrow misreads as nothing or a line end."""
    if b"\0" in data or b"\r" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _floats(values: pa.Array) -> np.ndarray:
    return values.to_numpy(zero_copy_only=False)


def _beyond(values: pa.Array, limit: float) -> pa.Array:
    return pc.fill_null(pc.greater(pc.abs(values), limit), False)


def _scaled(texts: pa.Array, factor: float, decimal: str) -> pa.Array:
    """Return texts as numbers in SI units, null where a text is no finite number."""
    values = numbers(texts, decimal)
    if factor == 1.0:
        return values
    values = pc.multiply(values, factor)
    return pc.if_else(pc.is_finite(values), values, None)


def _count_faults(faults: Mapping[str, pa.Array], texts: pa.Table, malformed: list[Malformed]) -> np.ndarray:
    """Count each bad row once, by its first fault; return which rows are good, as booleans."""
    good = np.ones(texts.num_rows, dtype=bool)
    for reason, rows in faults.items():
        bad = pc.fill_null(rows, False).to_numpy(zero_copy_only=False) & good
        for row in np.flatnonzero(bad):
            cells = texts.slice(row, 1).to_pylist()[0].values()
            malformed.append(_malformed(reason, ",".join(cell or "" for cell in cells).encode()))
        good &= ~bad
    return good
