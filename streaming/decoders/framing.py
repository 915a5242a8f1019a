"""Cut a flow of bytes into lines or documents, in bounded memory."""

from streaming.language import gettext_noop

TOO_LONG_LINE = gettext_noop("line too long")
TOO_LONG_DOCUMENT = gettext_noop("document too long")


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
