"""How often, how long and how many at once: the limits of delivery."""

import random
from dataclasses import dataclass
from itertools import islice

from streaming.gateway.backoff import backoff_s


@dataclass(frozen=True)
class DeliveryPace:
    """The limits of delivery.

    Parameters
    ----------
    attempt_s : float
        The longest time of one attempt, in seconds.
    lease_s : float
        A delivery that a worker has claimed is free again after this time in seconds, since the worker may have died.
        It must be longer than an attempt.
    first_retry_s, longest_retry_s : float
        The wait after the first failed attempt, and the longest wait, in seconds; see `wait_s`.
    attempts : int
        After so many failed attempts a delivery is dead. With the defaults that takes about 15 hours.
    at_once : int
        Attempts under way at the same time, for each channel in each worker process.
    run_s : float
        A run of the task starts no attempt after this time in seconds.
    kept_s : float
        Deliveries that are over are deleted after this time in seconds.
    """

    attempt_s: float = 10.0
    lease_s: float = 30.0
    first_retry_s: float = 5.0
    longest_retry_s: float = 3_600.0
    attempts: int = 30
    at_once: int = 16
    run_s: float = 25.0
    kept_s: float = 30 * 86_400.0

    def wait_s(self, failed: int, jitter: random.Random) -> float:
        """Return how long to wait after a number of failed attempts, in seconds, with exponential back-off and jitter.

        Examples
        --------
        >>> pace, jitter = DeliveryPace(first_retry_s=5, longest_retry_s=60), random.Random(1)
        >>> [limit / 2 <= pace.wait_s(n, jitter) <= limit for n, limit in ((1, 5), (2, 10), (4, 40), (30, 60))]
        [True, True, True, True]
        """
        return next(islice(backoff_s(self.first_retry_s, self.longest_retry_s, jitter), failed - 1, None))
