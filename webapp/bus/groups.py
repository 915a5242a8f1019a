"""The channel layer: a message to a group reaches the group's connections in all web processes.

All messages go through one Redis channel. Each web process subscribes to it once, and passes messages on to its own
connections. So joining or leaving a group needs no Redis. Messages are lost while Redis does not answer or a process is
too slow; the connections then get `MISSED`, and read the present state of everything again.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

import orjson
import redis
from django.conf import settings
from redis.asyncio.client import PubSub

from streaming.keys import GROUPS_CHANNEL
from webapp.bus.redis import NOT_NOW, async_client, client

logger = logging.getLogger(__name__)

# Replaces messages that a connection may have missed.
MISSED = {"type": "messages.missed"}
# A connection with more waiting messages than this gets `MISSED` instead of them.
CAPACITY = 1_000
RETRY_S = 0.2
# After this silence the subscription is pinged; without a reply in the same time, it is given up.
SILENCE_S = 10.0


def send(group: str, message: dict[str, Any]) -> None:
    """Send a message to a group. Raises an error of Redis if Redis does not answer."""
    client().publish(GROUPS_CHANNEL, orjson.dumps([group, message]))


class RedisGroups:
    """A channel layer for Channels that supports groups only. A connection keeps its channel until it drops it.

    Each event loop has channels and groups of its own.
    """

    extensions = ("groups",)

    def __init__(self) -> None:
        self._ears: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ear] = WeakKeyDictionary()

    async def new_channel(self) -> str:
        """Return the name of a new channel. It gets messages from now on, as soon as Redis answers."""
        ear, channel = self._ear, uuid.uuid4().hex
        ear.queues[channel] = asyncio.Queue(CAPACITY)
        try:
            await ear.listens()
        except asyncio.CancelledError:
            ear.drop(channel)
            raise
        return channel

    async def receive(self, channel: str) -> dict[str, Any]:
        """Wait for the next message to a channel's groups, and return it."""
        return await self._ear.queues[channel].get()

    async def group_add(self, group: str, channel: str) -> None:
        """Add a channel to a group."""
        self._ear.groups.setdefault(group, set()).add(channel)

    async def group_discard(self, group: str, channel: str) -> None:
        """Remove a channel from a group."""
        self._ear.discard(group, channel)

    def drop_channel(self, channel: str) -> None:
        """Remove a channel from all groups, with its waiting messages."""
        self._ear.drop(channel)

    @property
    def _ear(self) -> "_Ear":
        loop = asyncio.get_running_loop()
        return self._ears.get(loop) or self._ears.setdefault(loop, _Ear())


class _Ear:
    """The channels of one event loop, and its subscription to Redis while it has channels."""

    def __init__(self) -> None:
        self.queues: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self.groups: dict[str, set[str]] = {}
        self._task: asyncio.Task | None = None

    async def listens(self) -> None:
        """Start to listen; return after the first attempt to subscribe, whether Redis answered or not."""
        if self._task is None:
            self._tried = asyncio.Event()
            self._task = asyncio.create_task(self._listen())
        await self._tried.wait()

    def discard(self, group: str, channel: str) -> None:
        members = self.groups.get(group, set())
        members.discard(channel)
        if not members:
            self.groups.pop(group, None)

    def drop(self, channel: str) -> None:
        for group in list(self.groups):
            self.discard(group, channel)
        self.queues.pop(channel, None)
        if not self.queues and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _listen(self) -> None:
        """Pass on published messages, forever; after an interruption send `MISSED` to all channels."""
        whole = True
        while True:
            try:
                async with async_client() as listener, listener.pubsub() as pubsub:
                    await pubsub.subscribe(GROUPS_CHANNEL)
                    await _next(pubsub, settings.REDIS_TIMEOUT_S)
                    self._tried.set()
                    self._make_up_for(whole)
                    whole = True
                    async for said in _said(pubsub):
                        self._pass_on(*orjson.loads(said))
            except Exception as error:
                expected = isinstance(error, NOT_NOW)
                if whole or not expected:
                    logger.warning("changes are not heard of for now: %s", error, exc_info=None if expected else error)
            whole = False
            self._tried.set()
            await asyncio.sleep(RETRY_S)

    def _make_up_for(self, whole: bool) -> None:
        if not whole:
            logger.info("Redis answers; %d connections look at everything anew", len(self.queues))
            for queue in self.queues.values():
                _put(queue, MISSED)

    def _pass_on(self, group: str, message: dict[str, Any]) -> None:
        for channel in self.groups.get(group, ()):
            _put(self.queues[channel], message)


async def _said(pubsub: PubSub) -> AsyncIterator[bytes]:
    """Yield published messages, forever; ping Redis after each silence of `SILENCE_S`."""
    while True:
        message = await pubsub.get_message(timeout=SILENCE_S)
        if message is None:
            await pubsub.ping()
            message = await _next(pubsub, SILENCE_S)
        if message["type"] == "message":
            yield message["data"]


async def _next(pubsub: PubSub, timeout_s: float) -> dict[str, Any]:
    """Return the next message; raise `redis.TimeoutError` if none comes in time."""
    message = await pubsub.get_message(timeout=timeout_s)
    if message is None:
        raise redis.TimeoutError(f"nothing came for {timeout_s:g} s")
    return message


def _put(queue: asyncio.Queue[dict[str, Any]], message: dict[str, Any]) -> None:
    """Add a message to a queue; if the queue is full, replace everything in it by `MISSED`."""
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        message = MISSED
    queue.put_nowait(message)
