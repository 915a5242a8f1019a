"""The logs between Lookout's processes, on Redis Streams, and the names of all that is kept in Redis.

=====================================  ========  ====================================================================
key                                    kind      what
=====================================  ========  ====================================================================
``lookout:{space}:ingest:{partition}`` stream    blocks of elements, trimmed behind the engine's commit
``lookout:{space}:control``            stream    control entries, trimmed behind the engine's commit
``lookout:{space}:results``            stream    fragments of the last seconds
``lookout:{space}:written``            number    bytes of results and events since those two logs were weighed
``lookout:{space}:events``             stream    of the same fragments what enters and leaves saved queries' answers,
                                                 trimmed behind the recording of events
``lookout:{space}:acks``               stream    acknowledgements of control entries, with the epoch of the state
                                                 that has them; bounded in length
``lookout:{space}:engine``             hash      what the engine says of itself: epoch, batch, heartbeat
``lookout:{space}:gateway``            hash      what the gateway says of itself: heartbeat
``lookout:{space}:stale``              hash      stale elements since the gateway's start, by number of stream
``lookout:spaces``                     hash      definition of every space, JSON by name
``lookout:streams``                    hash      definition of every stream, JSON by name
``lookout:health``                     hash      health counters of every stream, JSON by name
=====================================  ========  ====================================================================
"""

import json
import logging
import time
from collections.abc import Iterable, Mapping
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

# Results are kept for readers that lag so long; one that lags more asks for snapshots. Events are kept for a recorder
# that is away. Both logs are bounded in bytes as well: an entry is 240 bytes without rows, 2 kB with a few, a megabyte
# with thousands, so no number of entries leaves room for minutes of the small ones and is safe with the large. Results
# of 20,000 elements/s in 100 queries are 2.8 MB/s: the last 17 s are held. Of events at 20 entries a second, ten
# minutes of few are 3 to 24 MB, and of 500 events/s some 70 MB; of 70,000 events/s, which are 14 MB/s, the last 5 s
# are held, and a recorder at work reads every two.
RESULTS_KEPT_MS, RESULTS_KEPT_BYTES = 300_000, 64_000_000
EVENTS_KEPT_MS, EVENTS_KEPT_BYTES = 600_000, 100_000_000
# The newest results, of some seconds, are kept however large they are: a reader to whom a large snapshot was lost would
# ask for it again, and lose it again.
RESULTS_KEPT_LEAST, EVENTS_KEPT_LEAST = 64, 1
# The logs are weighed whenever this part of the smaller bound has been written, and trimmed to three quarters where
# less room than this part is left.
WEIGHED_EVERY = 16
ACKS_KEPT = 10_000
FIRST = "0-0"

# By log, the id of the last entry after a position, or of the n-th one where there are more. It runs within Redis, so
# that no entry is sent: a block may be a megabyte.
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
    """Names of one space's logs."""

    space: str

    def ingest(self, partition: int) -> str:
        """Return the ingest log of one partition."""
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
        """The log of what enters and leaves the answers of saved queries."""
        return f"lookout:{self.space}:events"

    @property
    def written(self) -> str:
        """How many bytes were written to the logs of results and events since they were weighed."""
        return f"lookout:{self.space}:written"

    @property
    def acks(self) -> str:
        """The log of acknowledgements."""
        return f"lookout:{self.space}:acks"

    @property
    def engine(self) -> str:
        """The engine's own report."""
        return f"lookout:{self.space}:engine"

    @property
    def gateway(self) -> str:
        """The gateway's own report."""
        return f"lookout:{self.space}:gateway"

    @property
    def stale(self) -> str:
        """How many elements of each stream were stale."""
        return f"lookout:{self.space}:stale"


def published_spaces(client: redis.Redis) -> dict[str, Space]:
    """Return the spaces that are published, and the built-in one, by name."""
    spaces = {EARTH.name: EARTH}
    for name, text in client.hgetall(SPACES_KEY).items():
        try:
            spaces.setdefault(name.decode(), parse_space(text))
        except InvalidSpace as error:  # of a later release: it must not end what the others need
            logger.warning("space %s is left out: %s", name.decode(), error)
    return spaces


