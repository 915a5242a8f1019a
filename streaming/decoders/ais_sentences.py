"""Read NMEA 0183 lines that carry AIS: sentences, tag blocks, times, and messages in several parts.

References
----------
IEC 61162-1 (sentences), NMEA 0183 4.10 section 7 (tag blocks), ITU-R M.1371-5 (messages).
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from streaming.decoders.bounded import Bounded
from streaming.decoders.time_texts import TimeTexts
from streaming.decoders.units import LATEST_US, MICROSECONDS, epoch_us

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FIELDS = (
    rb"(?P<checked>..(?:VDM|VDO),(?P<parts>[1-9]),(?P<part>[1-9]),(?P<sequence>\d*),(?P<channel>[^,*]*),"
    rb"(?P<payload>[^,*]*),(?P<fill>[0-5]))\*(?P<checksum>[0-9A-Fa-f]{2})"
)
SENTENCE = re.compile(rb"!" + _FIELDS)
# Nearly all lines: one sentence, behind a tag block or not, and what follows it, without what begins another.
_ALONE = _FIELDS.replace(rb"[^,*]", rb"[^,*!$\\]").replace(rb">..(", rb">[^!$\\]{2}(")
PLAIN = re.compile(rb"(?:\\(?P<tags>[^\\]*)\\\s*)?!" + _ALONE + rb"(?=[^!$\\]*\Z)")
# What a broken sentence of AIS still shows.
BROKEN = re.compile(rb"VD[MO]\b")
GATEHOUSE = re.compile(rb"\$PGHP,1,(\d{4}),(\d{1,2}),(\d{1,2}),(\d{1,2}),(\d{1,2}),(\d{1,2}),(\d{1,3}),")
# A sentence of another kind does not concern this decoder, and is no fault.
OTHER_SENTENCE = re.compile(rb"[!$](?!..VD[MO])[A-Z]{2}[A-Z0-9]{1,6},[\x20-\x7e]*\Z")
SENTENCE_BEGINS = (b"!", b"$")
# What only a line with several sentences has behind its beginning.
GLUED = re.compile(rb"[!$\\]")
TAG_BLOCK = re.compile(rb"\\([\x20\x22-\x5b\x5d-\x7e]*)\\")
# The parts of a line: tag blocks, if there are any, and a sentence with what follows it, or other text. No payload has
# `!`, `$` or a backslash in it.
PIECES = re.compile(rb"((?:\\[\x20\x22-\x5b\x5d-\x7e]*\\\s*)*)([!$](?:[^!$\\]|[!$](?![A-Z]{2}))*|[^!$\\]*)")
# Python refuses to read numbers with thousands of digits.
SHORTEST_EPOCH, LONGEST_EPOCH = 9, 16
_SEPARATORS = re.compile(rb"[,;\s]+")
_EPOCH = re.compile(rb"\d{9,16}(?:\.\d{1,9})?")
# Before a sentence, a number of nine digits may be an MMSI.
_EPOCH_BEFORE = re.compile(rb"\d{10}(?:\d{3}|\d{6})?(?:\.\d{1,9})?")
_ZONED = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)? ?(?:Z|UTC|[+-]\d\d:?\d\d)(?![A-Za-z\d])")
_MARKS = b"[](){}<>:|'\""
_TEXTS = TimeTexts()
_FRACTION = re.compile(rb"\d{1,11}\.\d{1,9}")
# The entries of a tag block for time and group; before version 4.10, a group was written as 1G2:73874.
_ENTRIES = re.compile(rb"(?:\A|,)(c|g|\d+G\d+):([^,]*)")
ARMOUR = bytes(range(48, 88)) + bytes(range(96, 120))

MAX_PARTIAL_MESSAGES = 1024
MAX_GROUPS = 1024


def checksum(data: bytes) -> int:
    """Return the exclusive or of all bytes.

    Examples
    --------
    >>> checksum(b"AIVDM,1,1,,B,,0") == 0x25
    True
    """
    folded = int.from_bytes(data)
    bits = 4 << max(len(data) - 1, 0).bit_length()
    # Folding the number in half again and again takes log2(n) steps in C; a loop over the bytes takes n. What stays
    # above the half does not come down.
    while bits > 7:
        folded ^= folded >> bits
        bits >>= 1
    return folded & 0xFF


def appended_us(trailer: bytes) -> int | None:
    """Return the time behind a sentence: the last of the receiver's fields that has 9 to 16 digits, else a zoned one.

    Examples
    --------
    >>> appended_us(b",d-129,S1156,T30.84481429,r09STST1,1368243629")
    1368243629000000
    """
    alone = trailer[1:].rstrip()
    if SHORTEST_EPOCH <= len(alone) <= LONGEST_EPOCH and alone.isdigit():
        return epoch_us(int(alone))
    return _last_us(trailer, _EPOCH)


def before_us(text: bytes) -> int | None:
    """Return the time before a sentence: an epoch of 10, 13 or 16 digits, else a date and time with its zone, or None.

    Examples
    --------
    >>> before_us(b"[1764000100.5] "), before_us(b"2025-11-24T16:01:40Z,"), before_us(b"2025-11-24 16:01:40 ")
    (1764000100500000, 1764000100000000, None)
    """
    return _last_us(text, _EPOCH_BEFORE)


def _last_us(text: bytes, form: re.Pattern[bytes]) -> int | None:
    """Return the last epoch of a form in a text, else the first date and time that has a zone, or None."""
    for word in reversed(_SEPARATORS.split(text)):
        if form.fullmatch(word := word.strip(_MARKS)):
            return epoch_us(float(word) if b"." in word else int(word))
    zoned = _ZONED.search(text)
    return _TEXTS.us(zoned[0].decode()) if zoned else None


def _time_us(text: bytes) -> int | None:
    if text.isdigit() and len(text) <= LONGEST_EPOCH:
        return epoch_us(int(text))
    return epoch_us(float(text)) if _FRACTION.fullmatch(text) else None


class TagBlock(NamedTuple):
    """The fields of a tag block that the decoder uses.

    Parameters
    ----------
    time_us : int or None
        Microseconds since 1970, from field ``c``, which is in seconds or milliseconds.
    group : bytes or None
        The group's number, the last part of field ``g``.
    """

    time_us: int | None = None
    group: bytes | None = None

    def before(self, nearer: "TagBlock") -> "TagBlock":
        """Return this tag block merged with one that stands nearer to the sentence, and wins."""
        if self is NO_TAG_BLOCK:
            return nearer
        time_us = self.time_us if nearer.time_us is None else nearer.time_us
        return TagBlock(time_us, nearer.group or self.group)


NO_TAG_BLOCK = TagBlock()


def read_tag_block(content: bytes) -> TagBlock:
    """Return the fields of a tag block; ignore its checksum, since some stations are known to send a wrong one.

    Examples
    --------
    >>> read_tag_block(b"g:1-2-73874,n:157036,s:r003669945,c:1241544035*4A")
    TagBlock(time_us=1241544035000000, group=b'73874')
    """
    time_us = group = None
    for code, value in _ENTRIES.findall(content.partition(b"*")[0]):
        if code == b"c":
            time_us = _time_us(value)
        elif code != b"g":
            group = value
        elif value.count(b"-") == 2:
            group = value.rpartition(b"-")[2]
    return TagBlock(time_us, group)


def gatehouse_us(line: bytes) -> int | None:
    """Return the time of a ``$PGHP`` line in microseconds, or None if it is no time between 1970 and 2200.

    Examples
    --------
    >>> gatehouse_us(b"$PGHP,1,2013,11,12,12,0,0,11,219,,2190067,1,62*26")
    1384257600011000
    """
    match = GATEHOUSE.match(line)
    if match is None:
        return None
    year, month, day, hour, minute, second, milliseconds = map(int, match.groups())
    midnight_us = _midnight_us(year, month, day)
    # A leap second has the number 60.
    if midnight_us is None or hour > 23 or minute > 59 or second > 60:
        return None
    time_us = midnight_us + ((hour * 60 + minute) * 60 + second) * MICROSECONDS + milliseconds * 1000
    return time_us if 0 <= time_us < LATEST_US else None


@lru_cache(maxsize=8)
def _midnight_us(year: int, month: int, day: int) -> int | None:
    try:
        return (datetime(year, month, day, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    except ValueError:
        return None


# The payload of a message, its fill bits, and its time in microseconds, or None.
Message = tuple[bytes, int, int | None]


@dataclass
class _Partial:
    """The parts of an incomplete message that have arrived."""

    time_us: int | None
    payloads: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    sample: bytes = b""


class Assembler:
    """Joins the parts of messages; parts of different messages may interleave, and come in any order."""

    def __init__(self) -> None:
        self._partial = Bounded(MAX_PARTIAL_MESSAGES)

    def add(self, sentence: re.Match, group: bytes | None, time_us: int | None) -> tuple[Message | None, list[bytes]]:
        """Add one part of a message.

        Parameters
        ----------
        sentence : re.Match
            Of `SENTENCE`.
        group : bytes or None
            The group's number in the tag block.
        time_us : int or None

        Returns
        -------
        (message, lost)
            `message` is (payload, fill bits, time in microseconds or None) once it is complete, else None; `lost` are
            samples of messages that will never be complete.
        """
        parts, number = int(sentence["parts"]), int(sentence["part"])
        name = (sentence["checked"][:2], parts, sentence["sequence"], sentence["channel"], group)
        lost = []
        if number in getattr(self._partial.get(name), "payloads", ()):
            lost.append(self._partial.pop(name).sample)
        partial = self._partial.renew(name, lambda: _Partial(time_us, sample=sentence[0]))
        partial.payloads[number] = sentence["payload"], int(sentence["fill"])
        partial.time_us = time_us if partial.time_us is None else partial.time_us
        if len(partial.payloads) < parts:
            return None, lost + [old.sample for old in self._partial.overflow()]
        del self._partial[name]
        payloads = [partial.payloads[part] for part in range(1, parts + 1)]
        # The last parts may be empty; the padding is then that of the last part with a payload.
        fill_bits = next((fill for payload, fill in reversed(payloads) if payload), 0)
        return (b"".join(payload for payload, _ in payloads), fill_bits, partial.time_us), lost

    def finish(self) -> list[bytes]:
        """Forget all incomplete messages; return a sample of each."""
        lost = [partial.sample for partial in self._partial.values()]
        self._partial.clear()
        return lost
