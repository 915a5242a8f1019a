"""HTTP sessions that connect only to hosts that the operator allows."""

import socket
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import ResolveResult
from yarl import URL

from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from streaming.gateway.transports.base import TransportError


def guarded_session(
    access: FeedAccess, timeout_s: float, headers: Mapping[str, str] | None = None
) -> aiohttp.ClientSession:
    """Return a session whose requests raise TransportError if they lead out of reach; it must be closed.

    The address is checked to which a connection is made, after the DNS has answered, and again after each redirect.

    Parameters
    ----------
    access : FeedAccess
        Which hosts may be reached.
    timeout_s : float
        The longest time of a request, with its response, in seconds.
    headers : mapping of str to str, optional
        Headers of every request.
    """

    async def check_request(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Refuse a literal address that is out of reach, since no resolver checks it."""
        try:
            access.check_host(request.url.host or "")
        except InvalidOptions as error:
            raise TransportError.of(error) from None
        return await handler(request)

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=_Resolver(access)),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        headers=headers,
        middlewares=(check_request,),
    )


class _Resolver(aiohttp.ThreadedResolver):
    """Resolves hosts to addresses in reach; connections go only to these, so a name cannot be rebound."""

    def __init__(self, access: FeedAccess) -> None:
        super().__init__()
        self._access = access

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host that are in reach; raise TransportError if there are none."""
        found = await super().resolve(host, port, family)
        if not (allowed := [answer for answer in found if self._access.reaches(host, answer["host"])]):
            raise TransportError.of(self._access.unreachable(host))
        return allowed


def is_http(url: str) -> bool:
    """Return whether a text is an address that begins with http:// or https:// and names a host.

    Examples
    --------
    >>> is_http("https://a.example/b"), is_http("ftp://a.example"), is_http("http://")
    (True, False, False)
    """
    try:
        parsed = URL(url)
    except ValueError:
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.host)
