"""Sets of values of a stream, immutable: they grow by elements, are merged with others, and are split by place.

What a batch brings is a small run of entries; a run is merged with the one before it once it is not much smaller. All
answers are made from the merged entries, so they do not depend on where batches were cut, on the order of elements, or
on how places were split.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.sketch.sets.entries import SetEntries, entries_of, entries_of_tables, tables_of, together
from streaming.sketch.sets.settings import InvalidSets, SetSettings

# A run is merged with the one before it, unless that one is so many times larger.
GROWTH = 2


@dataclass(frozen=True)
class SetRun:
    """An immutable part of sets.

    Parameters
    ----------
    number : int
        Its name: no other run of the same sets ever has it.
    entries : SetEntries
    """

    number: int
    entries: SetEntries

    def tables(self) -> list[pa.Table]:
        """Return what is stored of the run."""
        return tables_of(self.entries)

    @classmethod
    def of_tables(cls, number: int, tables: Sequence[pa.Table]) -> "SetRun":
        """Return the run of `tables`."""
        return cls(number, entries_of_tables(tables))


@dataclass(frozen=True)
class Sets:
    """An immutable version of sets.

    Parameters
    ----------
    settings : SetSettings
    runs : tuple of SetRun
        All of the same level; several may have an entry of the same key.
    following : int
        The number of the next run.
    level : int
        The level of all entries: cells and time bins are merged with their neighbours so often.
    """

    settings: SetSettings
    runs: tuple[SetRun, ...] = ()
    following: int = 0
    level: int = 0

    @property
    def nbytes(self) -> int:
        """The memory of the values and the sketches."""
        return sum(run.entries.nbytes for run in self.runs)

    def entries(self) -> SetEntries:
        """Return all entries, each key once."""
        return together([run.entries for run in self.runs], self.settings, self.level)


def add(sets: Sets, time_us: np.ndarray, cell: np.ndarray, hashes: np.ndarray, known: np.ndarray) -> Sets:
    """Return sets that know the values of N elements more.

    Parameters
    ----------
    sets : Sets
    time_us : ndarray of int64, shape (N,)
        Event times, in microseconds since 1970 UTC.
    cell : ndarray of int64, shape (N,)
        The geohash of each place, `SetSettings.cell_bits` long.
    hashes : ndarray of uint64, shape (F, N)
        The hash of each value (`hashing`), for each feature of the settings.
    known : ndarray of bool, shape (F, N)
        Whether the element has the feature.
    """
    if not len(time_us):
        return sets
    length = sets.settings.bin_us(sets.level)
    drop = sets.settings.cell_bits - sets.settings.bits(sets.level)
    start_us = time_us // length * length
    entries = entries_of(start_us, cell >> drop, hashes, known, sets.level, sets.settings)
    return _within_budget(_with_run(sets, entries))


def merge(sets: Sets, other: Sets) -> Sets:
    """Return one version of the values of two, which have no element in common; the runs of `other` get new numbers.

    Raises
    ------
    InvalidSets
        If the settings differ.
    """
    if sets.settings != other.settings:
        raise InvalidSets("only sets of equal settings can be merged")
    sets = _at_level(sets, max(sets.level, other.level))
    for run in other.runs:
        sets = _with_run(sets, together([run.entries], sets.settings, sets.level))
    return _within_budget(sets)


def split(sets: Sets, region_of: Callable[[np.ndarray, int], np.ndarray], regions: int) -> list[Sets]:
    """Return sets for each region, which together are the whole; runs get new numbers.

    Parameters
    ----------
    sets : Sets
    region_of : callable
        Given cells, int64 of shape (K,), and how many bits they have, returns the region of each, int64 of shape (K,).
    regions : int
    """
    parts = [replace(sets, runs=()) for _ in range(regions)]
    for run in sets.runs:
        region = region_of(run.entries.keys.cell, sets.settings.bits(sets.level))
        for number, part in enumerate(parts):
            parts[number] = _with_run(part, run.entries.take(region == number))
    return parts


def _with_run(sets: Sets, entries: SetEntries) -> Sets:
    """Return sets with one run more, merged with those before it that are not much larger."""
    if not len(entries):
        return sets
    runs = list(sets.runs)
    while runs and runs[-1].entries.nbytes < GROWTH * entries.nbytes:
        entries = together([runs.pop().entries, entries], sets.settings, sets.level)
    return replace(sets, runs=(*runs, SetRun(sets.following, entries)), following=sets.following + 1)


def _at_level(sets: Sets, level: int) -> Sets:
    if level == sets.level:
        return sets
    entries = together([run.entries for run in sets.runs], sets.settings, level)
    return _with_run(replace(sets, runs=(), level=level), entries)


def _within_budget(sets: Sets) -> Sets:
    """Return sets that need no more memory than the settings allow, coarser if it takes that.

    One run of all entries never needs more memory than several. So the level depends on the elements alone.
    """
    while sets.nbytes > sets.settings.most_bytes:
        if len(sets.runs) > 1:
            sets = _with_run(replace(sets, runs=()), sets.entries())
        elif sets.level < sets.settings.most_level:
            sets = _at_level(sets, sets.level + 1)
        else:
            break
    return sets
