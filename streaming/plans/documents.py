"""Plans from JSON documents and back."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.base import Plan
from streaming.kinds.registry import claimed, kind_of
from streaming.spaces import EARTH, Space


def parse_plan(document: Any, space: Space = EARTH) -> Any:
    """Return the plan that a JSON document describes.

    Parameters
    ----------
    document : dict
        See docs/plans.md. A range query needs `area` or `compare`, boxes ``{"lo": [...], "hi": [...]}``, or `around`. A
        missing `area` is `compare` if the query reports matches inside, else the whole space; a missing `compare` is
        `area`. A join needs `join`. In a join, and in a query with `around`, a missing `area` is the whole space.
    space : Space

    Returns
    -------
    Plan
        Of the class that the kind of query has (`kinds.registry`).

    Raises
    ------
    InvalidPlan
        If the document breaks a rule. The message says the rule and the value.

    Examples
    --------
    >>> parse_plan({"stream": "vessels", "compare": {"lo": [24, 60], "hi": [25, 61]}}).compare[:2]
    (24.0, 60.0)
    >>> parse_plan({"stream": "buses", "kind": "join", "join": {"layer": "forests"}}).partners.predicate
    'intersects'
    >>> parse_plan({"stream": "vessels", "around": {"key": "230992000", "radius": 9260}}).focus.stream
    'vessels'
    """
    if not isinstance(document, dict):
        raise InvalidPlan("a plan must be a JSON object; got %(name)s", name=type(document).__name__)
    return claimed(document).parse(document, space)


def plan_document(plan: Plan, space: Space = EARTH) -> dict[str, Any]:
    """Return the JSON document of a plan, such that ``parse_plan(plan_document(plan)) == plan``."""
    return kind_of(plan).document(plan, space)
