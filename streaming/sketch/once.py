"""What is computed of a thing that never changes, once."""

import functools
from collections.abc import Callable, Hashable
from typing import Any


class Once:
    """A frozen dataclass that keeps what was computed of it; a changed copy begins without."""

    @functools.cached_property
    def _known(self) -> dict[Hashable, Any]:
        return {}

    def once(self, name: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what `compute` returns, which runs only when it is first asked for under this name."""
        if name not in self._known:
            self._known[name] = compute()
        return self._known[name]
