"""How much one connection may say."""

from dataclasses import dataclass


@dataclass
class TokenBucket:
    """Allows `burst` at once and `rate` a second in the long run.

    Parameters
    ----------
    rate, burst : float
    at : float
        The clock [s] when the bucket is made, full.

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
        """Return how many tokens there are."""
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        return self.tokens

    def take(self, now: float) -> bool:
        """Take a token, if there is one."""
        allowed = self.left(now) >= 1
        self.tokens -= allowed
        return allowed
