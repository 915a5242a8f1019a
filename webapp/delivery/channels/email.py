"""E-mail by SMTP."""

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings

from streaming.decoders.options import REQUIRED, option
from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from webapp.delivery.channels.base import ChannelBackend, ChannelOptions, Message, NotDelivered, connect, secret

SECURITY = ("starttls", "tls", "none")
_SCHEMES = {"smtp": "none", "smtp+tls": "starttls", "smtp+ssl": "tls"}
_PORTS = {"starttls": 587, "tls": 465, "none": 25}


@dataclass(frozen=True)
class EmailOptions(ChannelOptions):
    """Options of the channel `email`; see docs/delivery.md."""

    to: Sequence = option(REQUIRED, "the receivers", shape="names")
    host: str = option("", "the mail server; empty: the one of LOOKOUT_MAIL_URL")
    port: int = option(0, "its port; 0: the usual one", minimum=0)
    security: str = option("starttls", "how the connection is encrypted", choices=SECURITY)
    username: str = option("", "the name to log in with; empty: no login")
    password: str = secret("", "the password to log in with")
    sender: str = option("", "the address that the e-mail comes from; empty: LOOKOUT_MAIL_FROM")


@dataclass(frozen=True)
class MailServer:
    """A mail server; `guarded` says that its address must be in reach of channels."""

    host: str
    port: int
    security: str
    username: str
    password: str
    guarded: bool = True

    @classmethod
    def of_url(cls, url: str) -> "MailServer":
        """Return the operator's server, from an address such as ``smtp+tls://user:password@host:587``.

        Examples
        --------
        >>> server = MailServer.of_url("smtp+tls://ann:a%40b@mail.lan")
        >>> server.host, server.port, server.security, server.username, server.password
        ('mail.lan', 587, 'starttls', 'ann', 'a@b')
        """
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise InvalidOptions("LOOKOUT_MAIL_URL must be like smtp://host, smtp+tls://host or smtp+ssl://host")
        security = _SCHEMES[parts.scheme]
        names = (unquote(parts.username or ""), unquote(parts.password or ""))
        return cls(parts.hostname, parts.port or _PORTS[security], security, *names, guarded=False)


class EmailChannel(ChannelBackend):
    """E-mail by a mail server."""

    options_class = EmailOptions

    def check(self) -> None:
        """Refuse receivers that are no addresses, and a server that is not public."""
        for address in (*self.options.to, *filter(None, [self.options.sender])):
            _check_address(address)
        if self.options.port > 65_535:
            raise InvalidOptions("port must lie in [0, 65535]; got %(port)s", port=self.options.port)
        if self.options.host:
            self.access.check_host(self.options.host)
        elif not settings.MAIL_URL:
            raise InvalidOptions("host must be given, since the operator has set no LOOKOUT_MAIL_URL; it is empty")
        self.server()

    def server(self) -> MailServer:
        """Return the server of this channel, else the operator's."""
        told = self.options
        if not told.host:
            return MailServer.of_url(settings.MAIL_URL)
        return MailServer(told.host, told.port or _PORTS[told.security], told.security, told.username, told.password)

    async def send(self, message: Message, session: Any) -> int:
        """Send an e-mail to all receivers; see `base.ChannelBackend.send`."""
        return await asyncio.to_thread(self._send, message)

    def _send(self, message: Message) -> int:
        server = self.server()
        try:
            with _Client(self.access, server) as client:
                refused = client.send_message(self._letter(message))
        except smtplib.SMTPRecipientsRefused as error:
            raise _refusal(error.recipients) from None
        except smtplib.SMTPResponseException as error:
            status, words = error.smtp_code, _words(error.smtp_error)
            final = status >= 500 and not isinstance(error, smtplib.SMTPAuthenticationError | smtplib.SMTPConnectError)
            raise NotDelivered(
                "the mail server answered %(code)s: %(words)s", status, final, code=status, words=words
            ) from None
        if refused:
            raise _refusal(refused)
        return 250

    def _letter(self, message: Message) -> EmailMessage:
        letter = EmailMessage()
        letter["Subject"] = " ".join(message.subject.split())
        letter["From"] = self.options.sender or settings.MAIL_FROM
        letter["To"] = ", ".join(self.options.to)
        letter["Date"] = format_datetime(datetime.now(UTC))
        # Mail servers and clients drop a second letter with the same number.
        letter["Message-ID"] = f"<{message.key}@lookout>"
        letter["Auto-Submitted"] = "auto-generated"  # RFC 3834 5: no out-of-office replies
        if message.urgent:
            letter["Importance"] = "high"
        letter.set_content(message.text)
        return letter


class _Client:
    """A connection to a mail server, as a context."""

    def __init__(self, access: FeedAccess, server: MailServer) -> None:
        self._server, timeout_s = server, settings.DELIVERY_PACE.attempt_s
        made = smtplib.SMTP_SSL if server.security == "tls" else smtplib.SMTP

        class GuardedSmtp(made):  # type: ignore[valid-type, misc]  # one of two classes
            def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
                """Connect to an address in reach."""
                if not server.guarded:
                    return super()._get_socket(host, port, timeout)
                plain = connect(access, host, port, timeout)
                return self.context.wrap_socket(plain, server_hostname=host) if made is smtplib.SMTP_SSL else plain

        options = {"context": ssl.create_default_context()} if made is smtplib.SMTP_SSL else {}
        self._client = GuardedSmtp(server.host, server.port, timeout=timeout_s, **options)

    def __enter__(self) -> smtplib.SMTP:
        client = self._client
        try:
            if self._server.security == "starttls":
                client.starttls(context=ssl.create_default_context())
            if self._server.username:
                client.login(self._server.username, self._server.password)
        except BaseException:
            client.close()
            raise
        return client

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._client.quit()
        except (smtplib.SMTPException, OSError):
            pass  # the letter has been accepted
        finally:
            self._client.close()


def _refusal(recipients: Mapping[str, tuple[int, Any]]) -> NotDelivered:
    """Return the error for refused receivers; it is final if all refusals are."""
    words = "; ".join(f"{address}: {status} {_words(told)}" for address, (status, told) in recipients.items())
    statuses = [status for status, _ in recipients.values()]
    return NotDelivered("the mail server refused %(words)s", min(statuses), final=min(statuses) >= 500, words=words)


def _words(told: Any) -> str:
    return " ".join((told.decode(errors="replace") if isinstance(told, bytes) else str(told)).split())[:200]


def _check_address(text: Any) -> None:
    try:
        address = Address(addr_spec=text) if isinstance(text, str) else None
    except (ValueError, IndexError):
        address = None
    if address is None or not address.username or not address.domain or not text.isascii():
        raise InvalidOptions("to and sender must be e-mail addresses; got %(text)s", text=repr(text))
