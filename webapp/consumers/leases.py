"""How many connections a user, an address or a share link has at once, in all web processes together.

Each connection is counted in Redis for some time, which its process renews. So connections of a process that died are
soon counted no more. While Redis is away, each process counts its own.
"""

import contextlib
import ipaddress
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import redis

from streaming.keys import CONNECTIONS_KEY
from webapp.bus.redis import client

# A connection of a process that does not renew it is counted for this long.
COUNTED_S = 30.0
# Whoever has one IPv6 address has all of its network.
IPV6_PREFIX = 64


@dataclass(frozen=True)
class Limit:
    """How many connections something may have at once, and how one more is refused.

    Parameters
    ----------
    of : str
        What has the connections, such as ``user:7``.
    most : int
    code : int
        The code with which one more is closed.
    rule : str
        The reason for people, at most 123 bytes long (RFC 6455 5.5).
    """

    of: str
    most: int
    code: int
    rule: str


class Leases:
    """Counts the connections of this process, in Redis with those of others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, set[str]] = {}
        self._renewing = False
        self._redis_answers = True

    def take(self, name: str, limits: Sequence[Limit]) -> Limit | None:
        """Count a connection; return the first limit that it would exceed, with which it is not counted, or None.

        Parameters
        ----------
        name : str
            Of the connection; no other one has it.
        limits : sequence of Limit
        """
        with self._lock:
            for limit in limits:
                self._held.setdefault(limit.of, set()).add(name)
            counts = [len(self._held[limit.of]) for limit in limits]
        counts = [max(pair) for pair in zip(counts, self._counted(name, limits) or counts, strict=True)]
        exceeded = next((limit for limit, count in zip(limits, counts, strict=True) if count > limit.most), None)
        if exceeded is not None:
            self.give_back(name, limits)
        elif limits:
            self._begin_to_renew()
        return exceeded

    def give_back(self, name: str, limits: Sequence[Limit]) -> None:
        """Count a connection no more."""
        held = []
        with self._lock:
            for limit in limits:
                names = self._held.get(limit.of, set())
                held += [limit.of] if name in names else []
                names.discard(name)
                if not names:
                    self._held.pop(limit.of, None)
        if held and self._redis_answers:
            with contextlib.suppress(redis.RedisError), client().pipeline() as pipeline:
                for of in held:
                    pipeline.zrem(_key(of), name)
                pipeline.execute()

    def _counted(self, name: str, limits: Sequence[Limit]) -> list[int] | None:
        """Count a connection in Redis, and return the counts of all processes; None while Redis is away."""
        if not (limits and self._redis_answers):
            return None
        now = time.time()
        try:
            with client().pipeline() as pipeline:
                for limit in limits:
                    pipeline.zremrangebyscore(_key(limit.of), 0, now)
                    pipeline.zadd(_key(limit.of), {name: now + COUNTED_S})
                    pipeline.pexpire(_key(limit.of), int(2_000 * COUNTED_S))
                    pipeline.zcard(_key(limit.of))
                return pipeline.execute()[3::4]
        except redis.RedisError:
            self._redis_answers = False
            return None

    def _begin_to_renew(self) -> None:
        with self._lock:
            if self._renewing:
                return
            self._renewing = True
        threading.Thread(target=self._renew, name="leases", daemon=True).start()

    def _renew(self) -> None:
        """Renew what this process holds, until it holds nothing."""
        while True:
            time.sleep(COUNTED_S / 3)
            with self._lock:
                held = {of: list(names) for of, names in self._held.items()}
                if not held:
                    self._renewing, self._redis_answers = False, True
                    return
            self._redis_answers = self._renewed(held)

    def _renewed(self, held: dict[str, list[str]]) -> bool:
        until = time.time() + COUNTED_S
        try:
            with client().pipeline() as pipeline:
                for of, names in held.items():
                    pipeline.zadd(_key(of), dict.fromkeys(names, until))
                    pipeline.pexpire(_key(of), int(2_000 * COUNTED_S))
                pipeline.execute()
        except redis.RedisError:
            return False
        return True


LEASES = Leases()


def network_of(address: str) -> str:
    """Return what is counted as one address: of IPv6 a network of 64 bits.

    Examples
    --------
    >>> [network_of(address) for address in ("10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1", "")]
    ['10.0.0.1', '2001:db8::/64', '10.0.0.1', '']
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # a socket of this machine has no address
        return ""
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip), IPV6_PREFIX), strict=False))


def _key(of: str) -> str:
    return CONNECTIONS_KEY.format(of=of)
