"""Plans in words, for people who read lists of queries."""

from typing import Any

from streaming.kinds.registry import claimed


def plan_in_words(plan: dict[str, Any], unit: str = " m") -> str:
    """Describe in words what a plan asks for.

    Parameters
    ----------
    plan : dict
        The plan in its full form.
    unit : str
        Unit that follows lengths, with a leading space; empty outside of geographic spaces.

    Examples
    --------
    >>> plan_in_words({"kind": "knn", "k": 3, "around": {"stream": "ships", "key": "anna"}, "max_distance": 5000.0})
    'the 3 nearest to ships anna, at most 5,000 m away'
    >>> around = {"at": [24.5, 59.7], "radius": 9260.0}
    >>> aggregate = {"function": "avg", "property": "speed_mps", "thresholds": [{"below": 1, "for_s": 300}]}
    >>> plan_in_words({"kind": "range", "around": around, "aggregate": aggregate})
    'average speed_mps within 9,260 m of 24.5, 59.7; below 1 for 300 s'
    """
    return claimed(plan).words(plan, unit)
