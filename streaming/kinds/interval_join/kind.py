"""Interval joins: its rules, its words, and how it is evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.interval_join.plan import IntervalJoinPlan
from streaming.kinds.join import times
from streaming.kinds.join.time_kind import TimeJoinKind
from streaming.kinds.words import number, within
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space


class IntervalJoinKind(TimeJoinKind[IntervalJoinPlan]):
    """Pairs of reports whose times differ by an interval."""

    name, written, plan_class = "interval_join", "interval_join", IntervalJoinPlan
    called = gettext_noop("an interval join")
    operator = "streaming.operators.time_joins:IntervalJoin"

    def completed(self, fields: dict[str, Any], document: dict[str, Any], space: Space) -> dict[str, Any]:
        if fields["lower_s"] > fields["upper_s"]:
            raise InvalidPlan(
                "lower_s must be at most upper_s; got %(lower_s)g and %(upper_s)g",
                lower_s=fields["lower_s"],
                upper_s=fields["upper_s"],
            )
        return fields

    def words(self, document: dict[str, Any], unit: str) -> str:
        lower, upper = (number(document[name]) for name in ("lower_s", "upper_s"))
        return gettext("%(times)s, %(lower)s to %(upper)s s later%(unit)s") % {
            "times": times.near_words(document["join"], unit),
            "lower": lower,
            "upper": upper,
            "unit": within(document, unit),
        }
