"""Conditions of rules: in which answers an object is, that it is silent, or numbers of whole answers.

A condition is a function of at most `MOST_QUERIES` terms, each about one answer. So it is kept as its truth table, and
is looked up there for any number of objects at once. A term about a query that does not run is neither true nor false,
but unknown; so the logic has three values.

References
----------
S. C. Kleene, "Introduction to Metamathematics" (1952), section 64: the strong connectives of three-valued logic.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming.errors import InvalidPlan
from streaming.kinds.parts import check_keys, given, parse_number, parse_text
from streaming.language import gettext

MOST_QUERIES = 8
MOST_DEPTH = 8
MOST_OBJECTS = 1_000_000_000
MOST_EXPECTED = 1_000
OPERATORS = ("query", "silent", "count", "value", "all", "any", "not")
# The operators of terms: those about an object, and those about a number of a whole answer.
TERMS = ("query", "silent", "count", "value")
NUMBERS = ("count", "value")
COUNT_KEYS = ("query", "below", "above")
VALUE_KEYS = ("query", "group", "below", "above")
SILENT_KEYS = ("query", "expected")
# The truth values, in their order: `all` is the least of its parts, `any` the greatest, and `not` turns them round.
FALSE, UNKNOWN, TRUE = range(3)


@dataclass(frozen=True)
class RuleCondition:
    """A condition on an object, or on whole answers.

    Parameters
    ----------
    operator : {"query", "silent", "count", "value", "all", "any", "not"}
        ``query``: the object is in the answer of a query; ``silent``: it does not report any more, and its last report
        was in the answer of a query; ``count``: the answer of a query has fewer, or more, objects
        than a limit; ``value``: the value of an aggregate is below, or above, a limit; ``all``, ``any``: so many of the
        parts hold; ``not``: the one part does not hold.
    parts : tuple of RuleCondition
    query : int
        The number of the query, with ``query``, ``silent``, ``count`` and ``value``.
    below : float or None
        With ``count`` and ``value``: the number is less than this. A count, or a value, has this or `above`.
    above : float or None
        With ``count`` and ``value``: the number is greater than this.
    group : str or None
        With ``value``: the group of an aggregate with `group_by`.
    expected : tuple of str
        With ``silent``: keys of objects that are silent from the beginning of the rule on if they have not reported by
        then, perhaps never.
    """

    operator: str
    parts: tuple["RuleCondition", ...] = ()
    query: int = 0
    below: float | None = None
    above: float | None = None
    group: str | None = None
    expected: tuple[str, ...] = ()

    @functools.cached_property
    def terms(self) -> tuple["RuleCondition", ...]:
        """The conditions on one answer of which it consists, each once, in order."""
        if self.operator in TERMS:
            return (self,)
        return tuple(dict.fromkeys(term for part in self.parts for term in part.terms))

    def table(self, terms: Sequence["RuleCondition"]) -> np.ndarray:
        """Return the truth table, int8 of shape (3 ** T,) for T terms: `FALSE`, `UNKNOWN` or `TRUE`.

        Parameters
        ----------
        terms : sequence of RuleCondition
            Digit *i* of a position in the table, in base 3, is the truth value of the *i*-th of them.
        """
        if self.operator in TERMS:
            return (np.arange(3 ** len(terms)) // 3 ** terms.index(self) % 3).astype(np.int8)
        tables = [part.table(terms) for part in self.parts]
        if self.operator == "not":
            return TRUE - tables[0]
        return np.min(tables, axis=0) if self.operator == "all" else np.max(tables, axis=0)

    def holds_of(self, number: float) -> bool:
        """Tell whether a count, or a value, keeps the bound."""
        return number < self.below if self.below is not None else number > (self.above or 0.0)


def parse_condition(document: Any, name: str, depth: int = 0) -> RuleCondition:
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
        return RuleCondition("query", query=_parse_query(value, name))
    if operator == "silent":
        return _parse_silent(value, name, depth)
    if operator in NUMBERS:
        return _parse_number(operator, value, f"{name}: {operator}")
    if operator == "not":
        return RuleCondition("not", (parse_condition(value, f"{name}: not", depth + 1),))
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_QUERIES:
        raise InvalidPlan(
            "%(name)s: %(operator)s must be a list of 1 to %(most_queries)s conditions; got %(value)s",
            name=name,
            operator=operator,
            most_queries=MOST_QUERIES,
            value=f"{value!r:.200}",
        )
    return RuleCondition(operator, tuple(parse_condition(part, f"{name}: {operator}", depth + 1) for part in value))


def condition_document(condition: RuleCondition) -> dict[str, Any]:
    """Return the JSON object of a condition; the inverse of `parse_condition`."""
    if condition.operator == "query":
        return {"query": condition.query}
    if condition.operator == "silent":
        expected = {"expected": list(condition.expected)} if condition.expected else {}
        return {"silent": {"query": condition.query} | expected}
    if condition.operator in NUMBERS:
        group = {} if condition.group is None else {"group": condition.group}
        return {condition.operator: {"query": condition.query} | group | _limit(condition)}
    parts = [condition_document(part) for part in condition.parts]
    return {condition.operator: parts[0] if condition.operator == "not" else parts}


def in_words(document: dict[str, Any]) -> str:
    """Describe a condition in words, given its JSON object."""
    ((operator, value),) = document.items()
    if operator == "query":
        return gettext("in query %(value)s") % {"value": value}
    if operator == "silent":
        told = gettext("silent, last in query %(query)s") % {"query": value["query"]}
        expected = ", ".join(value.get("expected") or ())
        return told + (gettext(", or expected: %(keys)s") % {"keys": f"{expected:.200}"} if expected else "")
    if operator in NUMBERS:
        about = {"query": value["query"], "group": value.get("group")}
        about["limit"] = limit_in_words(value.get("below"), value.get("above"))
        if operator == "count":
            return gettext("count of query %(query)s %(limit)s") % about
        if about["group"]:
            return gettext("value of query %(query)s for %(group)s %(limit)s") % about
        return gettext("value of query %(query)s %(limit)s") % about
    if operator == "not":
        return (
            gettext("not (%(value)s)") % {"value": in_words(value)}
            if "query" not in value
            else gettext("not %(value)s") % {"value": in_words(value)}
        )
    joined = (gettext(" and ") if operator == "all" else gettext(" or ")).join(map(in_words, value))
    return joined if len(value) == 1 else f"({joined})"


def limit_in_words(below: float | None, above: float | None) -> str:
    """Describe the bound of a count or of a value in words."""
    if below is not None:
        return gettext("below %(limit)s") % {"limit": f"{below:.15g}"}
    return gettext("above %(limit)s") % {"limit": f"{above:.15g}"}


def _parse_query(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidPlan(
            "%(name)s: query must be the number of a query; got %(value)s", name=name, value=f"{value!r:.80}"
        )
    return value


def _parse_silent(document: Any, name: str, depth: int) -> RuleCondition:
    """Return the condition that an object is silent, which is a whole condition and not a part of one."""
    if depth or name != "when":
        raise InvalidPlan("silent must be the whole condition of when; got it within %(name)s", name=name)
    name = f"{name}: silent"
    if not isinstance(document, dict):
        raise InvalidPlan(
            "%(name)s must be an object with query, and perhaps expected; got %(document)s",
            name=name,
            document=f"{document!r:.200}",
        )
    check_keys(document, SILENT_KEYS, name)
    query, expected = _parse_query(document.get("query"), name), document.get("expected")
    expected = [] if expected is None else expected
    if not isinstance(expected, list) or len(expected) > MOST_EXPECTED:
        raise InvalidPlan(
            "%(name)s: expected must be a list of at most %(most)s keys; got %(document)s",
            name=name,
            most=MOST_EXPECTED,
            document=f"{expected!r:.200}",
        )
    keys = (parse_text(key, f"{name}: expected") for key in expected)
    return RuleCondition("silent", query=query, expected=tuple(dict.fromkeys(keys)))


def _parse_number(operator: str, document: Any, name: str) -> RuleCondition:
    """Return the term about a number of a whole answer."""
    if not isinstance(document, dict):
        raise InvalidPlan(
            "%(name)s must be an object with query, and below or above; got %(document)s",
            name=name,
            document=f"{document!r:.200}",
        )
    check_keys(document, COUNT_KEYS if operator == "count" else VALUE_KEYS, name)
    named = given(document, ("below", "above"))
    if len(named) != 1:
        raise InvalidPlan(
            "%(name)s must have one of below, above; got %(named)s",
            name=name,
            named=", ".join(named) or gettext("none"),
        )
    bounds = {"lo": 0, "hi": MOST_OBJECTS} if operator == "count" else {}
    limit = parse_number(document[named[0]], f"{name}: {named[0]}", **bounds)
    group = document.get("group")
    if group is not None:
        group = parse_text(group, f"{name}: group")
    below, above = (limit, None) if named == ["below"] else (None, limit)
    return RuleCondition(
        operator, query=_parse_query(document.get("query"), name), below=below, above=above, group=group
    )


def _limit(condition: RuleCondition) -> dict[str, float | None]:
    return {"above": condition.above} if condition.below is None else {"below": condition.below}
