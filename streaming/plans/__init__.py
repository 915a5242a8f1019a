"""Descriptions of continuous queries: JSON on the wire, frozen dataclasses in the code.

References
----------
BBoxDB Streams (2022), section 4: a continuous query is registered in the area alpha. It transforms each element (theta)
and compares it with the query box tau (a range query), or with stored tuples, which it also filters (a spatial join).
"""

from streaming.plans.builder import QueryPlanBuilder
from streaming.plans.documents import parse_plan, plan_document
from streaming.plans.moving import (
    Aggregate,
    AggregatePlan,
    Carried,
    Circle,
    Focus,
    MovingRangePlan,
    NearestPlan,
    Plan,
    Rectangle,
    Shape,
    Threshold,
)
from streaming.plans.parts import (
    ENLARGEMENTS,
    MAX_FILTERS,
    MAX_TRANSFORMS,
    MAX_WHERE_CHARACTERS,
    BoxFilter,
    Enlargement,
    Filter,
    KeyFilter,
    UserFilter,
)
from streaming.plans.queries import EMITS, KINDS, PREDICATES, REPORTS, SOURCES, JoinPlan, Partners, RangePlan

__all__ = [
    "EMITS",
    "ENLARGEMENTS",
    "KINDS",
    "MAX_FILTERS",
    "MAX_TRANSFORMS",
    "MAX_WHERE_CHARACTERS",
    "PREDICATES",
    "REPORTS",
    "SOURCES",
    "Aggregate",
    "AggregatePlan",
    "BoxFilter",
    "Carried",
    "Circle",
    "Enlargement",
    "Filter",
    "Focus",
    "JoinPlan",
    "KeyFilter",
    "MovingRangePlan",
    "NearestPlan",
    "Partners",
    "Plan",
    "QueryPlanBuilder",
    "RangePlan",
    "Rectangle",
    "Shape",
    "Threshold",
    "UserFilter",
    "parse_plan",
    "plan_document",
]
