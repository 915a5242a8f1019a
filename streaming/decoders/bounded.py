"""A dictionary that forgets."""

from collections.abc import Callable, Hashable
from typing import Any


class Bounded(dict):
    """A dictionary of bounded size: beyond it, the entry that was renewed longest ago is forgotten.

    Parameters
    ----------
    limit : int
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def renew(self, key: Hashable, default: Callable[[], Any]) -> Any:
        """Return the value of a key, made by `default` where there is none, and count the key as newest."""
        value = self.pop(key, None)
        if value is None:
            value = default()
        self[key] = value
        return value

    def overflow(self) -> list:
        """Forget what is beyond the limit, and return it."""
        return [self.pop(next(iter(self))) for _ in range(len(self) - self.limit)]
