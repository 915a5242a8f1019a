"""The logs between Lookout's processes, and the format of their entries; `streaming.keys` names them."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import redis

from streaming.elements import from_ipc, partition_of, to_ipc
from streaming.eventlog import FIRST, Bound, BoundedEntry, Stamp, open_log
from streaming.eventlog.protocol import Fields
from streaming.keys import LogNames
from streaming.redis_client import read_fields, read_hash
from streaming.redis_memory import Fullness, Pressure
from streaming.results import Fragment, events_of, result_schema
from streaming.spaces import Space

logger = logging.getLogger(__name__)

# The newest batch is among as many of the newest entries: batches follow each other, and only regions mix.
NEWEST_READ = 8
# All fragments of the newest whole batch are among as many.
WHOLE_READ = 64
# Redis touches every block that it counts, and every result that it removes to make room. So it does so many at once,
# and serves others in between.
COUNTED_AT_ONCE = 64
SHORTENED_AT_ONCE = 16
# A full Redis refuses a script only if its first write takes room. So reports, which take next to none, begin with a
# write that takes none: they are needed most while Redis is full.
_ALLOW = "redis.call('HDEL', KEYS[1], '') "
_REPORT = _ALLOW + "redis.call('HSET', KEYS[1], unpack(ARGV))"
_REPORT_IF_EXISTS = _ALLOW + "if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HSET', KEYS[1], unpack(ARGV)) end"

# Results are kept this long for readers that lag; a reader that lags more asks for snapshots. Events are kept this long
# for a recorder that is away, and acknowledgements until they are settled. All three are bounded in bytes as well. A
# bound on the number of entries would not do: an entry has 240 bytes without rows, 2 kB with a few and a megabyte with
# thousands, so no number leaves room for minutes of small entries and is safe with large ones. Results of 20,000
# elements/s in 100 queries are 2.8 MB/s: the log holds the last 22 s. At 20 entries a second, ten minutes of events are
# 3 to 24 MB if the events are few, and some 70 MB if they are 500/s. 70,000 events/s are 14 MB/s: the log holds the
# last 7 s, and a recorder at work reads every 2 s. The results of some of the newest batches are kept, however large
# they are: a reader that lost a large snapshot would otherwise ask for it again, and lose it again. They are few, since
# a batch of a million objects has tens of megabytes of results.
RESULTS_KEPT = Bound(most_bytes=64_000_000, most_ms=300_000)
RESULT_BATCHES_KEPT = 4
EVENTS_KEPT = Bound(most_bytes=100_000_000, most_ms=600_000)
ACKS_KEPT = Bound(most_bytes=16_000_000, most_ms=86_400_000)

# Adds to the counts of a hash, unless those of this region and batch were added before.
_COUNT_ONCE = f"""{_ALLOW}
local region, epoch, batch = ARGV[1], ARGV[2], tonumber(ARGV[3])
local known_epoch, known_batch = (redis.call('HGET', KEYS[2], region) or ''):match('^(.*) (%d+)$')
if known_epoch == epoch and tonumber(known_batch) >= batch then return end
redis.call('HSET', KEYS[2], region, epoch .. ' ' .. ARGV[3])
for i = 4, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
"""


def control_entry(op: str, **entry: Any) -> dict[str, str]:
    """Return the fields of a control entry.

    The operations and their keys are ``register`` (query, revision, plan, owner: whom it counts for where there is not
    room for all, 0 if it is missing; also for an edit: a revision that is not above the known one changes nothing),
    ``cancel`` (query, revision), ``snapshot`` (query), ``tick`` (now_us), ``clock`` (query, key of an object),
    ``stream`` (stream, ttl_s, stored: whether its elements are stored, sketch: how they are sketched, or null),
    ``drop_stream`` (stream), ``regions`` (map: the document of the next region map), ``drive`` (query, revision,
    by_partner: whether the partners are to drive a join over event time), ``proceed`` (none: there is to be another
    batch, since a task has left work for it), ``layer`` (layer, version; the files of this version must exist) and
    ``drop_layer`` (layer).
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
        fields = {"stream": stream, "heard_us": heard_us, "count": part.num_rows, "partitions": partitions}
        entries.append((int(number), fields | {"block": to_ipc(part)}))
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
    if fragment.clocks:
        head["clocks"] = fragment.clocks
    if fragment.stale:
        head["stale"] = list(fragment.stale.items())
    return {
        "epoch": fragment.epoch,
        "batch": fragment.batch,
        "region": fragment.region,
        "regions": fragment.regions,
        "head": orjson.dumps(head, option=orjson.OPT_SERIALIZE_NUMPY),
        "changes": to_ipc(fragment.changes) if fragment.changes.num_rows else b"",
        "snapshots": to_ipc(fragment.snapshots) if fragment.snapshots.num_rows else b"",
    }


