"""Hashes of values, the same in every process: 64 bits, of which each is as good as any other.

References
----------
G. L. Steele Jr., D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, figure 16: the
finaliser of SplitMix64.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import polars as pl

_TEXT = np.uint64(0x9E3779B97F4A7C15)


def hashes_of_numbers(values: np.ndarray) -> np.ndarray:
    """Return the hashes of numbers, uint64 of the same shape; 0.0 and -0.0 are one number.

    Examples
    --------
    >>> zeros = hashes_of_numbers(np.array([0.0, -0.0, 1.0]))
    >>> bool(zeros[0] == zeros[1]), bool(zeros[0] == zeros[2])
    (True, False)
    """
    # Adding zero makes a plus of a minus zero.
    return mixed((np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def hashes_of_texts(texts: Sequence[str] | np.ndarray) -> np.ndarray:
    """Return the hashes of texts, uint64 of shape (N,); they differ from those of numbers."""
    return mixed(pd.util.hash_array(np.asarray(texts, dtype=object), categorize=False) ^ _TEXT)


def hashes_of_values(texts: Sequence[str | None]) -> np.ndarray:
    """Return the hashes of values that are numbers or other texts, uint64 of shape (N,); None has the hash of no text.

    Examples
    --------
    >>> bool(hashes_of_values(["7.0"])[0] == hashes_of_numbers(np.array([7.0]))[0])
    True
    """
    column = pl.Series(texts, dtype=pl.String)
    number = column.cast(pl.Float64, strict=False)
    of_texts = hashes_of_texts(column.fill_null("").to_numpy())
    is_number = number.is_not_null().to_numpy()
    of_texts[is_number] = hashes_of_numbers(number.drop_nulls().to_numpy())
    return of_texts


def hash_of(value: float | str) -> np.uint64:
    """Return the hash of one value: a number, or a text.

    Examples
    --------
    >>> bool(hash_of(7) == hashes_of_numbers(np.array([7.0]))[0]), bool(hash_of(7) == hash_of("7"))
    (True, False)
    """
    if isinstance(value, str):
        return hashes_of_texts([value])[0]
    return hashes_of_numbers(np.array([value], dtype=np.float64))[0]


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Return 64-bit numbers whose bits are spread: each bit of a number changes each bit of the result or not.

    Parameters
    ----------
    numbers : ndarray of uint64
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
