"""Conditions of rules in Python: functions that make their documents, for `QueryPlanBuilder.alarm_when`."""

from typing import Any

Condition = dict[str, Any]


def in_answer(query: int) -> Condition:
    """Return the condition that the object is in the answer of a query, given its number."""
    return {"query": query}


def silent_in(query: int, *expected: str) -> Condition:
    """Return the condition that the object is silent, and that its last report was in the answer of a query.

    Parameters
    ----------
    query : int
    *expected : str
        Keys of objects that count also if they were never heard.

    Examples
    --------
    >>> silent_in(7, "230992000")
    {'silent': {'query': 7, 'expected': ['230992000']}}
    """
    return {"silent": {"query": query} | ({"expected": list(expected)} if expected else {})}


def count_of(query: int, *, below: float | None = None, above: float | None = None) -> Condition:
    """Return the condition that the answer of a query has fewer objects than a limit, or more.

    Examples
    --------
    >>> count_of(7, below=1)
    {'count': {'query': 7, 'below': 1}}
    """
    return {"count": {"query": query} | _limit(below, above)}


def value_of(
    query: int, group: str | None = None, *, below: float | None = None, above: float | None = None
) -> Condition:
    """Return the condition that the value of an aggregate, or of one of its groups, is below a limit, or above.

    Examples
    --------
    >>> value_of(7, "tanker", above=12.5)
    {'value': {'query': 7, 'group': 'tanker', 'above': 12.5}}
    """
    return {"value": {"query": query} | ({} if group is None else {"group": group}) | _limit(below, above)}


def all_of(*conditions: Condition) -> Condition:
    """Return the condition that all of some conditions hold."""
    return {"all": list(conditions)}


def any_of(*conditions: Condition) -> Condition:
    """Return the condition that at least one of some conditions holds."""
    return {"any": list(conditions)}


def not_so(condition: Condition) -> Condition:
    """Return the condition that another one does not hold."""
    return {"not": condition}


def _limit(below: float | None, above: float | None) -> dict[str, float]:
    return {side: limit for side, limit in (("below", below), ("above", above)) if limit is not None}
