"""Run the ingest gateway: ``python -m streaming.gateway``."""

import asyncio
import logging
import signal

from streaming.gateway.config import GatewayConfig
from streaming.gateway.gateway import Gateway
from streaming.settings import EngineSettings


async def run(settings: EngineSettings) -> None:
    """Run the gateway until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    config = GatewayConfig(space=settings.space, partitions=settings.partitions)
    await Gateway(settings.redis_url, config).run(stop)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s gateway %(levelname)s %(message)s")
    asyncio.run(run(EngineSettings.from_environ()))
