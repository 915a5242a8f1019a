"""Property filters: CQL2 text, evaluated over columns of JSON properties.

The logic is three-valued: a comparison with an absent property is unknown.

References
----------
OGC 21-065r2, Common Query Language (CQL2), 2024.
"""

import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.cql2 import Node, parse_text
from streaming.errors import InvalidPlan
from streaming.property_columns import PropertyColumns, number_column, property_names, text_column

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
MAX_PROPERTIES = 32

_LIKE = {"%": ".*", "_": "."}


@functools.lru_cache(maxsize=10_000)
def parse_filter(text: str) -> pl.Expr:
    """Compile CQL2 text into an expression over the columns of `PropertyColumns`.

    It supports comparisons (= <> < <= > >=), AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, CASEI and arithmetic.

    Raises
    ------
    InvalidPlan
        If the text does not parse, uses anything else, cannot be evaluated, or is too large: too long, more than
        `MAX_DEPTH` levels deep, or with more than `MAX_PROPERTIES` properties.
    """
    tree = parse_text(text)
    if _depth(tree) > MAX_DEPTH:
        raise InvalidPlan(
            "%(where)s must not nest more than %(max_depth)s levels; got %(tree)s",
            where="where",
            max_depth=MAX_DEPTH,
            tree=_depth(tree),
        )
    expression = expression_of(tree)
    names = property_names(expression)
    if len(names) > MAX_PROPERTIES:
        raise InvalidPlan(
            "%(where)s may name at most %(max_properties)s properties; got %(count)s",
            where="where",
            max_properties=MAX_PROPERTIES,
            count=len(names),
        )
    _check(expression)
    return expression


