"""One running stream: from its transport through its decoders to its queue, tried again after errors."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from streaming.decoders import Decoded, make_decoder
from streaming.decoders.gate import GatedDecoder
from streaming.elements import STORED_ONLY
from streaming.gateway.backoff import backoff_s
from streaming.gateway.clock import SECOND_US, Clock
from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition
from streaming.gateway.health import StreamHealth
from streaming.gateway.pacing import ReplayProgress, next_lap, restamped, schedule
from streaming.gateway.transports import make_transport
from streaming.gateway.transports.base import Chunk, Mark, Replay, Transport, TransportError
from streaming.gateway.unfinished import Unfinished
from streaming.language import gettext, gettext_noop
from streaming.spaces import EARTH, Space
from streaming.traces import RECEIVE

logger = logging.getLogger(__name__)

AHEAD = gettext_noop("time ahead of the clock")
TOO_OLD = gettext_noop("too old to count as live")

# More bytes are decoded in a thread: they could hold up the other streams for longer than 50 ms.
_THREAD_BYTES = 8_192
# How often decoders are asked for the elements that have waited too long for a time.
_TICK_S = 1.0
# Elements of a recording that is sorted by time before it is played; what comes later is played after those.
MOST_SORTED = 2_000_000
# A recording that goes back by more than this is told to be unsorted; networks alone delay elements by seconds.
DISORDER_US = 30 * SECOND_US
# Shortest wait of a paced replay before it delivers the next elements that are due.
_STEP_S = 0.02


class ElementSink(Protocol):
    """Takes the elements of one stream: an `ElementQueue`, or what a trial keeps them in."""

    async def put(self, elements: pa.Table, heard_us: int, /) -> None:
        """Take elements that arrived at a wall-clock time in microseconds."""


@dataclass(frozen=True)
class Outlet:
    """What a running stream writes to, and the clock, the constants and the space that it uses."""

    queue: ElementSink
    health: StreamHealth
    clock: Clock
    config: GatewayConfig
    space: Space = EARTH


class RunningStream:
    """Runs one stream from its start to its stop.

    Parameters
    ----------
    definition : StreamDefinition
        One that `definitions.check_definition` accepts.
    outlet : Outlet
    """

    def __init__(self, definition: StreamDefinition, outlet: Outlet) -> None:
        self.definition, self.outlet = definition, outlet
        self.transport: Transport = make_transport(definition.transport, outlet.config.access)
        self._decoders: dict[str, GatedDecoder] = {}
        self._unfinished = Unfinished(outlet.config.unfinished_bytes)
        self._turn = asyncio.Lock()
        self._progress: ReplayProgress | None = None
        self._unsorted: list[pa.Table] = []
        self._newest_us = 0  # of what a recording has played in this lap
        self._disorder: str | None = None
        self._taken_us = 0  # when the bytes came that are decoded, or when the elements of a replay were due

    async def run(self) -> None:
        """Run until the feed ends for good; after an error, report it in the health, wait and try again."""
        health, config = self.outlet.health, self.outlet.config
        waits = None
        while True:
            before = health.elements
            try:
                health.enter("connecting", health.error)
                await self._read()
                health.enter("finished")
                return
            except (OSError, TransportError) as error:
                health.enter("retrying", error)
            except Exception as error:  # an error that a feed's bytes cause in a transport must not end the stream
                self._count_failure(gettext_noop("transport failed"), error, b"")
                health.enter("retrying", f"{type(error).__name__}: {error}")
            if waits is None or health.elements > before:
                waits = backoff_s(config.backoff_s, config.longest_backoff_s, random.Random())
            await self.outlet.clock.sleep(next(waits))

    async def _read(self) -> None:
        self._decoders.clear()
        self._unfinished = Unfinished(self.outlet.config.unfinished_bytes)
        self._unsorted = []
        self._begin_lap()
        ticking = asyncio.create_task(self._tick())
        try:
            async with aclosing(self.transport.chunks()) as chunks:
                async for chunk in chunks:
                    self.outlet.health.enter("running")
                    await self._take_or_count(chunk)
        finally:
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)

    async def _tick(self) -> None:
        """Let decoders release elements that have waited too long for a time, even while no bytes come."""
        while True:
            await asyncio.sleep(_TICK_S)
            for source in [source for source, decoder in self._decoders.items() if decoder.waiting]:
                await self._take_or_count(Chunk(source))

    async def _take_or_count(self, chunk: Chunk) -> None:
        async with self._turn:
            try:
                await self._take(chunk)
            except Exception as error:  # the decoder may be in any state; the next bytes go to a new one
                self._decoders.pop(chunk.source, None)
                self._count_failure(gettext_noop("input failed"), error, chunk.payload)

    def _count_failure(self, what: str, error: Exception, payload: bytes) -> None:
        """Count bytes that caused an error as malformed; log the first error of each kind."""
        health, reason = self.outlet.health, f"{what}: {type(error).__name__}"
        if reason not in health.malformed:
            logger.error("stream %s: %s", self.definition.name, what, exc_info=error)
        health.count_malformed(reason, payload, self.outlet.clock.now_us())

    async def _take(self, chunk: Chunk) -> None:
        health, clock = self.outlet.health, self.outlet.clock
        self._taken_us = clock.now_us()
        health.bytes += len(chunk.payload)
        health.lost += chunk.lost
        if not chunk.payload and chunk.mark is Mark.BYTES and chunk.source not in self._decoders:
            return
        decoder = self._decoders.get(chunk.source) or self._decoders.setdefault(chunk.source, self._decoder())
        if chunk.payload or decoder.waiting:
            decoded = await self._decoded(decoder.feed, chunk.payload)
            health.noted = decoder.noted or self._disorder
            await self._deliver(decoded)
            self._bound(chunk, decoded)
        if chunk.mark is not Mark.BYTES:
            self._unfinished.forget(chunk.source)
            await self._deliver(await self._decoded(decoder.finish))
            await self._play_sorted()
        if chunk.mark is Mark.SOURCE_GONE:
            self._decoders.pop(chunk.source, None)
        if chunk.mark is Mark.LAP_END:
            self._begin_lap()

    def _begin_lap(self) -> None:
        self._newest_us = 0
        if self.transport.replay:
            self._progress = next_lap(self._progress, self.transport.replay, self.outlet.clock.now_us())

    def _bound(self, chunk: Chunk, decoded: Decoded) -> None:
        """Forget the decoders that keep the most bytes, if all together keep too many."""
        gave = bool(decoded.elements.num_rows or decoded.malformed)
        for source in self._unfinished.count(chunk.source, len(chunk.payload), gave):
            self._decoders.pop(source, None)
            self.outlet.health.count_malformed("unfinished", source.encode(), self.outlet.clock.now_us())

    async def _decoded(self, decode: Callable[..., Decoded], payload: bytes | None = None) -> Decoded:
        arguments = ([] if payload is None else [payload]) + [self.outlet.clock.now_us()]
        if payload is not None and len(payload) > _THREAD_BYTES:
            return await asyncio.to_thread(decode, *arguments)
        return decode(*arguments)

    async def _deliver(self, decoded: Decoded) -> None:
        health, now_us = self.outlet.health, self.outlet.clock.now_us()
        for fault in decoded.malformed:
            health.count_malformed(fault.reason, fault.sample, now_us)
        elements = self._not_old(self._not_ahead(decoded.elements, now_us), now_us)
        if not elements.num_rows:
            return
        if not self.transport.replay:
            await self._put(elements)
        elif not self.transport.replay.by_time:
            await self._play(elements, self.transport.replay)
        else:
            self._unsorted.append(elements)
            if sum(table.num_rows for table in self._unsorted) > MOST_SORTED:
                await self._play_sorted()

    async def _play_sorted(self) -> None:
        """Play the elements that were kept, in the order of their event times; equal ones as they were read."""
        if self._unsorted and self.transport.replay:
            elements, self._unsorted = pa.concat_tables(self._unsorted), []
            order = np.argsort(elements["time_us"].to_numpy(), kind="stable")
            await self._play(elements.take(pa.array(order)), self.transport.replay)

    def _not_ahead(self, elements: pa.Table, now_us: int) -> pa.Table:
        """Return the elements that are not ahead of the clock by more than the stream's bound; count the others.

        One such element would make all later elements of its object stale until the clock reaches its time.
        """
        if self.transport.replay and self.transport.replay.restamp:
            return elements
        ahead = elements["time_us"].to_numpy() > now_us + self.definition.max_ahead_s * SECOND_US
        if not self._count(AHEAD, elements, ahead, now_us):
            return elements
        return elements.filter(pa.array(~ahead))

    def _not_old(self, elements: pa.Table, now_us: int) -> pa.Table:
        """Return elements of which those that are too old to count as live are stored at the most; count these."""
        max_age_s = self.definition.max_age_s
        if max_age_s is None or (self.transport.replay and self.transport.replay.restamp):
            return elements
        old = elements["time_us"].to_numpy() < now_us - max_age_s * SECOND_US
        if not self._count(TOO_OLD, elements, old, now_us):
            return elements
        if not self.definition.stored:
            return elements.filter(pa.array(~old))
        version, place = elements["version"].to_numpy(), elements.schema.get_field_index("version")
        return elements.set_column(
            place, elements.schema.field(place), pa.array(np.where(old, np.int64(STORED_ONLY), version))
        )

    def _count(self, reason: str, elements: pa.Table, chosen: np.ndarray, now_us: int) -> bool:
        """Count the chosen elements as malformed because of their times; return whether there are any."""
        if not chosen.any():
            return False
        last = int(np.flatnonzero(chosen)[-1])
        time_us = elements["time_us"][last].as_py()
        sample = f"{elements['key'][last]} {np.datetime64(time_us, 'us')}Z".encode()
        self.outlet.health.count_malformed(reason, sample, now_us, int(chosen.sum()))
        return True

    async def _play(self, elements: pa.Table, replay: Replay) -> None:
        clock = self.outlet.clock
        time_us = elements["time_us"].to_numpy()
        self._note_disorder(time_us)
        self._progress, due_us, stamp_us = schedule(self._progress, time_us, replay, clock.now_us())
        if replay.restamp:
            elements = restamped(elements, stamp_us)
        played = 0
        while played < len(due_us):
            self._taken_us = clock.now_us()
            due = int(np.searchsorted(due_us, self._taken_us, side="right"))
            if due > played:
                await self._put(elements.slice(played, due - played))
                played = due
            else:
                await clock.sleep(max(_STEP_S, (int(due_us[played]) - clock.now_us()) / SECOND_US))

    def _note_disorder(self, time_us: np.ndarray) -> None:
        """Note that a recording is not sorted by time, if it goes back by more than `DISORDER_US`."""
        newest_us = np.maximum(np.maximum.accumulate(time_us), self._newest_us)
        self._newest_us = int(newest_us[-1])
        if (newest_us - time_us).max() > DISORDER_US:
            self._disorder = gettext("the file is not sorted by time; the option by_time sorts it before it is played")
            self.outlet.health.noted = self.outlet.health.noted or self._disorder

    async def _put(self, elements: pa.Table) -> None:
        now_us, traces = self.outlet.clock.now_us(), self.outlet.config.traces
        await self.outlet.queue.put(elements, now_us)
        self.outlet.health.count_elements(elements.num_rows, now_us)
        traces.record(RECEIVE, None, traces.sampled([elements]), 1000 * self._taken_us, stream=self.definition.name)

    def _decoder(self) -> GatedDecoder:
        definition = self.definition
        return make_decoder(definition.decoder, definition.name, self.outlet.space)
