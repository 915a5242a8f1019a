"""When rules count: the schedules of many rules, asked for many times together."""

from collections.abc import Sequence

import numpy as np

from streaming.kinds.rule.schedule import Schedule
from streaming.operators.runs import first_of_runs

NEVER_US = np.iinfo(np.int64).max


class Schedules:
    """When rules count.

    Parameters
    ----------
    schedules : sequence of Schedule or None
        Of each rule; one without a schedule always counts.
    """

    def __init__(self, schedules: Sequence[Schedule | None]) -> None:
        self._of = {place: schedule for place, schedule in enumerate(schedules) if schedule}
        self._has = np.array([schedule is not None for schedule in schedules], dtype=bool)
        # By rule, a span in which it counts, or does not, so that a schedule is asked again only when it turns.
        self._known: dict[int, tuple[int, bool, int]] = {}

    def on(self, place: np.ndarray, time_us: np.ndarray) -> np.ndarray:
        """Tell which rules count.

        Parameters
        ----------
        place : ndarray of int64, shape (K,)
            The positions of rules.
        time_us : ndarray of int64, shape (K,)
            When each is asked for, in microseconds since 1970 UTC.

        Returns
        -------
        ndarray of bool, shape (K,)
        """
        on = np.ones(len(place), dtype=bool)
        rows = np.flatnonzero(self._has[place]) if self._of else np.empty(0, dtype=np.int64)
        rows = rows[np.argsort(place[rows], kind="stable")]
        start = np.flatnonzero(first_of_runs(place[rows]))
        for mine in np.split(rows, start[1:]) if len(rows) else ():
            times = time_us[mine]
            begins_us, counts = self._spans(int(place[mine[0]]), int(times.min()), int(times.max()))
            on[mine] = counts[np.searchsorted(begins_us, times, "right") - 1]
        return on

    def turns(self, since_us: int, until_us: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of rules that begin or cease to count, and when, from a time to just before another."""
        found = []
        for place in self._of if until_us > since_us else ():
            begins_us = self._spans(place, since_us - 1, until_us - 1)[0][1:]
            found += [(place, at_us) for at_us in begins_us.tolist()]
        places, times = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return places, times

    def until_us(self, now_us: int) -> int:
        """Return until when the same rules count as at a time; `NEVER_US` if always."""
        return min((self._span(place, now_us)[2] for place in self._of), default=NEVER_US)

    def _spans(self, place: int, first_us: int, last_us: int) -> tuple[np.ndarray, np.ndarray]:
        """Return when the spans of a rule from one time to another begin, and whether it counts in each."""
        begins_us, counts = list[int](), list[bool]()
        at_us = first_us
        while at_us <= last_us:
            _, on, until_us = self._span(place, at_us)
            begins_us.append(at_us)
            counts.append(on)
            at_us = until_us
        return np.array(begins_us, dtype=np.int64), np.array(counts, dtype=bool)

    def _span(self, place: int, at_us: int) -> tuple[int, bool, int]:
        """Return from when at least, whether, and until when a rule counts or does not."""
        known = self._known.get(place)
        if known is None or not known[0] <= at_us < known[2]:
            known = self._known[place] = (at_us, *self._of[place].at(at_us))
        return known