def passes(expression: pl.Expr, properties: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Tell which elements pass a filter.

    Parameters
    ----------
    expression : polars.Expr
        From `parse_filter`.
    properties : Arrow array of string, length N
        JSON objects.

    Returns
    -------
    ndarray of bool, shape (N,)
        True where the filter holds. Unknown, because a property is absent or of another type, counts as False.
    """
    return PropertyColumns(properties).passing(expression)


def _check(expression: pl.Expr) -> None:
    """Raise InvalidPlan if an expression cannot be evaluated: the pattern of a LIKE may be too large to compile."""
    try:
        passes(expression, pa.array(['{"": ""}']))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InvalidPlan(
            "%(where)s must be something that can be evaluated; got %(error)s", where="where", error=f"{error!s:.200}"
        ) from None


def _depth(tree: Any) -> int:
    """Return the number of levels of a tree of dicts and lists."""
    level, depth = [tree], 0
    while level:
        nodes = [node for entry in level for node in (entry if isinstance(entry, list) else [entry])]
        level = [child for node in nodes if isinstance(node, dict) for child in node.get("args", ())]
        depth += 1
    return depth


def expression_of(node: Any) -> pl.Expr:
    """Compile a node of a tree of `cql2.parse_text` that stands for true, false or unknown; see `parse_filter`."""
    if isinstance(node, bool):
        return pl.lit(node)
    if not isinstance(node, dict):
        raise InvalidPlan("%(where)s must be a condition; got the value %(node)s", where="where", node=_shown(node))
    if "property" in node:
        return _as_boolean(node)
    compile_operator = _BOOLEAN.get(node.get("op", ""))
    if compile_operator is None:
        known = ", ".join(sorted(_BOOLEAN))
        raise InvalidPlan(
            "%(where)s knows the operators %(known)s; got %(op)s",
            where="where",
            known=known,
            op=repr(node.get("op", next(iter(node), ""))),
        )
    return compile_operator(node["op"], node["args"])


def _comparison(op: str, args: Sequence[Node]) -> pl.Expr:
    left, right = args
    compare = _COMPARE[op]
    if _is_number(left) or _is_number(right):
        return compare(_as_number(left), _as_number(right))
    if isinstance(left, bool) or isinstance(right, bool):
        return compare(_as_boolean(left), _as_boolean(right))
    text = compare(_as_text(left), _as_text(right))
    if _is_property(left) and _is_property(right):
        numbers = compare(_as_number(left), _as_number(right))
        return pl.when(numbers.is_null()).then(text).otherwise(numbers)
    return text


def _in(_: str, args: Sequence[Any]) -> pl.Expr:
    """Compile IN, such that it looks up the value in one set of all numbers, and in one of all texts."""
    value, choices = args
    textual = _is_textual(value)
    numbers = [choice for choice in choices if _is_literal_number(choice)]
    texts = [choice for choice in choices if isinstance(choice, str) and textual]
    others = [c for c in choices if not _is_literal_number(c) and not (isinstance(c, str) and textual)]
    found = [_comparison("=", [value, choice]) for choice in others]
    if numbers:
        found.append(_as_number(value).is_in(sorted({_finite(number) for number in numbers})))
    if texts:
        found.append(_as_text(value).is_in(sorted(set(texts))))
    return _any(found)


def _between(_: str, args: Sequence[Node]) -> pl.Expr:
    value, low, high = args
    return _comparison(">=", [value, low]) & _comparison("<=", [value, high])


def _like(_: str, args: Sequence[Node]) -> pl.Expr:
    value, pattern = args
    folded, literal = False, pattern
    if isinstance(pattern, dict) and pattern.get("op") == "casei":
        folded, literal = True, pattern["args"][0]
    if not isinstance(literal, str):
        raise InvalidPlan(
            "%(where)s: LIKE needs a text as its pattern; got %(literal)s", where="where", literal=_shown(literal)
        )
    regex = "".join(_LIKE.get(character, re.escape(character)) for character in literal)
    return _as_text(value).str.contains(f"{'(?i)' if folded else ''}^(?s:{regex})$")


def _any(expressions: list[pl.Expr]) -> pl.Expr:
    return _folded(operator.or_, expressions)


def _all(expressions: list[pl.Expr]) -> pl.Expr:
    return _folded(operator.and_, expressions)


def _folded(combine: Callable[[pl.Expr, pl.Expr], pl.Expr], expressions: list[pl.Expr]) -> pl.Expr:
    """Combine expressions two by two, so that a long chain does not become a deep tree."""
    while len(expressions) > 1:
        pairs = zip(expressions[::2], expressions[1::2], strict=False)
        odd = expressions[-1:] if len(expressions) % 2 else []
        expressions = [combine(*pair) for pair in pairs] + odd
    return expressions[0]


_BOOLEAN: Mapping[str, Callable[[str, list], pl.Expr]] = {
    **dict.fromkeys(_COMPARE, _comparison),
    "and": lambda _, args: _all([expression_of(arg) for arg in args]),
    "or": lambda _, args: _any([expression_of(arg) for arg in args]),
    "not": lambda _, args: ~expression_of(args[0]),
    "in": _in,
    "between": _between,
    "like": _like,
    "isNull": lambda _, args: _as_text(args[0]).is_null(),
}


def _is_number(node: Node) -> bool:
    if isinstance(node, dict):
        return node.get("op") in _ARITHMETIC
    return _is_literal_number(node)


def _is_literal_number(node: Node) -> TypeGuard[float]:
    return isinstance(node, int | float) and not isinstance(node, bool)


def _is_textual(node: Node) -> bool:
    """Tell whether a node may be compared with a text."""
    return isinstance(node, str) or (isinstance(node, dict) and not _is_number(node))


def _is_property(node: Node) -> TypeGuard[dict[str, Any]]:
    return isinstance(node, dict) and "property" in node


def _finite(number: float) -> float:
    if abs(number) == float("inf"):
        raise InvalidPlan("%(where)s: a number must be smaller than 1.8e308; got a larger one", where="where")
    return float(number)


def _as_number(node: Node) -> pl.Expr:
    if _is_literal_number(node):
        return pl.lit(_finite(node))
    if _is_property(node):
        return number_column(node["property"])
    if isinstance(node, dict) and node.get("op") in _ARITHMETIC:
        left, right = (_as_number(arg) for arg in node["args"])
        return _ARITHMETIC[node["op"]](left, right)
    raise InvalidPlan("%(where)s: a number or a property is needed; got %(node)s", where="where", node=_shown(node))


def _as_text(node: Node) -> pl.Expr:
    if isinstance(node, str):
        return pl.lit(node)
    if _is_property(node):
        return text_column(node["property"])
    if isinstance(node, dict) and node.get("op") == "casei" and len(node["args"]) == 1:
        return _as_text(node["args"][0]).str.to_lowercase()
    raise InvalidPlan("%(where)s: a text or a property is needed; got %(node)s", where="where", node=_shown(node))


def _as_boolean(node: Node) -> pl.Expr:
    if isinstance(node, bool):
        return pl.lit(node)
    if _is_property(node):
        text = text_column(node["property"])
        return pl.when(text.is_in(["true", "false"])).then(text == "true").otherwise(None)
    raise InvalidPlan("%(where)s: TRUE, FALSE or a property is needed; got %(node)s", where="where", node=_shown(node))


def _shown(node: Node) -> str:
    """Return a node as people write it, in short, for error messages."""
    if isinstance(node, dict):
        return node.get("property") or f"{node['op'].upper()}(...)"
    return "NULL" if node is None else str(node).upper() if isinstance(node, bool) else f"{node!r:.40}"
