"""A feed that another program writes into a named pipe."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.gateway.transports.base import OPEN, READ_BYTES, Chunk, Mark, TransportError, check, parse_options


@dataclass(frozen=True)
class PipeOptions:
    """Options of the transport `pipe`; see docs/transports.md."""

    path: str
    live: bool = True

    def __post_init__(self) -> None:
        check(bool(self.path), f"path must name a pipe; got {self.path!r}")


class Pipe:
    """A named pipe, opened again whenever its last writer closes it."""

    replay = None

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(PipeOptions, definition)
        self.live = self.options.live

    async def chunks(self) -> AsyncIterator[Chunk]:
        """Yield what the writers write; see `base.Transport.chunks`."""
        while True:
            reader, pipe = await open_pipe(self.options.path)
            try:
                yield OPEN
                while payload := await reader.read(READ_BYTES):
                    yield Chunk(payload=payload)
            finally:
                pipe.close()
            yield Chunk(mark=Mark.DOCUMENT_END)


async def open_pipe(path: str) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Open a named pipe without waiting for a writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TransportError(f"path must name a pipe (made by mkfifo); got {path!r}")
    reader = asyncio.StreamReader(limit=READ_BYTES)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader, pipe
