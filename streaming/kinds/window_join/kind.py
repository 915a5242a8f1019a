"""Window joins: how a plan is read, written, described and evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.join import times
from streaming.kinds.join.time_kind import TimeJoinKind
from streaming.kinds.parts import parse_number
from streaming.kinds.window_join.plan import KEYS, WindowJoinPlan
from streaming.kinds.window_join.schema import definition
from streaming.kinds.words import number, within
from streaming.language import gettext
from streaming.spaces import Space

# Each report is in so many windows, and each of its pairs is told for each of them.
MOST_WINDOWS = 100


class WindowJoinKind(TimeJoinKind[WindowJoinPlan]):
    """Pairs of reports in the same window of event time."""

    name, written, plan_class = "window_join", "window_join", WindowJoinPlan
    operator = "streaming.operators.time_joins:WindowJoin"

    def parse(self, document: dict[str, Any], space: Space) -> WindowJoinPlan:
        fields = times.parsed(document, space, KEYS, gettext("a window join"))
        window_s = times.seconds(document, "window_s", above=0.0)
        slide_s = times.seconds(document, "slide_s", window_s, above=0.0)
        if window_s > MOST_WINDOWS * slide_s:
            raise InvalidPlan(
                "slide_s must be at least a %(most_windows)sth of window_s, %(window_s)g; got %(slide_s)g",
                most_windows=MOST_WINDOWS,
                window_s=window_s / MOST_WINDOWS,
                slide_s=slide_s,
            )
        start_s = round(parse_number(document.get("start_s", 0.0), "start_s", lo=-1e10, hi=1e10), 6)
        return WindowJoinPlan(window_s=window_s, slide_s=slide_s, start_s=start_s, **fields)

    def document(self, plan: WindowJoinPlan, space: Space) -> dict[str, Any]:
        return times.written(plan, space, {"window_s": plan.window_s, "slide_s": plan.slide_s, "start_s": plan.start_s})

    def words(self, document: dict[str, Any], unit: str) -> str:
        join, window, slide = document["join"], document["window_s"], document["slide_s"]
        every = "" if slide == window else gettext(", every %(slide)s s") % {"slide": number(slide)}
        return gettext("%(times)s in the same %(window)s s%(every)s%(unit)s") % {
            "times": times.near_words(join, unit),
            "window": number(window),
            "every": every,
            "unit": within(document, unit),
        }

    def definition(self) -> dict[str, Any]:
        return definition()
