"""What the decoders that take a line after the other share: cutting the bytes, and counting lines that are too long."""

from typing import Any

from streaming.decoders.base import Decoded, Points
from streaming.decoders.framing import TOO_LONG_LINE, Lines
from streaming.spaces import EARTH, Space


class LineDecoder:
    """Base of decoders whose elements are points and whose lines are read one by one.

    Parameters
    ----------
    options : Options
        With `max_line_bytes`.
    stream : str
    space : Space
    """

    def __init__(self, options: Any, stream: str, space: Space = EARTH) -> None:
        self._options, self._stream, self._space = options, stream, space
        self._lines = Lines(options.max_line_bytes)

    def feed(self, data: bytes, received_us: int) -> Decoded:
        """Decode all complete lines; see `Decoder.feed`."""
        points = Points(self._stream, self._space)
        self._begin(received_us, points)
        lines, too_long = self._lines.feed(data)
        for line in too_long:
            points.fault(TOO_LONG_LINE, line)
        for line in lines:
            self._line(line, received_us, points)
        return points.decoded()

    def finish(self, received_us: int) -> Decoded:
        """Decode a last line without an end; see `Decoder.finish`."""
        points = Points(self._stream, self._space)
        for line in self._lines.finish():
            self._line(line, received_us, points)
        self._end(points)
        return points.decoded()

    def _begin(self, received_us: int, points: Points) -> None:
        """Add what is due at a time of arrival, whatever arrives then."""

    def _line(self, line: bytes, received_us: int, points: Points) -> None:
        """Add the elements and faults of a line."""
        raise NotImplementedError

    def _end(self, points: Points) -> None:
        """Add the faults of what the end of the input left incomplete, and forget it."""
