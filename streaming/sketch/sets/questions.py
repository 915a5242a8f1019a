"""Questions to sets: whether a value was there, how often, and how many different values there were.

A selection meets some entries as a whole, and cuts others. What only cut entries have may or may not have been asked
for, so every answer is made twice: of the entries that lie within the selection, which bounds it from below, and of all
that the selection meets, which bounds it from above.

References
----------
G. Cormode, S. Muthukrishnan, "An Improved Data Stream Summary: The Count-Min Sketch and its Applications", 2005:
estimates are never too low. A. Broder, M. Mitzenmacher, "Network Applications of Bloom Filters: A Survey", 2004: false
positives by the part of the bits that are set.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from streaming.sketch.once import Once
from streaming.sketch.sets.cardinality import estimated, relative_error
from streaming.sketch.sets.dense import bloom_positions, counter_positions, registers_of
from streaming.sketch.sets.entries import EntryKeys, SetEntries
from streaming.sketch.sets.sets import Sets


@dataclass(frozen=True)
class ValuePresence:
    """Whether a value was there.

    Parameters
    ----------
    present : bool or None
        False is certain. True is certain if `false_positive` is 0. None: it was, if anywhere, in a cut entry, and maybe
        not within the selection.
    false_positive : float
        How probable it is, at most, that the filters find a value that was never there. Filters of several entries
        have values in common, and are then wrong together, so it is less often than this.
    entries : int
        How many entries the answer is based on.
    elements : int
        How many values these have seen.
    """

    present: bool | None
    false_positive: float
    entries: int
    elements: int


@dataclass(frozen=True)
class Number:
    """A number and its bounds.

    Parameters
    ----------
    value : float
        The estimate.
    low, high : float
        The truth lies between these at the confidence that was asked for; where they are equal, it is certain.
    entries : int
        How many entries the answer is based on.
    elements : int
        How many values these have seen.
    """

    value: float
    low: float
    high: float
    entries: int
    elements: int


@dataclass(frozen=True)
class ChosenEntries(Once):
    """The entries of one feature that a selection meets.

    Parameters
    ----------
    entries : SetEntries
    inside : ndarray of bool, shape (K,)
        Which of the entries lie within the selection as a whole.
    """

    entries: SetEntries
    inside: np.ndarray

    def counters_inside(self, rows: int) -> np.ndarray:
        """Return the sums of the counters of the entries inside, each row ascending, int64 of shape (rows, width)."""
        return self.once("counters", lambda: self._counters_inside(rows))

    def _counters_inside(self, rows: int) -> np.ndarray:
        sketched = self.inside & (self.entries.place >= 0)
        return np.sort(self.entries.dense.counters[self.entries.place[sketched]].sum(axis=0).reshape(rows, -1), axis=1)


Coverage = Callable[[EntryKeys, int], tuple[np.ndarray, np.ndarray]]


def chosen(sets: Sets, feature: str, coverage: Coverage | None = None) -> ChosenEntries:
    """Return the entries of a feature that a selection meets; questions about it need them.

    Parameters
    ----------
    sets : Sets
    feature : str
    coverage : callable, optional
        Given the keys of K entries and their level, tells which of them lie within the selection, and which meet it:
        bool of shape (K,), twice. Without it, everything is selected.

    Raises
    ------
    InvalidSets
        If the values of the feature are not kept.
    """
    position = sets.settings.position(feature)
    entries = sets.entries()
    met = entries.keys.feature == position
    if coverage is None:
        return ChosenEntries(entries.take(met), np.ones(int(met.sum()), dtype=bool))
    inside, meeting = coverage(entries.keys, entries.level)
    met &= meeting
    return ChosenEntries(entries.take(met), inside[met])


def contains(sets: Sets, chosen: ChosenEntries, hashed: np.uint64) -> ValuePresence:
    """Tell whether a value was there, given its hash (`hashing`)."""
    entries, inside = chosen.entries, chosen.inside
    told = np.zeros(len(entries), dtype=bool)
    told[entries.values.entry[entries.values.hash == hashed]] = True
    kept = told.copy()
    rows = np.flatnonzero(entries.place >= 0)
    position = bloom_positions(np.array([hashed]), sets.settings)[:, 0]
    some = entries.dense.bits[entries.place[rows][:, None], position >> 3]
    told[rows] = (some >> (position & 7).astype(np.uint8) & 1).all(axis=1)
    wrong = 1 - np.prod(1 - entries.dense.filled**sets.settings.bloom_hashes)
    present = True if (told & inside).any() else (None if told.any() else False)
    certain = bool((kept & inside).any())
    return ValuePresence(present, 0.0 if certain or not told.any() else float(wrong), *_based_on(entries))


def frequency(sets: Sets, chosen: ChosenEntries, hashed: np.uint64, confidence: float = 0.95) -> Number:
    """Return how often a value was there, given its hash.

    The estimate of a count-min sketch is the value's own count plus those of others that share its counter, so it is an
    upper bound. Where the value's counter lies in a row is as good as random. So the part of a row's counters that
    exceed a number bounds how probable it is that the others exceed it; in all rows at once, by the product.
    """
    entries, inside = chosen.entries, chosen.inside
    same = entries.values.hash == hashed
    n = np.zeros(len(entries), dtype=np.int64)
    np.add.at(n, entries.values.entry[same], entries.values.n[same])
    rows = np.flatnonzero(entries.place >= 0)
    counter = counter_positions(np.array([hashed]), sets.settings)[:, 0]
    n[rows] = entries.dense.counters[entries.place[rows][:, None], counter].min(axis=1)
    high, least = int(n.sum()), int(n[inside].sum())
    kept = int(n[inside & (entries.place < 0)].sum())
    low = max(kept, least - _excess(chosen.counters_inside(sets.settings.rows), confidence))
    value = high if inside.all() else (low + high) / 2
    return Number(float(value), float(low), float(high), *_based_on(entries))


def _excess(counters: np.ndarray, confidence: float) -> int:
    """Return a number that the counts of others exceed in all rows with a probability of at most 1 - confidence.

    The counters of each row are in ascending order.
    """
    rows, width = counters.shape
    part = (1 - confidence) ** (1 / rows)
    place = max(0, math.ceil(width * (1 - part)) - 1)
    return int(counters[:, place].max())


def distinct(sets: Sets, chosen: ChosenEntries, confidence: float = 0.95) -> Number:
    """Return how many different values there were; exact if no entry has sketches and the selection cuts none."""
    entries, inside = chosen.entries, chosen.inside
    value, _, high = _distinct(entries, sets, confidence)
    low = high_inside = value
    if inside.all():
        low = _distinct(entries, sets, confidence)[1]
    else:
        high_inside, low, _ = _distinct(entries.take(inside), sets, confidence)
    return Number((value + high_inside) / 2, low, high, *_based_on(entries))


def _distinct(entries: SetEntries, sets: Sets, confidence: float) -> tuple[float, float, float]:
    """Return the estimate of different values, and its bounds."""
    hashes = entries.values.hash
    if not len(entries.dense):
        exact = float(len(np.unique(hashes)))
        return exact, exact, exact
    registers = entries.dense.registers.max(axis=0)
    register, rank = registers_of(hashes, sets.settings)
    np.maximum.at(registers, register, rank)
    value = estimated(registers)
    error = NormalDist().inv_cdf((1 + confidence) / 2) * relative_error(len(registers))
    return value, value / (1 + error), value / max(1 - error, 1e-9)


def _based_on(entries: SetEntries) -> tuple[int, int]:
    return len(entries), int(entries.count.sum())
