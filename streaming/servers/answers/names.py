"""One number for a query, a rule or a group, and an object."""

import numpy as np

from streaming.sketch.sets.hashing import mixed


def names_of(number: np.ndarray, key_hash: np.ndarray) -> np.ndarray:
    """Return one number for a rule, or a query, and an object, each int64 of shape (K,)."""
    return mixed(mixed(number.view(np.uint64)) ^ key_hash.view(np.uint64)).view(np.int64)