def control_entry(op: str, **entry: Any) -> dict[str, str]:
    """Return the fields of a control entry, to be appended with XADD.

    The entries are ``register`` (query, revision, plan; also an edit: a revision not above the known one changes
    nothing), ``cancel`` (query, revision), ``snapshot`` (query), ``tick`` (now_us), ``stream`` (stream, ttl_s,
    stored: whether its elements are), ``drop_stream`` (stream), ``layer`` (layer, version; its files are there) and
    ``drop_layer`` (layer).
    """
    return {"entry": json.dumps({"op": op, **entry})}


def block_entries(elements: pa.Table, stream: str, heard_us: int, partitions: int) -> list[tuple[int, dict]]:
    """Cut elements of one stream into the entries of the ingest log.

    Parameters
    ----------
    elements : pyarrow.Table
        With `elements.element_schema`, in the order of arrival.
    heard_us : int
        Wall-clock time at which they arrived.

    Returns
    -------
    list of (partition, fields)
        One for each partition that gets elements.
    """
    partition = partition_of(elements["key_hash"].to_numpy(), partitions)
    entries = []
    for number in np.unique(partition):
        part = elements if partitions == 1 else elements.filter(pa.array(partition == number))
        fields = {"stream": stream, "heard_us": heard_us, "count": part.num_rows, "block": to_ipc(part)}
        entries.append((int(number), fields))
    return entries


def fragment_fields(fragment: Fragment) -> dict[str, Any]:
    """Return a fragment as the fields of an entry of the result log, or of the log of events."""
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
    """Return the fragment of an entry of a space's result log or log of events; the inverse of `fragment_fields`."""
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
    """Return up to where the logs are to be read next.

    Parameters
    ----------
    client : redis.Redis
    after : dict of str to str
        The id of the last entry that was read, by log.
    most : dict of str to int
        How many entries may be read at once, by log.
    wait_s : float
        Of this time [s], up to a millisecond at least, an entry is waited for where no log has a new one.

    Returns
    -------
    dict of str to str
        The id of the last entry to read, by log; as in `after` where there is nothing new.
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
        Of the ingest log; fixed for the life of an engine's state.
    """

    def __init__(self, client: redis.Redis, space: str, partitions: int) -> None:
        self.client, self.names, self.partitions = client, LogNames(space), partitions

    def send(self, op: str, **entry: Any) -> str:
        """Append a control entry (see `control_entry`) and return its id."""
        return self.client.xadd(self.names.control, control_entry(op, **entry)).decode()

    def ingest(self, elements: pa.Table, stream: str, heard_us: int) -> None:
        """Append elements of one stream to the ingest log."""
        with self.client.pipeline(transaction=False) as pipeline:
            for partition, fields in block_entries(elements, stream, heard_us, self.partitions):
                pipeline.xadd(self.names.ingest(partition), fields)
            pipeline.execute()

    def backlog(self) -> int:
        """Return the number of blocks that the engine has not committed, in the longest partition."""
        return max(self.client.xlen(self.names.ingest(partition)) for partition in range(self.partitions))

    def stale(self) -> dict[int, int]:
        """Return how many elements of each stream, by its number, were stale since `forget_stale`."""
        return {int(stream): int(count) for stream, count in self.client.hgetall(self.names.stale).items()}

    def forget_stale(self, stream: int | None = None) -> None:
        """Begin anew to count the stale elements of a stream, or of all."""
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

        Their stale elements are added to the counts: again, where a batch is published again after a kill.
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
        """Weigh a log, and remove its oldest entries where it nearly fills its room."""
        size = self.client.memory_usage(name, samples=0) or 0
        if size > most_bytes - most_bytes // WEIGHED_EVERY:
            kept = int(self.client.xlen(name) * 0.75 * most_bytes / size)
            self.client.xtrim(name, max(kept, least_entries), approximate=False)


def _size(fields):
    return sum(len(value) for value in fields.values() if isinstance(value, bytes | str))
