"""Filters explained: each comparison of CQL2 text with the values that it found, and each further filter."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from streaming.cql2 import parse_text
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every, negated, some
from streaming.explaining.words import value
from streaming.filters import expression_of
from streaming.kinds.parts import BoxFilter, Filter, KeyFilter, KeysFilter, box_document
from streaming.kinds.words import box as box_words
from streaming.kinds.words import plain
from streaming.language import gettext
from streaming.operators.conditions import judged
from streaming.property_columns import PropertyColumns

MOST_KEYS_SHOWN = 5
_COMBINED = {"and": every, "or": some}


def explain_filter(text: str, subject: Subject) -> Term:
    """Return the term of CQL2 text: its tree of AND, OR and NOT, with a leaf for each comparison."""
    return _term(parse_text(text), PropertyColumns(subject.table["properties"]), subject.properties)


def _term(node: Any, columns: PropertyColumns, properties: Mapping[str, Any]) -> Term:
    operator = node.get("op") if isinstance(node, dict) else None
    if operator in _COMBINED:
        return _COMBINED[operator](text_of(node), [_term(part, columns, properties) for part in node["args"]])
    if operator == "not":
        return negated(text_of(node), _term(node["args"][0], columns, properties))
    (holds,) = columns.truths(expression_of(node))
    found = ", ".join(
        gettext("%(name)s is %(properties)s") % {"name": name, "properties": value(properties.get(name))}
        for name in _names(node)
    )
    return Term(text_of(node), holds, found)


def _names(node: Any) -> list[str]:
    """Return the names of the properties in a tree, each once, in their order."""
    if isinstance(node, list):
        return list(dict.fromkeys(name for part in node for name in _names(part)))
    if not isinstance(node, dict):
        return []
    return [node["property"]] if "property" in node else _names(node["args"])


def text_of(node: Any) -> str:
    """Return a tree of `parse_text` as CQL2 text.

    Examples
    --------
    >>> text_of(parse_text("NOT (speed>5 AND kind IN ('a','b')) OR name IS NOT NULL"))
    "NOT (speed > 5 AND kind IN ('a', 'b')) OR NOT name IS NULL"
    """
    if isinstance(node, bool):
        return str(node).upper()
    if not isinstance(node, dict):
        return "NULL" if node is None else "'" + node.replace("'", "''") + "'" if isinstance(node, str) else plain(node)
    if "property" in node:
        return node["property"]
    operator, arguments = node["op"], node["args"]
    if operator == "in":
        return f"{text_of(arguments[0])} IN ({', '.join(map(text_of, arguments[1]))})"
    if operator == "between":
        return "{} BETWEEN {} AND {}".format(*map(_within, arguments))
    if operator == "isNull":
        return f"{text_of(arguments[0])} IS NULL"
    if operator == "not":
        return f"NOT {_within(arguments[0])}"
    if operator == "or":
        return " OR ".join(map(text_of, arguments))
    if operator == "and":
        return " AND ".join(f"({text_of(part)})" if _is(part, ("or",)) else text_of(part) for part in arguments)
    if len(arguments) == 1:
        return f"{operator.upper()}({text_of(arguments[0])})"
    return f" {operator.upper()} ".join(map(_within, arguments))


def _within(node: Any) -> str:
    """Return the text of a part of a comparison, in brackets if it is made of others."""
    return f"({text_of(node)})" if _is(node, ("and", "or", *"+-*/%^")) else text_of(node)


def _is(node: Any, operators: Collection[str]) -> bool:
    return isinstance(node, dict) and node.get("op") in operators


def filter_term(entry: Filter, subject: Subject) -> Term:
    """Return the term of one further filter of a query."""
    told = judged(subject.elements, np.zeros(1, dtype=np.int64), entry, subject.space)
    passes = bool(told.passes[0])
    if told.error is not None:
        asks = gettext("passes the filter %(udf)s") % {"udf": entry.udf}  # type: ignore[union-attr]
        return Term(asks, passes, gettext("the filter failed: %(error)s") % {"error": told.error})
    if isinstance(entry, KeyFilter):
        return Term(
            gettext("the object is %(key)s") % {"key": f"{entry.key!r:.80}"},
            passes,
            gettext("it is %(key)s") % {"key": f"{subject.key!r:.80}"},
        )
    if isinstance(entry, KeysFilter):
        shown = ", ".join(entry.keys[:MOST_KEYS_SHOWN])
        more = len(entry.keys) - MOST_KEYS_SHOWN
        among = gettext("the object is one of %(keys)s") % {"keys": shown}
        if more > 0:
            among = gettext("the object is one of %(keys)s and %(count)s more") % {"keys": shown, "count": more}
        return Term(among, passes, gettext("it is %(key)s") % {"key": f"{subject.key!r:.80}"})
    if isinstance(entry, BoxFilter):
        box = box_words(box_document(entry.box, subject.space))
        return Term(
            gettext("its box meets %(box)s") % {"box": box},
            passes,
            gettext("its box is %(box)s") % {"box": box_words(_own(subject))},
        )
    values = {"udf": entry.udf, "argument": f"{entry.argument:.80}"}  # type: ignore[union-attr]
    with_argument = gettext("passes the filter %(udf)s with %(argument)s")
    return Term((with_argument if values["argument"] else gettext("passes the filter %(udf)s")) % values, passes)


def _own(subject: Subject) -> dict[str, Any]:
    return box_document(tuple(subject.bounds[0].tolist()), subject.space)
