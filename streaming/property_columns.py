"""Columns of properties, read from JSON text: each property is read once, however many filters use it."""

import re
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
import orjson
import polars as pl
import pyarrow as pa

from streaming.elements import whole_column
from streaming.errors import InvalidPlan
from streaming.number_text import number_of_text, read_numbers

# Of the names of properties: JSON writes such a name as it is.
NAME = r'[^"\\]{1,200}'
_TEXT, _NUMBER = "text ", "number "
# The texts of numbers that may be rounded wrongly: fractions and powers of ten with many digits.
_ROUNDED, _FEWEST_OF_ROUNDED = r"^-?[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)$", 12
# The most values that are kept in columns at once, about 120 MB.
MAX_CELLS = 5_000_000
# Numbers are read from so many elements at once. Of many more, the processor caches no longer hold what is decoded, and
# each element takes half as long again.
SLICE = 16_384
# Fewer elements are read without compiled code, which takes half a second to import.
FEW = 64


def property_texts(properties: pl.Series, name: str) -> pl.Series:
    """Return a property of elements as text, null where absent; numbers as the shortest text that tells them exactly.

    Parameters
    ----------
    properties : polars.Series of String, length N
        JSON objects.
    name : str

    Raises
    ------
    InvalidPlan
        If the name cannot be looked up (`checked_name`).

    Examples
    --------
    >>> property_texts(pl.Series(['{"a":"x"}', '{"a":0.49394867}', '{"a":1.2498629747657727e+107}']), "a").to_list()
    ['x', '0.49394867', '1.2498629747657727e+107']
    """
    text = properties.str.json_path_match(f'$["{checked_name(name)}"]')
    # Polars may be wrong in the last bit of a number here, but not when it decodes objects.
    rows = (text.str.len_bytes().ge(_FEWEST_OF_ROUNDED) & text.str.contains(_ROUNDED)).fill_null(False).arg_true()
    if not len(rows):
        return text
    decoded = properties[rows].str.json_decode(pl.Struct({name: pl.String})).struct.field(name)
    exact = pl.select(pl.when(decoded == text[rows]).then(decoded).otherwise(decoded.cast(pl.Float64).cast(pl.String)))
    return text.scatter(rows, exact.to_series())


def text_column(name: str) -> pl.Expr:
    """Return the expression of a property as text, a column of `PropertyColumns`."""
    return pl.col(_TEXT + checked_name(name))


def number_column(name: str) -> pl.Expr:
    """Return the expression of a property as a number, null where it is none, a column of `PropertyColumns`."""
    return pl.col(_NUMBER + checked_name(name))


def property_names(expression: pl.Expr) -> list[str]:
    """Return the names of the properties that an expression over such columns uses, sorted, each once."""
    return sorted({root.split(" ", 1)[1] for root in expression.meta.root_names()})


