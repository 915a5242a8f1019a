"""How long to wait before the next attempt."""

import random
from collections.abc import Iterator


def backoff_s(first_s: float, longest_s: float, jitter: random.Random) -> Iterator[float]:
    """Yield waiting times in seconds, each between half a limit and the limit, which doubles ("equal jitter").

    Parameters
    ----------
    first_s, longest_s : float
        The limit of the first wait, and the largest limit, in seconds.
    jitter : random.Random
        Source of the jitter, which keeps many gateways from trying again at the same moment.

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
