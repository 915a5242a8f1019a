"""Plans and names in words, for people who read lists of queries or mails."""

from collections.abc import Mapping
from typing import Any

from streaming.kinds.registry import claimed

# The properties that may hold the name of a thing, best first; as in static/js/format.js.
TITLES = ("name", "ship_name", "vessel_name", "call_sign", "callsign", "flight", "registration", "label", "title")


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


def title(key: str, properties: Mapping[str, Any]) -> str:
    """Return what a thing is called: its name, or else its key.

    Examples
    --------
    >>> title("230982000", {"name": "MS ANNA ", "speed_mps": 5.5}), title("230982000", {"name": None})
    ('MS ANNA', '230982000')
    """
    names = (properties.get(field) for field in TITLES)
    return next((name.strip() for name in names if isinstance(name, str) and name.strip()), key)
