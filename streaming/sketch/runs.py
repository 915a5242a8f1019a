"""Runs of elements that wait, and runs of leaves: immutable and numbered.

What a batch brings is one small run of elements. Many of them become one run of leaves, whose indexes are made when
somebody first asks. Runs of a similar size are merged (tiering, as in `streaming.servers.sorted_runs`). Several runs
may have a leaf of the same key, and all of them count.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from streaming.operators.runs import first_of_runs
from streaming.sketch.leaves import Leaves, Pairs, grouped, merged, together
from streaming.sketch.levels import bits_of
from streaming.sketch.observations import Observations
from streaming.sketch.once import Once
from streaming.sketch.settings import SketchSettings

# So many young runs of a similar size are merged into one.
TIER = 4
LEVEL_BITS = 2

# Into so many groups the leaves are merged for questions about the values of a feature at all times and places.
VALUE_GROUPS = 256
# With time bins there are about so many groups in all, but at least so many a time bin.
MOST_GROUPS = 16_384
LEAST_VALUE_GROUPS = 16


class _SketchRun:
    """What runs of all kinds are."""

    @property
    def size(self) -> int:
        """The order of magnitude of its length."""
        return (len(self).bit_length() - 1) // LEVEL_BITS

    def __len__(self) -> int:
        raise NotImplementedError


AnyRun = TypeVar("AnyRun", bound=_SketchRun)


@dataclass(frozen=True)
class ElementRun(_SketchRun):
    """Elements in the order in which they came; no other run of their sketch ever has their number.

    Parameters
    ----------
    number : int
    observations : Observations
        At least one.
    """

    number: int
    observations: Observations

    def __len__(self) -> int:
        return len(self.observations)

    def tables(self) -> list[pa.Table]:
        """Return what is stored of the run."""
        return [self.observations.table()]


@dataclass(frozen=True)
class CellIndex:
    """The leaves of a run by cell.

    Parameters
    ----------
    order : ndarray of int64, shape (K,)
        The positions of the leaves, cell by cell.
    at : ndarray of int64, shape (C + 1,)
        Where in `order` each of the C cells begins and ends.
    box : ndarray of float64, shape (4, C)
        The smallest box with all places of a cell's elements: lower corner, then upper corner.
    """

    order: np.ndarray
    at: np.ndarray
    box: np.ndarray


@dataclass(frozen=True)
class LeafRun(_SketchRun, Once):
    """An immutable run; no other run of its sketch ever has its number.

    Parameters
    ----------
    number : int
    leaves : Leaves
        Ordered by time bin, cell, and planes; at least one.
    pairs : sequence of (int, int)
        The pairs of features of which co-moments are kept.
    """

    number: int
    leaves: Leaves
    pairs: Pairs

    def __len__(self) -> int:
        return len(self.leaves)

    def tables(self) -> list[pa.Table]:
        """Return what is stored of the run."""
        return [self.leaves.table()]

    @functools.cached_property
    def by_cell(self) -> CellIndex:
        """The index by cell; cells of different levels are different ones."""
        leaves = self.leaves
        key = (leaves.cell << 6) | np.minimum(leaves.level, 63)
        order = np.argsort(key, kind="stable")
        first = np.flatnonzero(first_of_runs(key[order]))
        low = np.minimum.reduceat(leaves.place_low[:, order], first, axis=1)
        high = np.maximum.reduceat(leaves.place_high[:, order], first, axis=1)
        return CellIndex(order, np.append(first, len(order)), np.concatenate([low, high]))

    @functools.cached_property
    def by_time(self) -> Leaves:
        """The leaves, merged over cells and planes: one or two for each time bin."""
        return self._rolled(self.leaves.start_us, np.zeros(len(self), dtype=np.int64))

    @functools.cached_property
    def whole(self) -> Leaves:
        """The leaves, merged over everything: one or two."""
        none = np.zeros(len(self.by_time), dtype=np.int64)
        return _rolled(self.by_time, none, none, self.pairs)

    def by_value(self, feature: int) -> Leaves:
        """Return the leaves, merged over all times and cells: those whose means of a feature are neighbours."""
        return self._by_value(feature, np.zeros(len(self), dtype=np.int64), VALUE_GROUPS)

    def by_time_and_value(self, feature: int) -> Leaves:
        """Return the leaves, merged over all cells: those of a time bin whose means of a feature are neighbours."""
        groups = min(max(MOST_GROUPS // len(self.by_time), LEAST_VALUE_GROUPS), VALUE_GROUPS)
        return self._by_value(feature, self.leaves.start_us, groups)

    def by_cell_of(self, level: int, settings: SketchSettings) -> Leaves:
        """Return the leaves, merged over all times and planes: those of one level, in one cell of so many bits.

        Leaves that are coarser than these cells stay with their own.
        """
        return self.once(("cells", level), lambda: self._by_cell_of(level, settings))

    def _by_cell_of(self, level: int, settings: SketchSettings) -> Leaves:
        levels = self.leaves.level.astype(np.int64)
        return self._rolled(levels, self.leaves.cell >> np.maximum(bits_of(settings, levels) - level, 0))

    def _by_value(self, feature: int, start_us: np.ndarray, groups: int) -> Leaves:
        name = "values", feature, start_us is self.leaves.start_us
        return self.once(name, lambda: self._rolled(start_us, _groups_by_value(self.leaves, feature, groups)))

    def _rolled(self, start_us: np.ndarray, bins: np.ndarray) -> Leaves:
        return _rolled(self.leaves, start_us, bins, self.pairs)


def _groups_by_value(leaves: Leaves, feature: int, groups: int) -> np.ndarray:
    """Return a number for each leaf: groups of about equally many elements, by the mean of a feature."""
    order = np.argsort(leaves.mean[feature], kind="stable")
    reached = np.cumsum(leaves.n[feature][order])
    group = np.empty(len(order), dtype=np.int64)
    group[order] = reached * groups // (reached[-1] + 1)
    return group


def _rolled(leaves: Leaves, start_us: np.ndarray, bins: np.ndarray, pairs: Pairs) -> Leaves:
    """Return leaves merged by start and bin; those with co-moments stay apart from those without."""
    complete = leaves.complete
    order = np.lexsort((complete, bins, start_us))
    first = np.zeros(len(order), dtype=bool)
    for key in (start_us, bins, complete):
        first |= first_of_runs(key[order])
    return merged(leaves, order, np.flatnonzero(first), pairs)


def tiered(
    runs: Sequence[AnyRun], following: int, merge: Callable[[Sequence[AnyRun], int], AnyRun]
) -> tuple[tuple[AnyRun, ...], int]:
    """Return runs after the merges that are due, which their lengths alone decide, and the next number.

    Parameters
    ----------
    runs : sequence of ElementRun or LeafRun
        Oldest first.
    following : int
        The next number.
    merge : callable
        `appended` or `compacted`.
    """
    merges = list(runs)
    while True:
        many = 0
        while many < len(merges) and merges[-many - 1].size <= merges[-1].size:
            many += 1
        if many < TIER:
            return tuple(merges), following
        merges[-many:] = [merge(merges[-many:], following)]
        following += 1


def appended(runs: Sequence[ElementRun], number: int) -> ElementRun:
    """Return several runs of elements as one, in the same order."""
    return ElementRun(number, Observations.together([run.observations for run in runs]))


def compacted(runs: Sequence[LeafRun], number: int) -> LeafRun:
    """Return several runs as one, in which each key has one leaf."""
    pairs = runs[0].pairs
    return LeafRun(number, grouped(together([run.leaves for run in runs]), pairs), pairs)
