"""A hub's line to the engine of its space: its names, its connection to Redis, and the control log."""

from streaming.logs import LogNames
from streaming.spaces import Space
from webapp.liveness import web_id
from webapp.redis import async_client


class Line:
    """Open between `open` and `close`.

    Parameters
    ----------
    space : Space

    Attributes
    ----------
    id : str
        Of this web process, in the space.
    names : LogNames
    redis : redis.asyncio.Redis
        While it is open.
    """

    def __init__(self, space: Space) -> None:
        self.id = web_id(space.name)
        self.space = space
        self.names = LogNames(space.name)

    def open(self) -> None:
        """Connect to Redis, in the running event loop."""
        self.redis = async_client()

    async def close(self) -> None:
        """End the connection."""
        await self.redis.aclose()

    async def send(self, entries: list[dict[str, str]]) -> None:
        """Append entries to the control log."""
        if entries:
            async with self.redis.pipeline(transaction=False) as pipeline:
                for entry in entries:
                    pipeline.xadd(self.names.control, entry)
                await pipeline.execute()
