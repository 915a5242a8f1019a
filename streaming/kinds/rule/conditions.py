"""Conditions of rules: in which answers an object is, or how many objects whole answers have.

A condition is a Boolean function of at most `MOST_QUERIES` terms, each about one answer. So it is kept as its truth
table, and is looked up there for any number of objects at once.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming.errors import InvalidPlan
from streaming.kinds.parts import check_keys, given, parse_number
from streaming.language import gettext

MOST_QUERIES = 8
MOST_DEPTH = 8
MOST_OBJECTS = 1_000_000_000
OPERATORS = ("query", "count", "all", "any", "not")
COUNT_KEYS = ("query", "below", "above")


@dataclass(frozen=True)
class Condition:
    """A condition on an object, or on whole answers.

    Parameters
    ----------
    operator : {"query", "count", "all", "any", "not"}
        ``query``: the object is in the answer of a query; ``count``: the answer of a query has fewer, or more, objects
        than a limit; ``all``, ``any``: so many of the parts hold; ``not``: the one part does not hold.
    parts : tuple of Condition
    query : int
        The number of the query, with ``query`` and ``count``.
    below : float or None
        With ``count``: the answer has fewer objects than this. A count has this or `above`.
    above : float or None
        With ``count``: the answer has more objects than this.
    """

    operator: str
    parts: tuple["Condition", ...] = ()
    query: int = 0
    below: float | None = None
    above: float | None = None

    @functools.cached_property
    def terms(self) -> tuple["Condition", ...]:
        """The conditions on one answer of which it consists, each once, in order."""
        if self.operator in ("query", "count"):
            return (self,)
        return tuple(dict.fromkeys(term for part in self.parts for term in part.terms))

    def table(self, terms: Sequence["Condition"]) -> np.ndarray:
        """Return the truth table, bool of shape (2 ** `MOST_QUERIES`,).

        Parameters
        ----------
        terms : sequence of Condition
            Bit *i* of a position in the table tells whether the *i*-th of them holds.
        """
        if self.operator in ("query", "count"):
            return (np.arange(1 << MOST_QUERIES) >> terms.index(self)) & 1 == 1
        tables = [part.table(terms) for part in self.parts]
        if self.operator == "not":
            return ~tables[0]
        return np.all(tables, axis=0) if self.operator == "all" else np.any(tables, axis=0)


def parse_condition(document: Any, name: str, depth: int = 0) -> Condition:
    """Return the condition that a JSON object with one key describes; raise `InvalidPlan` if it breaks a rule."""
    if not isinstance(document, dict) or len(document) != 1 or next(iter(document)) not in OPERATORS:
        raise InvalidPlan(
            "%(name)s must be an object with one of %(operators)s; got %(document)s",
            name=name,
            operators=", ".join(OPERATORS),
            document=f"{document!r:.200}",
        )
    if depth > MOST_DEPTH:
        raise InvalidPlan(
            "%(name)s must have at most %(most_depth)s levels; got more", name=name, most_depth=MOST_DEPTH
        )
    ((operator, value),) = document.items()
    if operator == "query":
        return Condition("query", query=_parse_query(value, name))
    if operator == "count":
        return _parse_count(value, f"{name}: count")
    if operator == "not":
        return Condition("not", (parse_condition(value, f"{name}: not", depth + 1),))
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_QUERIES:
        raise InvalidPlan(
            "%(name)s: %(operator)s must be a list of 1 to %(most_queries)s conditions; got %(value)s",
            name=name,
            operator=operator,
            most_queries=MOST_QUERIES,
            value=f"{value!r:.200}",
        )
    return Condition(operator, tuple(parse_condition(part, f"{name}: {operator}", depth + 1) for part in value))


def condition_document(condition: Condition) -> dict[str, Any]:
    """Return the JSON object of a condition; the inverse of `parse_condition`."""
    if condition.operator == "query":
        return {"query": condition.query}
    if condition.operator == "count":
        return {"count": {"query": condition.query} | _limit(condition)}
    parts = [condition_document(part) for part in condition.parts]
    return {condition.operator: parts[0] if condition.operator == "not" else parts}


def in_words(document: dict[str, Any]) -> str:
    """Describe a condition in words, given its JSON object."""
    ((operator, value),) = document.items()
    if operator == "query":
        return gettext("in query %(value)s") % {"value": value}
    if operator == "count":
        limit = (
            gettext("below %(below)g") % {"below": value["below"]}
            if value.get("below") is not None
            else gettext("above %(above)g") % {"above": value["above"]}
        )
        return gettext("count of query %(query)s %(limit)s") % {"query": value["query"], "limit": limit}
    if operator == "not":
        return (
            gettext("not (%(value)s)") % {"value": in_words(value)}
            if "query" not in value
            else gettext("not %(value)s") % {"value": in_words(value)}
        )
    joined = (gettext(" and ") if operator == "all" else gettext(" or ")).join(map(in_words, value))
    return joined if len(value) == 1 else f"({joined})"


def _parse_query(value, name):
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidPlan(
            "%(name)s: query must be the number of a query; got %(value)s", name=name, value=f"{value!r:.80}"
        )
    return value


def _parse_count(document, name):
    if not isinstance(document, dict):
        raise InvalidPlan(
            "%(name)s must be an object with query, and below or above; got %(document)s",
            name=name,
            document=f"{document!r:.200}",
        )
    check_keys(document, COUNT_KEYS, name)
    named = given(document, ("below", "above"))
    if len(named) != 1:
        raise InvalidPlan(
            "%(name)s must have one of below, above; got %(named)s",
            name=name,
            named=", ".join(named) or gettext("none"),
        )
    limit = parse_number(document[named[0]], f"{name}: {named[0]}", lo=0, hi=MOST_OBJECTS)
    return Condition("count", query=_parse_query(document.get("query"), name), **{named[0]: limit})


def _limit(condition):
    return {"above": condition.above} if condition.below is None else {"below": condition.below}
