"""Cut a flow of bytes into lines or documents, and unpack it, in bounded memory."""

import zlib
from collections.abc import Iterator

from streaming.language import gettext_noop

TOO_LONG_LINE = gettext_noop("line too long")
TOO_LONG_DOCUMENT = gettext_noop("document too long")
DAMAGED = gettext_noop("damaged gzip")
TOO_DENSE = gettext_noop("packed too densely")

GZIP = b"\x1f\x8b"
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 1 << 18
# No feed is packed to less than a hundredth; what is, is made to fill the memory. The beginning may be.
_DENSEST = 100
_ALLOWED_BYTES = 4_000_000


class Document:
    """Gathers the bytes of one document, or of one line.

    Parameters
    ----------
    max_bytes : int
        A longer document is discarded and reported only once, however long it gets.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._kept = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> list[bytes]:
        """Keep bytes; return the document's beginning in a list when it gets too long, else an empty list."""
        if self._too_long:
            return []
        self._kept += data
        self._too_long = len(self._kept) > self.max_bytes
        if not self._too_long:
            return []
        beginning, self._kept = bytes(self._kept[: self.max_bytes]), bytearray()
        return [beginning]

    def finish(self) -> list[bytes]:
        """Return the document in a list, which is empty if there is none, and begin the next document."""
        documents = [bytes(self._kept)] if self._kept else []
        self._kept, self._too_long = bytearray(), False
        return documents


class Lines:
    """Cuts bytes into lines, and leaves out empty lines.

    Parameters
    ----------
    max_bytes : int
        A longer line is discarded and reported once.
    separator : bytes
        One byte, which ends a line.
    """

    def __init__(self, max_bytes: int, separator: bytes = b"\n") -> None:
        self.max_bytes, self.separator = max_bytes, separator
        self._last = Document(max_bytes)

    def feed(self, data: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return the complete lines, without their separators, and the beginnings of the lines that were too long."""
        first, *rest = data.split(self.separator)
        too_long = self._last.feed(first)
        if not rest:
            return [], too_long
        lines = self._last.finish()
        *complete, last = rest
        for line in filter(None, complete):
            (lines if len(line) <= self.max_bytes else too_long).append(line)
        return lines, too_long + self._last.feed(last)

    def finish(self) -> list[bytes]:
        """Return the last line, which has no separator, in a list, and forget it; empty if there is none."""
        return self._last.finish()


class Unpacker:
    """Unpacks an input that is packed with gzip, as its first two bytes say; others pass as they are.

    Attributes
    ----------
    fault : str or None
        Why the rest of the input is discarded; None if nothing is.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.fault: str | None = None
        self._plain = False
        self._kept = b""  # the first byte, if it may be that of gzip
        self._packed: zlib._Decompress | None = None
        self._read = self._given = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the unpacked bytes in pieces of a bounded size."""
        if self._plain or self.fault or not data:
            yield b"" if self.fault else data
        elif self._packed is not None:
            yield from self._unpacked(data)
        else:
            data, self._kept = self._kept + data, b""
            if self._read:  # zeros may follow a packed part
                data = data.lstrip(b"\0")
            if data.startswith(GZIP):
                yield from self._unpacked(data)
            elif GZIP.startswith(data):
                self._kept = data
                yield b""
            else:
                self._plain = True
                yield data

    def finish(self) -> Iterator[bytes]:
        """Yield what is kept; a packed input that is incomplete is a fault."""
        if self._kept:
            yield self._kept
        incomplete = self._packed is not None and not self.fault
        self._begin()
        self.fault = DAMAGED if incomplete else None

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        more = True
        while data or more:
            self._packed = self._packed or zlib.decompressobj(_GZIP_FORMAT)
            try:
                piece = self._packed.decompress(data, _PIECE_BYTES)
            except zlib.error:
                self.fault = DAMAGED
                return
            rest = self._packed.unconsumed_tail
            self._read, self._given = self._read + len(data) - len(rest), self._given + len(piece)
            if self._given > _ALLOWED_BYTES + _DENSEST * self._read:
                self.fault = TOO_DENSE
                return
            yield piece
            data, more = rest, len(piece) == _PIECE_BYTES
            if self._packed.eof:
                # Another packed part may follow.
                data, more, self._packed = self._packed.unused_data.lstrip(b"\0"), False, None
                if data and not data.startswith(GZIP):
                    yield from self.feed(data)
                    return
