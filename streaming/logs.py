"""The logs between Lookout's processes, on Redis Streams, and the names of all keys in Redis.

=====================================  ========  ====================================================================
key                                    kind      what
=====================================  ========  ====================================================================
``lookout:{space}:ingest:{partition}`` stream    blocks of elements, removed once the engine has committed them
``lookout:{space}:control``            stream    control entries, removed once the engine has committed them
``lookout:{space}:results``            stream    fragments of the last seconds
``lookout:{space}:written``            number    bytes written to results and events since their sizes were measured
``lookout:{space}:events``             stream    the same fragments, with only the tuples that enter or leave the
                                                 answers of saved queries; removed once they are recorded
``lookout:{space}:acks``               stream    acknowledgements of control entries, with the epoch of the state
                                                 that has them; bounded in length
``lookout:{space}:engine``             hash      the engine's report on itself: epoch, batch, heartbeat
``lookout:{space}:gateway``            hash      the gateway's report on itself: heartbeat
``lookout:{space}:stale``              hash      count of stale elements since the gateway's start, by stream number
``lookout:spaces``                     hash      definition of every space, JSON by name
``lookout:streams``                    hash      definition of every stream, JSON by name
``lookout:health``                     hash      health counters of every stream, JSON by name
=====================================  ========  ====================================================================
"""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import redis

from streaming.elements import from_ipc, partition_of, to_ipc
from streaming.errors import InvalidSpace
from streaming.results import Fragment, events_of, result_schema
from streaming.spaces import EARTH, Space, parse_space

logger = logging.getLogger(__name__)

SPACES_KEY = "lookout:spaces"
STREAMS_KEY = "lookout:streams"
HEALTH_KEY = "lookout:health"
# A message on this channel tells the gateway that a definition under STREAMS_KEY or SPACES_KEY changed.
STREAMS_CHANNEL = "lookout:streams:changed"

# Results are kept this long for readers that lag; a reader that lags more asks for snapshots. Events are kept this long
# for a recorder that is away. Both logs are bounded in bytes as well. A bound on the number of entries would not do: an
# entry has 240 bytes without rows, 2 kB with a few and a megabyte with thousands, so no number leaves room for minutes
# of small entries and is safe with large ones. Results of 20,000 elements/s in 100 queries are 2.8 MB/s: the log holds
# the last 17 s. At 20 entries a second, ten minutes of events are 3 to 24 MB if the events are few, and some 70 MB if
# they are 500/s. 70,000 events/s are 14 MB/s: the log holds the last 5 s, and a recorder at work reads every 2 s.
RESULTS_KEPT_MS, RESULTS_KEPT_BYTES = 300_000, 64_000_000
EVENTS_KEPT_MS, EVENTS_KEPT_BYTES = 600_000, 100_000_000
# At least this many of the newest entries are kept, however large they are; of results, those of some seconds. A reader
# that lost a large snapshot would otherwise ask for it again, and lose it again.
RESULTS_KEPT_LEAST, EVENTS_KEPT_LEAST = 64, 1
# The sizes of the logs are measured each time 1/16 of the smaller bound has been written. A log that has less than 1/16
# of its bound left is then trimmed to three quarters of the bound.
WEIGHED_EVERY = 16
ACKS_KEPT = 10_000
# The newest batch is among as many of the newest entries: batches follow each other, and only regions mix.
NEWEST_READ = 8
FIRST = "0-0"

# Returns for each log the id of the last entry after a position, or of the n-th if the log has more than n entries. The
# script runs within Redis, so that no entry is sent: a block may be a megabyte.
_POSITIONS = """
local positions = {}
for i, log in ipairs(KEYS) do
  local after, most = '(' .. ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local last = redis.call('XREVRANGE', log, '+', after, 'COUNT', 1)
  if redis.call('XLEN', log) > most then
    last = redis.call('XRANGE', log, after, '+', 'COUNT', most)
  end
  positions[i] = #last > 0 and last[#last][1] or ARGV[2 * i - 1]
end
return positions
"""


