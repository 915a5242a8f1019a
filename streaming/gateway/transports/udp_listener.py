"""A feed that arrives as datagrams."""

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.decoders.options import REQUIRED, option
from streaming.gateway.transports.base import OPEN, READ_BYTES, Chunk, LiveTransport, Mark, check_port, parse_options

_WAITING_BYTES = 8 << 20
_KERNEL_BYTES = 4 << 20
# How often losses are reported while nothing arrives.
_LOOK_S = 1.0
# Linux, since 4.12: include/uapi/asm-generic/socket.h and include/uapi/linux/sock_diag.h (SK_MEMINFO_DROPS).
_SO_MEMINFO, _DROPS = 55, 8
_COUNTS = 1 << 32


@dataclass(frozen=True)
class UdpListenerOptions:
    """Options of the transport `udp_listener`; see docs/transports.md."""

    port: int = option(REQUIRED, "0 for any free one", minimum=0)
    host: str = option("127.0.0.1", "the address to listen on; 0.0.0.0 for all")
    documents: bool = option(False, "each datagram is a document of its own instead of lines")

    def __post_init__(self) -> None:
        check_port(self.port, lowest=0)


class UdpListener(LiveTransport):
    """A UDP port that receives datagrams; each datagram is decoded by itself."""

    declared = UdpListenerOptions

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(UdpListenerOptions, definition)
        # If the option is 0, this is the real port once `chunks` has yielded.
        self.port = self.options.port

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield what arrives; see `base.Transport.chunks`."""
        loop = asyncio.get_running_loop()
        address = (self.options.host, self.options.port)
        socket_transport, mailbox = await loop.create_datagram_endpoint(Mailbox, local_addr=address)
        try:
            bound = mailbox.socket = socket_transport.get_extra_info("socket")
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KERNEL_BYTES)
            self.port = bound.getsockname()[1]
            yield OPEN
            take = mailbox.take_document if self.options.documents else mailbox.take_lines
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await mailbox.filled.wait()
                yield take() if mailbox.waiting else mailbox.take_losses()
        finally:
            socket_transport.close()


class Mailbox(asyncio.DatagramProtocol):
    """Keeps datagrams until they are taken, bounded in bytes; counts those dropped here or in the kernel as lost.

    Attributes
    ----------
    socket : socket.socket or None
        The socket whose drops in the kernel are counted.
    """

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.size = 0
        self.socket: socket.socket | None = None
        self._lost = self._dropped = 0
        self.filled = asyncio.Event()

    def datagram_received(self, data: bytes, addr: tuple) -> None:
        """Keep a datagram, or count it as lost if too many bytes wait; called by asyncio."""
        if self.size + len(data) > _WAITING_BYTES:
            self._lost += 1
            return
        self.waiting.append(data)
        self.size += len(data)
        self.filled.set()

    def take_document(self) -> Chunk:
        """Return the oldest datagram as a document of its own."""
        return self._chunk([self._take()], Mark.DOCUMENT_END)

    def take_lines(self) -> Chunk:
        """Return several datagrams in one chunk, which is cheaper to decode; end each with a line feed."""
        lines = []
        size = 0
        while self.waiting and size < READ_BYTES:
            lines.append(self._take())
            size += len(lines[-1])
        return self._chunk([line if line.endswith(b"\n") else line + b"\n" for line in lines], Mark.BYTES)

    def take_losses(self) -> Chunk:
        """Return a chunk without bytes that says how many datagrams were lost."""
        return self._chunk([], Mark.BYTES)

    def _take(self) -> bytes:
        datagram = self.waiting.popleft()
        self.size -= len(datagram)
        return datagram

    def _chunk(self, datagrams: Iterable[bytes], mark: Mark) -> Chunk:
        if not self.waiting:
            self.filled.clear()
        dropped = _kernel_drops(self.socket) if self.socket else 0
        lost = self._lost + (dropped - self._dropped) % _COUNTS
        self._lost, self._dropped = 0, dropped
        return Chunk(payload=b"".join(datagrams), mark=mark, lost=lost)


def _kernel_drops(bound: socket.socket) -> int:
    """Return how many datagrams the kernel has dropped at a socket, modulo 2**32; 0 if it does not say."""
    try:
        return struct.unpack("=9I", bound.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 36))[_DROPS]
    except (OSError, struct.error):
        return 0
