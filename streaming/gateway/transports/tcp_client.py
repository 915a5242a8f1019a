"""A feed that is read by connecting to its server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.gateway.transports.base import (
    OPEN,
    READ_BYTES,
    Chunk,
    Live,
    Mark,
    TransportError,
    check,
    check_port,
    parse_options,
)

_CONNECT_S = 10.0


@dataclass(frozen=True)
class TcpClientOptions:
    """Options of the transport `tcp_client`; see docs/transports.md."""

    host: str
    port: int
    idle_s: float = 300.0

    def __post_init__(self) -> None:
        check(bool(self.host), f"host must be a name or an address; got {self.host!r}")
        check_port(self.port)
        check(self.idle_s >= 0, f"idle_s must not be negative; got {self.idle_s!r}")


class TcpClient(Live):
    """One connection; its end is an error, so that the stream connects again."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(TcpClientOptions, definition)

    async def chunks(self) -> AsyncIterator[Chunk]:
        """Yield what the server sends; see `base.Transport.chunks`."""
        host, port = self.options.host, self.options.port
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(host, port)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            yield OPEN
            while payload := await self._read(reader):
                yield Chunk(payload=payload)
            yield Chunk(mark=Mark.DOCUMENT_END)
        finally:
            writer.close()
        raise TransportError(f"a live feed must not end; {host}:{port} closed the connection")

    async def _read(self, reader):
        try:
            async with asyncio.timeout(self.options.idle_s or None):
                return await reader.read(READ_BYTES)
        except TimeoutError:
            raise TransportError(f"a feed must not be silent for {self.options.idle_s:g} s") from None
