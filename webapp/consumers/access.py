"""Who may open the websocket: browsers of this site with a login, and programs with a token."""

from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.security.websocket import AllowedHostsOriginValidator
from django.contrib.auth.models import AnonymousUser

from webapp.models import ApiToken

SCHEME = b"token "


class Access:
    """ASGI middleware that settles ``scope["user"]``.

    A browser always says from which origin it comes, and that must be this site; what says nothing is a program, whose
    cookies do not count: it needs a token.
    """

    def __init__(self, app) -> None:
        self.app = app
        self.same_site = AllowedHostsOriginValidator(app)

    async def __call__(self, scope, receive, send):
        """Pass a connection on."""
        headers = dict(scope["headers"])
        secret = token_of(headers, scope["query_string"])
        from_browser = b"origin" in headers
        if secret is not None:
            scope = {**scope, "user": await database_sync_to_async(ApiToken.user_of)(secret) or AnonymousUser()}
        elif not from_browser:
            scope = {**scope, "user": AnonymousUser()}
        return await (self.same_site if from_browser else self.app)(scope, receive, send)


def token_of(headers: dict[bytes, bytes], query_string: bytes) -> str | None:
    """Return the token that a request carries, None where it carries none.

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
