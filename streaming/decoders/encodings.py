"""Bring text of any encoding to UTF-8, however its bytes are cut."""

import codecs

from streaming.errors import InvalidOptions

AUTO = "auto"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before UTF-16, whose mark is the beginning of this one.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What cannot be decoded becomes this surrogate, whose bytes are not UTF-8: the line counts as malformed.
codecs.register_error("malformed", lambda error: ("\udcff", error.end))  # type: ignore[attr-defined]


def check_encoding(name: str) -> None:
    """Raise InvalidOptions unless a name is `auto` or that of an encoding of text that Python knows."""
    if name == AUTO:
        return
    try:
        "a".encode(name)
        codecs.getincrementaldecoder(name)
    except (LookupError, ValueError):
        raise InvalidOptions(
            "encoding must be auto, or an encoding such as utf-8, utf-16 or cp1252; got %(encoding)s",
            encoding=repr(name),
        ) from None


class Recoder:
    """Turns bytes of an encoding into UTF-8 without a byte order mark.

    Parameters
    ----------
    encoding : str
        `auto`: UTF-8, or what the byte order mark at the beginning says.
    """

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._begin()

    def _begin(self) -> None:
        self._start: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes) -> bytes:
        """Return what bytes are in UTF-8; keep those of a character, or of a mark, that is not complete."""
        if self._start is not None:
            data = self._start + data
            if any(len(data) < len(mark) and mark.startswith(data) for mark, _ in _MARKS):
                self._start = data
                return b""
            data = self._choose(data)
        return self._recoded(data, False)

    def finish(self) -> bytes:
        """Return what is left, and begin anew."""
        rest = self._recoded(self._choose(self._start) if self._start else b"", True)
        self._begin()
        return rest

    def _choose(self, data: bytes) -> bytes:
        """Choose the decoder by the first bytes; return them without their mark."""
        self._start, encoding = None, self._encoding
        marked = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), None)
        if marked and encoding == AUTO:
            data, encoding = data[len(marked[0]) :], marked[1]
        name = "utf-8" if encoding == AUTO else codecs.lookup(encoding).name
        # UTF-8 stays as it is: the decoder of lines tells which of them are none.
        if name != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding)("malformed")
        return data

    def _recoded(self, data: bytes, final: bool) -> bytes:
        if self._decoder is None:
            return data
        return self._decoder.decode(data, final).encode("utf-8", "surrogatepass")
