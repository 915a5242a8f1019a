"""A feed that the gateway reads by connecting to its server."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.decoders.options import REQUIRED, option
from streaming.gateway.transports.base import (
    OPEN,
    READ_BYTES,
    Chunk,
    LiveTransport,
    Mark,
    Restricted,
    TransportError,
    check,
    check_port,
    parse_options,
)

_CONNECT_S = 10.0


@dataclass(frozen=True)
class TcpClientOptions:
    """Options of the transport `tcp_client`; see docs/transports.md."""

    host: str = option(REQUIRED, "name or address")
    port: int = option(REQUIRED, "1 to 65535", minimum=1)
    idle_s: float = option(300.0, "longest silence before the connection is made anew; 0 for any", minimum=0)

    def __post_init__(self) -> None:
        check(bool(self.host), "host must be a name or an address; got %(host)s", host=repr(self.host))
        check_port(self.port)
        check(self.idle_s >= 0, "idle_s must not be negative; got %(idle_s)s", idle_s=repr(self.idle_s))


class TcpClient(Restricted, LiveTransport):
    """A connection to a TCP server that sends; Lookout connects again whenever it ends."""

    declared = TcpClientOptions

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(TcpClientOptions, definition)

    def check_access(self) -> None:
        """Refuse a host for special use, as far as is known without the DNS; see `base.Restricted`."""
        self.access.check_host(self.options.host, local=True)

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield what the server sends; see `base.Transport.chunks`."""
        host, port = self.options.host, self.options.port
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await self._connect(host, port)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            yield OPEN
            while payload := await self._read(reader):
                yield Chunk(payload=payload)
            yield Chunk(mark=Mark.DOCUMENT_END)
        finally:
            writer.close()
        raise TransportError("a live feed must not end; %(host)s:%(port)s closed the connection", host=host, port=port)

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first address in reach that answers.

        This machine and its network are in reach, because receivers stand there. That is safe: this client sends
        nothing, so it can ask a service there for nothing.
        """
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = dict.fromkeys(str(address[0]) for *_, address in found)
        allowed = [address for address in addresses if self.access.reaches(host, address, local=True)]
        if not allowed:
            raise TransportError.of(self.access.unreachable(host, local=True))
        for address in allowed[:-1]:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(address, port)
        return await asyncio.open_connection(allowed[-1], port)

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(self.options.idle_s or None):
                return await reader.read(READ_BYTES)
        except TimeoutError:
            raise TransportError("a feed must not be silent for %(idle_s)g s", idle_s=self.options.idle_s) from None
