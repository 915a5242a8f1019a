"""The gateway of one space: it runs the streams that are defined, and keeps the space's clock."""

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

from streaming.errors import InvalidOptions
from streaming.gateway.clock import Clock
from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition, check_definition, read_definition
from streaming.gateway.health import Health, rate
from streaming.gateway.stream import Outlet, RunningStream
from streaming.gateway.writer import Writer
from streaming.logs import HEALTH_KEY, STREAMS_CHANNEL, STREAMS_KEY, Log

logger = logging.getLogger(__name__)

_TICKS_UNPROCESSED = 10
# Beyond so many, a tick only so often.
_SLOW_TICK_US = 5_000_000
# The newest control entries that are searched for ticks.
_ENTRIES_SEARCHED = 64
# Reports over which rates are taken.
_COUNTS_KEPT = 11
# Short, so that a Redis that hangs does not hold up the end of the process.
_REDIS_TIMEOUT_S = 1.0


class Gateway:
    """Runs every enabled stream of one space.

    Parameters
    ----------
    redis_url : str
    config : GatewayConfig
    clock : Clock, optional
    """

    def __init__(self, redis_url: str, config: GatewayConfig, clock: Clock | None = None) -> None:
        self.redis_url, self.config, self.clock = redis_url, config, clock or Clock()
        self.client = redis.Redis.from_url(
            redis_url,
            socket_timeout=_REDIS_TIMEOUT_S,
            socket_connect_timeout=_REDIS_TIMEOUT_S,
            retry=redis.retry.Retry(NoBackoff(), 0),
        )
        self.log = Log(self.client, config.space, config.partitions)
        self.writer = Writer(self.log, config)
        self.health: dict[str, Health] = {}
        self.streams: dict[str, RunningStream] = {}
        self._applied: dict[str, bytes | None] = {}
        self._tasks: dict[str, asyncio.Task] = {}
        self._counts: dict[str, deque[tuple[int, int]]] = {}
        self._health_log = asyncio.Lock()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until told to stop, then write what is queued and return."""
        duties = [asyncio.create_task(duty) for duty in (self.writer.run(), self._watch(), self._report())]
        stopping = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([*duties, stopping], return_when=asyncio.FIRST_COMPLETED)
            for duty in done - {stopping}:
                duty.result()  # a duty ends only by an error of ours
        finally:
            await _cancel(*duties, stopping, *self._tasks.values())
            await self._last_words()
            self.client.close()

    async def reconcile(self, wanted: Mapping[str, bytes]) -> None:
        """Start, stop and restart streams so that those run which the definitions ask for; touch no other.

        Parameters
        ----------
        wanted : mapping of str to bytes
            The JSON definitions of this space's streams, by name.
        """
        for name in [name for name in self._applied if name not in wanted]:
            await self._drop(name)
        for name, payload in wanted.items():
            if self._applied.get(name) != payload:
                await self._apply(name, payload)

    async def _apply(self, name, payload):
        await self._halt(name)
        health = self.health.setdefault(name, Health(self.config.space))
        try:
            definition = read_definition(payload)
            check_definition(definition)
            await asyncio.to_thread(self.log.send, "stream", stream=name, ttl_s=definition.ttl_s)
            health.enter("stopped")
            if definition.enabled:
                self._start(definition, health)
        except InvalidOptions as error:
            health.enter("failed", error)
        self._applied[name] = payload

    def _start(self, definition: StreamDefinition, health: Health):
        queue = self.writer.queue(definition.name, live=True)
        stream = RunningStream(definition, Outlet(queue, health, self.clock, self.config))
        queue.live = stream.transport.live
        self.streams[definition.name] = stream
        self._tasks[definition.name] = asyncio.create_task(stream.run(), name=definition.name)

    async def _halt(self, name):
        self.streams.pop(name, None)
        if task := self._tasks.pop(name, None):
            await _cancel(task)

    async def _drop(self, name):
        await self._halt(name)
        await self.writer.discard(name)
        await asyncio.to_thread(self.log.send, "drop_stream", stream=name)
        async with self._health_log:
            await asyncio.to_thread(self.client.hdel, HEALTH_KEY, name)
            self.health.pop(name, None)
            self._counts.pop(name, None)
        del self._applied[name]

    async def _watch(self):
        """Follow the definitions: at once when told of a change, and every few seconds in any case."""
        while True:
            try:
                if not self._applied:
                    self._applied = dict.fromkeys(await asyncio.to_thread(self._known))
                await self._follow()
            except redis.RedisError as error:
                logger.warning("the definitions cannot be read: %s", error)
                await asyncio.sleep(self.config.report_s)

    async def _follow(self):
        listener = redis.asyncio.Redis.from_url(
            self.redis_url,
            socket_connect_timeout=_REDIS_TIMEOUT_S,
            retry=redis.asyncio.retry.Retry(NoBackoff(), 0),
        )
        async with listener, listener.pubsub(ignore_subscribe_messages=True) as told:
            await told.subscribe(STREAMS_CHANNEL)
            while True:
                await self.reconcile(await asyncio.to_thread(self._wanted))
                await _message(told, self.config.reread_s)

    def _wanted(self):
        documents = self.client.hgetall(STREAMS_KEY)
        return {name.decode(): payload for name, payload in documents.items() if self._is_ours(payload)}

    def _known(self):
        """Return the streams that an earlier gateway ran, so that those removed since are dropped."""
        return [name.decode() for name, payload in self.client.hgetall(HEALTH_KEY).items() if self._is_ours(payload)]

    def _is_ours(self, payload):
        try:
            document = orjson.loads(payload)
        except orjson.JSONDecodeError:
            return False
        return isinstance(document, dict) and document.get("space") == self.config.space

    async def _report(self):
        """Every second: a tick for the engine, a sign of life, and the health of the streams."""
        while True:
            try:
                await asyncio.to_thread(self._tick)
                await asyncio.to_thread(self.client.hset, self.log.names.gateway, "at_us", self.clock.now_us())
                await self._write_health()
            except redis.RedisError as error:
                logger.warning("the control log cannot be written: %s", error)
            await self.clock.sleep(self.config.report_s)

    def _tick(self):
        """Advance the space's clock, slowly if the engine is down: more ticks would only make the log longer.

        Not to tick at all would be too little: what an engine has taken it trims from the log once more has come.
        """
        newest = self.client.xrevrange(self.log.names.control, count=_ENTRIES_SEARCHED)
        entries = (orjson.loads(fields[b"entry"]) for _, fields in newest)
        ticks_us = [entry["now_us"] for entry in entries if entry["op"] == "tick"]
        now_us = self.clock.now_us()
        if len(ticks_us) <= _TICKS_UNPROCESSED or now_us >= ticks_us[0] + _SLOW_TICK_US:
            self.log.send("tick", now_us=now_us)

    def _documents(self):
        now_us = self.clock.now_us()
        for name, health in self.health.items():
            if queue := self.writer.queues.get(name):
                health.merged = queue.merged
            counts = self._counts.setdefault(name, deque(maxlen=_COUNTS_KEPT))
            counts.append((now_us, health.elements))
            health.elements_per_s = rate(counts)
        return {name: orjson.dumps(health.document()) for name, health in self.health.items()}

    async def _write_health(self):
        async with self._health_log:
            if documents := self._documents():
                await asyncio.to_thread(self.client.hset, HEALTH_KEY, mapping=documents)

    async def _last_words(self):
        for health in self.health.values():
            if health.state not in ("failed", "finished"):
                health.enter("stopped")
        try:
            async with asyncio.timeout(self.config.stop_s):
                await self.writer.flush()
                await self._write_health()
        except (redis.RedisError, TimeoutError) as error:
            waiting = sum(queue.rows for queue in self.writer.queues.values())
            logger.warning("stopped with %d elements unwritten: %s", waiting, error or type(error).__name__)


async def _message(told, timeout_s):
    """Wait for news; those that came together count as one."""
    if await told.get_message(timeout=timeout_s):
        while await told.get_message(timeout=0):
            pass


async def _cancel(*tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
