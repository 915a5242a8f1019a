"""The bounded queue between a stream and the ingest log."""

import asyncio
from collections import deque

import pyarrow as pa

from streaming.gateway.conflation import newest_per_key


class ElementQueue:
    """Elements of one stream that wait to be written.

    When the queue is full, it makes a recording wait, but conflates a live feed: of each object, the newest element
    stays.

    Parameters
    ----------
    rows_bound : int
        Number of elements at which the queue is full.
    live : bool
        Whether the feed does not wait.
    filled : asyncio.Event
        The queue sets it whenever elements come in.

    Attributes
    ----------
    rows : int
        Elements held.
    merged : int
        Elements that newer ones of the same object replaced, since the queue was made.
    """

    def __init__(self, rows_bound: int, live: bool, filled: asyncio.Event) -> None:
        self.rows_bound, self.live, self.filled = rows_bound, live, filled
        self.rows = self.merged = 0
        self._conflate_at = rows_bound
        self._parts: deque[tuple[pa.Table, int]] = deque()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, elements: pa.Table, heard_us: int) -> None:
        """Append elements that arrived at a wall-clock time in microseconds; unless the feed is live, wait for room."""
        if not self.live:
            await self._room.wait()
        if elements.num_rows:
            self._parts.append((elements, heard_us))
            self._counted(elements.num_rows)
            self.filled.set()

    def put_back(self, elements: pa.Table, heard_us: int) -> None:
        """Put elements back in front that were taken but could not be written."""
        self._parts.appendleft((elements, heard_us))
        self._counted(elements.num_rows)
        self.filled.set()

    def take(self, rows: int) -> tuple[pa.Table, int]:
        """Remove the oldest elements, at most `rows`; return them and the wall-clock time of the newest arrival."""
        taken, heard = [], []
        while self._parts and rows > 0:
            elements, heard_us = self._parts.popleft()
            if elements.num_rows > rows:
                self._parts.appendleft((elements.slice(rows), heard_us))
                elements = elements.slice(0, rows)
            taken.append(elements)
            heard.append(heard_us)
            rows -= elements.num_rows
        block = pa.concat_tables(taken)
        self._counted(-block.num_rows)
        return block, max(heard)

    def _counted(self, rows: int) -> None:
        self.rows += rows
        if self.live and self.rows > self._conflate_at:
            self._conflate()
        if self.rows <= self.rows_bound:
            self._conflate_at = self.rows_bound
        if self.rows < self.rows_bound:
            self._room.set()
        else:
            self._room.clear()

    def _conflate(self) -> None:
        newest = newest_per_key(pa.concat_tables([elements for elements, _ in self._parts]))
        self.merged += self.rows - newest.num_rows
        self.rows = newest.num_rows
        self._parts = deque([(newest, max(heard_us for _, heard_us in self._parts))])
        # With many objects, conflate again only once the queue has doubled, so that the work per element is constant.
        self._conflate_at = max(self.rows_bound, 2 * self.rows)
