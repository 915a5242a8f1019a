"""The largest request that a page may send: more is refused before anything is kept of it."""

import re

import orjson
from django.conf import settings

# Where files of layers are uploaded to; a form has fields beside the file.
UPLOADS = re.compile(r"/layers/?$|/admin/webapp/layer/(add|\d+/change)/$")
FORM_BYTES = 1 << 20


class BoundedBody:
    """An ASGI application behind a bound on the length of what is sent to it.

    Django keeps the whole of a request on the disk before it looks at it, so that a view is too late to refuse it.

    Parameters
    ----------
    application : ASGI application
    """

    def __init__(self, application) -> None:
        self.application = application

    async def __call__(self, scope, receive, send):
        """Answer a request, or refuse it."""
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
    """Return the bytes that a request to a path may have."""
    return settings.LAYER_UPLOAD_BYTES + FORM_BYTES if UPLOADS.match(path) else settings.MAX_REQUEST_BYTES


class _Counted:
    """What a client sends; beyond the bound it seems to have gone, so that Django removes what it has kept."""

    def __init__(self, receive, most):
        self.receive, self.left = receive, most

    async def __call__(self):
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            return {"type": "http.disconnect"}
        return message


class _Unstarted:
    def __init__(self, send):
        self.send, self.started = send, False

    async def __call__(self, message):
        self.started = True
        await self.send(message)


async def _refuse(send, most, told):
    body = orjson.dumps({"error": f"a request may have at most {most:,} bytes; got {told}"})
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
