"""Who acts now, and from where: set where a request, a message or a command begins, read where a change is recorded."""

import getpass
import ipaddress
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from webapp.machine.logs import program_of
from webapp.models import AuditEntry
from webapp.rights.access import Asker

PROGRAMS = ("web", "worker", "beat", "live")


@dataclass(frozen=True)
class Origin:
    """Where a change comes from.

    Parameters
    ----------
    way : str
        One of `AuditEntry.WAYS`.
    user : User, optional
    address : str, optional
        IP address of the client.
    """

    way: str
    user: Asker | None = None
    address: str | None = None

    @property
    def name(self) -> str:
        """The name of who acts: a user, the user of the server for a command, or empty for Lookout itself."""
        if self.user is not None:
            return self.user.get_username()
        return _server_user() if self.way == AuditEntry.COMMAND else ""


_NOW: ContextVar[Origin | None] = ContextVar("origin", default=None)


@contextmanager
def acting(user: Asker | None, way: str, address: str | None = None) -> Iterator[None]:
    """Say who acts in a block, also in the threads that it calls by `sync_to_async`."""
    token = _NOW.set(Origin(way, user, _ip(address)))
    try:
        yield
    finally:
        _NOW.reset(token)


def origin() -> Origin:
    """Return who acts now. Without a request, it is a command or Lookout itself."""
    known = _NOW.get()
    if known is not None:
        return known
    itself = program_of(sys.argv) in PROGRAMS
    return Origin(AuditEntry.LOOKOUT if itself else AuditEntry.COMMAND)


class AuditOrigin:
    """Middleware that says who acts in a request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a request. Its user is looked up only if something is recorded."""
        way = AuditEntry.ADMIN if request.path.startswith("/admin/") else AuditEntry.HTTP
        with acting(request.user, way, request.META.get("REMOTE_ADDR")):
            return self.get_response(request)


def _ip(address: str | None) -> str | None:
    try:
        return str(ipaddress.ip_address(address or ""))
    except ValueError:  # a socket of this machine has no address
        return None


def _server_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return ""
