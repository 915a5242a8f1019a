"""Decode AIS, the positions of ships, from NMEA lines."""

import re
from dataclasses import dataclass

from streaming.decoders.ais_reports import AisReport, read_report
from streaming.decoders.ais_sentences import (
    ARMOUR,
    GATEHOUSE,
    MAX_GROUPS,
    OTHER_SENTENCE,
    SENTENCE,
    TAG_BLOCK,
    Assembler,
    Message,
    TagBlock,
    checksum,
    gatehouse_us,
    read_tag_block,
)
from streaming.decoders.base import Points
from streaming.decoders.bounded import Bounded
from streaming.decoders.lines import LineDecoder
from streaming.decoders.options import Options, option
from streaming.decoders.units import epoch_us
from streaming.language import gettext
from streaming.spaces import EARTH, Space

TIME_SOURCES = ("auto", "tag_block", "appended", "gatehouse", "received")
NO_TAG_BLOCK = TagBlock()


@dataclass(frozen=True)
class AisOptions(Options):
    """Options of `AisDecoder`."""

    time_source: str = option(
        "auto", "where times are taken from; auto: the first of tag block, appended epoch, $PGHP line", TIME_SOURCES
    )
    check_checksum: bool = option(True, "count sentences with a wrong checksum as malformed")
    max_objects: int = option(200_000, "how many ships are remembered for their static data", minimum=1)
    max_line_bytes: int = option(1024, "longer lines are malformed", minimum=82)


class AisDecoder(LineDecoder):
    """Decodes AIS messages in NMEA lines with `pyais`; see docs/decoders.md.

    Parameters
    ----------
    options : AisOptions
    stream : str
    space : Space

    Attributes
    ----------
    ships : mapping of int to dict
        Static data by MMSI, of all senders heard, the longest silent forgotten first.
    """

    options = AisOptions

    def __init__(self, options: AisOptions, stream: str, space: Space = EARTH) -> None:
        super().__init__(options, stream, space, told=options.time_source != "received")
        self._assembler = Assembler()
        self._group_times = Bounded(MAX_GROUPS)
        # The time from a line without a message; it belongs to the next sentence.
        self._announced_us: int | None = None
        self.ships = Bounded(options.max_objects)

    def _end(self, points: Points) -> None:
        """Count messages that lack parts as malformed, and forget the time for the next sentence."""
        for sample in self._assembler.finish():
            points.fault(gettext("incomplete message"), sample)
        self._announced_us = None

    def _line(self, line: bytes, received_us: int, points: Points) -> None:
        tag = NO_TAG_BLOCK
        if b"\\" in line and (block := TAG_BLOCK.search(line)):
            tag = read_tag_block(block[1])
            line = line[block.end() :] or line
        sentence = SENTENCE.search(line)
        if sentence is None:
            self._other_line(line.strip(), tag, points)
        elif self._options.check_checksum and checksum(sentence["checked"]) != int(sentence["checksum"], 16):
            points.fault("checksum", line)
        elif not sentence["payload"]:
            points.fault(gettext("empty payload"), line)
        elif sentence["payload"].translate(None, ARMOUR):
            points.fault(gettext("payload characters"), line)
        else:
            self._sentence(sentence, tag, received_us, points)

    def _other_line(self, line: bytes, tag: TagBlock, points: Points) -> None:
        """Keep the time of a line without an AIS sentence; count the line if it is malformed."""
        time_us = gatehouse_us(line) if self._options.time_source in ("auto", "gatehouse") else None
        if time_us is None and tag is not NO_TAG_BLOCK:
            time_us = self._tag_time(tag)
        if time_us is not None:
            self._announced_us = time_us
        elif GATEHOUSE.match(line) and self._options.time_source in ("auto", "gatehouse"):
            points.fault("time", line)
        elif line and tag is NO_TAG_BLOCK and not OTHER_SENTENCE.match(line):
            points.fault(gettext("not a sentence"), line)

    def _sentence(self, sentence: re.Match[bytes], tag: TagBlock, received_us: int, points: Points) -> None:
        time_us = self._time(sentence, tag)
        message: Message | None
        if sentence["parts"] == b"1":
            message = sentence["payload"], int(sentence["fill"]), time_us
        else:
            message, lost = self._assembler.add(sentence, tag.group, time_us)
            for sample in lost:
                points.fault(gettext("incomplete message"), sample)
        if message is None:
            return
        payload, fill_bits, time_us = message
        report = read_report(payload, fill_bits)
        if isinstance(report, str):
            points.fault(report, sentence[0])
        elif report is not None:
            self._tell(time_us, received_us, points)
            self._report(report, received_us, sentence[0], points)

    def _report(self, report: AisReport, received_us: int, sample: bytes, points: Points) -> None:
        ship = self.ships.renew(report.mmsi, lambda: {"mmsi": report.mmsi})
        self.ships.overflow()
        ship.update({name: value for name, value in report.static.items() if value is not None})
        if report.position is None:
            return
        properties = ship | {name: value for name, value in report.moving.items() if value is not None}
        self._give((str(report.mmsi), report.position, properties, sample), received_us, points)

    def _time(self, sentence: re.Match[bytes], tag: TagBlock) -> int | None:
        """Return the time of a sentence from the chosen source, or None."""
        source = self._options.time_source
        announced, self._announced_us = self._announced_us, None
        time_us = self._tag_time(tag)
        if time_us is None and sentence["epoch"] and source in ("auto", "appended"):
            time_us = epoch_us(int(sentence["epoch"]))
        return announced if time_us is None else time_us

    def _tag_time(self, tag: TagBlock) -> int | None:
        """Return the time of a tag block, or the one of another line of its group; None if there is none."""
        if self._options.time_source not in ("auto", "tag_block"):
            return None
        if tag.group is None:
            return tag.time_us
        if tag.time_us is not None:
            self._group_times[tag.group] = tag.time_us
            self._group_times.overflow()
        return self._group_times.get(tag.group)
