"""Notifications in browsers by Web Push, also while no page of Lookout is open.

References
----------
RFC 8030 (Web Push), RFC 8291 (encryption), RFC 8292 (VAPID).
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext

from streaming.decoders.options import REQUIRED
from streaming.errors import InvalidOptions
from webapp.delivery.channels.base import ChannelBackend, ChannelOptions, Message, NotDelivered, post, secret
from webapp.delivery.channels.webhook import check_url
from webapp.machine.secret import kept_secret

try:
    from py_vapid import Vapid02, VapidException
    from py_vapid.utils import b64urlencode
    from pywebpush import WebPusher, WebPushException
except ImportError:  # the extra `push` is not installed
    WebPusher = None

# The push service keeps a message so long for a browser that is away.
_LIFE_S = 86_400
# Every user may subscribe, so endpoints must be of the services of Chromium, Firefox, Safari and Edge, or of a host
# that the operator names.
_SERVICES = ("fcm.googleapis.com", "push.services.mozilla.com", "push.apple.com", "notify.windows.com")
# Push services take at most 4,096 bytes, encrypted (RFC 8030 7.2).
_TEXT = 900


@dataclass(frozen=True)
class PushOptions(ChannelOptions):
    """Options of the channel `push`; see docs/delivery.md."""

    subscription: str = secret(REQUIRED, "the browser's subscription, as JSON; the page *Notifications* makes it")


class PushChannel(ChannelBackend):
    """Notifications in a browser."""

    options_class = PushOptions

    def check(self) -> None:
        """Refuse a subscription that is not one, and a push service that is not public."""
        if WebPusher is None:
            raise InvalidOptions('kind must be one that is installed; got push: pip install "pywebpush"')
        self._pusher()
        endpoint = self._subscription()["endpoint"]
        check_url(self.access, gettext("the endpoint of the subscription"), endpoint)
        host = (urlsplit(endpoint).hostname or "").lower()
        known = any(host == service or host.endswith(f".{service}") for service in _SERVICES)
        if not known and host not in self.access.hosts:
            raise InvalidOptions(
                "the endpoint must be of a known push service, or allowed by %(setting)s; got %(host)s",
                setting=self.access.setting,
                host=repr(host),
            )

    async def send(self, message: Message, session: Any) -> int:
        """Encrypt the message for the browser, and give it to its push service; see `base.ChannelBackend.send`."""
        endpoint = self._subscription()["endpoint"]
        place = urlsplit(endpoint)
        claims = {"aud": f"{place.scheme}://{place.netloc}", "sub": _contact()}
        headers = {
            **vapid().sign(claims),
            "Content-Type": "application/octet-stream",
            "Content-Encoding": "aes128gcm",
            "TTL": str(_LIFE_S),
            "Urgency": "high" if message.urgent else "normal",
            "Topic": message.key,  # RFC 8030 5.4: replaces the same message that still waits for the browser
        }
        notice = {"id": message.key, "title": message.subject[:200], "text": message.text[:_TEXT]}
        notice["url"] = message.document.get("url", "/")
        try:
            return await post(session, endpoint, self._pusher().encode(json.dumps(notice).encode())["body"], headers)
        except NotDelivered as error:
            if error.status == 404:  # RFC 8030 7.3: the subscription has ended
                error.final = True
            raise

    def _subscription(self) -> dict[str, Any]:
        try:
            told = json.loads(self.options.subscription)
        except ValueError:
            told = None
        if not isinstance(told, dict) or not isinstance(told.get("endpoint"), str) or not told.get("keys"):
            raise InvalidOptions("subscription must be a JSON object with endpoint and keys, as a browser makes it")
        return told

    def _pusher(self) -> "WebPusher":
        try:
            return WebPusher(self._subscription())
        except (WebPushException, ValueError, TypeError, AttributeError) as error:
            raise InvalidOptions("subscription must have the keys p256dh and auth; %(error)s", error=error) from None


@cache
def vapid() -> "Vapid02":
    """Return the key that signs for this Lookout; it is made once, and kept in the state folder.

    Raises
    ------
    InvalidOptions
        If the file of the key holds none.
    """
    try:
        return Vapid02.from_pem(kept_secret(settings.HOME / "vapid_key.pem", _new_key).encode())
    except (VapidException, ValueError) as error:
        raise InvalidOptions(
            "vapid_key.pem in the state folder must be a private key; %(error)s", error=error
        ) from None


def public_key() -> str:
    """Return the public key that browsers subscribe with, in base64url."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return b64urlencode(vapid().public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def _new_key() -> str:
    made = Vapid02()
    made.generate_keys()
    return made.private_pem().decode()


def _contact() -> str:
    """Return how a push service reaches the operator (RFC 8292 2.1)."""
    return f"mailto:{settings.MAIL_FROM}"
