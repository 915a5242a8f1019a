"""Run the ingest gateway: ``python -m streaming.gateway``."""

import asyncio
import logging
import os
import signal

from streaming.errors import LookoutError
from streaming.gateway.access import FeedAccess
from streaming.gateway.config import GatewayConfig
from streaming.gateway.gateway import Gateway
from streaming.gateway.samples import FLIGHTS, prepare_flights
from streaming.log_format import set_up
from streaming.settings import EngineSettings
from streaming.trace_opening import open_traces

logger = logging.getLogger("streaming.gateway")


async def run(settings: EngineSettings) -> None:
    """Run the gateway until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    samples = asyncio.create_task(asyncio.to_thread(_prepare_samples))
    access = FeedAccess(settings.home, settings.feed_dirs, settings.feed_hosts)
    traces = open_traces(settings.trace_ratio, "gateway")
    config = GatewayConfig(partitions=settings.partitions, log_url=settings.log_url, access=access, traces=traces)
    await Gateway(settings.redis_url, config).run(stop)
    await samples


def _prepare_samples() -> None:
    try:
        prepare_flights(FLIGHTS)
    except (LookoutError, OSError) as error:  # only the demonstration's stream needs it, and reports its absence
        logger.warning("%s", error)


if __name__ == "__main__":
    chosen = EngineSettings.from_environ()
    set_up(chosen.log_format, "gateway", text="%(asctime)s gateway %(levelname)s %(message)s")
    # Feeds give the paths of files and pipes relative to the state folder.
    (chosen.home / "feeds").mkdir(parents=True, exist_ok=True)
    os.chdir(chosen.home)
    asyncio.run(run(chosen))
