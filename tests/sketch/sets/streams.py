"""Streams of values for the tests of sets, and what exact sets say of them."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from streaming.sketch.sets.hashing import hashes_of_numbers
from streaming.sketch.sets.sets import Sets, add
from streaming.sketch.sets.settings import SetSettings

# Entries of four values have sketches; more than a few entries are merged.
TINY = SetSettings(
    ("a", "b"),
    cell_bits=4,
    time_bin_us=1_000_000,
    bloom_bits=6,
    bloom_hashes=2,
    register_bits=4,
    rows=2,
    width_bits=4,
    most_bytes=3_000,
)


@dataclass(frozen=True)
class Stream:
    """N elements: times, cells, and the values of each feature, NaN where they are missing."""

    time_us: np.ndarray
    cell: np.ndarray
    values: np.ndarray

    def take(self, rows):
        """Return some of the elements."""
        return Stream(self.time_us[rows], self.cell[rows], self.values[:, rows])

    def added(self, sets):
        """Return sets that know these elements, too."""
        return add(sets, self.time_us, self.cell, hashes_of_numbers(self.values), np.isfinite(self.values))

    def counts(self, feature, rows=slice(None)):
        """Return how often each value of a feature is there."""
        values = self.values[feature, rows]
        return Counter(values[np.isfinite(values)].tolist())


def sets_of(stream, settings=TINY):
    """Return the sets of a stream."""
    return stream.added(Sets(settings))


def stream_of(rng, count, *, values=200, span_us=8_000_000, cells=16, features=2):
    """Return a random stream, in which some values are frequent and some are missing."""
    drawn = np.minimum(rng.zipf(1.3, (features, count)), values).astype(float)
    drawn[rng.random(drawn.shape) < 0.1] = np.nan
    return Stream(rng.integers(0, span_us, count), rng.integers(0, cells, count), drawn)
