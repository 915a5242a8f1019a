"""Times of elements in feeds that tell the time now and then, on lines of its own or with some of the messages."""

from typing import Any

# Elements before the first told time wait for it, but no more of them, and no longer, than this; then they bear the
# time of arrival, as in a feed that tells none.
MOST_WAITING = 10_000
WAIT_US = 3_000_000
# A time is passed on to elements that arrive at most so long after it was told.
INHERITED_US = 60_000_000

Timed = list[tuple[int, Any]]


class ToldTimes:
    """Gives each element the time told last; an element before the first told time waits for that.

    The time of arrival would not do: in a recording it is years after the told times, which then would be stale.

    Parameters
    ----------
    expected : bool
        Whether times may be told at all; otherwise elements bear the time of arrival at once.

    Attributes
    ----------
    waiting : list of (received_us, element)
    """

    def __init__(self, expected: bool) -> None:
        self.waiting: Timed = []
        self._expected = expected
        self._told: tuple[int, int] | None = None
        self._silent = not expected

    def tell(self, time_us: int, received_us: int) -> Timed:
        """Take note of a told time; return the elements that waited for it, as (time_us, element)."""
        self._told, self._silent = (time_us, received_us), False
        waited, self.waiting = self.waiting, []
        return [(time_us, element) for _, element in waited]

    def give(self, element: Any, received_us: int) -> Timed:
        """Return the elements that have a time now that this one has come; none where it has to wait."""
        if self._told and received_us - self._told[1] <= INHERITED_US:
            return [(self._told[0], element)]
        if self._silent:
            return [(received_us, element)]
        self.waiting.append((received_us, element))
        return self.overdue(received_us)

    def overdue(self, received_us: int) -> Timed:
        """Return the elements that waited too long, or are too many, with their times of arrival."""
        if not self.waiting:
            return []
        if len(self.waiting) <= MOST_WAITING and received_us - self.waiting[0][0] <= WAIT_US:
            return []
        self._silent = True
        waited, self.waiting = self.waiting, []
        return waited

    def finish(self) -> Timed:
        """Return the elements that wait, with their times of arrival, and forget what was told."""
        waited, self.waiting = self.waiting, []
        self._told, self._silent = None, not self._expected
        return waited
