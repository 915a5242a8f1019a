"""Logs of entries between programs: append, read from a position, wait, and trim behind a position."""

from streaming.eventlog.opening import open_async_log, open_log
from streaming.eventlog.protocol import FIRST, Bound, BoundedEntry, Entry, EventLog, Fields, Stamp, next_ends
from streaming.eventlog.redis_streams import AsyncRedisEventLog, PatientRedisEventLog, RedisEventLog

__all__ = [
    "FIRST",
    "AsyncRedisEventLog",
    "Bound",
    "BoundedEntry",
    "Entry",
    "EventLog",
    "Fields",
    "PatientRedisEventLog",
    "RedisEventLog",
    "Stamp",
    "next_ends",
    "open_async_log",
    "open_log",
]
