"""Bloom filters, HyperLogLogs and count-min sketches, many of them at once as rows of arrays.

All have the same sizes and hash functions, so two of them are merged number by number: by or, by the maximum, and by
the sum. None of this depends on the order, so what is merged is bitwise the same however elements came.

References
----------
B. H. Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", 1970. A. Kirsch, M. Mitzenmacher, "Less
Hashing, Same Performance: Building a Better Bloom Filter", 2008: all positions from two hashes.
P. Flajolet, E. Fusy, O. Gandouet, F. Meunier, "HyperLogLog", 2007; S. Heule, M. Nunkesser, A. Hall, "HyperLogLog in
Practice", 2013: hashes of 64 bits. G. Cormode, S. Muthukrishnan, "An Improved Data Stream Summary: The Count-Min
Sketch and its Applications", 2005. M. Dietzfelbinger et al., "A Reliable Randomized Algorithm for the Closest-Pair
Problem", 1997: hashing by multiplication.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from streaming.sketch.sets.hashing import mixed
from streaming.sketch.sets.settings import SetSettings

_ONE = np.uint64(1)
# An odd factor for each row of a count-min sketch.
_FACTORS = mixed(np.arange(1, 65, dtype=np.uint64)) | _ONE


@dataclass(frozen=True)
class Dense:
    """D entries, each with one sketch of each kind.

    Parameters
    ----------
    bits : ndarray of uint8, shape (D, 2**bloom_bits / 8)
        Bloom filters.
    registers : ndarray of uint8, shape (D, 2**register_bits)
        HyperLogLogs.
    counters : ndarray of int64, shape (D, rows * 2**width_bits)
        Count-min sketches, row by row.
    """

    bits: np.ndarray
    registers: np.ndarray
    counters: np.ndarray

    def __len__(self) -> int:
        return len(self.registers)

    @classmethod
    def zeros(cls, count: int, settings: SetSettings) -> "Dense":
        """Return entries without values."""
        return cls(
            np.zeros((count, 1 << settings.bloom_bits >> 3), dtype=np.uint8),
            np.zeros((count, 1 << settings.register_bits), dtype=np.uint8),
            np.zeros((count, settings.rows << settings.width_bits), dtype=np.int64),
        )

    @functools.cached_property
    def filled(self) -> np.ndarray:
        """The part of the bits of each Bloom filter that are set, float64 of shape (D,)."""
        return np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64) / (8 * self.bits.shape[1])

    def take(self, rows: np.ndarray) -> "Dense":
        """Return some entries, given their positions or a mask."""
        return Dense(*(getattr(self, field.name)[rows] for field in fields(self)))


def merged(parts: Sequence[Dense], group: np.ndarray, count: int, settings: SetSettings) -> Dense:
    """Return one entry for each of `count` groups; `group` says for each entry of all parts to which it belongs."""
    whole = Dense.zeros(count, settings)
    if len(group):
        joined = Dense(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Dense)))
        order = np.argsort(group, kind="stable")
        at = np.flatnonzero(np.diff(group[order], prepend=-1))
        some = joined if len(at) == len(order) and (order == np.arange(len(order))).all() else joined.take(order)
        chosen = group[order][at]
        whole.bits[chosen] = np.bitwise_or.reduceat(some.bits, at, axis=0)
        whole.registers[chosen] = np.maximum.reduceat(some.registers, at, axis=0)
        whole.counters[chosen] = np.add.reduceat(some.counters, at, axis=0)
    return whole


def fold(dense: Dense, entry: np.ndarray, hashes: np.ndarray, n: np.ndarray, settings: SetSettings) -> None:
    """Add values to entries that nobody else has yet.

    Parameters
    ----------
    dense : Dense
        It is changed.
    entry : ndarray of int64, shape (N,)
    hashes : ndarray of uint64, shape (N,)
        The hash of each value; each once in an entry.
    n : ndarray of int64, shape (N,)
        How often each value came.
    settings : SetSettings
    """
    bits, registers, counters = (getattr(dense, field.name).reshape(-1) for field in fields(Dense))
    # Small chunks stay in the caches of the processor: this takes half of the time.
    for chunk in range(0, len(entry), _CHUNK):
        some = slice(chunk, chunk + _CHUNK)
        of, hashed = entry[some], hashes[some]
        for position in bloom_positions(hashed, settings):
            np.bitwise_or.at(bits, of * dense.bits.shape[1] + (position >> 3), _BIT[position & 7])
        register, rank = registers_of(hashed, settings)
        np.maximum.at(registers, of * dense.registers.shape[1] + register, rank)
        for counter in counter_positions(hashed, settings):
            np.add.at(counters, of * dense.counters.shape[1] + counter, n[some])


_CHUNK = 16_384
_BIT = np.uint8(1) << np.arange(8, dtype=np.uint8)


def bloom_positions(hashes: np.ndarray, settings: SetSettings) -> np.ndarray:
    """Return the bits of each value in a Bloom filter, int64 of shape (bloom_hashes, N)."""
    first, second = hashes & np.uint64(0xFFFFFFFF), (hashes >> np.uint64(32)) | _ONE
    number = np.arange(settings.bloom_hashes, dtype=np.uint64)[:, None]
    return ((first + number * second) & np.uint64((1 << settings.bloom_bits) - 1)).view(np.int64)


def registers_of(hashes: np.ndarray, settings: SetSettings) -> tuple[np.ndarray, np.ndarray]:
    """Return the register of each value in a HyperLogLog, int64, and its rank, uint8; both of shape (N,).

    The first `register_bits` bits of the hash choose the register. The rank is 1 more than the number of zeros with
    which the other bits begin.
    """
    p = settings.register_bits
    register = (hashes >> np.uint64(64 - p)).view(np.int64)
    rest = (hashes << np.uint64(p)) | np.uint64((1 << p) - 1)
    # The binary exponent of a float tells the highest bit; the lower half of the bits could round it up.
    high, low = rest >> np.uint64(32), rest & np.uint64(0xFFFFFFFF)
    top = np.where(high > 0, np.frexp(high.astype(np.float64))[1] + 32, np.frexp(low.astype(np.float64))[1])
    return register, (65 - top).astype(np.uint8)


def counter_positions(hashes: np.ndarray, settings: SetSettings) -> np.ndarray:
    """Return the counter of each value in each row of a count-min sketch, int64 of shape (rows, N)."""
    spread = hashes[None, :] * _FACTORS[: settings.rows, None]
    column = (spread >> np.uint64(64 - settings.width_bits)).view(np.int64)
    return column + (np.arange(settings.rows) << settings.width_bits)[:, None]
