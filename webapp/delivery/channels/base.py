"""What a channel is: it sends one message, or raises `NotDelivered`."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from django.conf import settings
from django.utils.translation import gettext

from streaming.decoders.options import Options, option
from streaming.errors import InvalidOptions, LookoutError
from streaming.gateway.access import FeedAccess

SECRET = "secret"
HIDDEN = "…"
# So much of a receiver's response is kept in the log of attempts.
_WORDS = 200


class NotDelivered(LookoutError):
    """A message was not accepted.

    Parameters
    ----------
    text : str
        Why, with placeholders for `values`.
    status : int, optional
        The receiver's status code.
    final : bool
        Whether the receiver will never accept it, so that no further attempt is made.
    retry_after_s : float
        The receiver asked to wait for so many seconds.
    """

    def __init__(
        self,
        text: str,
        /,
        status: int | None = None,
        final: bool = False,
        retry_after_s: float = 0.0,
        **values: Any,
    ) -> None:
        super().__init__(text, **values)
        self.status, self.final, self.retry_after_s = status, final, retry_after_s


def secret(default: Any, doc: str) -> Any:
    """Declare an option that is kept secret: forms never show it, and it is cut out of logs."""
    return option(default, doc, shape=SECRET)


@dataclass(frozen=True)
class ChannelOptions(Options):
    """Base of every channel's options; its fields are declared by `option` and `secret`."""

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        """Return the options that a JSON object states; raise InvalidOptions with the broken rule and the value."""
        names = [declared.name for declared in fields(cls)]
        unknown = [key for key in document if key not in names]
        if unknown:
            raise InvalidOptions(
                "options of this channel are %(names)s; got %(unknown)s",
                names=", ".join(names) or gettext("none"),
                unknown=repr(unknown[0]),
            )
        missing = [told.name for told in cls.describe() if told.required and document.get(told.name) in (None, "", [])]
        if missing:
            raise InvalidOptions("%(missing)s must be given; it is empty", missing=missing[0])
        return cls(**document)

    @classmethod
    def secret_names(cls) -> list[str]:
        """Return the names of the secret options, in order."""
        return [declared.name for declared in fields(cls) if declared.metadata.get("shape") == SECRET]


@dataclass(frozen=True)
class Message:
    """A message for a person or a program.

    Parameters
    ----------
    key : str
        The idempotency key: the same for every attempt.
    document : mapping
        The JSON document for programs; see docs/delivery.md.
    subject, text : str
        The words for people: one line, and several.
    urgent : bool
        Whether something is critical.
    """

    key: str
    document: Mapping[str, Any]
    subject: str
    text: str
    urgent: bool = False

    @property
    def body(self) -> bytes:
        """The JSON document with its key, the same bytes for every attempt."""
        return json.dumps({"id": self.key, **self.document}, ensure_ascii=False, separators=(",", ":")).encode()


class ChannelBackend:
    """Base of all channels.

    Attributes
    ----------
    options_class : type
        The options that this kind declares.
    access : FeedAccess
        Which hosts may be reached: public ones, and those of ``LOOKOUT_DELIVERY_HOSTS``.
    """

    options_class: ClassVar[type[ChannelOptions]] = ChannelOptions

    def __init__(self, options: ChannelOptions) -> None:
        self.options: Any = options
        self.access: FeedAccess = settings.DELIVERY_ACCESS
        self.check()

    def check(self) -> None:
        """Raise InvalidOptions if the options break a rule, or ask for a host out of reach. By default, accept all."""

    async def send(self, message: Message, session: Any) -> int | None:
        """Send a message; return the receiver's status code, if there is one.

        The attempt is cancelled after `DeliveryPace.attempt_s` seconds. Work that blocks belongs into
        `asyncio.to_thread`, with a timeout of its own.

        Parameters
        ----------
        message : Message
        session : aiohttp.ClientSession
            For channels that use HTTP. It refuses hosts that are out of reach.

        Raises
        ------
        NotDelivered
            If the receiver did not accept it. Any other error counts as a failed attempt, too.
        """
        raise NotImplementedError

    def without_secrets(self, text: str) -> str:
        """Return a text with this channel's secrets cut out."""
        for name in self.options.secret_names():
            value = getattr(self.options, name)
            if isinstance(value, str) and len(value) > 3:
                text = text.replace(value, HIDDEN)
        return text


async def post(session: Any, url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Send a body by HTTP; return the status code.

    A redirect is not followed: the receiver that was checked is the one that gets the message.

    Raises
    ------
    NotDelivered
        If the status is not 2xx. 410 (Gone) is final.
    """
    async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
        if 200 <= response.status < 300:
            return response.status
        words = " ".join((await response.content.read(_WORDS)).decode(errors="replace").split())
        told = f"{response.status} {response.reason or ''}".rstrip()
        if "Location" in response.headers:
            redirect = gettext("%(answer)s to %(place)s, which is not followed")
            told = redirect % {"answer": told, "place": response.headers["Location"]}
        raise NotDelivered(
            "the receiver must answer 2xx; got %(answer)s",
            answer=f"{told}: {words}" if words else told,
            status=response.status,
            final=response.status == 410,
            retry_after_s=_seconds(response.headers.get("Retry-After", "")),
        )


def connect(access: FeedAccess, host: str, port: int, timeout_s: float) -> socket.socket:
    """Return a connection to the first address of a host that is in reach and answers.

    Raises
    ------
    OSError
        If none answers.
    NotDelivered
        If all are out of reach.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [
        address for address in dict.fromkeys(str(place[0]) for *_, place in found) if access.reaches(host, address)
    ]
    if not addresses:
        raise NotDelivered.of(access.unreachable(host))
    for address in addresses[:-1]:
        try:
            return socket.create_connection((address, port), timeout_s)
        except OSError:
            continue
    return socket.create_connection((addresses[-1], port), timeout_s)


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0


def shortened(message: Message, characters: int) -> Message:
    """Return a message whose text has at most so many characters."""
    text = message.text
    return message if len(text) <= characters else replace(message, text=f"{text[: characters - 1]}…")
