"""Keys that are unique, also of features that do not fit into memory together."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from streaming.elements import key_hashes

# Hashes that are looked up at once.
CHUNK = 1 << 20


class UniqueKeys:
    """Makes keys unique: appends ``#2`` to the second occurrence of a key, ``#3`` to the third.

    Of each key it holds only the hash, and of one that repeats also its number.

    Examples
    --------
    >>> batches = [pa.array(["a", "b"]), pa.array(["a", "a#2"])]
    >>> unique = UniqueKeys()
    >>> for keys in batches:
    ...     unique.add(keys)
    >>> unique.settle(lambda: iter(batches))
    >>> [unique.named(0, batches[0]).to_pylist(), unique.named(2, batches[1]).to_pylist()]
    [['a', 'b'], ['a#2', 'a#2#2']]
    """

    def __init__(self) -> None:
        self._added: list[np.ndarray] = []
        # The features whose keys get a number, ascending, and the numbers, by round.
        self._rounds: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, keys: pa.Array) -> None:
        """Take the keys of the next features."""
        self._added.append(_hashes(keys))

    def settle(self, read: Callable[[], Iterable[pa.Array]]) -> None:
        """Find which keys get which numbers, once all are added.

        Parameters
        ----------
        read : callable
            Returns the batches of keys again, in the order in which they were added. It is called only if keys repeat.
        """
        hashes = np.concatenate([np.empty(0, dtype=np.int64), *self._added])
        self._added.clear()
        while len((later := _repeated(hashes))[0]):
            self._rounds.append(later)
            for first, keys in _numbered(read()):
                rows = _within(later[0], first, len(keys))
                chosen = later[0][rows] - first
                # A number that an earlier round appended is a part of the key now.
                hashes[later[0][rows]] = _hashes(self.named(first, keys).take(pa.array(chosen)))

    def named(self, first: int, keys: pa.Array) -> pa.Array:
        """Return the unique keys of some features, given the number of the first of them and their keys."""
        renamed = None
        for numbered, turns in self._rounds:
            rows = _within(numbered, first, len(keys))
            if rows.start < rows.stop:
                renamed = keys.to_numpy(zero_copy_only=False) if renamed is None else renamed
                chosen = numbered[rows] - first
                renamed[chosen] = renamed[chosen] + ("#" + turns[rows].astype(str).astype(object))
        return keys if renamed is None else pa.array(renamed, pa.string())


def _hashes(keys: pa.Array) -> np.ndarray:
    return key_hashes("", keys.to_numpy(zero_copy_only=False))


def _numbered(batches: Iterable[pa.Array]) -> Iterator[tuple[int, pa.Array]]:
    first = 0
    for keys in batches:
        yield first, keys
        first += len(keys)


def _within(rows: np.ndarray, first: int, count: int) -> slice:
    """Return which of some rows, ascending, are among `count` ones from `first` on."""
    return slice(*np.searchsorted(rows, [first, first + count]).tolist())


def _repeated(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of all but the first occurrence of each hash, ascending, and their turns, from 2 on."""
    ordered = np.sort(hashes)
    several = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    starts = range(0, len(hashes) if len(several) else 0, CHUNK)
    rows = [start + np.flatnonzero(_among(hashes[start : start + CHUNK], several)) for start in starts]
    row = np.concatenate([np.empty(0, dtype=np.int64), *rows])
    group = np.searchsorted(several, hashes[row])
    order = np.argsort(group, kind="stable")
    turn = np.empty(len(row), dtype=np.int64)
    turn[order] = np.arange(len(row)) - np.searchsorted(group[order], group[order])
    later = turn > 0
    return row[later], turn[later] + 1


def _among(hashes: np.ndarray, several: np.ndarray) -> np.ndarray:
    place = np.minimum(np.searchsorted(several, hashes), len(several) - 1)
    return several[place] == hashes
