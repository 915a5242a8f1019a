"""From fragments to batches."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.results import Fragment
from streaming.results.netting import net


@dataclass(frozen=True)
class Batch:
    """All that the regions say about one micro-batch.

    Parameters
    ----------
    epoch : str
    number : int
    fragments : tuple of Fragment
        One for each region, in their order.
    new_epoch : bool
        The engine has started afresh: it knows no view, and answers held so far mean nothing.
    gap : bool
        Batches between the one before and this were lost, or the reader itself failed in between.
    """

    epoch: str
    number: int
    fragments: tuple[Fragment, ...]
    new_epoch: bool = False
    gap: bool = False

    @property
    def newest_us(self) -> int:
        """Wall-clock time at which the newest element of the batch was heard; 0 without elements."""
        return max(fragment.newest_us for fragment in self.fragments)

    @property
    def snapshot_queries(self) -> frozenset[int]:
        """Queries whose whole answer this batch carries."""
        return frozenset(query for fragment in self.fragments for query in fragment.snapshot_queries)

    @property
    def acknowledged(self) -> frozenset[int]:
        """Queries whose registration, edit or end takes effect with this batch."""
        return frozenset(ack["query"] for fragment in self.fragments for ack in fragment.acks)

    @property
    def elements(self) -> int:
        """Number of elements that the engine took in this batch; each fragment counts what came from its homes."""
        return sum(fragment.counters.get("elements", 0) for fragment in self.fragments)

    @property
    def size(self) -> int:
        """Number of rows, before any netting."""
        return sum(fragment.changes.num_rows + fragment.snapshots.num_rows for fragment in self.fragments)

    def changes(self, queries: Iterable[int]) -> pa.Table:
        """Return the net changes of some queries, sorted by query."""
        return net(self.fragments, frozenset(queries))

    def snapshot(self, query: int) -> pa.Table:
        """Return the whole answer of one of `snapshot_queries`."""
        chosen = pa.array([query], pa.int64())
        return pa.concat_tables([_only(fragment.snapshots, chosen) for fragment in self.fragments])


def _only(rows, queries):
    return rows.filter(pc.is_in(rows["query"], value_set=queries))


def rows_of(rows: pa.Table, query: int) -> pa.Table:
    """Return one query's part of rows sorted by query, without copying it."""
    low, high = np.searchsorted(rows["query"].to_numpy(), [query, query + 1])
    return rows.slice(low, high - low)


@dataclass
class Assembly:
    """Collects fragments in the order of the log until a batch is complete; drops repeats, and notices what is missing.

    Every region says something about every batch, and batches of an epoch are numbered without a hole: what does not
    follow was lost, however long the engine was silent and whatever the log was trimmed of.

    Parameters
    ----------
    epoch : str
        Of the newest complete batch; empty before the first.
    done : int
        Its number.
    """

    epoch: str = ""
    done: int = -1
    _open: dict[int, dict[int, Fragment]] = field(default_factory=dict)
    _new_epoch: bool = False
    _gap: bool = False

    @property
    def waiting(self) -> bool:
        """Whether a batch has come in part."""
        return bool(self._open)

    def lose(self) -> None:
        """Note that something read may not have been made use of."""
        self._gap = True

    def add(self, fragment: Fragment) -> Batch | None:
        """Take a fragment and return the batch that it completes, or None."""
        if fragment.epoch != self.epoch:
            self._new_epoch = self._new_epoch or self.epoch != ""
            # A reader that knew nothing begins with the first batch that it sees.
            self.done = -1 if self.epoch else fragment.batch - 1
            self.epoch, self._open = fragment.epoch, {}
        if fragment.batch <= self.done:
            return None
        regions = self._open.setdefault(fragment.batch, {})
        regions.setdefault(fragment.region, fragment)
        return self._complete(fragment.batch) if len(regions) >= fragment.regions else None

    def _complete(self, number):
        """Close a batch; the engine works on one at a time, so an older one that is still open never ends."""
        fragments = tuple(fragment for _, fragment in sorted(self._open.pop(number).items()))
        gap = self._gap or number > self.done + 1
        batch = Batch(self.epoch, number, fragments, self._new_epoch, gap)
        self._open = {later: regions for later, regions in self._open.items() if later > number}
        self.done, self._new_epoch, self._gap = number, False, False
        return batch
