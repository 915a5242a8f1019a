"""The logs on Redis Streams. This is the only module that uses Redis' commands for streams.

A bounded log has a list ``<log>:marks`` beside its stream. It says how many bytes had been appended before the first
entry, and up to the end of each entry. So the size is the difference of two numbers, and nothing is scanned to keep the
bound. The hash ``<log>:stamps`` has the newest epoch and number of each producer.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from streaming.eventlog.append_file import AppendFile, asked_of
from streaming.eventlog.protocol import FIRST, NONE_AHEAD, NONE_PASSED, BoundedEntry, Entry, Fields, Stamp
from streaming.redis_memory import when_there_is_room

# No log has this many entries.
_ALL = 2**53
# What Redis needs for an entry and its mark beside the names and values of the fields, in bytes; about.
_ENTRY_BYTES = 64

# Returns for each log the position of the last entry after a position, or of the n-th if there may be more than n: if
# the log has more entries than that besides those that are known to be passed. Then a position that somebody knows
# serves as well. The script runs within Redis, so that no entry is sent: a block may be a megabyte. Still, Redis copies
# each entry that the script looks at.
_ENDS = """
local function is_behind(one, other)
  local ms, number = one:match('^(%d+)-(%d+)$')
  local other_ms, other_number = other:match('^(%d+)-(%d+)$')
  ms, other_ms = tonumber(ms), tonumber(other_ms)
  return ms > other_ms or ms == other_ms and tonumber(number) > tonumber(other_number)
end

local positions = {}
for i, log in ipairs(KEYS) do
  local position, most, passed = ARGV[4 * i - 3], tonumber(ARGV[4 * i - 2]), tonumber(ARGV[4 * i - 1])
  local after, ahead, last = '(' .. position, ARGV[4 * i], {}
  if redis.call('XLEN', log) - passed <= most then
    last = redis.call('XREVRANGE', log, '+', after, 'COUNT', 1)
  elseif is_behind(ahead, position) then
    position = ahead
  else
    last = redis.call('XRANGE', log, after, '+', 'COUNT', most)
  end
  positions[i] = #last > 0 and last[#last][1] or position
