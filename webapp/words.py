"""Plans in words, for people who read lists of queries."""

from typing import Any

from streaming.kinds.aggregate.plan import Threshold

FUNCTIONS = {"count": "count", "min": "smallest", "max": "largest", "sum": "sum of", "avg": "average"}


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
    if "aggregate" not in plan:
        return _members(plan, unit)
    aggregate = plan["aggregate"]
    of = aggregate.get("property") or aggregate.get("dimension")
    words = [FUNCTIONS[aggregate["function"]], of, _members(plan, unit)]
    groups = f", by {aggregate['group_by']}" if aggregate.get("group_by") else ""
    thresholds = ", ".join(Threshold(**threshold).name for threshold in aggregate.get("thresholds", ()))
    return " ".join(filter(None, words)) + groups + (thresholds and f"; {thresholds}")


def _members(plan, unit):
    if plan.get("kind") == "join":
        return _joined(plan["join"], unit)
    if "around" not in plan:
        return f"{plan.get('report', 'inside')} {_box(plan.get('compare') or plan['area'])}"
    around = plan["around"]
    focus = ", ".join(map(_number, around["at"])) if "at" in around else f"{around['stream']} {around['key']}"
    if plan.get("kind") == "knn":
        farthest = f", at most {_number(plan['max_distance'])}{unit} away" if plan.get("max_distance") else ""
        return f"the {plan['k']:,} nearest to {focus}{farthest}"
    if "radius" in around:
        return f"within {_number(around['radius'])}{unit} of {focus}"
    if "polygon" in around:
        return f"in a polygon of {len(around['polygon'])} corners around {focus}"
    sides = " × ".join(
        "any" if half is None else f"{_number(2 * half)}{unit}" for half in [*around["half_widths"], None][:2]
    )
    return f"in {sides} around {focus}"


def _joined(join, unit):
    source = next(name for name in ("layer", "stream", "stored") if name in join)
    distance = f" {_number(join['distance'])}{unit}" if "distance" in join else ""
    return f"{join['predicate']}{distance} {source} {join[source]}"


def _box(box):
    corners = (", ".join("any" if bound is None else _number(bound) for bound in box[side]) for side in ("lo", "hi"))
    return " to ".join(corners)


def _number(value):
    """Return a number as text, with commas between thousands and at most six decimals."""
    return f"{value:,.6f}".rstrip("0").rstrip(".")