@dataclass(frozen=True)
class LogNames:
    """Names of one space's logs, and of its other keys in Redis."""

    space: str

    def ingest(self, partition: int) -> str:
        """Return the name of one partition's ingest log."""
        return f"lookout:{self.space}:ingest:{partition}"

    @property
    def control(self) -> str:
        """The control log."""
        return f"lookout:{self.space}:control"

    @property
    def results(self) -> str:
        """The result log."""
        return f"lookout:{self.space}:results"

    @property
    def events(self) -> str:
        """The log of the tuples that enter or leave the answers of saved queries."""
        return f"lookout:{self.space}:events"

    @property
    def written(self) -> str:
        """The number of bytes written to the logs of results and events since their sizes were measured."""
        return f"lookout:{self.space}:written"

    @property
    def acks(self) -> str:
        """The log of acknowledgements."""
        return f"lookout:{self.space}:acks"

    @property
    def engine(self) -> str:
        """The engine's report on itself."""
        return f"lookout:{self.space}:engine"

    @property
    def gateway(self) -> str:
        """The gateway's report on itself."""
        return f"lookout:{self.space}:gateway"

    @property
    def stale(self) -> str:
        """The count of stale elements of each stream."""
        return f"lookout:{self.space}:stale"


def published_spaces(client: redis.Redis) -> dict[str, Space]:
    """Return the spaces that are published, and the built-in one, by name."""
    spaces = {EARTH.name: EARTH}
    for name, text in client.hgetall(SPACES_KEY).items():
        try:
            spaces.setdefault(name.decode(), parse_space(text))
        except InvalidSpace as error:  # from a later release: the other spaces must go on
            logger.warning("space %s is left out: %s", name.decode(), error)
    return spaces


def control_entry(op: str, **entry: Any) -> dict[str, str]:
    """Return the fields of a control entry, for XADD.

    The operations and their keys are ``register`` (query, revision, plan; also for an edit: a revision that is not
    above the known one changes nothing), ``cancel`` (query, revision), ``snapshot`` (query), ``tick`` (now_us),
    ``stream`` (stream, ttl_s, stored: whether its elements are stored), ``drop_stream`` (stream), ``layer`` (layer,
    version; the files of this version must exist) and ``drop_layer`` (layer).
    """
    return {"entry": json.dumps({"op": op, **entry})}


def block_entries(elements: pa.Table, stream: str, heard_us: int, partitions: int) -> list[tuple[int, dict]]:
    """Return the entries of the ingest log for elements of one stream: a block for each partition.

    Parameters
    ----------
    elements : pyarrow.Table
        With `elements.element_schema`, in the order of arrival.
    stream : str
    heard_us : int
        Wall-clock time at which they arrived, in microseconds.
    partitions : int
        Number of partitions of the ingest log.

    Returns
    -------
    list of (partition, fields)
        One for each partition that gets elements, by ascending partition.
    """
    partition = partition_of(elements["key_hash"].to_numpy(), partitions)
    entries = []
    for number in np.unique(partition):
        part = elements if partitions == 1 else elements.filter(pa.array(partition == number))
        fields = {"stream": stream, "heard_us": heard_us, "count": part.num_rows, "block": to_ipc(part)}
        entries.append((int(number), fields))
    return entries


