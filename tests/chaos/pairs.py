"""What joins over event time must have told by a quiet point: each pair of reports once, by brute force."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from streaming.plans import parse_plan
from tests.chaos.workload import FLEET

PAIRED = ("interval_join", "window_join")
SECOND_US = 1_000_000
# Objects with smaller numbers are joined, and about so many of their reports a second.
JOINED_OBJECTS, JOINED_PER_S = 2, 1.0
# Nothing is late while a part stands still: neither the clock nor other reports end a window too early.
LATENESS_S, IDLE_S = 5.0, 3_600.0
# Each home server has got a report of the last so many seconds when the feed rests.
NEWEST_S = 1.0
FASTEST_MPS = 20.0


class Reported(NamedTuple):
    """A report of an object that is joined."""

    key: str
    time_us: int
    speed_mps: float


def pair_plans(rate: int, objects: int) -> list[dict[str, Any]]:
    """Return an interval join and a window join of the stream `FLEET` with itself, with less than a pair a second."""
    share = min(1.0, JOINED_PER_S * objects / (JOINED_OBJECTS * rate))
    fast = f"number < {JOINED_OBJECTS} AND speed_mps > {FASTEST_MPS * (1 - share):.1f}"
    join = {"stream": FLEET, "predicate": "dwithin", "distance": 1_000_000, "where": fast}
    plan = {"stream": FLEET, "join": join, "where": fast, "mirrored": True, "lateness_s": LATENESS_S, "idle_s": IDLE_S}
    interval = {"kind": "interval_join", "lower_s": -0.5, "upper_s": 0.5}
    return [plan | interval, plan | {"kind": "window_join", "window_s": 1}]


def pair_faults(
    document: dict[str, Any], told: Sequence[tuple[str, str, int]], reports: Sequence[Reported], newest_us: int
) -> list[str]:
    """Return which pairs were told too often or not at all.

    Parameters
    ----------
    document : dict
        A plan of `pair_plans`.
    told : sequence of tuple
        The key, the partner's key and the time of each pair that is recorded.
    reports : sequence of Reported
        All that were acknowledged since the query runs.
    newest_us : int
        When the newest report of the stream was made.
    """
    plan = parse_plan(document)
    fast = float(plan.where.rpartition(">")[2])
    reports = sorted((report for report in reports if report.speed_mps > fast), key=lambda report: report.time_us)
    pairs = [
        (one, other)
        for at, one in enumerate(reports)
        for other in _within_a_second(reports, at)
        if one.key != other.key and _matches(plan, one, other)
    ]
    most, least = (Counter(_named(pair) for pair in pairs if _told(plan, pair, newest_us, s)) for s in (0.0, NEWEST_S))
    found = Counter(told)
    return [f"{pair} is missing" for pair in least - found] + [f"{pair} is too many" for pair in found - most]


def _within_a_second(reports, at):
    """Yield the reports at most a second before or after one of them; no pair is farther apart."""
    for step in (-1, 1):
        place = at + step
        while 0 <= place < len(reports) and abs(reports[place].time_us - reports[at].time_us) <= SECOND_US:
            yield reports[place]
            place += step


def _matches(plan, one, other):
    if plan.kind == "window_join":
        return _window(plan, one) == _window(plan, other)
    return plan.lower_s <= (other.time_us - one.time_us) / SECOND_US <= plan.upper_s


def _told(plan, pair, newest_us, margin_s):
    """Tell whether a pair is told by a time: once its window is complete, or at once."""
    if plan.kind != "window_join":
        return True
    return (_window(plan, pair[0]) + 1) * plan.window_s + plan.lateness_s + margin_s <= newest_us / SECOND_US


def _window(plan, report):
    return report.time_us // round(plan.window_s * SECOND_US)


def _named(pair):
    one, other = pair
    return one.key, other.key, one.time_us
