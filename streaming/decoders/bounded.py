"""A dictionary of bounded size."""

from collections.abc import Callable, Hashable
from typing import Any


class Bounded(dict):
    """A dictionary of bounded size: `overflow` forgets the entries that were renewed longest ago.

    Parameters
    ----------
    limit : int
        Most entries that `overflow` leaves.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def renew(self, key: Hashable, default: Callable[[], Any]) -> Any:
        """Return the value of a key, made by `default` if it is missing, and make the key the newest."""
        value = self.pop(key, None)
        if value is None:
            value = default()
        self[key] = value
        return value

    def overflow(self) -> list:
        """Forget the oldest entries beyond the limit, and return their values."""
        over = len(self) - self.limit
        return [self.pop(next(iter(self))) for _ in range(over)] if over > 0 else []
