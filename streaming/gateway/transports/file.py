"""Replay of a recorded file, plain or compressed."""

import asyncio
import bz2
import gzip
import os
import stat
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from streaming.decoders.options import REQUIRED, option
from streaming.gateway.transports.base import (
    OPEN,
    READ_BYTES,
    Chunk,
    Mark,
    Replay,
    Restricted,
    TransportError,
    check,
    parse_options,
)
from streaming.language import thousands

_UNPACKERS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
_FAST_READ_BYTES = 1 << 20
# Compression reduces recorded feeds to a fifth or a twentieth, but a file of zeros to a thousandth or far less.
_MOST_UNPACKED = 200
_UNPACKED_FREELY_BYTES = 16 << 20


@dataclass(frozen=True)
class FileOptions:
    """Options of the transport `file`; see docs/transports.md."""

    path: str = option(REQUIRED, "the file, from the state folder where it is relative, such as feeds/ships.csv.gz")
    speed: float = option(1.0, "times the recorded speed; 0 is as fast as the engine takes it", minimum=0)
    loop: bool = option(False, "begin anew at the end")
    restamp: bool = option(False, "elements bear the time at which they are replayed instead of the recorded one")
    by_time: bool = option(False, "read the whole file first, then replay it in the order of its times")

    def __post_init__(self) -> None:
        check(bool(self.path), "path must name a file; got %(path)s", path=repr(self.path))
        check(0 <= self.speed <= 1e6, "speed must lie in [0, 1000000]; got %(speed)s", speed=repr(self.speed))


class FileTransport(Restricted):
    """A recorded file, plain or compressed (.gz, .bz2), replayed at its recorded speed or another."""

    declared = FileOptions
    live = False

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(FileOptions, definition)
        self.replay = Replay(self.options.speed, self.options.restamp, self.options.by_time)
        self.read_bytes = READ_BYTES if self.options.speed else _FAST_READ_BYTES

    def check_access(self) -> None:
        """Refuse a file that is not below an allowed folder; see `base.Restricted`."""
        self.access.file(self.options.path)

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
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
                raise TransportError(
                    "a file must hold something to be looped; %(path)s is empty", path=repr(self.options.path)
                )
            yield Chunk(mark=Mark.LAP_END)

    async def _lap(self) -> AsyncGenerator[Chunk, None]:
        # Check the access again for each lap: symbolic links may lead elsewhere by now.
        with open_recording(self.allowed_file(self.options.path)) as recording:
            yield OPEN
            while payload := await asyncio.to_thread(recording.read, self.read_bytes):
                yield Chunk(payload=payload)


class Recording:
    """A file that is read piece by piece, and unpacked if its suffix is .gz or .bz2.

    Parameters
    ----------
    file : BinaryIO
        The open file.
    path : Path
        Its path, whose suffix says how to unpack it.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        unpack = _UNPACKERS.get(path.suffix)
        self._unpacked: IO[bytes] = unpack(file, "rb") if unpack else file
        self._bytes = 0

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, unpacked; none at the end.

        Raises
        ------
        TransportError
            If a packed file is damaged, or unpacks to far more bytes than a recording does.
        """
        try:
            payload = self._unpacked.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:  # cut short or damaged
            raise TransportError(
                "a recording must be whole; %(path)s: %(error)s", path=self._path, error=error
            ) from None
        self._bytes += len(payload)
        if self._bytes > max(_UNPACKED_FREELY_BYTES, _MOST_UNPACKED * self._file.tell()):
            raise TransportError(
                "a recording must not unpack to more than %(most_unpacked)s times its size; %(path)s "
                "gives %(bytes)s bytes of its first %(file)s",
                most_unpacked=_MOST_UNPACKED,
                path=self._path,
                bytes=thousands(self._bytes),
                file=thousands(self._file.tell()),
            )
        return payload


@contextmanager
def open_recording(path: Path) -> Iterator[Recording]:
    """Open a file for reading.

    Raises
    ------
    TransportError
        If the path leads to something other than a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # opening a pipe could block for ever
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise TransportError("path must name a file; got %(path)s", path=repr(str(path)))
        yield Recording(file, path)
