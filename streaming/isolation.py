"""Finding out which of many things, that are worked on together, a failure is of."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def faulty(parts: Sequence[T], error_of: Callable[[Sequence[T]], str | None]) -> list[tuple[T, str]]:
    """Return those parts of which work fails even by themselves, each with its error.

    They are halved again and again, so n failures among m parts take no more than 2 n log(m) attempts or so.

    Parameters
    ----------
    parts : sequence
    error_of : callable
        Works on some of the parts, in their order; returns what fails, None where nothing does.

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
