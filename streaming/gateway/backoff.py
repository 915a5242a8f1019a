"""How long to wait before the next attempt."""

import random
from collections.abc import Iterator


def backoff_s(first_s: float, longest_s: float, jitter: random.Random) -> Iterator[float]:
    """Yield waiting times that double up to a bound, each between half of it and the whole ("equal jitter").

    Parameters
    ----------
    first_s, longest_s : float
        Bounds of the first wait and of all waits, in seconds.
    jitter : random.Random
        Keeps many gateways from coming back in step.

    References
    ----------
    M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

    Examples
    --------
    >>> waits = backoff_s(1.0, 4.0, random.Random(1))
    >>> [limit / 2 <= next(waits) <= limit for limit in (1, 2, 4, 4)]
    [True, True, True, True]
    """
    limit = first_s
    while True:
        yield limit * jitter.uniform(0.5, 1.0)
        limit = min(2 * limit, longest_s)
