"""A receiver that takes JSON by HTTP."""

import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from streaming.decoders.options import REQUIRED, option
from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from streaming.gateway.http_session import is_http
from webapp.delivery.channels.base import ChannelBackend, ChannelOptions, Message, post, secret

SIGNATURE = "Lookout-Signature"


@dataclass(frozen=True)
class WebhookOptions(ChannelOptions):
    """Options of the channel `webhook`; see docs/delivery.md."""

    url: str = option(REQUIRED, "an address that begins with http:// or https://")
    signing_key: str = secret("", "signs each request, so that the receiver knows who sent it; empty: no signature")
    token: str = secret("", "sent as `Authorization: Bearer ...`; empty: none")


class WebhookChannel(ChannelBackend):
    """JSON by HTTP POST, signed, with an idempotency key."""

    options_class = WebhookOptions

    def check(self) -> None:
        """Refuse an address that is not public, as far as is known without the DNS."""
        check_url(self.access, "url", self.options.url)

    async def send(self, message: Message, session: Any) -> int:
        """Post the document; see `base.ChannelBackend.send`."""
        body = message.body
        headers = {"Content-Type": "application/json", "User-Agent": "Lookout", "Idempotency-Key": message.key}
        if self.options.token:
            headers["Authorization"] = f"Bearer {self.options.token}"
        if self.options.signing_key:
            headers[SIGNATURE] = signature(self.options.signing_key, body, int(time.time()))
        return await post(session, self.options.url, body, headers)


def signature(key: str, body: bytes, at_s: int) -> str:
    """Return the value of the header that signs a body.

    Parameters
    ----------
    key : str
        The secret that sender and receiver share.
    body : bytes
    at_s : int
        The time of sending in Unix seconds, which is signed, too; a receiver refuses old ones.

    References
    ----------
    RFC 2104, HMAC; with SHA-256, in hex.

    Examples
    --------
    >>> signature("key", b"{}", 7)[:12]
    't=7,v1=77bc8'
    """
    mac = hmac.new(key.encode(), f"{at_s}.".encode() + body, hashlib.sha256)
    return f"t={at_s},v1={mac.hexdigest()}"


def check_url(access: FeedAccess, name: str, url: str) -> None:
    """Raise InvalidOptions unless a text is an address that may be reached; the address itself may be a secret."""
    if not is_http(url):
        raise InvalidOptions(
            "%(name)s must begin with http:// or https:// and name a host; got %(url)s…",
            name=name,
            url=repr(url[:12]),
        )
    access.check_host(urlsplit(url).hostname or "")
