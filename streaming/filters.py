"""Property filters: CQL2 text evaluated over columns of JSON properties.

References
----------
OGC 21-065r2, Common Query Language (CQL2), 2024: the text encoding, and three-valued logic for absent properties.
"""

import functools
import operator
import re
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
MAX_DEPTH = 40

_PROPERTY_NAME = re.compile(r"[^'\"\[\]\\]{1,200}")
_LIKE = {"%": ".*", "_": "."}


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
    if _depth(tree) > MAX_DEPTH:
        raise InvalidPlan(f"where must not nest more than {MAX_DEPTH} levels; got {_depth(tree)}")
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


def _depth(tree: Any) -> int:
    """Return the number of levels of a tree of dicts and lists."""
    level, depth = [tree], 0
    while level:
        level = [child for node in level if isinstance(node, dict) for child in node.get("args", ())]
        depth += 1
    return depth


def _boolean(node: Any) -> pl.Expr:
    """Compile a node that stands for true, false or unknown."""
    if isinstance(node, bool):
        return pl.lit(node)
    if not isinstance(node, dict):
        raise InvalidPlan(f"where must be a condition; got the value {node!r}")
    if "property" in node:
        return _as_boolean(node)
    compile_operator = _BOOLEAN.get(node.get("op", ""))
    if compile_operator is None:
        known = ", ".join(sorted(_BOOLEAN))
        raise InvalidPlan(f"where knows the operators {known}; got {node.get('op', next(iter(node), ''))!r}")
    return compile_operator(node["op"], node["args"])


def _comparison(op, args):
    left, right = args
    compare = _COMPARE[op]
    if _is_number(left) or _is_number(right):
        return compare(_as_number(left), _as_number(right))
    if isinstance(left, bool) or isinstance(right, bool):
        return compare(_as_boolean(left), _as_boolean(right))
    text = compare(_as_text(left), _as_text(right))
    if "property" in left and "property" in right:
        numbers = compare(_as_number(left), _as_number(right))
        return pl.when(numbers.is_null()).then(text).otherwise(numbers)
    return text


def _in(_, args):
    value, choices = args
    return _any([_comparison("=", [value, choice]) for choice in choices])


def _between(_, args):
    value, low, high = args
    return _comparison(">=", [value, low]) & _comparison("<=", [value, high])


def _like(_, args):
    value, pattern = args
    folded = isinstance(pattern, dict) and pattern.get("op") == "casei"
    literal = pattern["args"][0] if folded else pattern
    if not isinstance(literal, str):
        raise InvalidPlan(f"LIKE needs a text as its pattern; got {literal!r}")
    regex = "".join(_LIKE.get(character, re.escape(character)) for character in literal)
    return _as_text(value).str.contains(f"{'(?i)' if folded else ''}^(?s:{regex})$")


def _any(expressions):
    return functools.reduce(operator.or_, expressions)


def _all(expressions):
    return functools.reduce(operator.and_, expressions)


_BOOLEAN: Mapping[str, Callable[[str, list], pl.Expr]] = {
    **dict.fromkeys(_COMPARE, _comparison),
    "and": lambda _, args: _all([_boolean(arg) for arg in args]),
    "or": lambda _, args: _any([_boolean(arg) for arg in args]),
    "not": lambda _, args: ~_boolean(args[0]),
    "in": _in,
    "between": _between,
    "like": _like,
    "isNull": lambda _, args: _as_text(args[0]).is_null(),
}


def _is_number(node):
    if isinstance(node, dict):
        return node.get("op") in _ARITHMETIC
    return isinstance(node, int | float) and not isinstance(node, bool)


def property_text(name: str) -> pl.Expr:
    """Return the text of a property, null where it is absent; of a column ``properties`` of JSON objects.

    Raises
    ------
    InvalidPlan
        Where the name cannot be looked up.
    """
    if not _PROPERTY_NAME.fullmatch(name):
        raise InvalidPlan(f"a property's name must have no quotes, brackets or backslashes; got {name!r}")
    return pl.col("properties").str.json_path_match(f"$['{name}']")


def _as_number(node) -> pl.Expr:
    if _is_number(node) and not isinstance(node, dict):
        return pl.lit(float(node))
    if isinstance(node, dict) and "property" in node:
        return property_text(node["property"]).cast(pl.Float64, strict=False)
    if isinstance(node, dict) and node.get("op") in _ARITHMETIC:
        left, right = (_as_number(arg) for arg in node["args"])
        return _ARITHMETIC[node["op"]](left, right)
    raise InvalidPlan(f"where needs a number or a property here; got {node!r}")


def _as_text(node) -> pl.Expr:
    if isinstance(node, str):
        return pl.lit(node)
    if isinstance(node, dict) and "property" in node:
        return property_text(node["property"])
    if isinstance(node, dict) and node.get("op") == "casei":
        return _as_text(node["args"][0]).str.to_lowercase()
    raise InvalidPlan(f"where needs a text or a property here; got {node!r}")


def _as_boolean(node) -> pl.Expr:
    if isinstance(node, bool):
        return pl.lit(node)
    if isinstance(node, dict) and "property" in node:
        text = property_text(node["property"])
        return pl.when(text.is_in(["true", "false"])).then(text == "true").otherwise(None)
    raise InvalidPlan(f"where needs TRUE, FALSE or a property here; got {node!r}")
