"""Limit the rate of messages or attempts."""

from dataclasses import dataclass

# The code with which a connection is closed that sends too much, or does not read.
FLOODED = 1008


@dataclass
class TokenBucket:
    """A token bucket: allows `burst` tokens at once and `rate` tokens per second on average.

    Parameters
    ----------
    rate : float
        Tokens per second.
    burst : float
        Most tokens that the bucket holds; it starts full.
    at : float
        Clock time in seconds at which the bucket is made.

    Examples
    --------
    >>> bucket = TokenBucket(rate=1, burst=2, at=0)
    >>> [bucket.take(0), bucket.take(0), bucket.take(0), bucket.take(1)]
    [True, True, False, True]
    """

    rate: float
    burst: float
    at: float

    def __post_init__(self) -> None:
        self.tokens = self.burst

    def left(self, now: float) -> float:
        """Return how many tokens there are at clock time `now` in seconds."""
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        return self.tokens

    def take(self, now: float) -> bool:
        """Take a token if there is one at clock time `now` in seconds; return whether there was."""
        allowed = self.left(now) >= 1
        self.tokens -= allowed
        return allowed
