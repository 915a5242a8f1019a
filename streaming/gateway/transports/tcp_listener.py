"""A feed whose senders connect to the gateway."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from streaming.decoders.options import REQUIRED, option
from streaming.gateway.transports.base import (
    OPEN,
    READ_BYTES,
    Chunk,
    LiveTransport,
    Mark,
    check,
    check_port,
    parse_options,
)

logger = logging.getLogger(__name__)

# When this many bytes of all clients together wait to be taken, the gateway receives no more.
WAITING_BYTES = 4 << 20


@dataclass(frozen=True)
class TcpListenerOptions:
    """Options of the transport `tcp_listener`; see docs/transports.md."""

    port: int = option(REQUIRED, "0 for any free one", minimum=0)
    host: str = option("127.0.0.1", "the address to listen on; 0.0.0.0 for all")
    clients: int = option(64, "those beyond are turned away", minimum=1)
    idle_s: float = option(300.0, "a client that is silent for longer is disconnected; 0 for any", minimum=0)

    def __post_init__(self) -> None:
        check_port(self.port, lowest=0)
        check(self.clients >= 1, "clients must be at least 1; got %(clients)s", clients=repr(self.clients))
        check(self.idle_s >= 0, "idle_s must not be negative; got %(idle_s)s", idle_s=repr(self.idle_s))


class TcpListener(LiveTransport):
    """A TCP port to which clients connect and send; each client is a source of its own."""

    declared = TcpListenerOptions

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(TcpListenerOptions, definition)
        # If the option is 0, this is the real port once `chunks` has yielded.
        self.port = self.options.port

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield what the clients send; see `base.Transport.chunks`."""
        inbox = ReceivedBytes(self.options)
        loop = asyncio.get_running_loop()
        # Serving starts inside `try`: if it were cancelled while starting here, asyncio would leave the port bound.
        server = await loop.create_server(
            lambda: Client(inbox), self.options.host, self.options.port, start_serving=False
        )
        try:
            await server.start_serving()
            self.port = server.sockets[0].getsockname()[1]
            yield OPEN
            while True:
                await inbox.filled.wait()
                yield inbox.take()
        finally:
            server.close()
            for client in tuple(inbox.clients):
                client.transport.close()


class ReceivedBytes:
    """Keeps what the clients of one port sent until it is taken, in order of arrival; bounded for all together.

    Parameters
    ----------
    options : TcpListenerOptions

    Attributes
    ----------
    clients : set of Client
    buffer : bytearray
        The buffer into which all clients receive, one after the other.
    filled : asyncio.Event
        Set while chunks wait.
    size : int
        Number of bytes that wait.
    """

    def __init__(self, options: TcpListenerOptions) -> None:
        self.options = options
        self.clients: set[Client] = set()
        self.buffer = bytearray(READ_BYTES)
        self.filled = asyncio.Event()
        self.size = 0
        self._waiting: deque[Chunk] = deque()
        self._paused = False

    def put(self, chunk: Chunk) -> None:
        """Keep what a client sent; once `WAITING_BYTES` wait, pause all clients."""
        self._waiting.append(chunk)
        self.size += len(chunk.payload)
        self.filled.set()
        if self.size >= WAITING_BYTES and not self._paused:
            self._paused = True
            for client in self.clients:
                client.pause()

    def take(self) -> Chunk:
        """Return the oldest chunk; once less than half of `WAITING_BYTES` waits, resume the clients."""
        chunk = self._waiting.popleft()
        self.size -= len(chunk.payload)
        if not self._waiting:
            self.filled.clear()
        if self._paused and self.size < WAITING_BYTES // 2:
            self._paused = False
            for client in self.clients:
                client.resume()
        return chunk

    def admit(self, client: "Client") -> bool:
        """Admit a client and return True; return False if there are too many."""
        if len(self.clients) >= self.options.clients:
            logger.warning("port %d turns away a client beyond %d", self.options.port, self.options.clients)
            return False
        self.clients.add(client)
        if self._paused:
            client.pause()
        return True


class Client(asyncio.BufferedProtocol):
    """One client's connection; it receives into the buffer that all share, so it holds no bytes itself."""

    def __init__(self, inbox: ReceivedBytes) -> None:
        self._inbox, self._idle_s = inbox, inbox.options.idle_s
        self._loop = asyncio.get_running_loop()
        self._heard_s = self._loop.time()
        self._idle: asyncio.TimerHandle | None = None
        self._receiving = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, or close its connection; called by asyncio."""
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        # The peer is unknown if the client has already left.
        self.source = f"{peer[0]}:{peer[1]}" if peer else f"client {id(self)}"
        if not self._inbox.admit(self):
            self.transport.close()
        elif self._idle_s:
            self._watch()

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return the buffer to receive into; called by asyncio."""
        return self._inbox.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Keep the bytes that were received; called by asyncio."""
        self._heard_s = self._loop.time()
        if self in self._inbox.clients:
            self._inbox.put(Chunk(self.source, bytes(self._inbox.buffer[:nbytes])))

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the client has gone, whatever the reason; called by asyncio."""
        if self._idle:
            self._idle.cancel()
        if self in self._inbox.clients:
            self._inbox.clients.discard(self)
            self._inbox.put(Chunk(self.source, mark=Mark.SOURCE_GONE))

    def pause(self) -> None:
        """Receive nothing for now."""
        self._receiving = False
        self.transport.pause_reading()

    def resume(self) -> None:
        """Receive again; the silence during the pause does not count against the client."""
        self._receiving, self._heard_s = True, self._loop.time()
        self.transport.resume_reading()

    def _watch(self) -> None:
        """Disconnect the client once it has been silent for too long."""
        left_s = self._heard_s + self._idle_s - self._loop.time() if self._receiving else self._idle_s
        if left_s > 0:
            self._idle = self._loop.call_later(left_s, self._watch)
        else:
            logger.warning("port %d leaves a client that was silent for %g s", self._inbox.options.port, self._idle_s)
            self.transport.close()
