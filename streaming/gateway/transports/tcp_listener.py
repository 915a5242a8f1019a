"""A feed that its senders bring by connecting to the gateway."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.gateway.transports.base import OPEN, READ_BYTES, Chunk, Live, Mark, check, check_port, parse_options

logger = logging.getLogger(__name__)

_CHUNKS_WAITING = 16


@dataclass(frozen=True)
class TcpListenerOptions:
    """Options of the transport `tcp_listener`; see docs/transports.md."""

    port: int
    host: str = "127.0.0.1"
    clients: int = 64

    def __post_init__(self) -> None:
        check_port(self.port, lowest=0)
        check(self.clients >= 1, f"clients must be at least 1; got {self.clients!r}")


class TcpListener(Live):
    """A server; every client is a source of its own. `port` is known once `chunks` has yielded."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(TcpListenerOptions, definition)
        self.port = self.options.port

    async def chunks(self) -> AsyncIterator[Chunk]:
        """Yield what the clients send; see `base.Transport.chunks`."""
        arrived: asyncio.Queue[Chunk] = asyncio.Queue(_CHUNKS_WAITING)
        clients: set[asyncio.Task] = set()

        async def serve(reader, writer):
            task = asyncio.current_task()
            clients.add(task)
            try:
                if len(clients) > self.options.clients:
                    logger.warning("port %d turns away a client beyond %d", self.port, self.options.clients)
                else:
                    await _receive(reader, writer.get_extra_info("peername"), arrived)
            except asyncio.CancelledError:
                pass  # the listener closes; the callback of asyncio's streams would report this as an error
            finally:
                clients.discard(task)
                writer.close()

        # Not serving yet: cancelled while it begins to, asyncio would leave the port bound.
        server = await asyncio.start_server(serve, self.options.host, self.options.port, start_serving=False)
        try:
            await server.start_serving()
            self.port = server.sockets[0].getsockname()[1]
            yield OPEN
            while True:
                yield await arrived.get()
        finally:
            server.close()
            for client in tuple(clients):
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)


async def _receive(reader, peer, arrived):
    source = f"{peer[0]}:{peer[1]}"
    try:
        while payload := await reader.read(READ_BYTES):
            await arrived.put(Chunk(source, payload))
    except ConnectionError:
        pass  # a client that breaks off has gone, like one that leaves in order
    await arrived.put(Chunk(source, mark=Mark.SOURCE_GONE))
