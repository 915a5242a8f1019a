"""The answer of one query as a client holds it."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Member = tuple[str, str | None]


class Followed:
    """The pairs of a join, kept from a snapshot and changes.

    Parameters
    ----------
    query : int

    Attributes
    ----------
    members : set of (str, str)
        The keys of objects and partners that have entered and not left.
    asked : asyncio.Future or None
        If set, the next snapshot is its result, and is not taken over.
    """

    def __init__(self, query: int) -> None:
        self.query = query
        self.members: set[Member] = set()
        self.asked: asyncio.Future[set[Member]] | None = None

    def take(self, head: Mapping[str, Any], rows: pa.Table) -> None:
        """Take a frame of answers, of whichever queries."""
        if head["type"] == "answer.snapshot":
            if head["query"] == self.query:
                self._replace({member for _, member in _signed(rows)})
            return
        for sign, member in _signed(rows.filter(pc.field("query") == self.query)):
            (self.members.discard if sign == "-" else self.members.add)(member)

    def _replace(self, held):
        if self.asked is not None and not self.asked.done():
            self.asked.set_result(held)
        else:
            self.members = held


def _signed(rows: pa.Table) -> Iterable[tuple[str, Member]]:
    """Return the sign and the member of each row."""
    members = zip(rows["key"].to_pylist(), rows["partner"].to_pylist(), strict=True)
    return zip(rows["sign"].to_pylist(), members, strict=True)
