"""A feed on the gateway's standard input."""

import asyncio
import os
import select
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.decoders.options import option
from streaming.gateway.transports.base import OPEN, READ_BYTES, Chunk, Mark, parse_options

_LOOK_MS = 200


@dataclass(frozen=True)
class StdinOptions:
    """Options of the transport `stdin`; see docs/transports.md."""

    live: bool = option(True, "off: the writer waits while the engine is busy, instead of the feed being conflated")


class Stdin:
    """The gateway's standard input, read to its end: a pipe, a terminal or a file."""

    declared = StdinOptions
    replay = None

    def __init__(self, definition: Mapping[str, Any], descriptor: int = 0) -> None:
        self.live = parse_options(StdinOptions, definition).live
        self.descriptor = descriptor

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield the bytes that arrive there; see `base.Transport.chunks`."""
        yield OPEN
        while payload := await self._read():
            yield Chunk(payload=payload)
        yield Chunk(mark=Mark.DOCUMENT_END)

    async def _read(self) -> bytes:
        # The event loop cannot wait for files, and nothing could interrupt a blocking read.
        while not await asyncio.to_thread(_is_readable, self.descriptor):
            pass
        return os.read(self.descriptor, READ_BYTES)


def _is_readable(descriptor: int) -> bool:
    # `select.select` refuses descriptors above 1,023, and an epoll refuses files.
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(_LOOK_MS))
