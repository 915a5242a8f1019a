"""Find out which of many parts make a common piece of work fail."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def faulty(parts: Sequence[T], error_of: Callable[[Sequence[T]], str | None]) -> list[tuple[T, str]]:
    """Return the parts on which the work fails even when it is done on them alone, each with its error.

    The search halves the parts again and again, so n failures among m parts take about 2 n log(m) attempts at most.

    Parameters
    ----------
    parts : sequence
    error_of : callable
        Does the work on some of the parts, in their order. Returns the error, or None if the work succeeds.

    Returns
    -------
    list of (part, error)
        In the order of the parts.

    Examples
    --------
    >>> faulty([5, 0, 3, 0], lambda some: "division by zero" if 0 in some else None)
    [(0, 'division by zero'), (0, 'division by zero')]
    """
    error = error_of(parts) if parts else None
    if error is None:
        return []
    if len(parts) == 1:
        return [(parts[0], error)]
    middle = len(parts) // 2
    return faulty(parts[:middle], error_of) + faulty(parts[middle:], error_of)
