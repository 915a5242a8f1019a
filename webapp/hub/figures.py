"""What the hubs of all web processes count for the metrics: connections, frames, and what waits for slow clients."""

import contextlib
from collections.abc import Collection

import orjson
import redis

from streaming.keys import figures_key
from webapp.hub.engine_link import EngineLink
from webapp.hub.subscriptions import Subscriber

# A hub that has not told its figures for so long is gone.
KEPT_S = 10


class HubFigures:
    """Counts the frames of a hub, and tells them and what waits.

    Frames are added to the counts of all hubs of the space, so they go on when a web process starts again.

    Parameters
    ----------
    link : EngineLink
    subscribers : collection of Subscriber
        The connections of the hub, which change.
    """

    def __init__(self, link: EngineLink, subscribers: Collection[Subscriber]) -> None:
        self._link, self._subscribers = link, subscribers
        self._frames = self._bytes = 0

    def count(self, frame: str | bytes) -> None:
        """Count a frame that a connection got."""
        self._frames += 1
        self._bytes += len(frame)

    async def publish(self) -> None:
        """Tell the figures, unless Redis is full: then they are told later."""
        waiting = [subscriber.waiting() for subscriber in self._subscribers]
        told = {
            "clients": len(waiting),
            "waiting_bytes": sum(size for size, _ in waiting),
            "lag_s": round(max((waits_s for _, waits_s in waiting), default=0.0), 3),
        }
        frames, size = self._frames, self._bytes
        with contextlib.suppress(redis.exceptions.OutOfMemoryError):
            async with self._link.redis.pipeline() as pipeline:
                pipeline.hincrby(self._link.names.sent, "frames", frames)
                pipeline.hincrby(self._link.names.sent, "bytes", size)
                pipeline.set(figures_key(self._link.id), orjson.dumps(told), ex=KEPT_S)
                await pipeline.execute()
            self._frames, self._bytes = self._frames - frames, self._bytes - size
