"""Decode AIS, the positions of ships, from NMEA lines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streaming.decoders.ais_json import texts_of_json
from streaming.decoders.ais_reports import AisReport, read_report
from streaming.decoders.ais_sentences import (
    ARMOUR,
    BROKEN,
    GATEHOUSE,
    GLUED,
    MAX_GROUPS,
    NO_TAG_BLOCK,
    OTHER_SENTENCE,
    PIECES,
    PLAIN,
    SENTENCE,
    SENTENCE_BEGINS,
    SHORTEST_EPOCH,
    TAG_BLOCK,
    Assembler,
    Message,
    TagBlock,
    appended_us,
    before_us,
    checksum,
    gatehouse_us,
    read_tag_block,
)
from streaming.decoders.ais_words import LONG_RANGE
from streaming.decoders.base import OUT_OF_RANGE, Points, Position
from streaming.decoders.bounded import Bounded
from streaming.decoders.lines import LineDecoder
from streaming.decoders.options import DecoderOptions, option
from streaming.decoders.told_times import Timed
from streaming.decoders.units import KNOT_MPS
from streaming.language import gettext
from streaming.spaces import EARTH, Space

TIME_SOURCES = ("auto", "tag_block", "appended", "gatehouse", "json", "received")

# An exact position is fresh for twice the longest interval between such reports, which is 3 minutes for ships that lie
# still or go at 3 knots at most, and 30 seconds for others (ITU-R M.1371-5, annex 1, tables 1 and 2).
SLOW_MPS = 3 * KNOT_MPS
FRESH_SLOW_US, FRESH_US = 360_000_000, 60_000_000
NULL_ISLAND = (0.0, 0.0, None)


@dataclass(frozen=True)
class AisOptions(DecoderOptions):
    """Options of `AisDecoder`."""

    time_source: str = option(
        "auto",
        "where times are taken from; auto: the first of tag block, appended epoch, $PGHP line, JSON around it",
        TIME_SOURCES,
    )
    check_checksum: bool = option(True, "count sentences with a wrong checksum as malformed")
    max_objects: int = option(200_000, "how many ships are remembered for their static data", minimum=1)
    max_line_bytes: int = option(65_536, "longer lines are malformed", minimum=82)


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
        # The tag block, and the time of a `$PGHP` line, that belong to the next sentence.
        self._tag = NO_TAG_BLOCK
        self._announced_us: int | None = None
        # The time beside the sentence in the JSON that is being read.
        self._json_us: int | None = None
        self.ships = Bounded(options.max_objects)
        self._sources = TIME_SOURCES[1:] if options.time_source == "auto" else (options.time_source,)
        self._by_tag, self._by_appended = "tag_block" in self._sources, "appended" in self._sources
        # The time of each ship's last exact position, and how long it is fresh.
        self._exact: dict[int, tuple[int, int]] = {}

    def _end(self, points: Points) -> None:
        """Count messages that lack parts as malformed, and forget the time for the next sentence."""
        for sample in self._assembler.finish():
            points.fault(gettext("incomplete message"), sample)
        self._forget()

    def _forget(self) -> None:
        self._tag, self._announced_us = NO_TAG_BLOCK, None

    def _line(self, line: bytes, received_us: int, points: Points) -> None:
        plain = PLAIN.match(line)
        if plain is None:
            self._other_line(line, received_us, points)
            return
        if (tags := plain["tags"]) is not None:
            self._tag = self._tag.before(read_tag_block(tags))
        self._matched(plain, line, received_us, points)

    def _other_line(self, line: bytes, received_us: int, points: Points) -> None:
        # Most of these are one tag block, one sentence of another kind, or both.
        end = line.find(b"\\", 1) if line[:1] == b"\\" else -1
        text = line[end + 1 :].strip() if end > 0 else line
        alone = GLUED.search(text, 1) is None if text.startswith(SENTENCE_BEGINS) else end > 0 and not text
        if alone:
            if end > 0:
                self._tag = self._tag.before(read_tag_block(line[1:end]))
            if text:
                self._sentence(text, received_us, points)
            return
        texts = texts_of_json(line) if b"{" in line or b"[" in line else ()
        for text, time_us in texts:
            self._json_us = time_us if "json" in self._sources else None
            self._pieces(text, received_us, points)
            self._json_us = None
            self._forget()
        if not texts:
            self._pieces(line.strip(), received_us, points)

    def _pieces(self, line: bytes, received_us: int, points: Points) -> None:
        """Read tag blocks and sentences in order; there may be several of each."""
        pieces = PIECES.findall(line)
        for tags, text in pieces:
            for content in TAG_BLOCK.findall(tags):
                self._tag = self._tag.before(read_tag_block(content))
            if text.startswith(SENTENCE_BEGINS):
                self._sentence(text, received_us, points)
            elif tags and text.strip():
                self._broken(text, points)  # it was meant as the sentence of the tag block
            else:
                self._announce(text, line)
        # A receiver may write its own words before a sentence.
        if line and not any(tags or text.startswith(SENTENCE_BEGINS) for tags, text in pieces):
            self._broken(line, points)

    def _announce(self, text: bytes, line: bytes) -> None:
        """Keep the time in a text that stands before the sentence of its line."""
        if self._options.time_source in ("auto", "appended") and BROKEN.search(line):
            told_us = before_us(text)
            self._announced_us = self._announced_us if told_us is None else told_us

    def _broken(self, text: bytes, points: Points) -> None:
        """Count what is no sentence; if it was one, the time before it was its own."""
        points.fault(gettext("not a sentence"), text)
        if self._tag is not NO_TAG_BLOCK or BROKEN.search(text):
            self._forget()

    def _sentence(self, text: bytes, received_us: int, points: Points) -> None:
        """Read a sentence of any kind."""
        sentence = SENTENCE.match(text)
        if sentence is None:
            tag = self._tag
            self._forget()
            self._other_sentence(text, tag, received_us, points)
        else:
            self._matched(sentence, text, received_us, points)

    def _matched(self, sentence: re.Match[bytes], line: bytes, received_us: int, points: Points) -> None:
        """Read a sentence of AIS. The time before it is its own: also a broken sentence leaves it to no other."""
        tag, announced_us = self._tag, self._announced_us
        self._tag, self._announced_us = NO_TAG_BLOCK, None
        fields = sentence.group("checked", "parts", "part", "payload", "checksum", "fill")
        if reason := self._fault(*fields[:5]):
            points.fault(reason, line[sentence.start("checked") - 1 :].strip())
            return
        time_us = self._time(tag, line[sentence.end() :], announced_us)
        if fields[1] == b"1":
            self._message((fields[3], int(fields[5]), time_us), sentence, received_us, points)
            return
        message, lost = self._assembler.add(sentence, tag.group, time_us)
        for sample in lost:
            points.fault(gettext("incomplete message"), sample)
        if message is not None:
            self._message(message, sentence, received_us, points)

    def _fault(self, checked: bytes, parts: bytes, part: bytes, payload: bytes, told: bytes) -> str | None:
        """Return what is wrong with a sentence, or None."""
        if self._options.check_checksum and checksum(checked) != int(told, 16):
            return "checksum"
        if part > parts:
            return gettext("not a sentence")
        if not payload and part == b"1":
            return gettext("empty payload")
        return gettext("payload characters") if payload.translate(None, ARMOUR) else None

    def _other_sentence(self, text: bytes, tag: TagBlock, received_us: int, points: Points) -> None:
        """Keep the time that a sentence of another kind tells; count the sentence if it is malformed."""
        is_gatehouse = text.startswith(b"$PGHP") and "gatehouse" in self._sources
        self._announced_us = gatehouse_us(text) if is_gatehouse else None
        if self._announced_us is not None:
            return
        if is_gatehouse and GATEHOUSE.match(text):
            points.fault("time", text)
        elif OTHER_SENTENCE.match(text.strip()):
            self._tell(self._tag_time(tag), received_us, points)
        else:
            points.fault(gettext("not a sentence"), text)

    def _message(self, message: Message, sentence: re.Match[bytes], received_us: int, points: Points) -> None:
        """Read a message, which `sentence` completes."""
        payload, fill_bits, time_us = message
        report = read_report(payload, fill_bits)
        if isinstance(report, str):
            points.fault(report, sentence[0])
        elif report is not None:
            self._tell(time_us, received_us, points)
            self._report(report, received_us, sentence[0], points)

    def _report(self, report: AisReport, received_us: int, sample: bytes, points: Points) -> None:
        ship = self.ships.renew(report.mmsi, lambda: {"mmsi": report.mmsi})
        for forgotten in self.ships.overflow():
            self._exact.pop(forgotten["mmsi"], None)
        for name, value in report.static.items():
            if value is not None:
                ship[name] = value
        if report.position is None:
            return
        properties = ship | {name: value for name, value in report.moving.items() if value is not None}
        if ship.get("ais_class") == "B":
            properties.pop("status", None)  # message 27 has one, which means nothing
        self._give((f"{report.mmsi:09d}", report.position, properties, sample), received_us, points)

    def _add(self, timed: Timed, points: Points) -> None:
        """Add elements, but not the coarse position of a ship whose exact one is fresh."""
        for time_us, (key, position, properties, sample) in timed:
            if self._is_news(time_us, position, properties) and not points.add(key, time_us, position, properties):
                points.fault(OUT_OF_RANGE, sample)

    def _is_news(self, time_us: int, position: Position, properties: Mapping[str, Any]) -> bool:
        if properties["position_source"] == LONG_RANGE:
            exact_us, fresh_us = self._exact.get(properties["mmsi"], (0, 0))
            return abs(time_us - exact_us) > fresh_us
        if position != NULL_ISLAND and properties["mmsi"] in self.ships:
            slow = properties.get("speed_mps", 0.0) <= SLOW_MPS
            self._exact[properties["mmsi"]] = time_us, FRESH_SLOW_US if slow else FRESH_US
        return True

    def _time(self, tag: TagBlock, trailer: bytes, announced_us: int | None) -> int | None:
        """Return the time of a sentence from the chosen source, or None."""
        time_us = None if tag is NO_TAG_BLOCK else self._tag_time(tag)
        if time_us is None and self._by_appended and len(trailer) >= SHORTEST_EPOCH:
            time_us = appended_us(trailer)
        if time_us is None:
            time_us = self._json_us if announced_us is None else announced_us
        return time_us

    def _tag_time(self, tag: TagBlock) -> int | None:
        """Return the time of a tag block, or the one of another line of its group; None if there is none."""
        if not self._by_tag:
            return None
        if tag.group is None:
            return tag.time_us
        if tag.time_us is not None:
            self._group_times[tag.group] = tag.time_us
            self._group_times.overflow()
        return self._group_times.get(tag.group)
