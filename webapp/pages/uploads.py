"""Limit the size of requests: refuse a larger one before anything of it is stored."""

import re
import tempfile
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings
from django.utils.translation import gettext

from streaming.language import thousands
from webapp.consumers.asgi import Application, Receive, Scope, Send
from webapp.machine.disk import room, rule_of_reserve

# Paths to which layer files are uploaded. FORM_BYTES allows for the other fields of the form.
UPLOADS = re.compile(r"/layers/?$|/admin/webapp/layer/(add|\d+/change)/$")
FORM_BYTES = 1 << 20
# Django keeps requests here while they arrive. The disk is looked at each time that so many bytes have come.
TEMPORARY = Path(tempfile.gettempdir())
LOOK_BYTES = 4 << 20


class BoundedBody:
    """Wraps an ASGI application and limits the length of request bodies.

    Django writes a whole request to disk before a view sees it, so a view would refuse it too late.

    Parameters
    ----------
    application : ASGI application
        The application that gets the accepted requests.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with status 413 or 507."""
        most = most_bytes(scope["path"])
        told = dict(scope["headers"]).get(b"content-length", b"0")
        size = int(told) if told.isdigit() else 0
        if size > most:
            return await _refuse(send, most, f"{size:,}")
        # Django writes what is large twice: the request, and the file in it.
        if size > LOOK_BYTES and room(TEMPORARY) < 2 * size:
            return await _refuse_for_disk(send)
        body = _Counted(receive, most)
        answer = _Unstarted(send)
        await self.application(scope, body, answer)
        if not answer.started and body.full:
            await _refuse_for_disk(send)
        elif not answer.started and body.left < 0:
            await _refuse(send, most, "more")


def most_bytes(path: str) -> int:
    """Return the most bytes that a request to a path may have."""
    return settings.LAYER_UPLOAD_BYTES + FORM_BYTES if UPLOADS.match(path) else settings.MAX_REQUEST_BYTES


class _Counted:
    """Counts received bytes, and looks at the disk now and then.

    Beyond the limit, or when the disk is full, it reports a disconnect, so that Django deletes what it has stored.
    """

    def __init__(self, receive: Receive, most: int) -> None:
        self.receive, self.left, self.full = receive, most, False
        self._look_at = most - LOOK_BYTES

    async def __call__(self) -> dict[str, Any]:
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < self._look_at:
            self._look_at = self.left - LOOK_BYTES
            self.full = room(TEMPORARY) < 2 * LOOK_BYTES
        if self.left < 0 or self.full:
            return {"type": "http.disconnect"}
        return message


class _Unstarted:
    def __init__(self, send: Send) -> None:
        self.send, self.started = send, False

    async def __call__(self, message: dict[str, Any]) -> None:
        self.started = True
        await self.send(message)


async def _refuse(send: Send, most: int, told: str) -> None:
    words = gettext("a request may have at most %(most)s bytes; got %(told)s") % {"most": thousands(most), "told": told}
    await _answer(send, 413, words)


async def _refuse_for_disk(send: Send) -> None:
    await _answer(send, 507, gettext("%(rule)s; got a large request") % {"rule": rule_of_reserve()})


async def _answer(send: Send, status: int, error: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps({"error": error})})
