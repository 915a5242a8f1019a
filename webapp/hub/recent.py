"""The last batches of a space, kept decoded for clients that come back."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from streaming.eventlog import Entry
from streaming.logs import read_fragment
from streaming.results import Fragment
from webapp.hub.assembly import Batch
from webapp.hub.encoding import Encoded
from webapp.hub.engine_link import EngineLink
from webapp.hub.shipping import ResumePoint
from webapp.hub.subscriptions import CHANGE, FrameOf

KEPT_BYTES = 64_000_000
ENTRIES_PER_READ = 32
# What a batch takes besides its rows and its frames.
BATCH_BYTES = 4_000
MOST_OPEN = 4


@dataclass(eq=False)
class KeptBatch:
    """A batch without its snapshots, and its frames of changes that were encoded; None for a frame without rows."""

    batch: Batch
    frames: dict[FrameOf, str | bytes | None] = field(default_factory=dict)


class RecentBatches:
    """Keeps the last batches of an epoch, without holes, up to a number of bytes.

    A hub adds each batch that it distributes. If a client holds an older batch than the oldest one kept, the result log
    is read backwards from there. Each entry of the log is read once in this way, however many clients come back.

    Parameters
    ----------
    link : EngineLink
    most_bytes : int
        Of the rows of changes and of the encoded frames. Older batches are dropped beyond it.
    dropped : function of a batch, optional
        Called for each batch that is dropped.
    """

    def __init__(
        self, link: EngineLink, most_bytes: int = KEPT_BYTES, dropped: Callable[[Batch], None] = lambda _: None
    ) -> None:
        self.link, self.most_bytes, self._dropped = link, most_bytes, dropped
        self._reading = asyncio.Lock()
        self.begin(None)

    def begin(self, told: ResumePoint | None, readable: bool = True) -> None:
        """Forget everything, and keep the batches after `told`.

        Parameters
        ----------
        told : ResumePoint or None
            The last whole batch in the result log.
        readable : bool
            Whether the result log may be read backwards from `told`; not after a loss.
        """
        self.told, self.bytes = told, 0
        self._kept: deque[KeptBatch] = deque()
        self._first = told.batch + 1 if told else 0  # number of the oldest batch kept
        self._newest_in_log = told
        self._readable = readable and told is not None
        self._before: str | None = None  # the log has been read backwards to this position; None at first
        self._open: dict[int, dict[int, Fragment]] = {}  # fragments of batches before `_first` that are not whole yet

    def add(self, batch: Batch) -> KeptBatch:
        """Keep a batch that follows the last one, or that begins anew after a loss."""
        if batch.new_epoch or batch.gap or self.told is None:
            self.begin(ResumePoint(batch.epoch, batch.number - 1), readable=False)
        self.told = ResumePoint(batch.epoch, batch.number)
        kept = KeptBatch(_changes_only(batch))
        self._kept.append(kept)
        self._grow(_size(kept.batch))
        return kept

    def keep_frames(self, kept: KeptBatch, wanted: set[FrameOf], encoded: Encoded) -> None:
        """Keep the frames of changes of a batch that were wanted and could be encoded."""
        fresh = {want: encoded.frames.get(want) for want in wanted if want.kind == CHANGE and want not in encoded.lost}
        kept.frames |= fresh
        if self.told is not None and kept.batch.epoch == self.told.epoch and kept.batch.number >= self._first:
            self._grow(sum(len(frame) for frame in fresh.values() if frame))

    def after(self, epoch: str, number: int) -> Sequence[KeptBatch] | None:
        """Return the batches after the one with a number, the oldest first; None if they are not all kept."""
        if self.told is None or self.told.epoch != epoch or number + 1 < self._first:
            return None
        return list(islice(self._kept, number + 1 - self._first, None))

    @property
    def first(self) -> int:
        """Number of the oldest batch that is kept."""
        return self._first

    async def reaches(self, held: ResumePoint) -> bool:
        """Return whether all batches after `held` are kept, or will be; read the result log back to it if needed."""
        if self.told is None or held.epoch != self.told.epoch:
            return False
        if held.batch > self.told.batch:
            return await self._has(held)
        while self._first > held.batch + 1 and self._readable:
            async with self._reading:
                if self._first > held.batch + 1 and self._readable:
                    await self._read_back()
        # The hub may have begun anew in the meantime.
        return self.told is not None and held.epoch == self.told.epoch and self._first <= held.batch + 1

    async def _has(self, held: ResumePoint) -> bool:
        """Return whether the log has come to a batch that the hub has not distributed yet."""
        async with self._reading:
            if self._newest_in_log is None or self._newest_in_log.batch < held.batch:
                for entry in await self.link.event_log.read_back(self.link.names.results, limit=1):
                    self._newest_in_log = _point(entry)
        newest = self._newest_in_log
        return newest is not None and newest.epoch == held.epoch and newest.batch >= held.batch

    async def _read_back(self) -> None:
        """Read some entries backwards, and keep the batches that they complete."""
        told, log = self.told, self.link.names.results
        assert told is not None  # else the log is not readable
        entries = await self.link.event_log.read_back(log, self._before, ENTRIES_PER_READ)
        if self.told is None or self.told.epoch != told.epoch or not self._readable:
            return  # the hub has begun anew
        self._readable = len(entries) == ENTRIES_PER_READ
        for entry in entries:
            self._before, point = entry.position, _point(entry)
            # The engine works on one batch at a time: a batch is lost if others before it come first.
            if point.epoch != told.epoch or len(self._open) > MOST_OPEN:
                self._stop_reading()
                return
            if point.batch < self._first:
                fragment = read_fragment(entry.fields, self.link.space)
                self._open.setdefault(fragment.batch, {}).setdefault(fragment.region, fragment)
                self._complete()

    def _complete(self) -> None:
        """Keep the batch before the oldest one, if all its fragments have been read and there is room."""
        regions = self._open.get(self._first - 1, {})
        if not regions or len(regions) < next(iter(regions.values())).regions:
            return
        assert self.told is not None  # else the log is not readable
        del self._open[self._first - 1]
        fragments = tuple(fragment for _, fragment in sorted(regions.items()))
        kept = KeptBatch(_changes_only(Batch(self.told.epoch, self._first - 1, fragments)))
        if self.bytes + _size(kept.batch) > self.most_bytes:
            self._stop_reading()
            return
        self._kept.appendleft(kept)
        self.bytes += _size(kept.batch)
        self._first -= 1
        self._complete()

    def _grow(self, size: int) -> None:
        """Count bytes, and drop the oldest batches beyond the bound. The log is not read back to them again."""
        self.bytes += size
        while self.bytes > self.most_bytes and len(self._kept) > 1:
            kept = self._kept.popleft()
            self.bytes -= _size(kept.batch) + sum(len(frame) for frame in kept.frames.values() if frame)
            self._first = kept.batch.number + 1
            self._dropped(kept.batch)
            self._stop_reading()

    def _stop_reading(self) -> None:
        self._readable, self._open = False, {}


def _point(entry: Entry) -> ResumePoint:
    return ResumePoint(entry.fields[b"epoch"].decode(), int(entry.fields[b"batch"]))


def _changes_only(batch: Batch) -> Batch:
    """Return a batch without its snapshots, which may be large: only changes carry an answer on."""
    empty = batch.fragments[0].snapshots.schema.empty_table()  # a slice would keep the rows alive
    fragments = (replace(fragment, snapshots=empty, snapshot_queries=()) for fragment in batch.fragments)
    return replace(batch, fragments=tuple(fragments))


def _size(batch: Batch) -> int:
    return BATCH_BYTES + sum(fragment.changes.nbytes for fragment in batch.fragments)
