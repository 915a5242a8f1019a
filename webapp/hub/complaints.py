"""What a web process could not tell of answers becomes the warning of their queries."""

from collections.abc import Mapping

from channels.db import database_sync_to_async

from streaming.results import VIEW_NUMBERS
from webapp.query_warnings import ANY_REVISION, warn


class Complaints:
    """Collects errors by query until they are written down; views have nowhere to write them."""

    def __init__(self) -> None:
        self._errors: dict[tuple[int, int], str] = {}

    def note(self, errors: Mapping[int, str]) -> None:
        """Note errors of queries; of each the first until the next `tell`."""
        for query, error in errors.items():
            if query < VIEW_NUMBERS:
                self._errors.setdefault((query, ANY_REVISION), error)

    async def tell(self) -> None:
        """Write down what was noted."""
        errors, self._errors = self._errors, {}
        if errors:
            await database_sync_to_async(warn)(errors)
