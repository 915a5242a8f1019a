"""The gateway's constants, in one place."""

from dataclasses import dataclass

from streaming.gateway.access import FeedAccess


@dataclass(frozen=True)
class GatewayConfig:
    """How much the gateway holds and how often it acts.

    Parameters
    ----------
    partitions : int
        Of the ingest log.
    flush_s : float
        Elements wait at most so long to be joined by others in a block.
    block_rows : int
        Most elements in a block.
    queue_rows : int
        Elements that each stream's queue holds as they came.
    waiting_backlog, live_backlog : int
        Blocks per partition that the engine has not committed, beyond which recordings, and live feeds, are not
        written. A recording leaves room for the live ones.
    report_s, reread_s : float
        Intervals of ticks and health, and of reading the definitions without being told.
    backoff_s, longest_backoff_s : float
        First and longest wait before a broken stream is tried again.
    stop_s : float
        Time to write what is queued when the gateway is told to stop.
    unfinished_bytes : int
        What all clients of a listening stream together may have sent without completing a line or a document.
    access : FeedAccess or None
        What feeds may reach; None for what the environment says.
    """

    partitions: int = 2
    flush_s: float = 0.025
    block_rows: int = 8_192
    queue_rows: int = 32_768
    waiting_backlog: int = 64
    live_backlog: int = 96
    report_s: float = 1.0
    reread_s: float = 5.0
    backoff_s: float = 0.5
    longest_backoff_s: float = 30.0
    stop_s: float = 0.8
    unfinished_bytes: int = 128 << 20
    access: FeedAccess | None = None
