"""Reports that wait until event time has come so far."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.operators.watermarks import LONG_AGO_US
from streaming.servers.elements import tracked_schema
from streaming.spaces import Space
from streaming.state.codec import Parts, StatePart

# So many batches of a similar size are merged; sizes are similar if their logarithms to this base are.
TIER = 8
# `arrival` has the turn in its upper bits, and the place of the report in the turn's batch in the lower ones.
TURN_BITS = 32


@lru_cache(maxsize=64)
def waiting_schema(space: Space) -> pa.Schema:
    """Return the columns of reports that wait in a home server: `tracked_schema` and `arrival`.

    `arrival` (int64) rises with each report of a home server; see `arrivals`.
    """
    return tracked_schema(space).append(pa.field("arrival", pa.int64(), nullable=False))


def arrivals(turn: int, count: int) -> np.ndarray:
    """Return the column `arrival` of the reports of a turn, int64 of shape (count,).

    Examples
    --------
    >>> [number - (3 << 32) for number in arrivals(3, 2).tolist()]
    [0, 1]
    """
    return (turn << TURN_BITS) + np.arange(count)


def turn_of(arrival: np.ndarray) -> np.ndarray:
    """Return the turns in which reports arrived, int64."""
    return arrival >> TURN_BITS


@dataclass(frozen=True)
class QueuedBatch:
    """Reports that came together; an immutable part of a state.

    Parameters
    ----------
    number : int
        No other batch of its queue ever has it.
    reports : pyarrow.Table
    by : str
        The column that says when reports are taken, in event time.
    """

    number: int
    reports: pa.Table
    by: str

    def __len__(self) -> int:
        return self.reports.num_rows

    def tables(self) -> Sequence[pa.Table]:
        """Return what is stored of the batch; see `codec.StatePart`."""
        return [self.reports]

    @property
    def time_us(self) -> np.ndarray:
        """When the reports are taken, int64."""
        return self.reports[self.by].to_numpy()


@dataclass(frozen=True)
class ReportQueue:
    """An immutable version of the reports that wait.

    Parameters
    ----------
    schema : pyarrow.Schema
    by : str
        The column that says when reports are taken, in event time.
    batches : tuple of QueuedBatch
        Some of their reports may have been taken.
    until_us : int
        Reports before this time were taken.
    following : int
        The number of the next batch.
    """

    schema: pa.Schema
    by: str = "time_us"
    batches: tuple[QueuedBatch, ...] = ()
    until_us: int = LONG_AGO_US
    following: int = 0

    def put(self, reports: pa.Table) -> "ReportQueue":
        """Return the queue with more reports, none of which is before `until_us`."""
        if not reports.num_rows:
            return self
        batch = QueuedBatch(self.following, reports.combine_chunks(), self.by)
        return replace(self, batches=(*self.batches, batch), following=self.following + 1)

    def waiting(self) -> pa.Table:
        """Return all reports that were not taken, in any order."""
        return self._between(self.until_us, None)

    def taken(self, until_us: int) -> tuple[pa.Table, "ReportQueue"]:
        """Return the reports before a time, in any order, and the queue without them."""
        if until_us <= self.until_us:
            return self.schema.empty_table(), self
        due = self._between(self.until_us, until_us)
        left = tuple(batch for batch in self.batches if (batch.time_us >= until_us).any())
        return due, replace(self, batches=left, until_us=until_us)._merged()

    def _between(self, first_us: int, until_us: int | None) -> pa.Table:
        tables = [self.schema.empty_table()]
        for batch in self.batches:
            chosen = batch.time_us >= first_us
            if until_us is not None:
                chosen &= batch.time_us < until_us
            if chosen.any():
                tables.append(batch.reports if chosen.all() else batch.reports.filter(pa.array(chosen)))
        return pa.concat_tables(tables)

    def _merged(self) -> "ReportQueue":
        """Return the queue after the merges that are due: they depend on the sizes alone."""
        levels: defaultdict[int, list[QueuedBatch]] = defaultdict(list)
        for batch in self.batches:
            levels[len(batch).bit_length() // 3].append(batch)
        due = next((alike for _, alike in sorted(levels.items()) if len(alike) >= TIER), None)
        if due is None:
            return self
        whole = pa.concat_tables([batch.reports for batch in due])
        left = whole.filter(pa.array(whole[self.by].to_numpy() >= self.until_us)).combine_chunks()
        numbers = {batch.number for batch in due}
        rest = (batch for batch in self.batches if batch.number not in numbers)
        return replace(self, batches=(*rest, QueuedBatch(self.following, left, self.by)), following=self.following + 1)

    def head(self) -> dict[str, Any]:
        """Return what a document must keep of the queue besides its batches."""
        numbers = [batch.number for batch in self.batches]
        return {"batches": numbers, "until_us": self.until_us, "following": self.following}

    def parts(self, name: str) -> dict[str, StatePart]:
        """Return the batches as parts of a state, given the name of the queue."""
        return {f"{name}-{batch.number}": batch for batch in self.batches}

    @classmethod
    def of_head(
        cls, schema: pa.Schema, name: str, head: Mapping[str, Any], parts: Parts, by: str = "time_us"
    ) -> "ReportQueue":
        """Return the queue of a head; the inverse of `head` and `parts`."""

        def batch(number: int) -> QueuedBatch:
            part = parts[f"{name}-{number}"]
            return part if isinstance(part, QueuedBatch) else QueuedBatch(number, part.tables()[0], by)

        return cls(schema, by, tuple(map(batch, head["batches"])), head["until_us"], head["following"])
