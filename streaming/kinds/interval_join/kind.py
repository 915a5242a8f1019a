"""Interval joins: how a plan is read, written, described and evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.interval_join.plan import KEYS, IntervalJoinPlan
from streaming.kinds.interval_join.schema import definition
from streaming.kinds.join import times
from streaming.kinds.join.time_kind import TimeJoinKind
from streaming.kinds.words import number, within
from streaming.language import gettext
from streaming.spaces import Space

# By default a bin is as long as the interval, but at least this long, and at most as long as it may be.
LEAST_BIN_S = 1.0


class IntervalJoinKind(TimeJoinKind[IntervalJoinPlan]):
    """Pairs of reports whose times differ by an interval."""

    name, written, plan_class = "interval_join", "interval_join", IntervalJoinPlan
    operator = "streaming.operators.time_joins:IntervalJoin"

    def parse(self, document: dict[str, Any], space: Space) -> IntervalJoinPlan:
        fields = times.parsed(document, space, KEYS, gettext("an interval join"))
        lower_s, upper_s = (times.seconds(document, name, lo=-times.MOST_S) for name in ("lower_s", "upper_s"))
        if lower_s > upper_s:
            raise InvalidPlan(
                "lower_s must be at most upper_s; got %(lower_s)g and %(upper_s)g", lower_s=lower_s, upper_s=upper_s
            )
        length_s = min(max(upper_s - lower_s, LEAST_BIN_S), times.MOST_S)
        bin_s = times.seconds(document, "bin_s", length_s, above=0.0)
        return IntervalJoinPlan(lower_s=lower_s, upper_s=upper_s, bin_s=bin_s, **fields)

    def document(self, plan: IntervalJoinPlan, space: Space) -> dict[str, Any]:
        return times.written(plan, space, {"lower_s": plan.lower_s, "upper_s": plan.upper_s, "bin_s": plan.bin_s})

    def words(self, document: dict[str, Any], unit: str) -> str:
        lower, upper = (number(document[name]) for name in ("lower_s", "upper_s"))
        return gettext("%(times)s, %(lower)s to %(upper)s s later%(unit)s") % {
            "times": times.near_words(document["join"], unit),
            "lower": lower,
            "upper": upper,
            "unit": within(document, unit),
        }

    def definition(self) -> dict[str, Any]:
        return definition()
