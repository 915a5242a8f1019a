"""Leaves: what is kept of elements of one time bin, one cell, and one bin of each plane; as columns over the leaves.

All questions are answered from what a leaf says about its own elements: how many, when and where, and their moments and
extremes. The key of a leaf only decides which elements are summarised together. So leaves of any keys, levels and bins
may be put together, and answers and their bounds stay true.

References
----------
B. P. Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 4(3), 1962.
T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
1979: moments of a union.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from streaming.operators.runs import first_of_runs
from streaming.sketch.bins import COMPLETE
from streaming.sketch.settings import SketchSettings

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Leaves:
    """K leaves, of F features and P pairs of features.

    Parameters
    ----------
    start_us : ndarray of int64, shape (K,)
        Where the time bin begins.
    level : ndarray of int8, shape (K,)
        See `streaming.sketch.levels`.
    cell : ndarray of int64, shape (K,)
        With as many bits as cells of the level have.
    planes : ndarray of int64, shape (K,)
        See `streaming.sketch.bins`. `COMPLETE` is set if all elements have all features of which co-moments are kept,
        and not set if none of them has.
    count : ndarray of int64, shape (K,)
        Elements.
    first_us, last_us : ndarray of int64, shape (K,)
        The earliest and the latest time of the elements.
    place_low, place_high : ndarray of float64, shape (2, K)
        The smallest box with all places of the elements.
    n : ndarray of int64, shape (F, K)
        Elements that have the feature. If no element lacks any, all rows are `count`, and take no memory.
    mean, m2 : ndarray of float64, shape (F, K)
        The mean, and the sum of the squared differences from it; 0 without values.
    low, high : ndarray of float64, shape (F, K)
        The extremes; inf and -inf without values.
    comoment : ndarray of float64, shape (P, K)
        The sum of the products of the differences from the means; 0 unless `COMPLETE`.
    """

    start_us: np.ndarray
    level: np.ndarray
    cell: np.ndarray
    planes: np.ndarray
    count: np.ndarray
    first_us: np.ndarray
    last_us: np.ndarray
    place_low: np.ndarray
    place_high: np.ndarray
    n: np.ndarray
    mean: np.ndarray
    m2: np.ndarray
    low: np.ndarray
    high: np.ndarray
    comoment: np.ndarray

    def __len__(self) -> int:
        return len(self.count)

    @property
    def nbytes(self) -> int:
        """The memory that the columns take."""
        return sum(0 if name == "n" and shares_count(self) else getattr(self, name).nbytes for name in _names())

    @property
    def complete(self) -> np.ndarray:
        """Which leaves have co-moments, bool of shape (K,)."""
        return (self.planes & COMPLETE) != 0

    def take(self, rows: np.ndarray | slice) -> "Leaves":
        """Return some leaves, given their positions, a mask, or a slice."""
        if shares_count(self):
            count = self.count[rows]
            taken = {name: getattr(self, name)[..., rows] for name in _names() if name != "n"}
            return Leaves(**taken, n=np.broadcast_to(count, (len(self.n), len(count))))
        return Leaves(**{name: getattr(self, name)[..., rows] for name in _names()})

    def table(self) -> pa.Table:
        """Return the leaves as a table; columns with several rows a leaf have a number at the end of their names."""
        columns = {}
        for name in _names():
            column = getattr(self, name)
            if name == "n" and shares_count(self):
                continue
            if column.ndim == 1:
                columns[name] = column
            else:
                columns |= {f"{name}_{place}": row for place, row in enumerate(column)}
        return pa.table({name: np.ascontiguousarray(column) for name, column in columns.items()})

    @classmethod
    def of_table(cls, table: pa.Table, features: int, pairs: int) -> "Leaves":
        """Return the leaves of a table; the inverse of `table`."""
        rows = dict.fromkeys(("mean", "m2", "low", "high", "n"), features) | {"comoment": pairs}
        rows |= {"place_low": 2, "place_high": 2}
        columns = {}
        for name in _names():
            if name not in rows:
                columns[name] = _array(table, name)
            elif name == "n" and f"{name}_0" not in table.column_names:
                columns[name] = np.broadcast_to(columns["count"], (features, table.num_rows))
            else:
                parts = [_array(table, f"{name}_{place}") for place in range(rows[name])]
                columns[name] = np.stack(parts) if parts else np.empty((0, table.num_rows))
        return cls(**columns)


def shares_count(leaves: Leaves) -> bool:
    """Tell whether no element lacks a feature, so that `n` is `count`."""
    return leaves.n.strides[0] == 0


def no_leaves(settings: SketchSettings) -> Leaves:
    """Return no leaves."""
    features, pairs = len(settings.features), len(settings.pairs)
    none, integers = np.empty(0), np.empty(0, dtype=np.int64)
    return Leaves(
        start_us=integers,
        level=integers.astype(np.int8),
        cell=integers,
        planes=integers,
        count=integers,
        first_us=integers,
        last_us=integers,
        place_low=np.empty((2, 0)),
        place_high=np.empty((2, 0)),
        n=np.broadcast_to(integers, (features, 0)),
        **{name: np.broadcast_to(none, (features, 0)).copy() for name in ("mean", "m2", "low", "high")},
        comoment=np.empty((pairs, 0)),
    )


def together(parts: Sequence[Leaves]) -> Leaves:
    """Return the leaves of several, one after the other; at least one part."""
    if len(parts) == 1:
        return parts[0]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in _names() if name != "n"
    }
    if all(map(shares_count, parts)):
        n = np.broadcast_to(columns["count"], (len(parts[0].n), len(columns["count"])))
    else:
        n = np.concatenate([part.n for part in parts], axis=1)
    return Leaves(**columns, n=n)


def order_of(leaves: Leaves) -> np.ndarray:
    """Return the order of leaves by time bin, cell and planes, int64 of shape (K,)."""
    return np.lexsort((leaves.planes, leaves.cell, leaves.start_us))


def grouped(leaves: Leaves, pairs: Pairs) -> Leaves:
    """Return one leaf for all those of the same time bin, cell, and bins; ordered by these three.

    Parameters
    ----------
    leaves : Leaves
        In any order. Those of the same key have the same level.
    pairs : sequence of (int, int)
        The pairs of features of which co-moments are kept.
    """
    order = order_of(leaves)
    first = np.zeros(len(order), dtype=bool)
    for key in (leaves.start_us, leaves.cell, leaves.planes):
        first |= first_of_runs(key[order])
    return merged(leaves, order, np.flatnonzero(first), pairs)


def merged(leaves: Leaves, order: np.ndarray, at: np.ndarray, pairs: Pairs) -> Leaves:
    """Return one leaf for each group of leaves.

    Parameters
    ----------
    leaves : Leaves
    order : ndarray of int64, shape (K,)
        The positions of the leaves, group by group.
    at : ndarray of int64, shape (G,)
        Where in `order` each group begins. The group's keys are those of its first leaf.
    pairs : sequence of (int, int)
    """
    if len(at) == len(order):
        return leaves.take(order)
    from streaming.sketch.compiled_groups import merge

    groups, chosen, shared = _unsigned(order, at), order[at], shares_count(leaves)
    count = np.add.reduceat(leaves.count[order], at)
    n, mean, m2 = _columns(len(leaves.n), len(at))
    apart = np.empty((len(leaves.n) if pairs else 0, len(leaves)))
    merge(leaves.n, leaves.mean, leaves.m2, *groups, n, mean, m2, apart)
    weight = leaves.count * leaves.complete
    comoment = [
        np.add.reduceat((leaves.comoment[row] + weight * apart[one] * apart[other])[order], at)
        for row, (one, other) in enumerate(pairs)
    ]
    low, high = _extremes(leaves.low, leaves.high, groups)
    return Leaves(
        **{field.name: getattr(leaves, field.name)[chosen] for field in fields(LeafKeys)},
        count=count,
        n=np.broadcast_to(count, n.shape) if shared else n,
        mean=mean,
        m2=m2,
        comoment=np.stack(comoment) if comoment else np.empty((0, len(at))),
        **_extents(leaves.first_us, leaves.last_us, leaves.place_low, leaves.place_high, groups),
        low=low,
        high=high,
    )


def _columns(features: int, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return room for n, mean and m2 of groups."""
    return np.empty((features, groups), dtype=np.int64), *np.empty((2, features, groups))


