"""The channel layer: what one process says to a group reaches the group's connections in all web processes.

Everything goes through one channel of Redis, which each web process hears as a whole and passes on to its own
connections. So nobody waits for Redis who joins or leaves a group. What is said while Redis does not answer, or while
a process cannot keep up, is not heard; the connections are told of that by `MISSED`, and look at everything anew.
"""

import asyncio
import logging
import uuid
from typing import Any
from weakref import WeakKeyDictionary

import orjson
import redis
from django.conf import settings
from redis.asyncio.client import PubSub

from webapp.redis import NOT_NOW, async_client, client

logger = logging.getLogger(__name__)

CHANNEL = "lookout:groups"
# In place of what a connection may not have heard.
MISSED = {"type": "messages.missed"}
# A connection that lets more than this wait hears `MISSED` instead.
CAPACITY = 1_000
RETRY_S = 0.2
# A line on which nothing comes for so long is tried out, and given up if nothing comes for as long again.
SILENCE_S = 10.0


def send(group: str, message: dict[str, Any]) -> None:
    """Say something to a group; raises an error of Redis where that does not answer."""
    client().publish(CHANNEL, orjson.dumps([group, message]))


class RedisGroups:
    """A channel layer of Channels, with groups alone; a connection has its channel until it drops that.

    The methods belong to the event loop in which they are called.
    """

    extensions = ("groups",)

    def __init__(self) -> None:
        self._ears: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ear] = WeakKeyDictionary()

    async def new_channel(self) -> str:
        """Return the name of a new channel, which hears what is said from now on."""
        ear, channel = self._ear, uuid.uuid4().hex
        ear.queues[channel] = asyncio.Queue(CAPACITY)
        try:
            await ear.listens()
        except asyncio.CancelledError:
            ear.drop(channel)
            raise
        return channel

    async def receive(self, channel: str) -> dict[str, Any]:
        """Return the next message to the groups of a channel."""
        return await self._ear.queues[channel].get()

    async def group_add(self, group: str, channel: str) -> None:
        """Let a channel hear what is said to a group."""
        self._ear.groups.setdefault(group, set()).add(channel)

    async def group_discard(self, group: str, channel: str) -> None:
        """Let a channel hear no more what is said to a group."""
        self._ear.discard(group, channel)

    def drop_channel(self, channel: str) -> None:
        """Forget a channel."""
        self._ear.drop(channel)

    @property
    def _ear(self):
        loop = asyncio.get_running_loop()
        return self._ears.get(loop) or self._ears.setdefault(loop, _Ear())


class _Ear:
    """What one event loop hears, while it has channels."""

    def __init__(self) -> None:
        self.queues: dict[str, asyncio.Queue] = {}
        self.groups: dict[str, set[str]] = {}
        self._task: asyncio.Task | None = None

    async def listens(self) -> None:
        """Return once Redis has been asked to say what is published, whether it answered or not."""
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

    async def _listen(self):
        """Pass on what is published, for ever; after a break tell all channels that something may be missing."""
        whole = True
        while True:
            try:
                async with async_client() as listener, listener.pubsub() as pubsub:
                    await pubsub.subscribe(CHANNEL)
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

    def _make_up_for(self, whole):
        if not whole:
            logger.info("Redis answers; %d connections look at everything anew", len(self.queues))
            for queue in self.queues.values():
                _put(queue, MISSED)

    def _pass_on(self, group, message):
        for channel in self.groups.get(group, ()):
            _put(self.queues[channel], message)


async def _said(pubsub: PubSub):
    """Yield what is said on a line, for ever; after a silence the line is tried out."""
    while True:
        message = await pubsub.get_message(timeout=SILENCE_S)
        if message is None:
            await pubsub.ping()
            message = await _next(pubsub, SILENCE_S)
        if message["type"] == "message":
            yield message["data"]


async def _next(pubsub, timeout_s):
    """Return the next message; raise an error where none comes in time."""
    message = await pubsub.get_message(timeout=timeout_s)
    if message is None:
        raise redis.TimeoutError(f"nothing came for {timeout_s:g} s")
    return message


def _put(queue, message):
    """Add a message; where there is no room, what waits is replaced by the word that something is missing."""
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        message = MISSED
    queue.put_nowait(message)
