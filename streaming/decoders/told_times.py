"""Times of elements in feeds that tell the time only now and then, on separate lines or with some of the messages."""

from typing import Any

# Elements before the first told time wait for it, but at most this many, and for this long. After that they get their
# time of arrival, as in a feed that tells no times.
MOST_WAITING = 10_000
WAIT_US = 3_000_000
# Elements get the last told time only if they arrive within this time after it.
INHERITED_US = 60_000_000

Timed = list[tuple[int, Any]]


class ToldTimes:
    """Gives each element the last told time; an element before the first told time waits for it.

    It does not get its time of arrival, because in a recording that is years after the told times: all later elements
    of the object would be stale.

    Parameters
    ----------
    expected : bool
        Whether times may be told at all; otherwise elements get their time of arrival at once.

    Attributes
    ----------
    waiting : list of (received_us, element)
        The elements that wait for a time, with their times of arrival.
    """

    def __init__(self, expected: bool) -> None:
        self.waiting: Timed = []
        self._expected = expected
        self._told: tuple[int, int] | None = None
        self._silent = not expected

    def tell(self, time_us: int, received_us: int) -> Timed:
        """Note a told time; return the elements that waited for it, as (time_us, element)."""
        self._told, self._silent = (time_us, received_us), False
        if not self.waiting:
            return []
        waited, self.waiting = self.waiting, []
        return [(time_us, element) for _, element in waited]

    def give(self, element: Any, received_us: int) -> Timed:
        """Take an element; return the elements that now have a time, or none if it has to wait."""
        if self._told and received_us - self._told[1] <= INHERITED_US:
            return [(self._told[0], element)]
        if self._silent:
            return [(received_us, element)]
        self.waiting.append((received_us, element))
        return self.overdue(received_us)

    def overdue(self, received_us: int) -> Timed:
        """Return all waiting elements, with their times of arrival, if they waited too long or are too many."""
        if not self.waiting:
            return []
        if len(self.waiting) <= MOST_WAITING and received_us - self.waiting[0][0] <= WAIT_US:
            return []
        self._silent = True
        waited, self.waiting = self.waiting, []
        return waited

    def finish(self) -> Timed:
        """Return the waiting elements with their times of arrival, and forget the told time."""
        waited, self.waiting = self.waiting, []
        self._told, self._silent = None, not self._expected
        return waited
