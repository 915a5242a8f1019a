"""Turn the errors that a web process meets while it sends answers into warnings of their queries."""

from collections.abc import Mapping

from channels.db import database_sync_to_async

from streaming.results import VIEW_NUMBERS
from webapp.query_warnings import ANY_REVISION, warn


class Complaints:
    """Collects errors by query until they are saved. Errors of views are ignored: views have no row to save them in."""

    def __init__(self) -> None:
        self._errors: dict[tuple[int, int], str] = {}

    def note(self, errors: Mapping[int, str]) -> None:
        """Add errors by query; keep the first error of each query until the next `tell`."""
        for query, error in errors.items():
            if query < VIEW_NUMBERS:
                self._errors.setdefault((query, ANY_REVISION), error)

    async def tell(self) -> None:
        """Save the collected errors as warnings, and announce them."""
        errors, self._errors = self._errors, {}
        if errors:
            await database_sync_to_async(warn)(errors)
