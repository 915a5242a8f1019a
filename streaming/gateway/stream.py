"""One running stream: transport to decoder to queue, again and again."""

import asyncio
import logging
import random
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np

from streaming.decoders import Decoded, Decoder, make_decoder
from streaming.gateway.backoff import backoff_s
from streaming.gateway.clock import SECOND_US, Clock
from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition
from streaming.gateway.elementqueue import ElementQueue
from streaming.gateway.health import Health
from streaming.gateway.pacing import Progress, next_lap, restamped, schedule
from streaming.gateway.transports import make_transport
from streaming.gateway.transports.base import Chunk, Mark, Transport, TransportError
from streaming.gateway.unfinished import Unfinished
from streaming.spaces import EARTH, Space

logger = logging.getLogger(__name__)

# Decoding more than this could hold up the other streams for longer than 50 ms.
_THREAD_BYTES = 8_192
# A paced replay hands over what is due at most so often.
_STEP_S = 0.02


@dataclass(frozen=True)
class Outlet:
    """What a running stream writes to, and what it lives by."""

    queue: ElementQueue
    health: Health
    clock: Clock
    config: GatewayConfig
    space: Space = EARTH


class RunningStream:
    """A stream between start and stop.

    Parameters
    ----------
    definition : StreamDefinition
        One that `definitions.check_definition` accepts.
    outlet : Outlet
    """

    def __init__(self, definition: StreamDefinition, outlet: Outlet) -> None:
        self.definition, self.outlet = definition, outlet
        self.transport: Transport = make_transport(definition.transport, outlet.config.access)
        self._decoders: dict[str, Decoder] = {}
        self._unfinished = Unfinished(outlet.config.unfinished_bytes)
        self._progress: Progress | None = None

    async def run(self) -> None:
        """Run until the feed ends for good; whatever breaks it is reported, and tried again after a while."""
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
            except Exception as error:  # one stream's fault must not end the others
                logger.exception("stream %s", self.definition.name)
                health.enter("failed", f"{type(error).__name__}: {error}")
            if waits is None or health.elements > before:
                waits = backoff_s(config.backoff_s, config.longest_backoff_s, random.Random())
            await self.outlet.clock.sleep(next(waits))

    async def _read(self):
        self._decoders.clear()
        self._unfinished = Unfinished(self.outlet.config.unfinished_bytes)
        self._progress = next_lap(self._progress, self.transport.replay, self.outlet.clock.now_us())
        async with aclosing(self.transport.chunks()) as chunks:
            async for chunk in chunks:
                self.outlet.health.enter("running")
                await self._take(chunk)

    async def _take(self, chunk: Chunk):
        health, clock = self.outlet.health, self.outlet.clock
        health.bytes += len(chunk.payload)
        health.lost += chunk.lost
        decoder = self._decoders.get(chunk.source) or self._decoders.setdefault(chunk.source, self._decoder())
        if chunk.payload:
            decoded = await self._decoded(decoder.feed, chunk.payload)
            self.outlet.health.noted = getattr(decoder, "noted", None)
            await self._deliver(decoded)
            self._bound(chunk, decoded)
        if chunk.mark is not Mark.BYTES:
            self._unfinished.forget(chunk.source)
            await self._deliver(await self._decoded(decoder.finish))
        if chunk.mark is Mark.SOURCE_GONE:
            self._decoders.pop(chunk.source, None)
        if chunk.mark is Mark.LAP_END:
            self._progress = next_lap(self._progress, self.transport.replay, clock.now_us())

    def _bound(self, chunk, decoded):
        """Forget the decoders that keep the most, where all together keep too much."""
        gave = bool(decoded.elements.num_rows or decoded.malformed)
        for source in self._unfinished.count(chunk.source, len(chunk.payload), gave):
            self._decoders.pop(source, None)
            self.outlet.health.count_malformed("unfinished", source.encode(), self.outlet.clock.now_us())

    async def _decoded(self, decode, payload: bytes | None = None) -> Decoded:
        arguments = ([] if payload is None else [payload]) + [self.outlet.clock.now_us()]
        if payload is not None and len(payload) > _THREAD_BYTES:
            return await asyncio.to_thread(decode, *arguments)
        return decode(*arguments)

    async def _deliver(self, decoded: Decoded):
        health, now_us = self.outlet.health, self.outlet.clock.now_us()
        for fault in decoded.malformed:
            health.count_malformed(fault.reason, fault.sample, now_us)
        if not decoded.elements.num_rows:
            return
        if self.transport.replay:
            await self._play(decoded.elements)
        else:
            await self._put(decoded.elements)

    async def _play(self, elements):
        clock, replay = self.outlet.clock, self.transport.replay
        time_us = elements["time_us"].to_numpy()
        self._progress, due_us, stamp_us = schedule(self._progress, time_us, replay, clock.now_us())
        if replay.restamp:
            elements = restamped(elements, stamp_us)
        played = 0
        while played < len(due_us):
            due = int(np.searchsorted(due_us, clock.now_us(), side="right"))
            if due > played:
                await self._put(elements.slice(played, due - played))
                played = due
            else:
                await clock.sleep(max(_STEP_S, (int(due_us[played]) - clock.now_us()) / SECOND_US))

    async def _put(self, elements):
        now_us = self.outlet.clock.now_us()
        await self.outlet.queue.put(elements, now_us)
        self.outlet.health.count_elements(elements.num_rows, now_us)

    def _decoder(self):
        definition = self.definition
        return make_decoder(definition.decoder, definition.name, self.outlet.space)