def _unsigned(order: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return groups as compiled functions take them."""
    return order.view(np.uint64), np.append(at, len(order)).view(np.uint64)


def _extents(
    first_us: np.ndarray,
    last_us: np.ndarray,
    place_low: np.ndarray,
    place_high: np.ndarray,
    groups: tuple[np.ndarray, np.ndarray],
) -> dict[str, np.ndarray]:
    """Return the columns of leaves that say when and where the members of groups are."""
    first_us, last_us = _extremes(first_us[None], last_us[None], groups)
    place_low, place_high = _extremes(place_low, place_high, groups)
    return {"first_us": first_us[0], "last_us": last_us[0], "place_low": place_low, "place_high": place_high}


def _extremes(
    lows: np.ndarray, highs: np.ndarray, groups: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the extremes of groups, two arrays of shape (A, G), given those of their members, of shape (A, N)."""
    from streaming.sketch.compiled_groups import extremes

    low, high = (np.empty((len(lows), len(groups[1]) - 1), dtype=lows.dtype) for _ in range(2))
    extremes(lows, highs, *groups, low, high)
    return low, high


@dataclass(frozen=True)
class LeafKeys:
    """The keys of N elements; see `Leaves`."""

    start_us: np.ndarray
    level: np.ndarray
    cell: np.ndarray
    planes: np.ndarray


def summarised(
    keys: LeafKeys,
    numbers: Sequence[np.ndarray],
    time_us: np.ndarray,
    place: np.ndarray,
    values: np.ndarray,
    pairs: Pairs,
) -> Leaves:
    """Return the leaves of elements, ordered by their keys.

    Parameters
    ----------
    keys : LeafKeys
    numbers : sequence of ndarray of int64, shape (N,)
        Numbers that together tell keys apart, the most significant first; several small ones are quicker than keys.
    time_us : ndarray of int64, shape (N,)
    place : ndarray of float64, shape (2, N)
    values : ndarray of float64, shape (F, N)
        NaN where an element lacks a feature.
    pairs : sequence of (int, int)
    """
    from streaming.sketch.compiled_groups import summarise

    order, at = _groups(numbers)
    groups, chosen, sizes = _unsigned(order, at), order[at], np.diff(at, append=len(order))
    n, mean, m2 = _columns(len(values), len(at))
    low, high = np.empty((2, len(values), len(at)))
    apart = np.empty((len(values), len(order) if pairs else 0))
    for feature, column in enumerate(values):
        told = (row[feature] for row in (n, mean, m2, low, high, apart))
        summarise(np.ascontiguousarray(column), *groups, *told)
    complete = (keys.planes[chosen] & COMPLETE) != 0
    comoment = [np.add.reduceat((apart[one] * apart[other])[order], at) * complete for one, other in pairs]
    return Leaves(
        **{field.name: getattr(keys, field.name)[chosen] for field in fields(keys)},
        count=sizes,
        n=np.broadcast_to(sizes, n.shape) if (n == sizes).all() else n,
        mean=mean,
        m2=m2,
        comoment=np.stack(comoment) if comoment else np.empty((0, len(at))),
        **_extents(time_us, time_us, place, place, groups),
        low=low,
        high=high,
    )


def with_keys(leaves: Leaves, keys: LeafKeys) -> Leaves:
    """Return leaves with other keys."""
    return replace(leaves, **{field.name: getattr(keys, field.name) for field in fields(keys)})


def _groups(numbers: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of elements by several numbers, and where in it each group of equal ones begins."""
    combined, room = np.zeros(len(numbers[0]), dtype=np.int64), 1
    for number in numbers:
        least = int(number.min())
        extent = int(number.max()) - least + 1
        room *= extent
        if room >= 1 << 63:
            break
        combined = combined * extent + (number - least)
    else:
        return _ordered(combined, room)
    order = np.lexsort(tuple(reversed(numbers)))
    first = np.zeros(len(order), dtype=bool)
    for number in numbers:
        first |= first_of_runs(number[order])
    return order, np.flatnonzero(first)


def _ordered(number: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of non-negative numbers below `room`, and where in it each group of equal ones begins."""
    bits = len(number).bit_length()
    if room << bits >= 1 << 63:
        order = np.argsort(number, kind="stable")
        return order, np.flatnonzero(first_of_runs(number[order]))
    # To sort numbers takes a fraction of the time that it takes to find their order, so each brings its position along.
    both = np.sort(number << bits | np.arange(len(number)))
    return both & ((1 << bits) - 1), np.flatnonzero(first_of_runs(both >> bits))


def _names() -> list[str]:
    return [field.name for field in fields(Leaves)]


def _array(table: pa.Table, name: str) -> np.ndarray:
    return np.array(table[name])
