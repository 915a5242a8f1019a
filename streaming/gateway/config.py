"""The gateway's constants, in one place."""

from dataclasses import dataclass

from streaming.gateway.access import FeedAccess
from streaming.redis_memory import LIVE_SHARE, WAITING_SHARE, Pressure
from streaming.traces import OFF, Traces


@dataclass(frozen=True)
class GatewayConfig:
    """How much the gateway holds and how often it acts.

    Parameters
    ----------
    partitions : int
        Number of partitions of the ingest log.
    flush_s : float
        Longest time that elements wait for others to join them in a block, in seconds.
    block_rows : int
        Most elements in a block.
    queue_rows : int
        Elements that each stream's queue holds before it conflates them or makes the feed wait.
    waiting_backlog, live_backlog : int
        Bounds on the blocks per partition that the engine has not committed. Beyond the first, no recording is written;
        beyond the second, no live feed. The first is lower, so that recordings leave room for live feeds.
    waiting_memory, live_memory : float
        Bounds on how full Redis is, in the same way. The rest is for what the engine writes about the elements.
    report_s, reread_s : float
        Interval at which the gateway sends ticks and writes the health, and at which it reads the definitions even if
        no change was announced, in seconds.
    backoff_s, longest_backoff_s : float
        First and longest wait before the gateway tries a broken stream again, in seconds.
    stop_s : float
        Time that a stopping gateway has to write the queued elements, in seconds.
    unfinished_bytes : int
        Most bytes that all clients of a listening stream together may send without completing a line or a document.
    log_url : str
        Where Kafka is, if the logs are there; empty if they are in Redis.
    access : FeedAccess or None
        What feeds may reach; None to read it from the environment.
    traces : Traces
        Where spans of sampled elements go.
    """

    partitions: int = 2
    flush_s: float = 0.025
    block_rows: int = 8_192
    queue_rows: int = 32_768
    waiting_backlog: int = 64
    live_backlog: int = 96
    waiting_memory: float = WAITING_SHARE
    live_memory: float = LIVE_SHARE
    report_s: float = 1.0
    reread_s: float = 5.0
    backoff_s: float = 0.5
    longest_backoff_s: float = 30.0
    stop_s: float = 0.8
    unfinished_bytes: int = 128 << 20
    log_url: str = ""
    access: FeedAccess | None = None
    traces: Traces = OFF

    def takes(self, pressure: Pressure, live: bool) -> bool:
        """Return whether elements of a live feed, or of one that waits, may be written to the ingest log now."""
        bounds = (self.live_backlog, self.live_memory) if live else (self.waiting_backlog, self.waiting_memory)
        return pressure.backlog <= bounds[0] and pressure.memory <= bounds[1]