end
return positions
"""

# Returns the entries between two positions with some of their fields.
_READ_ONLY = """
local told = {}
for i, entry in ipairs(redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])) do
  local fields, some = {}, {}
  for j = 1, #entry[2], 2 do fields[entry[2][j]] = entry[2][j + 1] end
  for j = 4, #ARGV do
    if fields[ARGV[j]] then
      some[#some + 1] = ARGV[j]
      some[#some + 1] = fields[ARGV[j]]
    end
  end
  told[i] = {entry[1], some}
end
return told
"""

# Removes the entries up to a position from each log, and their marks.
_TRIM = """
for i, log in ipairs(KEYS) do
  local removed = redis.call('XTRIM', log, 'MINID', '=', ARGV[i])
  if removed > 0 then redis.call('LPOP', log .. ':marks', removed) end
end
"""

# Appends entries unless their stamp is known, and keeps the bounds of their logs.
_APPEND_ONCE = """
local producer, epoch, number = ARGV[1], ARGV[2], tonumber(ARGV[3])
local stamps = KEYS[1] .. ':stamps'
local known_epoch, known_number = (redis.call('HGET', stamps, producer) or ''):match('^(.*) (%d+)$')
if known_epoch == epoch and tonumber(known_number) >= number then return 0 end
redis.call('HSET', stamps, producer, epoch .. ' ' .. ARGV[3])

local function size_of(fields)
  local size = ENTRY_BYTES
  for _, word in ipairs(fields) do size = size + #word end
  return size
end

local function mark(marks, bytes) redis.call('RPUSH', marks, string.format('%.0f', bytes)) end

-- A stream that others have changed, or that an earlier release has written, is measured once.
local function measure(log, marks)
  local bytes, after = 0, '-'
  redis.call('DEL', marks)
  mark(marks, bytes)
  repeat
    local entries = redis.call('XRANGE', log, after, '+', 'COUNT', 16)
    for _, entry in ipairs(entries) do
      bytes, after = bytes + size_of(entry[2]), '(' .. entry[1]
      mark(marks, bytes)
    end
  until #entries == 0
end

local at = 4
for _, log in ipairs(KEYS) do
  local most_bytes, most_ms, least = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local fields, marks = {}, log .. ':marks'
  for i = 1, tonumber(ARGV[at + 3]) do fields[i] = ARGV[at + 3 + i] end
  at = at + 4 + #fields
  if redis.call('LLEN', marks) ~= redis.call('XLEN', log) + 1 then measure(log, marks) end
  local position = redis.call('XADD', log, '*', unpack(fields))
  local written = tonumber(redis.call('LINDEX', marks, -1)) + size_of(fields)
  mark(marks, written)

  local oldest_ms = tonumber(position:match('^%d+')) - most_ms
  local removed = redis.call('XTRIM', log, 'MINID', '=', string.format('%.0f', math.max(0, oldest_ms)))
  if removed > 0 then redis.call('LPOP', marks, removed) end
  local length = redis.call('XLEN', log)
  local kept = length
  while kept > least and written - tonumber(redis.call('LINDEX', marks, 0)) > most_bytes do
    redis.call('LPOP', marks)
    kept = kept - 1
  end
  if kept < length then redis.call('XTRIM', log, 'MAXLEN', '=', kept) end
end
return 1
""".replace("ENTRY_BYTES", str(_ENTRY_BYTES))

_SIZE = """
local first, last = redis.call('LINDEX', KEYS[1], 0), redis.call('LINDEX', KEYS[1], -1)
return first and tonumber(last) - tonumber(first) or 0
"""


class _RedisStreams:
    """The operations of `EventLog` on Redis; a subclass asks its client, and returns the result of the reply.

    Parameters
    ----------
    client : redis.Redis or redis.asyncio.Redis
        With ``decode_responses=False``.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._file = AppendFile()

    def _run(self, ask: Callable[[Any], Any], result: Callable[[Any], Any]) -> Any:
        raise NotImplementedError

    def append(self, log: str, fields: Fields) -> Any:
        """Append an entry to a log, and return its position."""
        return self._run(lambda client: client.xadd(log, dict(fields)), bytes.decode)

    def append_all(self, entries: Iterable[tuple[str, Fields]]) -> Any:
        """Append entries to logs in one round trip, in their order, all or none; return their positions."""
        entries = list(entries)

        def ask(client: Any) -> Any:
            pipeline = client.pipeline()
            for log, fields in entries:
                pipeline.xadd(log, dict(fields))
            return pipeline.execute()

        return self._run(ask, lambda positions: [position.decode() for position in positions])

    def append_once(self, stamp: Stamp, entries: Sequence[BoundedEntry]) -> Any:
        """Append all entries, or none of them if the producer has appended this number or a later one of the epoch."""
        return self._run(lambda client: client.eval(*_once(stamp, entries)), bool)

    def append_once_all(self, appends: Iterable[tuple[Stamp, Sequence[BoundedEntry]]]) -> Any:
        """Do several `append_once` in one round trip, in their order; return what each returns."""
        scripts = [_once(stamp, entries) for stamp, entries in appends]

        def ask(client: Any) -> Any:
            pipeline = client.pipeline(transaction=False)
            for script in scripts:
                pipeline.eval(*script)
            return pipeline.execute()

        return self._run(ask, lambda appended: [bool(one) for one in appended])

    def read(
        self,
        log: str,
        after: str = FIRST,
        upto: str | None = None,
        limit: int | None = None,
        only: Sequence[str] | None = None,
    ) -> Any:
        """Return entries of a log, the oldest first."""
        span = f"({after}", upto or "+"
        if only is None:
            return self._run(lambda client: client.xrange(log, *span, count=limit), _entries)
        arguments = (*span, limit or _ALL, *only)
        return self._run(lambda client: client.eval(_READ_ONLY, 1, log, *arguments), _flat_entries)

    def read_back(self, log: str, before: str | None = None, limit: int | None = None) -> Any:
        """Return the entries before a position, or the newest entries, at most `limit`; the newest first."""
        last = "+" if before is None else f"({before}"
        return self._run(lambda client: client.xrevrange(log, max=last, count=limit), _entries)

    def poll(self, after: Mapping[str, str], limit: int, wait_s: float) -> Any:
        """Return the entries behind positions; if there are none, wait for the first one."""
        wait_ms = max(1, round(1000 * wait_s))
        return self._run(lambda client: client.xread(dict(after), count=limit, block=wait_ms), _entries_by_log)

    def ends(
        self,
        after: Mapping[str, str],
        most: Mapping[str, int],
        passed: Mapping[str, int] = NONE_PASSED,
        ahead: Mapping[str, str] = NONE_AHEAD,
    ) -> Any:
        """Return how far each log can be read; no entry is transferred."""
        told = ((position, most[log], passed.get(log, 0), ahead.get(log, FIRST)) for log, position in after.items())
        arguments = [word for words in told for word in words]
        return self._run(
            lambda client: client.eval(_ENDS, len(after), *after, *arguments),
            lambda ends: dict(zip(after, map(bytes.decode, ends), strict=True)),
        )

    def newest(self, log: str) -> Any:
        """Return the position of a log's newest entry; `FIRST` if the log is empty."""
        return self._run(
            lambda client: client.eval(_ENDS, 1, log, FIRST, _ALL, 0, FIRST), lambda ends: ends[0].decode()
        )

    def trim(self, behind: Mapping[str, str]) -> Any:
        """Remove the entries of logs up to and including a position, by log."""
        oldest = [_following(position) for position in behind.values()]
        return self._run(lambda client: client.eval(_TRIM, len(oldest), *behind, *oldest), lambda _: None)

    def length(self, log: str) -> Any:
        """Return the number of entries in a log."""
        return self._run(lambda client: client.xlen(log), int)

    def size(self, log: str) -> Any:
        """Return the size of a bounded log in bytes."""
        return self._run(lambda client: client.eval(_SIZE, 1, f"{log}:marks"), int)

    def delete(self, logs: Iterable[str]) -> Any:
        """Delete logs with all that is known of them."""
        keys = [key for log in logs for key in (log, f"{log}:marks", f"{log}:stamps")]
        return self._run(lambda client: client.delete(*keys), lambda _: None)

    def sync(self) -> Any:
        """Return once all entries that were appended before survive a power cut."""
        return self._run(asked_of, self._file.sync)


class RedisEventLog(_RedisStreams):
    """An `EventLog` on Redis Streams, for a client that waits for replies."""

    def _run(self, ask: Callable[[Any], Any], result: Callable[[Any], Any]) -> Any:
        return result(ask(self.client))


class PatientRedisEventLog(RedisEventLog):
    """An `EventLog` on Redis Streams, for a client that waits for replies, and for room while Redis is full."""

    def _run(self, ask: Callable[[Any], Any], result: Callable[[Any], Any]) -> Any:
        return result(when_there_is_room(self.client, lambda: ask(self.client)))


class AsyncRedisEventLog(_RedisStreams):
    """An `EventLog` on Redis Streams, for asyncio: the methods return awaitables."""

    async def _run(self, ask: Callable[[Any], Any], result: Callable[[Any], Any]) -> Any:
        return result(await ask(self.client))

    async def sync(self) -> None:
        """Return once all entries that were appended before survive a power cut."""
        await asyncio.to_thread(self._file.sync, await asked_of(self.client))


def _once(stamp: Stamp, entries: Sequence[BoundedEntry]) -> tuple[Any, ...]:
    """Return the script, the number of keys, the keys and the arguments of an append."""
    arguments: list[Any] = [*stamp]
    for _, fields, bound in entries:
        words = [word for field in fields.items() for word in field]
        arguments += [bound.most_bytes, bound.most_ms, bound.least_entries, len(words), *words]
    logs = [entry.log for entry in entries]
    return _APPEND_ONCE, len(logs), *logs, *arguments


def _entries(reply: Iterable[tuple[bytes, dict[bytes, bytes]]]) -> list[Entry]:
    return [Entry(position.decode(), fields, _appended_ms(position)) for position, fields in reply]


def _flat_entries(reply: Iterable[tuple[bytes, Sequence[bytes]]]) -> list[Entry]:
    """Return entries whose fields follow each other: name, value, name, value."""
    return _entries((position, dict(zip(words[::2], words[1::2], strict=True))) for position, words in reply)


def _entries_by_log(
    reply: Iterable[tuple[bytes, Iterable[tuple[bytes, dict[bytes, bytes]]]]] | None,
) -> dict[str, list[Entry]]:
    return {log.decode(): _entries(entries) for log, entries in reply or ()}


def _appended_ms(position: bytes) -> int:
    return int(position.partition(b"-")[0])


def _following(position: str) -> str:
    """Return the position that follows another one at once."""
    milliseconds, _, sequence = position.partition("-")
    return f"{milliseconds}-{int(sequence) + 1}"
