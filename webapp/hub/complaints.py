"""Turn the errors that a web process meets while it sends answers into warnings of their queries."""

from collections.abc import Mapping

from channels.db import database_sync_to_async
from django.utils import timezone

from streaming.results import VIEW_NUMBERS
from webapp.queries.query_warnings import ANY_REVISION, UNSENT, Warnings, warn


class Complaints:
    """Collects errors by query until they are saved. Errors of views are ignored: views have no row to save them in."""

    def __init__(self) -> None:
        self._errors = Warnings()

    def note(self, errors: Mapping[int, str]) -> None:
        """Add errors by query; the newest of each query is kept until the next `tell`."""
        for query, error in errors.items():
            if query < VIEW_NUMBERS:
                self._errors.note((query, ANY_REVISION), UNSENT, error, timezone.now())

    async def tell(self) -> None:
        """Save the collected errors as warnings, and announce them."""
        errors, self._errors = self._errors, Warnings()
        if errors:
            await database_sync_to_async(warn)(errors)
