"""What joins over event time must have told by a quiet point: each pair of reports once, by brute force."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from streaming.plans import parse_plan
from tests.chaos.workload import PAIRED

TIME_JOINS = ("interval_join", "window_join")
SECOND_US = 1_000_000
# Of the objects with smaller numbers, the fastest reports are in the stream `PAIRED`, too: about so many a second.
# There are some in each partition of the ingest log: a home server without any would hold up the end of windows.
JOINED_OBJECTS, JOINED_PER_S = 16, 2.0
# Nothing is late while a part stands still: neither the clock nor other reports end a window too early.
LATENESS_S, IDLE_S = 5.0, 3_600.0
FASTEST_MPS = 20.0
# As many events of a query are stored. Of more, the oldest are gone; pairs as old as a tenth of them are not missed.
EVENTS_KEPT, OLDEST_PART = 1_000, 0.1


class Reported(NamedTuple):
    """A report of an object that is joined."""

    key: str
    time_us: int


# Two joins of the stream `PAIRED` with itself, of all reports that are near each other in time.
PLAN = {
    "stream": PAIRED,
    "join": {"stream": PAIRED, "predicate": "dwithin", "distance": 1_000_000},
    "mirrored": True,
    "lateness_s": LATENESS_S,
    "idle_s": IDLE_S,
}
PAIR_PLANS: list[dict[str, Any]] = [
    PLAN | {"kind": "interval_join", "lower_s": -0.5, "upper_s": 0.5},
    PLAN | {"kind": "window_join", "window_s": 1},
]


def fast_mps(rate: int, objects: int) -> float:
    """Return above which speed reports are joined, given how many elements a second there are of how many objects."""
    return FASTEST_MPS * (1 - min(1.0, JOINED_PER_S * objects / (JOINED_OBJECTS * rate)))


def pair_faults(
    document: dict[str, Any], told: Sequence[tuple[str, str, int]], reports: Sequence[Reported]
) -> list[str]:
    """Return which pairs were told too often or not at all.

    Parameters
    ----------
    document : dict
        One of `PAIR_PLANS`.
    told : sequence of tuple
        The key, the partner's key and the time of each pair that is recorded.
    reports : sequence of Reported
        All that were acknowledged since the query runs.
    """
    plan = parse_plan(document)
    reports = sorted(reports, key=lambda report: report.time_us)
    pairs = [
        (one, other)
        for at, one in enumerate(reports)
        for other in _within_a_second(reports, at)
        if one.key != other.key and _matches(plan, one, other)
    ]
    # A home server has got the newest report of each of its objects, so it is at least as far as the slowest object.
    newest_us = {report.key: report.time_us for report in reports}.values()
    most, least = (
        Counter(_named(pair) for pair in pairs if _told(plan, pair, until_us))
        for until_us in (max(newest_us, default=0), min(newest_us, default=0))
    )
    found, times_us = Counter(told), sorted(time_us for _, _, time_us in told)
    since_us = times_us[int(OLDEST_PART * len(told))] if len(told) >= EVENTS_KEPT else 0
    missing = [pair for pair in least - found if pair[2] >= since_us]
    return [f"{pair} is missing" for pair in missing] + [f"{pair} is too many" for pair in found - most]


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


def _told(plan, pair, newest_us):
    """Tell whether a pair is told by a time: once its window is complete, or at once."""
    if plan.kind != "window_join":
        return True
    return (_window(plan, pair[0]) + 1) * plan.window_s + plan.lateness_s <= newest_us / SECOND_US


def _window(plan, report):
    return report.time_us // round(plan.window_s * SECOND_US)


def _named(pair):
    one, other = pair
    return one.key, other.key, one.time_us
