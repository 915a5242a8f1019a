"""Descriptions of continuous queries: JSON on the wire, frozen dataclasses in the code.

What each kind of query is, `streaming.kinds` tells.

References
----------
BBoxDB Streams (2022), section 4: a continuous query is registered in the area alpha. It transforms each element (theta)
and compares it with the query box tau (a range query), or with stored tuples, which it also filters (a spatial join).
"""

from streaming.plans.builder import QueryPlanBuilder
from streaming.plans.documents import parse_plan, plan_document

__all__ = ["QueryPlanBuilder", "parse_plan", "plan_document"]
