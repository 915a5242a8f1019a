"""A short way for the frames of a connection that is open."""

from webapp.consumers.asgi import Application, Receive, Scope, Send


class Direct:
    """ASGI middleware that keeps the server's own function to send a message as ``scope["send"]``.

    Sessions and login change what is sent while a connection opens. A frame passes them unchanged, but each of them
    takes as long as it takes to write the frame. So the connection sends its frames the short way.
    """

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a connection on."""
        return await self.app({**scope, "send": send}, receive, send)
