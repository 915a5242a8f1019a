"""A feed that another program writes into a named pipe."""

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streaming.decoders.options import REQUIRED, option
from streaming.gateway.transports.base import (
    OPEN,
    READ_BYTES,
    Chunk,
    Mark,
    Restricted,
    TransportError,
    check,
    parse_options,
)


@dataclass(frozen=True)
class PipeOptions:
    """Options of the transport `pipe`; see docs/transports.md."""

    path: str = option(REQUIRED, "the pipe, from the state folder where it is relative, such as feeds/receiver")
    live: bool = option(True, "off: the writer waits while the engine is busy, instead of the feed being conflated")

    def __post_init__(self) -> None:
        check(bool(self.path), "path must name a pipe; got %(path)s", path=repr(self.path))


class Pipe(Restricted):
    """A named pipe (made by mkfifo), opened again after its last writer has closed it."""

    declared = PipeOptions
    replay = None

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(PipeOptions, definition)
        self.live = self.options.live

    def check_access(self) -> None:
        """Refuse a pipe that is not below an allowed folder; see `base.Restricted`."""
        self.access.file(self.options.path)

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield what the writers write; see `base.Transport.chunks`."""
        # One reader stays open throughout, so that a writer who comes while the pipe is opened again finds a reader.
        path = self.allowed_file(self.options.path)
        with os.fdopen(open_descriptor(path), "rb"):
            reader, pipe = await open_reader(path)
            try:
                while True:
                    yield OPEN
                    while payload := await reader.read(READ_BYTES):
                        yield Chunk(payload=payload)
                    pipe.close()
                    # Open before yielding the mark: while the caller deals with it, the next writer may come.
                    reader, pipe = await open_reader(self.allowed_file(self.options.path))
                    yield Chunk(mark=Mark.DOCUMENT_END)
            finally:
                pipe.close()


def open_descriptor(path: Path) -> int:
    """Open a named pipe for reading without waiting for a writer; return the file descriptor.

    Raises
    ------
    TransportError
        If the path does not lead to a pipe.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TransportError("path must name a pipe (made by mkfifo); got %(path)s", path=repr(str(path)))
    return descriptor


async def open_reader(path: Path) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Open a named pipe; return its reader, and the transport that closes it."""
    reader = asyncio.StreamReader(limit=READ_BYTES)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(open_descriptor(path), "rb", buffering=0)
    )
    return reader, pipe
