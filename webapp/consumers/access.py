"""Who may open the websocket: browsers of this site with a login, and programs with a token."""

import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from channels.db import database_sync_to_async
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http.request import split_domain_port, validate_host

from webapp.consumers.asgi import Application, Receive, Scope, Send
from webapp.models import ApiToken
from webapp.rights.guesses import TOO_MANY, Guesses

SCHEME = b"token "
PORTS = {"http": 80, "https": 443}


class Access:
    """ASGI middleware that sets ``scope["user"]``.

    A browser always sends its origin, which must be this site. A client without an origin is a program: its cookies do
    not count, so it needs a token. If too many wrong tokens came from its address, its token is not looked up, and
    ``scope["refusal"]`` has the close code and the reason.
    """

    def __init__(self, app: Application) -> None:
        self.app, self.denied, self.guesses = app, WebsocketDenier.as_asgi(), Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a connection on with its user, or deny it if it comes from another site."""
        headers = dict(scope["headers"])
        if b"origin" in headers and not same_site(scope.get("scheme", "ws"), headers, settings.ALLOWED_HOSTS):
            return await self.denied(scope, receive, send)
        secret = token_of(headers, scope["query_string"])
        if secret is not None:
            address = (scope.get("client") or ("",))[0]
            scope = {**scope, **await self._judged(address, secret, time.monotonic())}
        elif b"origin" not in headers:
            scope = {**scope, "user": AnonymousUser()}
        return await self.app(scope, receive, send)

    async def _judged(self, address: str, secret: str, now: float) -> dict[str, Any]:
        """Return the user of a token, and the refusal if it was not looked up, as items of the scope."""
        if self.guesses.known_wrong(address, secret, now):
            return {"user": AnonymousUser()}
        if self.guesses.too_many(address, secret, now):
            return {"user": AnonymousUser(), "refusal": TOO_MANY}
        user = await database_sync_to_async(ApiToken.user_of)(secret)
        self.guesses.learn(address, secret, user is not None, now)
        return {"user": user or AnonymousUser()}


def same_site(scheme: str, headers: dict[bytes, bytes], allowed: list[str]) -> bool:
    """Return whether a page of this site opens a websocket: scheme, host and port must be equal.

    Examples
    --------
    >>> page = {b"origin": b"http://localhost:8000", b"host": b"localhost:8000"}
    >>> same_site("ws", page, ["localhost"]), same_site("wss", page, ["localhost"]), same_site("ws", page, ["other"])
    (True, False, False)
    """
    host = headers.get(b"host", b"").decode("latin-1")
    own_scheme = "https" if scheme == "wss" else "http"
    try:
        origin = urlsplit(headers[b"origin"].decode("latin-1").lower())
        domain, port = split_domain_port(host)
        here = own_scheme, domain, int(port or PORTS[own_scheme])
        there = origin.scheme, origin.netloc.removesuffix(f":{origin.port}"), origin.port or PORTS.get(origin.scheme)
    except ValueError:  # the port is not a number
        return False
    return here == there and bool(domain) and validate_host(domain, allowed)


def token_of(headers: dict[bytes, bytes], query_string: bytes) -> str | None:
    """Return the token of a request, from its header ``Authorization`` or its query string; None without one.

    Examples
    --------
    >>> token_of({b"authorization": b"Token abc"}, b""), token_of({}, b"token=abc"), token_of({}, b"")
    ('abc', 'abc', None)
    """
    authorization = headers.get(b"authorization", b"")
    if authorization[: len(SCHEME)].lower() == SCHEME:
        return authorization[len(SCHEME) :].strip().decode("latin-1")
    tokens = parse_qs(query_string.decode("latin-1")).get("token")
    return tokens[0] if tokens else None
