"""The clock that the gateway passes to its parts."""

import asyncio
import time

SECOND_US = 1_000_000
# Event times may be ahead of the clock by this much: clocks of feeds differ by seconds, clocks never set by years.
MAX_AHEAD_S = 300.0


class Clock:
    """Wall-clock time, and waiting for it."""

    def now_us(self) -> int:
        """Return microseconds since 1970 UTC."""
        return time.time_ns() // 1_000

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        await asyncio.sleep(seconds)
