"""Window joins: its rules, its words, and how it is evaluated."""

from typing import Any

import pyarrow as pa

from streaming.errors import InvalidPlan
from streaming.kinds.details import PARTNER_REPORT, Detail
from streaming.kinds.join import times
from streaming.kinds.join.time_kind import TimeJoinKind
from streaming.kinds.window_join.plan import WindowJoinPlan
from streaming.kinds.words import number, within
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space

# Each report is in so many windows, and each of its pairs is told for each of them.
MOST_WINDOWS = 100


class WindowJoinKind(TimeJoinKind[WindowJoinPlan]):
    """Pairs of reports in the same window of event time."""

    name, written, plan_class = "window_join", "window_join", WindowJoinPlan
    called = gettext_noop("a window join")
    details = (PARTNER_REPORT, Detail({"window_us": pa.int64()}))  # the beginning of the window
    operator = "streaming.operators.time_joins:WindowJoin"

    def completed(self, fields: dict[str, Any], document: dict[str, Any], space: Space) -> dict[str, Any]:
        if fields["window_s"] > MOST_WINDOWS * fields["slide_s"]:
            raise InvalidPlan(
                "slide_s must be at least a %(most_windows)sth of window_s, %(window_s)g; got %(slide_s)g",
                most_windows=MOST_WINDOWS,
                window_s=fields["window_s"] / MOST_WINDOWS,
                slide_s=fields["slide_s"],
            )
        return fields

    def words(self, document: dict[str, Any], unit: str) -> str:
        join, window, slide = document["join"], document["window_s"], document["slide_s"]
        every = "" if slide == window else gettext(", every %(slide)s s") % {"slide": number(slide)}
        return gettext("%(times)s in the same %(window)s s%(every)s%(unit)s") % {
            "times": times.near_words(join, unit),
            "window": number(window),
            "every": every,
            "unit": within(document, unit),
        }
