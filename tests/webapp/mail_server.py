"""A mail server on loopback that keeps what it is given."""

from email import message_from_bytes, policy

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from bench.live import PATIENCE_S
from bench.ports import free_port


class Mailbox:
    """A mail server on loopback; a context that ends it."""

    def __init__(self, tls=None, login=None, reply="250 OK"):
        self.letters, self.reply, self.login = [], reply, login
        options = {"tls_context": tls, "require_starttls": True} if tls else {}
        if login:
            options |= {"authenticator": self._authenticated, "auth_required": True}
        self.port = free_port()
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port, ready_timeout=PATIENCE_S, **options)

    def __enter__(self):
        self._controller.start()
        return self

    def __exit__(self, *_):
        self._controller.stop()

    def _authenticated(self, server, session, envelope, mechanism, data):
        right = (data.login.decode(), data.password.decode()) == self.login
        return AuthResult(success=right, handled=right)

    async def handle_RCPT(self, server, session, envelope, address, options):
        if self.reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.reply

    async def handle_DATA(self, server, session, envelope):
        self.letters.append((envelope.rcpt_tos, message_from_bytes(envelope.content, policy=policy.default)))
        return "250 OK"