def read_fragment(fields: Mapping[bytes, bytes], space: Space) -> Fragment:
    """Return the fragment in an entry of a space's result log or log of events; the inverse of `fragment_fields`."""
    head = orjson.loads(fields[b"head"])
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
        clocks=tuple(head.get("clocks", ())),
    )


class Log:
    """Writes to one space's logs.

    Parameters
    ----------
    client : redis.Redis
        With ``decode_responses=False``.
    space : str
    partitions : int
        Number of partitions of the ingest log.
    patient : bool, optional
        Whether appends wait while Redis is full. By default, they raise an error.
    url : str, optional
        Where Kafka is, if the logs are there (see `eventlog.open_log`); all other keys are in Redis.
    """

    def __init__(self, client: redis.Redis, space: str, partitions: int, patient: bool = False, url: str = "") -> None:
        self.client, self.names, self.partitions = client, LogNames(space), partitions
        self.event_log = open_log(client, url, patient)
        # What exists in Redis as long as the space does, once its engine runs.
        self._sign = self.names.engine if url else self.names.control
        self.fullness = Fullness(client)

    def send(self, op: str, **entry: Any) -> str:
        """Append a control entry (see `control_entry`) and return its position."""
        return self.event_log.append(self.names.of_entry(op), control_entry(op, **entry))

    def ingest(self, elements: pa.Table, stream: str, heard_us: int, synced: bool = True) -> None:
        """Append elements of one stream, which arrived at `heard_us`, to the ingest log; they are safe if `synced`."""
        blocks = block_entries(elements, stream, heard_us, self.partitions)
        self.event_log.append_all((self.names.ingest(partition), fields) for partition, fields in blocks)
        if synced:
            self.event_log.sync()

    def backlog(self) -> int:
        """Return how many blocks the engine has not read, in the partition that has the most of them.

        Blocks that it has read and keeps, so that it can run their batches again, do not count.
        """
        lengths = {log: self.event_log.length(log) for log in self.names.all_ingest(self.partitions)}
        return max(0, *(lengths[log] - kept for log, kept in self.kept().items()))

    def pressure(self) -> Pressure:
        """Return how much producers of elements have to hold back."""
        return Pressure(self.backlog(), self.fullness.share())

    def kept(self) -> dict[str, int]:
        """Return how many blocks each partition's log has at least that the engine has read, by the name of the log."""
        return self.progress()[0]

    def progress(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return what `kept` does, and up to which position tasks have read each partition's log ahead."""
        names = ("read", "removed", "ahead")
        fields = [f"{name}:{n}" for name in names for n in range(self.partitions)]
        told = read_fields(self.client, self.names.engine, fields)
        read, removed, ahead = (told[place * self.partitions :][: self.partitions] for place in range(len(names)))
        logs = self.names.all_ingest(self.partitions)
        counts = {
            log: max(0, int(was or 0) - int(gone or 0)) for log, was, gone in zip(logs, read, removed, strict=True)
        }
        return counts, {log: position.decode() for log, position in zip(logs, ahead, strict=True) if position}

    def count_read(self, positions: Mapping[str, str]) -> list[int]:
        """Return how many blocks each partition of the ingest log has up to a position, by the partition's number."""
        return [self._count(self.names.ingest(number), positions[str(number)]) for number in range(self.partitions)]

    def _count(self, log: str, upto: str) -> int:
        count, after = 0, FIRST
        while entries := self.event_log.read(log, after, upto, COUNTED_AT_ONCE, only=()):
            count, after = count + len(entries), entries[-1].position
        return count

    def shorten_results(self) -> None:
        """Remove all but the newest results, to make room: a reader that lags asks for snapshots."""
        log, limit = self.names.results, SHORTENED_AT_ONCE
        while limit == SHORTENED_AT_ONCE:
            oldest = self.event_log.read(log, FIRST, limit=limit, only=("regions",))
            least = max((_least_entries(int(entry.fields[b"regions"])) for entry in oldest), default=0)
            limit = min(limit, self.event_log.length(log) - least, len(oldest))
            if limit > 0:
                self.event_log.trim({log: oldest[limit - 1].position})

    def report_read(self, blocks: Mapping[int, int], batch: int | None = None) -> None:
        """Say how many blocks the engine has read since its epoch began, by partition, and which batch has ended."""
        told: list[str | int] = [] if batch is None else ["batch", batch]
        self._report("read", blocks, *told)

    def report_ahead(self, positions: Mapping[str, str]) -> None:
        """Say up to which position some partitions of the ingest log are read ahead, by the partition's number."""
        self._report("ahead", positions)

    def report_regions(self, loads: Mapping[int, Sequence[float]], **more: Any) -> None:
        """Say what some regions have done, and `more` about all of them, as JSON; see `regions_of`."""
        fields: list[str | bytes] = [part for name, told in more.items() for part in (name, _json(told))]
        self._report("load", {region: _json(load) for region, load in loads.items()}, *fields)

    def regions(self) -> dict[str, Any]:
        """Return what the engine has reported of its regions; see `regions_of`."""
        return regions_of(read_hash(self.client, self.names.engine))

    def task_report(self, task: int) -> dict[str, Any]:
        """Return what a task has told last through `report_regions`; empty if it has told nothing."""
        told = self.client.hget(self.names.engine, f"task:{task}")
        return orjson.loads(told) if told else {}

    def report_removed(self, blocks: Mapping[int, int]) -> None:
        """Say how many of these blocks are removed from the ingest log, by partition."""
        self._report("removed", blocks)

    def report_state_bytes(self, size: int) -> None:
        """Say how large the newest durable state is, in bytes."""
        self._report("state", {"bytes": size})

    def oldest_waiting_us(self) -> int | None:
        """Return when the oldest block that no task has read reached the gateway; None if none waits.

        The time is in microseconds since 1970 UTC. One entry of each partition is read.
        """
        ahead = self.progress()[1]
        logs = self.names.all_ingest(self.partitions)
        found = [self.event_log.read(log, ahead.get(log, FIRST), limit=1, only=("heard_us",)) for log in logs]
        return min((int(entries[0].fields[b"heard_us"]) for entries in found if entries), default=None)

    def _report(
        self,
        what: str,
        blocks: Mapping[int, str | int] | Mapping[int, bytes] | Mapping[str, str | int],
        *more: bytes | str | int,
    ) -> None:
        """Report counts, but not of a space that was removed: a late report must leave nothing of it."""
        counts = [part for number, count in blocks.items() for part in (f"{what}:{number}", count)]
        if counts or more:
            self.client.eval(_REPORT_IF_EXISTS, 2, self.names.engine, self._sign, *counts, *more)

    def newest_batch(self, epoch: str) -> int:
        """Return the newest batch of an epoch of which the result log has a fragment; -1 if it has none."""
        return max(self.published(epoch, NEWEST_READ), default=-1)

    def newest_whole_batch(self, epoch: str) -> int:
        """Return the newest batch of an epoch of which the result log has all fragments; -1 if there is none."""
        published = self.published(epoch, WHOLE_READ).items()
        return max((batch for batch, (regions, expected) in published if len(regions) == expected), default=-1)

    def published(self, epoch: str, entries: int) -> dict[int, tuple[set[int], int]]:
        """Return the regions that have published a batch, and how many have to, by batch, of the newest entries."""
        found: dict[int, tuple[set[int], int]] = {}
        for entry in self.event_log.read_back(self.names.results, limit=entries):
            told = entry.fields
            if told[b"epoch"].decode() == epoch:
                regions, _ = found.setdefault(int(told[b"batch"]), (set(), int(told[b"regions"])))
                regions.add(int(told[b"region"]))
        return found

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
        """Delete all logs of the space, and what its engine has reported about them."""
        ingest = map(self.names.ingest, range(self.partitions))
        names = self.names
        inboxes = map(names.exchange, range(self.partitions))
        told = [names.definitions, names.control, names.results, names.events, names.acks, names.cuts]
        self.event_log.delete([*ingest, *told, *inboxes])
        self.client.delete(names.counted, names.engine, names.region_changes, names.sent)

    def publish(self, fragments: Iterable[Fragment]) -> None:
        """Append fragments to the result log, and their events and acknowledgements to the logs of those.

        Add the fragments' stale elements to the counts. A fragment takes effect once, whether it is published by one
        attempt, by several, or after a later batch of its region: its epoch, batch and region identify it. All
        fragments are sent in one round trip, and their counts in a second one.
        """
        stamped = [(Stamp(str(part.region), part.epoch, part.batch), part) for part in fragments]
        self.event_log.append_once_all((stamp, self._entries(part)) for stamp, part in stamped)
        if not any(part.stale for _, part in stamped):
            return
        pipeline = self.client.pipeline(transaction=False)
        for stamp, part in stamped:
            if part.stale:
                counts = [number for count in part.stale.items() for number in count]
                pipeline.eval(_COUNT_ONCE, 2, self.names.stale, self.names.counted, *stamp, *counts)
        pipeline.execute()

    def _entries(self, fragment: Fragment) -> list[BoundedEntry]:
        """Return the entries of a fragment: its results, its events, and the acknowledgements if it has some."""
        results_kept = replace(RESULTS_KEPT, least_entries=_least_entries(fragment.regions))
        entries = [
            BoundedEntry(self.names.results, fragment_fields(fragment), results_kept),
            BoundedEntry(self.names.events, fragment_fields(events_of(fragment)), EVENTS_KEPT),
        ]
        if fragment.region == 0 and fragment.acks:
            fields: Fields = {"acks": orjson.dumps(fragment.acks), "batch": fragment.batch, "epoch": fragment.epoch}
            entries.append(BoundedEntry(self.names.acks, fields, ACKS_KEPT))
        return entries


def regions_of(report: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return what an engine has reported of its regions, from the fields of its report.

    ``map`` is the document of the region map in force, ``places`` are places of elements that came lately, and
    ``load:{region}`` is a list: the number of the map, then as in `region_reports.Load`. ``worker:{task}`` is the host
    and the number of the process that runs a task, and ``tasks`` is how many tasks there are. ``joins`` are the joins
    over event time, as in `engine.driving.DrivenJoin`, and ``reports:{task}`` counts the reports of their streams that
    a task has read. A field that is not known is missing.
    """
    wanted = ("map", "places", "tasks", "load", "worker", "joins", "reports")
    told = {name.decode(): value for name, value in report.items()}
    return {name: orjson.loads(value) for name, value in told.items() if name.partition(":")[0] in wanted}


def write_report(client: redis.Redis, key: str, report: Mapping[str, Any]) -> None:
    """Write fields of a report into a hash, also while Redis is full."""
    client.eval(_REPORT, 1, key, *(part for field in report.items() for part in field))


def _json(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def _least_entries(regions: int) -> int:
    """Return how many of the newest results are kept in any case, given how many fragments a batch has."""
    return RESULT_BATCHES_KEPT * regions
