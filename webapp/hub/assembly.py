"""Assemble the fragments of the regions into whole batches."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.results import Fragment
from streaming.results.netting import net


@dataclass(frozen=True)
class Batch:
    """Everything that the regions report about one micro-batch.

    Parameters
    ----------
    epoch : str
        Name of the engine's state. Batch numbers of different epochs cannot be compared.
    number : int
        Number of the batch in its epoch.
    fragments : tuple of Fragment
        One for each region, in the order of their numbers.
    new_epoch : bool
        The engine has started with a new state: it knows no views, and answers from before are not valid any more.
    gap : bool
        Batches between the previous one and this one were lost, or the reader failed in between.
    """

    epoch: str
    number: int
    fragments: tuple[Fragment, ...]
    new_epoch: bool = False
    gap: bool = False

    @property
    def newest_us(self) -> int:
        """When the gateway received the batch's newest element, in microseconds since 1970 UTC; 0 without elements."""
        return max(fragment.newest_us for fragment in self.fragments)

    @property
    def snapshot_queries(self) -> frozenset[int]:
        """Queries whose whole answer this batch carries."""
        return frozenset(query for fragment in self.fragments for query in fragment.snapshot_queries)

    @cached_property
    def snapshot_counts(self) -> dict[int, int]:
        """How many rows the answer of each of `snapshot_queries` has."""
        tables = [fragment.snapshots["query"].to_numpy() for fragment in self.fragments]
        queries, counts = np.unique(np.concatenate(tables), return_counts=True)
        return dict.fromkeys(self.snapshot_queries, 0) | dict(zip(queries.tolist(), counts.tolist(), strict=True))

    @property
    def acknowledged(self) -> frozenset[int]:
        """Queries whose registration, edit or end takes effect with this batch."""
        return frozenset(ack["query"] for fragment in self.fragments for ack in fragment.acks)

    @cached_property
    def change_counts(self) -> dict[int, int]:
        """How many rows of changes each query has, before netting; those without any are left out."""
        tables = [fragment.changes["query"].to_numpy() for fragment in self.fragments]
        queries, found = np.unique(np.concatenate(tables), return_counts=True)
        counts = dict(zip(queries.tolist(), found.tolist(), strict=True))
        for fragment in self.fragments:
            # A query that shares an answer has tuples under the number of that answer.
            shared = {answer: queries for answer, queries in fragment.shared.items() if answer in counts}
            counts |= {query: counts[answer] for answer, several in shared.items() for query in several}
        return counts

    @cached_property
    def changed(self) -> frozenset[int]:
        """Queries whose answers may have changed in this batch: those with tuples, and those with a lost part."""
        return frozenset(self.change_counts.keys() | self.lost)

    def rows_of(self, query: int) -> int:
        """Return how many rows of changes and of its snapshot a query has, before netting."""
        return self.change_counts.get(query, 0) + self.snapshot_counts.get(query, 0)

    @cached_property
    def lost(self) -> frozenset[int]:
        """Queries of whose answers a region has lost its part."""
        lost = (one for fragment in self.fragments for one in fragment.failures if one.get("lost"))
        return frozenset(query for one in lost for query, _ in one["queries"])

    @property
    def elements(self) -> int:
        """Number of elements that the engine read in this batch: the sum of what the fragments count."""
        return sum(fragment.counters.get("elements", 0) for fragment in self.fragments)

    @property
    def size(self) -> int:
        """Number of rows of changes and snapshots, before netting."""
        return sum(fragment.changes.num_rows + fragment.snapshots.num_rows for fragment in self.fragments)

    def changes(self, queries: Iterable[int]) -> pa.Table:
        """Return the net changes of some queries, sorted by query.

        Raises
        ------
        LostAnswer
            Where a region has lost its part of the answer of one of them.
        """
        return net(self.fragments, frozenset(queries))

    def snapshots(self, queries: Iterable[int]) -> pa.Table:
        """Return the whole answers of some of `snapshot_queries`, sorted by query."""
        chosen = pa.array(sorted(queries), pa.int64())
        rows = pa.concat_tables([_only(fragment.snapshots, chosen) for fragment in self.fragments])
        return rows.sort_by("query") if len(chosen) > 1 else rows


def _only(rows: pa.Table, queries: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["query"], value_set=queries))


@dataclass
class Assembly:
    """Collects fragments in the order of the log until a batch is complete; drops repeats and detects lost batches.

    Every region writes a fragment for every batch, and the batch numbers of an epoch have no gaps. So a number that
    does not follow the previous one means a loss. A log that was trimmed while the engine was silent is no loss.

    Parameters
    ----------
    epoch : str
        Epoch of the newest complete batch; empty before the first.
    done : int
        Number of the newest complete batch; -1 before the first.
    """

    epoch: str = ""
    done: int = -1
    _open: dict[int, dict[int, Fragment]] = field(default_factory=dict)
    _new_epoch: bool = False
    _gap: bool = False

    @property
    def waiting(self) -> bool:
        """Whether some fragments of an incomplete batch have arrived."""
        return bool(self._open)

    def lose(self) -> None:
        """Record that fragments may have been read but not used; the next batch is then marked with a gap."""
        self._gap = True

    def add(self, fragment: Fragment) -> Batch | None:
        """Add a fragment and return the batch that it completes, or None."""
        if fragment.epoch != self.epoch:
            self._new_epoch = self._new_epoch or self.epoch != ""
            # A reader without an epoch starts at the first batch that it sees, so that one is no gap.
            self.done = -1 if self.epoch else fragment.batch - 1
            self.epoch, self._open = fragment.epoch, {}
        if fragment.batch <= self.done:
            return None
        regions = self._open.setdefault(fragment.batch, {})
        regions.setdefault(fragment.region, fragment)
        return self._complete(fragment.batch) if len(regions) >= fragment.regions else None

    def _complete(self, number: int) -> Batch:
        """Return a complete batch. Drop older open ones: the engine works on one at a time, so they never complete."""
        fragments = tuple(fragment for _, fragment in sorted(self._open.pop(number).items()))
        gap = self._gap or number > self.done + 1
        batch = Batch(self.epoch, number, fragments, self._new_epoch, gap)
        self._open = {later: regions for later, regions in self._open.items() if later > number}
        self.done, self._new_epoch, self._gap = number, False, False
        return batch
