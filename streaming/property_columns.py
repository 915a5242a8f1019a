"""Properties, which are JSON text, as columns: each is read once, however many filters ask for it."""

import re
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.errors import InvalidPlan

_NAME = re.compile(r"[^'\"\[\]\\]{1,200}")
_TEXT, _NUMBER = "text ", "number "
# So many values of columns are kept at once, about 120 MB.
MAX_CELLS = 5_000_000


def property_text(name: str) -> pl.Expr:
    """Return the text of a property, null where it is absent; of a column ``properties`` of JSON objects.

    Raises
    ------
    InvalidPlan
        Where the name cannot be looked up. The other functions of this module raise it likewise.
    """
    return pl.col("properties").str.json_path_match(f"$['{_checked(name)}']")


def text_column(name: str) -> pl.Expr:
    """Return a property as a column of text of `PropertyColumns`."""
    return pl.col(_TEXT + _checked(name))


def number_column(name: str) -> pl.Expr:
    """Return a property as a column of numbers of `PropertyColumns`, null where it is none."""
    return pl.col(_NUMBER + _checked(name))


def property_names(expression: pl.Expr) -> list[str]:
    """Return the properties that an expression over such columns asks for, each once."""
    return sorted({root.split(" ", 1)[1] for root in expression.meta.root_names()})


class PropertyColumns:
    """Columns of the properties of some elements; each is read when it is first asked for.

    Parameters
    ----------
    properties : Arrow array of string, length N
        JSON objects.
    wanted : callable, optional
        Returns the rows, ascending, at which a property may be asked for, by its name; at all where it is left out.

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
        """Evaluate a condition at rows (K,), at all where they are left out.

        Returns
        -------
        ndarray of bool, shape (K,)
            Unknown counts as False.
        """
        frame = pl.DataFrame([column for name in property_names(expression) for column in self._columns(name)])
        if rows is not None and len(rows) < len(self._source) and frame.width:
            frame = frame[rows]
        holds = frame.select(expression.fill_null(False).alias("holds"))["holds"].to_numpy()
        # A condition on no property is one value.
        return np.broadcast_to(holds, len(self._source) if rows is None else len(rows))

    def _columns(self, name):
        """Return a property as text and as number; columns that were not used for long are let go."""
        columns = self._read.pop(name, None) or self._made(name)
        self._read[name] = columns
        while len(self._read) > max(1, MAX_CELLS // max(1, len(self._source))):
            self._read.popitem(last=False)
        return columns

    def _made(self, name):
        rows = None if self._wanted is None else self._wanted(name)
        if rows is None or len(rows) == len(self._source):
            text = self._source.select(property_text(name)).to_series()
        else:
            place = np.full(len(self._source), len(rows))
            place[rows] = np.arange(len(rows))
            read = self._source[rows].select(property_text(name)).to_series()
            text = pl.concat([read, pl.Series([None], dtype=pl.String)])[place]
        return text.alias(_TEXT + name), text.cast(pl.Float64, strict=False).alias(_NUMBER + name)


def _checked(name):
    if not _NAME.fullmatch(name):
        raise InvalidPlan(f"where: a property's name must have no quotes, brackets or backslashes; got {name!r:.220}")
    return name