def fragment_fields(fragment: Fragment) -> dict[str, Any]:
    """Return the fields of the entry that holds a fragment, in the result log or in the log of events."""
    head = {
        "snapshot_queries": fragment.snapshot_queries,
        "acks": fragment.acks,
        "counters": fragment.counters,
        "newest_us": fragment.newest_us,
        "shared": list(fragment.shared.items()),
    }
    if fragment.failures:
        head["failures"] = fragment.failures
    if fragment.costs:
        head["costs"] = fragment.costs
    if fragment.sent:
        head["sent"] = list(fragment.sent.items())
    if fragment.aggregates:
        head["aggregates"] = fragment.aggregates
    if fragment.stale:
        head["stale"] = list(fragment.stale.items())
    return {
        "epoch": fragment.epoch,
        "batch": fragment.batch,
        "region": fragment.region,
        "regions": fragment.regions,
        "head": json.dumps(head),
        "changes": to_ipc(fragment.changes) if fragment.changes.num_rows else b"",
        "snapshots": to_ipc(fragment.snapshots) if fragment.snapshots.num_rows else b"",
    }


def read_fragment(fields: Mapping[bytes, bytes], space: Space) -> Fragment:
    """Return the fragment in an entry of a space's result log or log of events; the inverse of `fragment_fields`."""
    head = json.loads(fields[b"head"])
    changes, snapshots = (
        from_ipc(rows) if rows else result_schema(space).empty_table()
        for rows in (fields[b"changes"], fields[b"snapshots"])
    )
    return Fragment(
        epoch=fields[b"epoch"].decode(),
        batch=int(fields[b"batch"]),
        region=int(fields[b"region"]),
        regions=int(fields[b"regions"]),
        changes=changes,
        snapshots=snapshots,
        snapshot_queries=tuple(head["snapshot_queries"]),
        acks=tuple(head["acks"]),
        counters=head["counters"],
        newest_us=head["newest_us"],
        failures=tuple(head.get("failures", ())),
        shared={answer: tuple(queries) for answer, queries in head.get("shared", ())},
        sent={query: tuple(tuples) for query, tuples in head.get("sent", ())},
        aggregates=tuple(head.get("aggregates", ())),
        stale=dict(head.get("stale", ())),
        costs=head.get("costs", {}),
    )


def next_positions(
    client: redis.Redis, after: Mapping[str, str], most: Mapping[str, int], wait_s: float
) -> dict[str, str]:
    """Return the position up to which each log is to be read next.

    Parameters
    ----------
    client : redis.Redis
    after : dict of str to str
        The id of the last entry that was read, by log.
    most : dict of str to int
        How many entries may be read at once, by log.
    wait_s : float
        How long to wait for an entry if no log has a new one, in seconds; rounded to milliseconds, at least 1 ms.

    Returns
    -------
    dict of str to str
        The id of the last entry to read, by log; that of `after` if the log has nothing new.
    """
    arguments = [word for log, position in after.items() for word in (position, most[log])]
    for waited in (False, True):
        ids = client.eval(_POSITIONS, len(after), *after, *arguments)
        found = dict(zip(after, (entry.decode() for entry in ids), strict=True))
        if found != after or waited:
            break
        client.xread(after, count=1, block=max(1, round(1000 * wait_s)))
    return found


