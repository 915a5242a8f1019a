"""What a home server keeps for queries about tracks, and what it tells of them in a micro-batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.operators.failures import Failures
from streaming.results import result_schema
from streaming.servers.control.border import LeftOut
from streaming.servers.sorted_runs import Column, SortedRuns
from streaming.servers.ways.tracks.events import SOURCE
from streaming.servers.ways.tracks.fixes import columns_of, no_fixes
from streaming.spaces import Space


@dataclass(frozen=True)
class Tracking:
    """State of a home server: what it knows for queries about tracks.

    Parameters
    ----------
    fixes : SortedRuns
        With the columns of `fixes.no_fixes`, by `names_of` group and object.
    members : SortedRuns
        With the columns of `no_members`, by `key_hash`: a row for each query in whose answer the object is, or in whose
        answer it is as far as that was told. It has the tuple that was told last.
    waiting : pyarrow.Table
        Result tuples that could not be told with those before them.
    left_out : mapping of int to LeftOut
        The queries that the server leaves out.
    """

    fixes: SortedRuns
    members: SortedRuns
    waiting: pa.Table
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)

    @classmethod
    def empty(cls, space: Space, following: int = 0) -> "Tracking":
        """Return the state without queries; the number of the first run of each table is `following`."""
        fixes, members = (SortedRuns(like, following=following) for like in (no_fixes(space), no_members(space)))
        return cls(fixes, members, result_schema(space).empty_table())


@dataclass(frozen=True)
class Tracked:
    """What a home server tells of tracks in a micro-batch.

    Parameters
    ----------
    changes, snapshots : pyarrow.Table
        With `results.result_schema`.
    failures : Failures
        By query: what failed, how many reports were not believed, and costs.
    doubted, late : int
        How many reports were not believed, and came too late, each once for each query.
    """

    changes: pa.Table
    snapshots: pa.Table
    failures: Failures = field(default_factory=Failures)
    doubted: int = 0
    late: int = 0


def no_members(space: Space) -> dict[str, Column]:
    """Return the columns of members, without rows."""
    columns = {"query": np.empty(0, dtype=np.int64), "inside": np.empty(0, dtype=np.int8)}
    columns["told"] = np.empty(0, dtype=np.int8)
    return columns | columns_of(result_schema(space).empty_table().select([*SOURCE]))
