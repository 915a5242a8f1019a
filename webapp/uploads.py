"""Limit the size of requests: refuse a larger one before anything of it is stored."""

import re
from typing import Any

import orjson
from django.conf import settings
from django.utils.translation import gettext

from streaming.language import thousands
from webapp.consumers.asgi import Application, Receive, Scope, Send

# Paths to which layer files are uploaded. FORM_BYTES allows for the other fields of the form.
UPLOADS = re.compile(r"/layers/?$|/admin/webapp/layer/(add|\d+/change)/$")
FORM_BYTES = 1 << 20


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
        """Pass a request on, or refuse it with status 413."""
        most = most_bytes(scope["path"])
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if told.isdigit() and int(told) > most:
            return await _refuse(send, most, f"{int(told):,}")
        body = _Counted(receive, most)
        answer = _Unstarted(send)
        await self.application(scope, body, answer)
        if body.left < 0 and not answer.started:
            await _refuse(send, most, "more")


def most_bytes(path: str) -> int:
    """Return the most bytes that a request to a path may have."""
    return settings.LAYER_UPLOAD_BYTES + FORM_BYTES if UPLOADS.match(path) else settings.MAX_REQUEST_BYTES


class _Counted:
    """Counts received bytes. Beyond the limit it reports a disconnect, so that Django deletes what it has stored."""

    def __init__(self, receive: Receive, most: int) -> None:
        self.receive, self.left = receive, most

    async def __call__(self) -> dict[str, Any]:
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            return {"type": "http.disconnect"}
        return message


class _Unstarted:
    def __init__(self, send: Send) -> None:
        self.send, self.started = send, False

    async def __call__(self, message: dict[str, Any]) -> None:
        self.started = True
        await self.send(message)


async def _refuse(send: Send, most: int, told: str) -> None:
    body = orjson.dumps(
        {
            "error": gettext("a request may have at most %(most)s bytes; got %(told)s")
            % {"most": thousands(most), "told": told}
        }
    )
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
