"""Property filters: CQL2 text evaluated over columns of JSON properties.

References
----------
OGC 21-065r2, Common Query Language (CQL2), 2024: the text encoding, and three-valued logic for absent properties.
"""

from collections.abc import Callable, Mapping
from typing import Any

import cql2
import polars as pl
import pyarrow as pa

from streaming.errors import InvalidPlan

_COMPARE: Mapping[str, Callable] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_ARITHMETIC: Mapping[str, Callable] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "^": lambda a, b: a**b,
}
_SHORT_TYPE = {float: pl.Float64, str: pl.String, bool: pl.Boolean}


def parse_filter(text: str) -> pl.Expr:
    """Compile CQL2 text into an expression over a column ``properties`` of JSON objects.

    Comparisons (= <> < <= > >=), AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, CASEI and arithmetic are understood.

    Raises
    ------
    InvalidPlan
        Where the text does not parse, or uses something else.
    """
    try:
        tree = cql2.parse_text(text).to_json()
    except Exception as error:
        raise InvalidPlan(f"where must be CQL2 text; got {text!r}: {error}") from None
    return _boolean(tree)


def passes(expression: pl.Expr, properties: pa.Array | pa.ChunkedArray):
    """Evaluate a filter.

    Parameters
    ----------
    expression : polars.Expr
        From `parse_filter`.
    properties : Arrow array of string, length N
        JSON objects.

    Returns
    -------
    ndarray of bool, shape (N,)
        True where the filter holds; unknown (an absent property, another type) counts as False.
    """
    frame = pl.DataFrame({"properties": pl.from_arrow(properties)}, schema={"properties": pl.String})
    return frame.select(expression.fill_null(False).alias("passes"))["passes"].to_numpy()