class PropertyColumns:
    """Columns of the properties of some elements; a column is read when an expression first uses it.

    Parameters
    ----------
    properties : Arrow array of string, length N
        JSON objects.
    wanted : callable, optional
        Takes the name of a property, and returns the rows, ascending, at which expressions may use it. Without it, they
        may use every property at all rows.

    Examples
    --------
    >>> columns = PropertyColumns(pa.array(['{"speed": 5}', '{"speed": "7"}', "{}"]))
    >>> columns.passing(number_column("speed") > 4).tolist()
    [True, True, False]
    >>> columns.passing(number_column("speed") > 6, np.array([1, 2])).tolist()
    [True, False]
    """

    def __init__(
        self, properties: pa.Array | pa.ChunkedArray, wanted: Callable[[str], np.ndarray] | None = None
    ) -> None:
        self._source = pl.DataFrame({"properties": pl.from_arrow(properties)}, schema={"properties": pl.String})
        self._wanted = wanted
        self._read: OrderedDict[str, tuple[pl.Series, pl.Series]] = OrderedDict()

    def passing(self, expression: pl.Expr, rows: np.ndarray | None = None) -> np.ndarray:
        """Tell at which rows a condition holds.

        Parameters
        ----------
        expression : polars.Expr
            Over `text_column` and `number_column`.
        rows : ndarray of int, shape (K,), optional
            All rows if it is left out.

        Returns
        -------
        ndarray of bool, shape (K,)
            Unknown counts as False.
        """
        frame = self._frame(expression)
        if rows is not None and len(rows) < len(self._source) and frame.width:
            frame = frame[rows]
        holds = frame.select(expression.fill_null(False).alias("holds"))["holds"].to_numpy()
        # A condition that uses no property gives a single value.
        return np.broadcast_to(holds, len(self._source) if rows is None else len(rows))

    def truths(self, expression: pl.Expr) -> list[bool | None]:
        """Return whether a condition holds for each element; None where it is unknown."""
        told = self._frame(expression).select(expression.alias("holds"))["holds"].to_list()
        return told if len(told) == len(self._source) else told * len(self._source)

    def _frame(self, expression: pl.Expr) -> pl.DataFrame:
        return pl.DataFrame([column for name in property_names(expression) for column in self._columns(name)])

    def text(self, name: str) -> pl.Series:
        """Return a property of all elements as text; null where it is missing."""
        return self._columns(name)[0]

    def number(self, name: str) -> pl.Series:
        """Return a property of all elements as numbers; null where it is none."""
        return self._columns(name)[1]

    def _columns(self, name: str) -> tuple[pl.Series, pl.Series]:
        """Return a property as text and as number; drop the least recently used columns beyond `MAX_CELLS`."""
        columns = self._read.pop(name, None) or self._made(name)
        self._read[name] = columns
        while len(self._read) > max(1, MAX_CELLS // max(1, len(self._source))):
            self._read.popitem(last=False)
        return columns

    def _made(self, name: str) -> tuple[pl.Series, pl.Series]:
        rows = None if self._wanted is None else self._wanted(name)
        if rows is None or len(rows) == len(self._source):
            text = property_texts(self._source["properties"], name)
        else:
            place = np.full(len(self._source), len(rows))
            place[rows] = np.arange(len(rows))
            read = property_texts(self._source["properties"][rows], name)
            text = pl.concat([read, pl.Series([None], dtype=pl.String)])[place]
        return text.alias(_TEXT + name), text.cast(pl.Float64, strict=False).alias(_NUMBER + name)


def checked_name(name: str, where: str = "where") -> str:
    """Return the name of a property that can be looked up: see `NAME`.

    Parameters
    ----------
    name : str
    where : str
        Of what the name is a part, for the message.

    Raises
    ------
    InvalidPlan
        If it cannot. The functions `text_column` and `number_column` raise it, too.
    """
    if not re.fullmatch(NAME, name):
        raise InvalidPlan(
            "%(where)s: a property's name must have at most 200 characters, and no double quotes or backslashes; "
            "got %(name)s",
            where=where,
            name=f"{name!r:.220}",
        )
    return name


def number_columns(
    properties: pa.Array | pa.ChunkedArray, names: Sequence[str], rows: np.ndarray | None = None
) -> np.ndarray:
    """Return properties of elements as numbers.

    Parameters
    ----------
    properties : Arrow array of string, length N
        JSON objects.
    names : sequence of str, length F
    rows : ndarray of int64, shape (K,), optional
        Of which elements, each once; all by default.

    Returns
    -------
    ndarray of float64, shape (F, K)
        NaN where a property is missing, or no number.

    Examples
    --------
    >>> number_columns(pa.array(['{"speed": 5, "kind": "bus"}', '{"speed": "7"}', None]), ["speed", "kind"]).tolist()
    [[5.0, 7.0, nan], [nan, nan, nan]]
    >>> number_columns(pa.array(['{"speed": [5]}', '{"speed": 7}']), ["speed"], np.array([1])).tolist()
    [[7.0]]
    """
    if isinstance(properties, pa.ChunkedArray):
        properties = whole_column(properties)
    properties = properties.cast(pa.string())
    rows = np.arange(len(properties)) if rows is None else np.ascontiguousarray(rows)
    numbers = np.empty((len(names), len(rows)))
    for start in range(0, len(rows), SLICE):
        some = slice(start, start + SLICE)
        _read_numbers(properties, rows[some], names, numbers[:, some])
    return numbers


def number_columns_once(properties: pa.Array, names: tuple[str, ...]) -> np.ndarray:
    """Return what `number_columns` does; while the array of properties is in memory, it is read once."""
    key = id(properties), names
    known = _ONCE.get(key)
    if known is None:
        known = _ONCE[key] = number_columns(properties, names)
        weakref.finalize(properties, _ONCE.pop, key, None)
    return known


_ONCE: dict[tuple[int, tuple[str, ...]], np.ndarray] = {}


def _read_numbers(properties: pa.Array, rows: np.ndarray, names: Sequence[str], into: np.ndarray) -> None:
    """Put the numbers of some elements into an array of shape (F, K)."""
    left = np.arange(len(rows)) if len(rows) < FEW else read_numbers(properties, rows, names, into)
    if len(left):
        some = pl.from_arrow(properties.take(pa.array(rows[left])))
        text = pl.DataFrame({"properties": some}, schema={"properties": pl.String})
        into[:, left] = _decoded_numbers(text, names).fill_null(float("nan")).to_numpy().T


def _decoded_numbers(text: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the numbers of objects, whatever they have: decoded at once if their values allow it, or else singly."""
    decoded = pl.col("properties").str.json_decode(pl.Struct(dict.fromkeys(names, pl.String)))
    try:
        told = text.select(number_of_text(decoded.struct.field(name)).alias(name) for name in names)
        if told.height == text.height:  # an empty text is no row
            return told
    except (pl.exceptions.ComputeError, pl.exceptions.InvalidOperationError):
        pass
    values = [_values(row, names) for row in text["properties"]]
    schema = dict.fromkeys(names, pl.String)
    return pl.DataFrame(values, schema, orient="row").select(number_of_text(pl.col(name)) for name in names)


def _values(text: str | None, names: Sequence[str]) -> list[str | None]:
    """Return values of one object as texts; None for what is missing, and for arrays and objects."""
    try:
        told = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        told = {}
    values = [told.get(name) if isinstance(told, dict) else None for name in names]
    values = [None if isinstance(value, list | dict) else value for value in values]
    return [value if value is None or isinstance(value, str) else str(value).lower() for value in values]
