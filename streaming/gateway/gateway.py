"""The gateway: it runs the defined streams, and advances the clocks of all spaces."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping

import orjson
import redis
import redis.asyncio
import redis.asyncio.retry
import redis.retry
from redis.backoff import NoBackoff

from streaming.elements import stream_number
from streaming.errors import InvalidOptions
from streaming.gateway.clock import Clock
from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition, check_definition, read_definition
from streaming.gateway.health import StreamHealth, rate
from streaming.gateway.intake import Intake
from streaming.gateway.stream import Outlet, RunningStream
from streaming.keys import HEALTH_KEY, STREAMS_CHANNEL, STREAMS_KEY
from streaming.logs import Log, write_report
from streaming.published import published_spaces, space_name
from streaming.redis_client import read_hash
from streaming.spaces import EARTH, Space

logger = logging.getLogger(__name__)

# Rates are taken over this many of the last reports.
_COUNTS_KEPT = 11
# Short, so that a hanging Redis does not delay the end of the process.
_REDIS_TIMEOUT_S = 1.0


class Gateway:
    """Runs every enabled stream of every space.

    Parameters
    ----------
    redis_url : str
    config : GatewayConfig
    clock : Clock, optional

    Attributes
    ----------
    intakes : dict of str to Intake
        By space.
    streams : dict of str to RunningStream
        The running streams, by name.
    health : dict of str to StreamHealth
        By stream.
    """

    def __init__(self, redis_url: str, config: GatewayConfig, clock: Clock | None = None) -> None:
        self.redis_url, self.config, self.clock = redis_url, config, clock or Clock()
        self.client = redis.Redis.from_url(
            redis_url,
            socket_timeout=_REDIS_TIMEOUT_S,
            socket_connect_timeout=_REDIS_TIMEOUT_S,
            retry=redis.retry.Retry(NoBackoff(), 0),
        )
        self.intakes = {EARTH.name: Intake(EARTH, self.client, config)}
        self.health: dict[str, StreamHealth] = {}
        self.streams: dict[str, RunningStream] = {}
        # The definition and the space that were last applied to each stream.
        self._applied: dict[str, tuple[bytes, Space | None]] = {}
        self._tasks: dict[str, asyncio.Task] = {}
        self._counts: dict[str, deque[tuple[int, int]]] = {}
        self._health_log = asyncio.Lock()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then write the queued elements and return."""
        for intake in self.intakes.values():
            intake.start()
        duties = [asyncio.create_task(duty) for duty in (self._watch(), self._report())]
        stopping = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([*duties, stopping], return_when=asyncio.FIRST_COMPLETED)
            for duty in done - {stopping}:
                duty.result()  # a duty ends only by a bug, which is raised here
        finally:
            await _cancel(*duties, stopping, *self._tasks.values())
            await asyncio.gather(*(intake.stop() for intake in self.intakes.values()))
            await self._last_words()
            self.client.close()

    async def reconcile(self, wanted: Mapping[str, bytes], spaces: Mapping[str, Space]) -> None:
        """Start, stop and restart streams as the definitions ask; leave unchanged streams alone.

        Parameters
        ----------
        wanted : mapping of str to bytes
            The JSON definitions of the streams, by name.
        spaces : mapping of str to Space
            By name.
        """
        for name in [name for name in self.health if name not in wanted]:
            await self._drop(name)
        for name in [name for name, intake in self.intakes.items() if spaces.get(name) != intake.space]:
            await self._close(name)
        for name in [name for name in spaces if name not in self.intakes]:
            self.intakes[name] = Intake(spaces[name], self.client, self.config)
            self.intakes[name].start()
        for name, payload in wanted.items():
            target = (payload, spaces.get(space_name(payload)))
            if self._applied.get(name) != target:
                await self._apply(name, payload)
                self._applied[name] = target

    async def _apply(self, name: str, payload: bytes) -> None:
        await self._halt(name)
        space = space_name(payload)
        if name in self.health and self.health[name].space != space:
            await self._drop(name)
        health = self.health.setdefault(name, StreamHealth(space))
        try:
            definition = read_definition(payload)
            spaces = {name: intake.space for name, intake in self.intakes.items()}
            check_definition(definition, spaces, self.config.access)
            words = {"ttl_s": definition.ttl_s, "stored": definition.stored, "sketch": definition.sketch}
            await asyncio.to_thread(self.intakes[space].log.send, "stream", stream=name, **words)
            health.enter("stopped")
            if definition.enabled:
                self._start(definition, health)
        except InvalidOptions as error:
            health.enter("failed", error)

    def _start(self, definition: StreamDefinition, health: StreamHealth) -> None:
        intake = self.intakes[definition.space]
        queue = intake.writer.queue(definition.name, live=True)
        stream = RunningStream(definition, Outlet(queue, health, self.clock, self.config, intake.space))
        queue.live = stream.transport.live
        self.streams[definition.name] = stream
        self._tasks[definition.name] = asyncio.create_task(stream.run(), name=definition.name)

    async def _halt(self, name: str) -> None:
        self.streams.pop(name, None)
        if task := self._tasks.pop(name, None):
            await _cancel(task)

    async def _drop(self, name: str) -> None:
        await self._halt(name)
        if intake := self.intakes.get(self.health[name].space):
            await intake.writer.discard(name)
            await asyncio.to_thread(intake.log.send, "drop_stream", stream=name)
            await asyncio.to_thread(intake.log.forget_stale, stream_number(name))
        async with self._health_log:
            await asyncio.to_thread(self.client.hdel, HEALTH_KEY, name)
            del self.health[name]
            self._counts.pop(name, None)
        self._applied.pop(name, None)

    async def _close(self, space: str) -> None:
        """Halt the streams of a space that was removed or redefined, and stop its intake."""
        for name in [name for name in self.streams if self.health[name].space == space]:
            await self._halt(name)
        await self.intakes.pop(space).stop()

    async def _watch(self) -> None:
        """Apply the definitions: at once when a change is announced, and every few seconds in any case."""
        while True:
            try:
                if not self._applied:
                    self.health |= await asyncio.to_thread(self._known)
                    await asyncio.to_thread(self._forget_stale)
                await self._follow()
            except redis.RedisError as error:
                logger.warning("the definitions cannot be read: %s", error)
                await asyncio.sleep(self.config.report_s)

    async def _follow(self) -> None:
        listener = redis.asyncio.Redis.from_url(
            self.redis_url,
            socket_connect_timeout=_REDIS_TIMEOUT_S,
            retry=redis.asyncio.retry.Retry(NoBackoff(), 0),
        )
        async with listener, listener.pubsub(ignore_subscribe_messages=True) as told:
            await told.subscribe(STREAMS_CHANNEL)
            while True:
                await self.reconcile(*await asyncio.to_thread(self._wanted))
                await _message(told, self.config.reread_s)

    def _wanted(self) -> tuple[dict[str, bytes], dict[str, Space]]:
        documents = read_hash(self.client, STREAMS_KEY)
        return {name.decode(): payload for name, payload in documents.items()}, published_spaces(self.client)

    def _known(self) -> dict[str, StreamHealth]:
        """Return the streams that an earlier gateway ran; `reconcile` drops those that were removed since."""
        told = read_hash(self.client, HEALTH_KEY)
        return {name.decode(): StreamHealth(space_name(counters)) for name, counters in told.items()}

    def _forget_stale(self) -> None:
        """Reset the counts of stale elements, since all counters begin at this gateway's start."""
        for space in published_spaces(self.client):
            Log(self.client, space, self.config.partitions).forget_stale()

    async def _report(self) -> None:
        """Every second, send each engine a tick and a sign of life, and write the health of the streams."""
        while True:
            try:
                for name, intake in list(self.intakes.items()):
                    if self.intakes.get(name) is not intake:
                        continue  # its space was removed or redefined meanwhile
                    intake.check()
                    await asyncio.to_thread(intake.live, self.clock.now_us())
                    self._note_stale(intake.space.name, await asyncio.to_thread(intake.log.stale))
                await self._write_health()
            except redis.RedisError as error:
                logger.warning("the control log cannot be written: %s", error)
            await self.clock.sleep(self.config.report_s)

    def _note_stale(self, space: str, counts: Mapping[int, int]) -> None:
        for name, health in self.health.items():
            if health.space == space:
                health.stale = counts.get(stream_number(name), 0)

    def _documents(self) -> dict[str, bytes]:
        now_us = self.clock.now_us()
        for name, health in self.health.items():
            if (intake := self.intakes.get(health.space)) and (queue := intake.writer.queues.get(name)):
                health.merged, health.waits = queue.merged, intake.writer.full if queue.rows else None
            counts = self._counts.setdefault(name, deque(maxlen=_COUNTS_KEPT))
            counts.append((now_us, health.elements))
            health.elements_per_s = rate(counts)
        return {name: orjson.dumps(health.document()) for name, health in self.health.items()}

    async def _write_health(self) -> None:
        async with self._health_log:
            if documents := self._documents():
                await asyncio.to_thread(write_report, self.client, HEALTH_KEY, documents)

    async def _last_words(self) -> None:
        for health in self.health.values():
            if health.state not in ("failed", "finished"):
                health.enter("stopped")
        try:
            async with asyncio.timeout(self.config.stop_s):
                for intake in self.intakes.values():
                    await intake.writer.flush()
                await self._write_health()
        except (redis.RedisError, TimeoutError) as error:
            queues = [queue for intake in self.intakes.values() for queue in intake.writer.queues.values()]
            waiting = sum(queue.rows for queue in queues)
            logger.warning("stopped with %d elements unwritten: %s", waiting, error or type(error).__name__)


async def _message(told: redis.asyncio.client.PubSub, timeout_s: float) -> None:
    """Wait for a message; messages that came together count as one."""
    if await told.get_message(timeout=timeout_s):
        while await told.get_message(timeout=0):
            pass


async def _cancel(*tasks: asyncio.Task) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
