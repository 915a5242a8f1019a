"""Replay of a recorded file, plain or compressed."""

import asyncio
import bz2
import gzip
import stat
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from streaming.gateway.transports.base import (
    OPEN,
    READ_BYTES,
    Chunk,
    Mark,
    Replay,
    TransportError,
    check,
    parse_options,
)

_OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
_FAST_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class FileOptions:
    """Options of the transport `file`; see docs/transports.md."""

    path: str
    speed: float = 1.0
    loop: bool = False
    restamp: bool = False

    def __post_init__(self) -> None:
        check(bool(self.path), f"path must name a file; got {self.path!r}")
        check(0 <= self.speed <= 1e6, f"speed must lie in [0, 1000000]; got {self.speed!r}")


class FileTransport:
    """A file that waits for its readers."""

    live = False

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(FileOptions, definition)
        self.replay = Replay(self.options.speed, self.options.restamp)
        self.read_bytes = READ_BYTES if self.options.speed else _FAST_READ_BYTES

    async def chunks(self) -> AsyncIterator[Chunk]:
        """Yield the file in bounded chunks; see `base.Transport.chunks`."""
        while True:
            found = False
            async for chunk in self._lap():
                found = found or bool(chunk.payload)
                yield chunk
            if not self.options.loop:
                yield Chunk(mark=Mark.DOCUMENT_END)
                return
            if not found:
                raise TransportError(f"a file must hold something to be looped; {self.options.path!r} is empty")
            yield Chunk(mark=Mark.LAP_END)

    async def _lap(self):
        with open_recording(Path(self.options.path)) as recording:
            yield OPEN
            while payload := await asyncio.to_thread(_read, recording, self.read_bytes):
                yield Chunk(payload=payload)


def open_recording(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed as its suffix (.gz, .bz2) says."""
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe could wait for ever
        raise TransportError(f"path must name a file; got {str(path)!r}")
    return cast(BinaryIO, _OPENERS.get(path.suffix, open)(path, "rb"))


def _read(recording, size):
    try:
        return recording.read(size)
    except (EOFError, zlib.error) as error:  # a compressed file that was cut short or damaged
        raise TransportError(f"a recording must be whole; {recording.name}: {error}") from None
