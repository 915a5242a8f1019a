"""Sets of regions as the bits of an int64."""

import numpy as np

# More regions than that share bits; a shared bit stands for all of its regions.
BITS = 64

# All bits set: every region.
EVERYWHERE = -1


def bits_of(met: np.ndarray) -> np.ndarray:
    """Return the regions of each row (N, regions) as bits, int64 of shape (N,).

    Examples
    --------
    >>> bits_of(np.array([[True, False, True]])).tolist()
    [5]
    """
    bit = np.uint64(1) << (np.arange(met.shape[1]) % BITS).astype(np.uint64)
    return np.bitwise_or.reduce(np.where(met, bit, np.uint64(0)), axis=1, initial=0).view(np.int64)


def regions_of(bits: np.ndarray, regions: int) -> np.ndarray:
    """Tell which regions have their bit set, bool of shape (N, regions).

    Examples
    --------
    >>> regions_of(np.array([5]), 3).tolist()
    [[True, False, True]]
    """
    shift = (np.arange(regions) % BITS).astype(np.uint64)
    return (bits.view(np.uint64)[:, None] >> shift) & np.uint64(1) != 0
