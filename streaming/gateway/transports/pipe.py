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
        # Held open throughout, so that a writer who comes while the pipe is opened again finds a reader.
        with os.fdopen(open_descriptor(self.options.path), "rb"):
            reader, pipe = await open_reader(self.options.path)
            try:
                while True:
                    yield OPEN
                    while payload := await reader.read(READ_BYTES):
                        yield Chunk(payload=payload)
                    pipe.close()
                    # Before the mark is yielded: its taker may take a while, and the next writer come meanwhile.
                    reader, pipe = await open_reader(self.options.path)
                    yield Chunk(mark=Mark.DOCUMENT_END)
            finally:
                pipe.close()


def open_descriptor(path: str) -> int:
    """Open a named pipe for reading without waiting for a writer; return the file descriptor."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TransportError(f"path must name a pipe (made by mkfifo); got {path!r}")
    return descriptor


async def open_reader(path: str) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Open a named pipe; return what reads it and what closes it."""
    reader = asyncio.StreamReader(limit=READ_BYTES)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(open_descriptor(path), "rb", buffering=0)
    )
    return reader, pipe
