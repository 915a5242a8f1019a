"""Limit how many wrong tokens an address may try."""

from collections import OrderedDict
from typing import TypeVar

from django.utils.translation import gettext_lazy as _

from webapp.models.tokens import hashed
from webapp.rights.limits import TokenBucket

# How many wrong tokens an address may try at once, and how many per second on average.
BURST, RATE = 20, 0.1
# A wrong token counts as wrong for this time without a look-up, so a program that keeps sending it costs nothing.
WRONG_FOR_S = 60.0
MOST_REMEMBERED = 10_000
# The code with which a websocket is closed, and the words, also for HTTP.
TOO_MANY = 4429, _("too many wrong tokens came from this address; try again in a minute")

Key = TypeVar("Key")
Value = TypeVar("Value")


class Guesses:
    """Remembers which tokens were wrong or right, and which addresses tried too many wrong ones.

    Examples
    --------
    >>> guesses = Guesses()
    >>> for number in range(BURST):
    ...     guesses.learn("10.0.0.1", f"guess {number}", right=False, now=0.0)
    >>> guesses.too_many("10.0.0.1", "another", now=0.0), guesses.too_many("10.0.0.2", "another", now=0.0)
    (True, False)
    >>> guesses.known_wrong("10.0.0.1", "guess 7", now=1.0), guesses.too_many("10.0.0.1", "another", now=10.0)
    (True, False)
    """

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._wrong: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._right: OrderedDict[str, None] = OrderedDict()

    def known_wrong(self, address: str, secret: str, now: float) -> bool:
        """Return whether a token from this address was wrong within the last `WRONG_FOR_S`."""
        return self._wrong.get((address, hashed(secret)), now) > now

    def too_many(self, address: str, secret: str, now: float) -> bool:
        """Return whether an address has tried too many wrong tokens; False for a token that was right before."""
        bucket = self._buckets.get(address)
        return hashed(secret) not in self._right and bucket is not None and bucket.left(now) < 1

    def learn(self, address: str, secret: str, right: bool, now: float) -> None:
        """Record whether a token was right, as found by a look-up."""
        digest = hashed(secret)
        if right:
            _remember(self._right, digest, None)
            return
        self._right.pop(digest, None)
        _remember(self._wrong, (address, digest), now + WRONG_FOR_S)
        bucket = self._buckets.get(address) or TokenBucket(RATE, BURST, now)
        bucket.take(now)
        _remember(self._buckets, address, bucket)


def _remember(known: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    """Store an entry as the newest one; drop the oldest beyond `MOST_REMEMBERED`."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > MOST_REMEMBERED:
        known.popitem(last=False)
