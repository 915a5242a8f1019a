"""Conditions of rules: in which answers an object is.

A condition is a Boolean function of at most `MOST_QUERIES` answers. So it is kept as its truth table, and is looked up
there for any number of objects at once.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming.errors import InvalidPlan

MOST_QUERIES = 8
MOST_DEPTH = 8
OPERATORS = ("query", "all", "any", "not")


@dataclass(frozen=True)
class Condition:
    """A condition on an object.

    Parameters
    ----------
    operator : {"query", "all", "any", "not"}
        ``query``: the object is in the answer of a query; ``all``, ``any``: so many of the parts hold; ``not``: the one
        part does not hold.
    parts : tuple of Condition
    query : int
        The number of the query, with ``query``.
    """

    operator: str
    parts: tuple["Condition", ...] = ()
    query: int = 0

    @functools.cached_property
    def queries(self) -> tuple[int, ...]:
        """The queries that it names, each once, in order."""
        if self.operator == "query":
            return (self.query,)
        return tuple(dict.fromkeys(query for part in self.parts for query in part.queries))

    def table(self, queries: Sequence[int]) -> np.ndarray:
        """Return the truth table, bool of shape (2 ** `MOST_QUERIES`,).

        Parameters
        ----------
        queries : sequence of int
            Bit *i* of a position in the table tells whether the object is in the answer of the *i*-th of them.
        """
        if self.operator == "query":
            return (np.arange(1 << MOST_QUERIES) >> queries.index(self.query)) & 1 == 1
        tables = [part.table(queries) for part in self.parts]
        if self.operator == "not":
            return ~tables[0]
        return np.all(tables, axis=0) if self.operator == "all" else np.any(tables, axis=0)


def parse_condition(document: Any, name: str, depth: int = 0) -> Condition:
    """Return the condition that a JSON object with one key describes; raise `InvalidPlan` if it breaks a rule."""
    if not isinstance(document, dict) or len(document) != 1 or next(iter(document)) not in OPERATORS:
        raise InvalidPlan(f"{name} must be an object with one of {', '.join(OPERATORS)}; got {document!r:.200}")
    if depth > MOST_DEPTH:
        raise InvalidPlan(f"{name} must have at most {MOST_DEPTH} levels; got more")
    ((operator, value),) = document.items()
    if operator == "query":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidPlan(f"{name}: query must be the number of a query; got {value!r:.80}")
        return Condition("query", query=value)
    if operator == "not":
        return Condition("not", (parse_condition(value, f"{name}: not", depth + 1),))
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_QUERIES:
        raise InvalidPlan(f"{name}: {operator} must be a list of 1 to {MOST_QUERIES} conditions; got {value!r:.200}")
    return Condition(operator, tuple(parse_condition(part, f"{name}: {operator}", depth + 1) for part in value))


def condition_document(condition: Condition) -> dict[str, Any]:
    """Return the JSON object of a condition; the inverse of `parse_condition`."""
    if condition.operator == "query":
        return {"query": condition.query}
    parts = [condition_document(part) for part in condition.parts]
    return {condition.operator: parts[0] if condition.operator == "not" else parts}


def in_words(document: dict[str, Any]) -> str:
    """Describe a condition in words, given its JSON object."""
    ((operator, value),) = document.items()
    if operator == "query":
        return f"in query {value}"
    if operator == "not":
        return f"not ({in_words(value)})" if "query" not in value else f"not {in_words(value)}"
    joined = (" and " if operator == "all" else " or ").join(map(in_words, value))
    return joined if len(value) == 1 else f"({joined})"
