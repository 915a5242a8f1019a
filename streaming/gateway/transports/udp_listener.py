"""A feed that arrives as datagrams."""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.gateway.transports.base import OPEN, READ_BYTES, Chunk, Live, Mark, check_port, parse_options

_WAITING_BYTES = 8 << 20
_KERNEL_BYTES = 4 << 20


@dataclass(frozen=True)
class UdpListenerOptions:
    """Options of the transport `udp_listener`; see docs/transports.md."""

    port: int
    host: str = "127.0.0.1"
    documents: bool = False

    def __post_init__(self) -> None:
        check_port(self.port, lowest=0)


class UdpListener(Live):
    """A socket; what a datagram leaves unfinished never meets the next. `port` is known once `chunks` has yielded."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(UdpListenerOptions, definition)
        self.port = self.options.port

    async def chunks(self) -> AsyncIterator[Chunk]:
        """Yield what arrives; see `base.Transport.chunks`."""
        loop = asyncio.get_running_loop()
        address = (self.options.host, self.options.port)
        socket_transport, mailbox = await loop.create_datagram_endpoint(Mailbox, local_addr=address)
        try:
            bound = socket_transport.get_extra_info("socket")
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KERNEL_BYTES)
            self.port = bound.getsockname()[1]
            yield OPEN
            take = mailbox.take_document if self.options.documents else mailbox.take_lines
            while True:
                await mailbox.filled.wait()
                yield take()
        finally:
            socket_transport.close()


class Mailbox(asyncio.DatagramProtocol):
    """Datagrams that wait to be taken, bounded in bytes; what comes beyond is counted as overflow."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.size = 0
        self.overflow = 0
        self.filled = asyncio.Event()

    def datagram_received(self, data: bytes, addr: tuple) -> None:
        """Keep a datagram; called by asyncio."""
        if self.size + len(data) > _WAITING_BYTES:
            self.overflow += 1
            return
        self.waiting.append(data)
        self.size += len(data)
        self.filled.set()

    def take_document(self) -> Chunk:
        """Return the oldest datagram as a document of its own."""
        return self._chunk([self._take()], Mark.DOCUMENT_END)

    def take_lines(self) -> Chunk:
        """Return several datagrams at once, each completed to whole lines: a decoder is cheaper by the batch."""
        lines = []
        size = 0
        while self.waiting and size < READ_BYTES:
            lines.append(self._take())
            size += len(lines[-1])
        return self._chunk([line if line.endswith(b"\n") else line + b"\n" for line in lines], Mark.BYTES)

    def _take(self):
        datagram = self.waiting.popleft()
        self.size -= len(datagram)
        return datagram

    def _chunk(self, datagrams, mark):
        if not self.waiting:
            self.filled.clear()
        overflow, self.overflow = self.overflow, 0
        return Chunk(payload=b"".join(datagrams), mark=mark, overflow=overflow)