class Log:
    """Writes to one space's logs.

    Parameters
    ----------
    client : redis.Redis
        With ``decode_responses=False``.
    space : str
    partitions : int
        Number of partitions of the ingest log; fixed for the life of an engine's state.
    """

    def __init__(self, client: redis.Redis, space: str, partitions: int) -> None:
        self.client, self.names, self.partitions = client, LogNames(space), partitions

    def send(self, op: str, **entry: Any) -> str:
        """Append a control entry (see `control_entry`) and return its id."""
        return self.client.xadd(self.names.control, control_entry(op, **entry)).decode()

    def ingest(self, elements: pa.Table, stream: str, heard_us: int) -> None:
        """Append elements of one stream, which arrived at `heard_us`, to the ingest log."""
        with self.client.pipeline(transaction=False) as pipeline:
            for partition, fields in block_entries(elements, stream, heard_us, self.partitions):
                pipeline.xadd(self.names.ingest(partition), fields)
            pipeline.execute()

    def backlog(self) -> int:
        """Return how many blocks the engine has not committed, in the partition that has the most of them.

        Blocks that the engine has committed, and keeps so that it can run their batches again, do not count.
        """
        with self.client.pipeline(transaction=False) as pipeline:
            for partition in range(self.partitions):
                pipeline.xlen(self.names.ingest(partition))
            pipeline.hmget(self.names.engine, [f"kept:{partition}" for partition in range(self.partitions)])
            *lengths, kept = pipeline.execute()
        return max(0, *(length - int(known or 0) for length, known in zip(lengths, kept, strict=True)))

    def report_kept(self, blocks: Sequence[int]) -> None:
        """Say how many committed blocks each partition of the ingest log keeps."""
        self.client.hset(self.names.engine, mapping={f"kept:{number}": count for number, count in enumerate(blocks)})

    def newest_batch(self, epoch: str) -> int:
        """Return the newest batch of an epoch of which the result log has a fragment; -1 if it has none."""
        entries = self.client.xrevrange(self.names.results, count=NEWEST_READ)
        batches = [int(fields[b"batch"]) for _, fields in entries if fields[b"epoch"].decode() == epoch]
        return max(batches, default=-1)

    def stale(self) -> dict[int, int]:
        """Return the counts of stale elements since `forget_stale`, by stream number."""
        return {int(stream): int(count) for stream, count in self.client.hgetall(self.names.stale).items()}

    def forget_stale(self, stream: int | None = None) -> None:
        """Reset the count of stale elements of the stream with a number, or of all streams."""
        if stream is None:
            self.client.delete(self.names.stale)
        else:
            self.client.hdel(self.names.stale, stream)

    def clear(self) -> None:
        """Delete all logs of the space."""
        ingest = map(self.names.ingest, range(self.partitions))
        names = self.names
        self.client.delete(*ingest, names.control, names.results, names.events, names.written, names.acks)

    def publish(self, fragments: Iterable[Fragment]) -> None:
        """Append fragments to the result log, and their events and acknowledgements to the logs of those.

        Add the fragments' stale elements to the counts. If a batch is published again after a kill, they are counted
        twice.
        """
        now_ms, size = int(time.time() * 1000), 0
        with self.client.pipeline(transaction=False) as pipeline:
            for fragment in fragments:
                results, events = fragment_fields(fragment), fragment_fields(events_of(fragment))
                size += _size(results) + _size(events)
                pipeline.xadd(self.names.results, results, minid=now_ms - RESULTS_KEPT_MS)
                pipeline.xadd(self.names.events, events, minid=now_ms - EVENTS_KEPT_MS)
                if fragment.region == 0 and fragment.acks:
                    ack = {"acks": json.dumps(fragment.acks), "batch": fragment.batch, "epoch": fragment.epoch}
                    pipeline.xadd(self.names.acks, ack, maxlen=ACKS_KEPT, approximate=True)
                for stream, count in fragment.stale.items():
                    pipeline.hincrby(self.names.stale, stream, count)
            pipeline.incrby(self.names.written, size)
            *_, written = pipeline.execute()
        if written >= min(RESULTS_KEPT_BYTES, EVENTS_KEPT_BYTES) // WEIGHED_EVERY:
            self.client.set(self.names.written, 0)
            self._bound(self.names.results, RESULTS_KEPT_BYTES, RESULTS_KEPT_LEAST)
            self._bound(self.names.events, EVENTS_KEPT_BYTES, EVENTS_KEPT_LEAST)

    def _bound(self, name, most_bytes, least_entries):
        """Measure the size of a log, and remove its oldest entries if it comes near its bound."""
        size = self.client.memory_usage(name, samples=0) or 0
        if size > most_bytes - most_bytes // WEIGHED_EVERY:
            kept = int(self.client.xlen(name) * 0.75 * most_bytes / size)
            self.client.xtrim(name, max(kept, least_entries), approximate=False)


def _size(fields):
    return sum(len(value) for value in fields.values() if isinstance(value, bytes | str))
