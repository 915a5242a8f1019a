"""How many different values the registers of a HyperLogLog have seen.

References
----------
O. Ertl, "New Cardinality Estimation Algorithms for HyperLogLog Sketches", 2017, algorithm 6: an estimator without
tables, of no bias from few values to many. P. Flajolet et al., "HyperLogLog", 2007: its relative standard error.
"""

import math

import numpy as np

_ALPHA = 1 / (2 * math.log(2))


def estimated(registers: np.ndarray) -> float:
    """Return the estimate of registers, uint8 of shape (2**p,), of 64-bit hashes.

    Examples
    --------
    >>> estimated(np.zeros(16, dtype=np.uint8))
    0.0
    """
    m = len(registers)
    most = 64 - (m.bit_length() - 1)
    counts = np.bincount(registers, minlength=most + 2)
    z = m * _tau(1 - counts[most + 1] / m)
    for k in range(most, 0, -1):
        z = 0.5 * (z + counts[k])
    z += m * _sigma(counts[0] / m)
    return float(_ALPHA * m * m / z) if z < math.inf else 0.0


def relative_error(m: int) -> float:
    """Return the relative standard error of `estimated` for m registers: 1.04 / sqrt(m)."""
    return 1.04 / math.sqrt(m)


def _sigma(x: float) -> float:
    """Return x plus the sum of x ** (2 ** k) * 2 ** (k - 1) for k = 1, 2, ...; infinite for 1."""
    if x == 1:
        return math.inf
    total, factor, before = x, 1.0, -1.0
    while total != before:
        before, x = total, x * x
        total += x * factor
        factor *= 2
    return total


def _tau(x: float) -> float:
    """Return a third of 1 - x minus the sum of (1 - x ** (2 ** -k)) ** 2 * 2 ** -k for k = 1, 2, ..."""
    if x in (0, 1):
        return 0.0
    total, factor, before = 1 - x, 1.0, -1.0
    while total != before:
        before, x, factor = total, math.sqrt(x), factor / 2
        total -= (1 - x) ** 2 * factor
    return total / 3
