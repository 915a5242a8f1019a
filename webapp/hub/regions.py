"""Tells connections how the regions of a space are, and how they changed."""

import orjson

from streaming.logs import regions_of
from streaming.region_reports import changes_of
from webapp.bus.regions import Regions, changes_document, now_us
from webapp.hub.engine_link import EngineLink
from webapp.hub.subscriptions import Subscriber

REGIONS = "regions"
# How many of the newest changes connections are told of.
CHANGES = 30


class RegionFollowers:
    """Sends the regions of a space to the connections that follow them, once a second, if they have changed.

    Parameters
    ----------
    link : EngineLink
    """

    def __init__(self, link: EngineLink) -> None:
        self._link = link
        self._told: dict[Subscriber, bytes] = {}

    def follow(self, subscriber: Subscriber) -> None:
        """Send a connection the regions from now on."""
        self._told[subscriber] = b""

    def leave(self, subscriber: Subscriber) -> None:
        """Stop sending a connection the regions."""
        self._told.pop(subscriber, None)

    async def publish(self) -> None:
        """Send the regions to whoever does not know them as they are. Call it every second."""
        if not self._told:
            return
        names = self._link.names
        async with self._link.redis.pipeline(transaction=False) as pipeline:
            pipeline.hgetall(names.engine)
            pipeline.lrange(names.region_changes, 0, CHANGES - 1)
            report, changes = await pipeline.execute()
        now = Regions.of(self._link.space, regions_of(report))
        if now is None:
            return
        message = {"type": REGIONS, "space": self._link.space.name, **now.document(now_us())}
        message["changes"] = changes_document(changes_of(changes))
        text = orjson.dumps(message)
        for subscriber, told in list(self._told.items()):
            if told != text:
                self._told[subscriber] = text
                subscriber.broadcast(f"{REGIONS} {self._link.space.name}", text.decode())
