"""Base of the decoders that read line after line: it cuts the bytes and counts lines that are too long."""

from typing import Any

from streaming.decoders.base import OUT_OF_RANGE, Decoded, Points
from streaming.decoders.framing import TOO_LONG_LINE, Lines
from streaming.decoders.told_times import Timed, ToldTimes
from streaming.spaces import EARTH, Space


class LineDecoder:
    """Base of decoders that read lines one by one and whose elements are points.

    Parameters
    ----------
    options : Options
        With `max_line_bytes`.
    stream : str
    space : Space
    told : bool
        Whether lines may tell times; otherwise elements get their time of arrival.
    """

    def __init__(self, options: Any, stream: str, space: Space = EARTH, told: bool = True) -> None:
        self._options, self._stream, self._space = options, stream, space
        self._lines = Lines(options.max_line_bytes)
        self._times = ToldTimes(told)

    @property
    def waiting(self) -> bool:
        """Whether elements wait for a time."""
        return bool(self._times.waiting)

    def feed(self, data: bytes, received_us: int) -> Decoded:
        """Decode all complete lines; see `Decoder.feed`."""
        points = Points(self._stream, self._space)
        self._add(self._times.overdue(received_us), points)
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
        self._add(self._times.finish(), points)
        return points.decoded()

    def _tell(self, time_us: int | None, received_us: int, points: Points) -> None:
        """Note a time that the feed tells, unless it is None, and add the elements that waited for one."""
        if time_us is not None:
            self._add(self._times.tell(time_us, received_us), points)

    def _give(self, element: tuple, received_us: int, points: Points) -> None:
        """Add an element (key, position, properties, line) with the last told time, or let it wait for one."""
        self._add(self._times.give(element, received_us), points)

    def _add(self, timed: Timed, points: Points) -> None:
        for time_us, (key, position, properties, sample) in timed:
            if not points.add(key, time_us, position, properties):
                points.fault(OUT_OF_RANGE, sample)

    def _line(self, line: bytes, received_us: int, points: Points) -> None:
        """Add the elements and faults of a line."""
        raise NotImplementedError

    def _end(self, points: Points) -> None:
        """At the end of the input, count what is incomplete as faults, and forget it."""
