"""The only writer of blocks: it takes from every queue in turn, while the engine keeps up and Redis has room."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable
from dataclasses import dataclass

import pyarrow as pa
import redis

from streaming.gateway.config import GatewayConfig
from streaming.gateway.elementqueue import ElementQueue
from streaming.language import gettext
from streaming.logs import Log
from streaming.redis_memory import Pressure
from streaming.traces import RECEIVE, WRITE

logger = logging.getLogger(__name__)

_NONE = Pressure(-math.inf, 0.0)
_BLOCKED_S = 0.05
_BROKEN_S = 0.25
_LONGEST_BROKEN_S = 2.0


@dataclass(frozen=True)
class StreamBlock:
    """Elements of one stream, taken from its queue.

    Parameters
    ----------
    stream : str
    elements : pyarrow.Table
    heard_us : int
        Wall-clock time at which the newest of them arrived, in microseconds.
    """

    stream: str
    elements: pa.Table
    heard_us: int


class BlockWriter:
    """Writes the streams' queues to the ingest log fairly: at most one block of each stream per round.

    Parameters
    ----------
    log : Log
    config : GatewayConfig

    Attributes
    ----------
    queues : dict of str to ElementQueue
        By stream's name.
    filled : asyncio.Event
        The queues set it when elements come in.
    full : str or None
        Why all feeds wait, if they do so because Redis is too full.
    """

    def __init__(self, log: Log, config: GatewayConfig) -> None:
        self.log, self.config = log, config
        self.queues: dict[str, ElementQueue] = {}
        self.filled = asyncio.Event()
        self._writing = asyncio.Lock()
        self._unsafe = False
        self.full: str | None = None

    def queue(self, stream: str, live: bool) -> ElementQueue:
        """Return the queue of a stream; it still holds the elements from before the stream's last change."""
        queue = self.queues.setdefault(stream, ElementQueue(self.config.queue_rows, live, self.filled))
        queue.live = live
        return queue

    async def discard(self, stream: str) -> None:
        """Forget a stream; once this returns, nothing more of it is written."""
        self.queues.pop(stream, None)
        async with self._writing:
            pass

    async def run(self) -> None:
        """Write until cancelled; while Redis does not answer, try again after growing waits."""
        broken_s = _BROKEN_S
        while True:
            await self.filled.wait()
            if not self._has_full_block():
                await asyncio.sleep(self.config.flush_s)
            try:
                pressure = await asyncio.to_thread(self.log.pressure)
                self._note(pressure)
                wrote = await self.round(pressure)
                broken_s = _BROKEN_S
                if not wrote:
                    await asyncio.sleep(_BLOCKED_S)
            except redis.RedisError as error:
                logger.warning("the ingest log cannot be written: %s", error)
                await asyncio.sleep(broken_s)
                broken_s = min(2 * broken_s, _LONGEST_BROKEN_S)

    async def flush(self) -> None:
        """Write all queued elements, whether or not the engine keeps up, unless Redis is full."""
        while await self.round(_NONE):
            pass

    async def round(self, pressure: Pressure) -> bool:
        """Write at most one block of each stream; return whether any was written.

        Parameters
        ----------
        pressure : Pressure
            A stream is written only if it is within the stream's bounds (`GatewayConfig.takes`).
        """
        async with self._writing:
            blocks = self._take(pressure)
            unwritten = [*blocks]
            try:
                await _finished(asyncio.to_thread(self._write, unwritten))
            finally:
                for block in unwritten:
                    if block.stream in self.queues:
                        self.queues[block.stream].put_back(block.elements, block.heard_us)
        if not any(queue.rows for queue in self.queues.values()):
            self.filled.clear()
        return bool(blocks)

    def _take(self, pressure: Pressure) -> list[StreamBlock]:
        return [
            StreamBlock(stream, *queue.take(self.config.block_rows))
            for stream, queue in self.queues.items()
            if queue.rows and self.config.takes(pressure, queue.live)
        ]

    def _note(self, pressure: Pressure) -> None:
        """Note whether live feeds have to wait for room in Redis, and log it when that begins."""
        before, self.full = self.full, None
        if pressure.memory > self.config.live_memory:
            self.full = gettext("Redis is %(memory)s full, so the elements wait until there is room") % {
                "memory": f"{pressure.memory:.0%}"
            }
            if before is None:
                logger.warning("%s: %s", self.log.names.space, self.full)

    def _write(self, blocks: list[StreamBlock]) -> None:
        """Write blocks, remove each from the list as soon as it is written, and then make all of them safe."""
        traces = self.config.traces
        while blocks:
            block, began_ns = blocks[0], time.time_ns()
            self._unsafe = True
            self.log.ingest(block.elements, block.stream, block.heard_us, synced=False)
            del blocks[0]
            traces.record(WRITE, RECEIVE, traces.sampled([block.elements]), began_ns, stream=block.stream)
        if self._unsafe:  # also those of a round before whose sync failed
            self.log.event_log.sync()
            self._unsafe = False

    def _has_full_block(self) -> bool:
        return any(queue.rows >= self.config.block_rows for queue in self.queues.values())


async def _finished(work: Awaitable[None]) -> None:
    """Wait until work in a thread has ended, even when cancelled, since a thread cannot be stopped half-way."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise
