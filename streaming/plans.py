"""Descriptions of continuous queries: JSON on the wire, frozen dataclasses in the code.

References
----------
BBoxDB Streams (2022), section 4: a continuous range query is registered in the area alpha, compares each element, after
its transformations theta, with the query box tau, and reports positive or negative matches (beta).
"""

import math
from dataclasses import dataclass, fields
from typing import Any

from streaming.errors import InvalidPlan, InvalidSpace
from streaming.filters import parse_filter
from streaming.spaces import EARTH, Space

REPORTS = ("inside", "outside")
EMITS = ("changes", "all")
ENLARGEMENTS = ("enlarge_factor", "enlarge_value", "enlarge_m")
MAX_WHERE_CHARACTERS = 2_000
MAX_TRANSFORMS = 8


@dataclass(frozen=True)
class Enlargement:
    """One transformation of an element's box (theta).

    Parameters
    ----------
    by : {"enlarge_factor", "enlarge_value", "enlarge_m"}
        Multiply the box's extent about its centre; move every side outwards by an amount in the dimension's own unit;
        move the sides of longitude and latitude outwards by metres.
    amount : float
        Not negative; metres for ``enlarge_m``.
    """

    by: str
    amount: float


@dataclass(frozen=True)
class RangePlan:
    """A continuous range query.

    Parameters
    ----------
    stream : str
    area : tuple of float, length 2n
        Where it is registered (alpha): elements outside of it are not looked at.
    compare : tuple of float, length 2n
        The query box (tau).
    report : {"inside", "outside"}
        Report the elements of the area whose transformed box intersects `compare`, or the others (beta).
    transform : tuple of Enlargement
        Applied in order to the element's box before it is compared (theta).
    where : str
        CQL2 text over the element's properties; empty for none.
    emit : {"changes", "all"}
        ``changes``: the answer is kept incrementally, a change a tuple; ``all``: each matching element is reported as
        it comes, and nothing is kept.
    """

    stream: str
    area: tuple[float, ...]
    compare: tuple[float, ...]
    report: str = "inside"
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    emit: str = "changes"
    kind: str = "range"


PLAN_KEYS = tuple(field.name for field in fields(RangePlan))


def parse_plan(document: Any, space: Space = EARTH) -> RangePlan:
    """Return the plan that a JSON document describes.

    Parameters
    ----------
    document : dict
        See docs/plans.md. `area` and `compare` are ``{"lo": [...], "hi": [...]}``; at least one of them must be there.
        A missing `area` is `compare` when matches inside are reported, the whole space otherwise; a missing `compare`
        is `area`.
    space : Space

    Raises
    ------
    InvalidPlan
        With the rule that the document breaks, and the value.

    Examples
    --------
    >>> parse_plan({"stream": "vessels", "compare": {"lo": [24, 60], "hi": [25, 61]}}).compare[:2]
    (24.0, 60.0)
    """
    if not isinstance(document, dict):
        raise InvalidPlan(f"a plan must be a JSON object; got {type(document).__name__}")
    unknown = sorted(set(document) - set(PLAN_KEYS))
    if unknown:
        raise InvalidPlan(f"a plan has the keys {', '.join(PLAN_KEYS)}; got the unknown {', '.join(unknown)}")
    if document.get("area") is None and document.get("compare") is None:
        raise InvalidPlan("a plan needs an area or a compare box; got neither")
    report = _choice(document, "report", REPORTS)
    compare = _box(document, "compare", space) or _box(document, "area", space)
    area = _box(document, "area", space) or (compare if report == "inside" else tuple(space.whole()))
    return RangePlan(
        stream=_stream(document),
        area=area,
        compare=compare,
        report=report,
        transform=_transform(document, space),
        where=_where(document),
        emit=_choice(document, "emit", EMITS),
        kind=_choice(document, "kind", ("range",)),
    )


def plan_document(plan: RangePlan, space: Space = EARTH) -> dict:
    """Return the JSON document of a plan, such that ``parse_plan(plan_document(plan)) == plan``."""
    document = {
        "stream": plan.stream,
        "kind": plan.kind,
        "compare": _corners(plan.compare, space),
        "report": plan.report,
        "transform": [{step.by: step.amount} for step in plan.transform],
        "where": plan.where,
        "emit": plan.emit,
    }
    if any(map(math.isfinite, plan.area)):
        document["area"] = _corners(plan.area, space)
    return document


def _corners(box, space):
    # Without numpy: the engine writes the plans of all queries whenever one changes.
    bounded = sum(map(math.isfinite, box[: space.n]))
    return {"lo": list(box[:bounded]), "hi": list(box[space.n : space.n + bounded])}


def _box(document, name, space):
    corners = document.get(name)
    if corners is None:
        return None
    if not isinstance(corners, dict) or set(corners) != {"lo", "hi"}:
        raise InvalidPlan(f'{name} must be an object of the form {{"lo": [...], "hi": [...]}}; got {corners!r}')
    try:
        return tuple(float(bound) for bound in space.box(corners["lo"], corners["hi"]))
    except InvalidSpace as error:
        raise InvalidPlan(f"{name}: {error}") from None


def _choice(document, name, choices):
    value = document.get(name, choices[0])
    if value not in choices:
        raise InvalidPlan(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return value


def _stream(document):
    stream = document.get("stream")
    if not isinstance(stream, str) or not stream:
        raise InvalidPlan(f"stream must be the name of a stream; got {stream!r}")
    return stream


def _transform(document, space):
    steps = document.get("transform", [])
    if not isinstance(steps, list) or len(steps) > MAX_TRANSFORMS:
        raise InvalidPlan(f"transform must be a list of at most {MAX_TRANSFORMS} enlargements; got {steps!r}")
    return tuple(_enlargement(step, space) for step in steps)


def _enlargement(step, space):
    if not isinstance(step, dict) or len(step) != 1 or next(iter(step)) not in ENLARGEMENTS:
        raise InvalidPlan(f"an enlargement must be an object with one of {', '.join(ENLARGEMENTS)}; got {step!r}")
    ((by, amount),) = step.items()
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not (0 <= amount < math.inf):
        raise InvalidPlan(f"{by} must be a finite number that is not negative; got {amount!r}")
    if by == "enlarge_m" and not space.geographic:
        raise InvalidPlan(f"enlarge_m needs a space with longitude and latitude; got {space.name!r}")
    return Enlargement(by, float(amount))


def _where(document):
    where = document.get("where", "")
    if not isinstance(where, str) or len(where) > MAX_WHERE_CHARACTERS:
        raise InvalidPlan(f"where must be CQL2 text of at most {MAX_WHERE_CHARACTERS} characters; got {where!r:.80}")
    if where.strip():
        parse_filter(where)
    return where.strip()
