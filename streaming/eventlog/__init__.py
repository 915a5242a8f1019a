"""Logs of entries between programs: append, read from a position, wait, and trim behind a position."""

from streaming.eventlog.protocol import FIRST, Bound, BoundedEntry, Entry, EventLog, Fields, Stamp, next_ends
from streaming.eventlog.redis_streams import AsyncRedisEventLog, PatientRedisEventLog, RedisEventLog, queue_append

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
    "queue_append",
]
