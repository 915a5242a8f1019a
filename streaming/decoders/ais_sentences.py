"""Read NMEA 0183 lines that carry AIS: sentences, tag blocks, times, and messages in several parts.

References
----------
IEC 61162-1 (sentences), NMEA 0183 4.10 section 7 (tag blocks), ITU-R M.1371-5 (messages).
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from streaming.decoders.bounded import Bounded
from streaming.decoders.units import LATEST_US, MICROSECONDS, epoch_us

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SENTENCE = re.compile(
    rb"!(?P<checked>..(?:VDM|VDO),(?P<parts>[1-9]),(?P<part>[1-9]),(?P<sequence>\d*),(?P<channel>[^,*]*),"
    rb"(?P<payload>[^,*]*),(?P<fill>[0-5]))\*(?P<checksum>[0-9A-Fa-f]{2})(?:,(?P<epoch>\d{9,16}))?"
)
GATEHOUSE = re.compile(rb"\$PGHP,1,(\d{4}),(\d{1,2}),(\d{1,2}),(\d{1,2}),(\d{1,2}),(\d{1,2}),(\d{1,3}),")
# A sentence of another kind does not concern this decoder, and is no fault.
OTHER_SENTENCE = re.compile(rb"[!$](?!..VD[MO])[A-Z]{2}[A-Z0-9]{1,6},[\x20-\x7e]*\Z")
TAG_BLOCK = re.compile(rb"\\([\x20-\x5b\x5d-\x7e]*)\\")
ARMOUR = bytes(range(48, 88)) + bytes(range(96, 120))

# Most digits of an epoch, in microseconds; Python refuses to read numbers with thousands of digits.
LONGEST_EPOCH = 16
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
    bits = 8 << max(len(data) - 1, 0).bit_length()
    # Folding the number in half again and again takes log2(n) steps in C; a loop over the bytes takes n.
    while bits > 8:
        bits >>= 1
        folded = (folded >> bits) ^ (folded & ((1 << bits) - 1))
    return folded


@dataclass(frozen=True)
class TagBlock:
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


def read_tag_block(content: bytes) -> TagBlock:
    """Return the fields of a tag block; ignore its checksum, since some stations are known to send a wrong one.

    Examples
    --------
    >>> read_tag_block(b"g:1-2-73874,n:157036,s:r003669945,c:1241544035*4A")
    TagBlock(time_us=1241544035000000, group=b'73874')
    """
    time_us = group = None
    for entry in content.partition(b"*")[0].split(b","):
        code, _, value = entry.partition(b":")
        if code == b"c" and value.isdigit() and len(value) <= LONGEST_EPOCH:
            time_us = epoch_us(int(value))
        elif code == b"g" and value.count(b"-") == 2:
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
    try:
        # A leap second has the number 60, which `datetime` does not accept.
        moment = datetime(year, month, day, hour, minute, min(second, 59), milliseconds * 1000, tzinfo=UTC)
    except ValueError:
        return None
    time_us = (moment - EPOCH) // timedelta(microseconds=1) + (MICROSECONDS if second == 60 else 0)
    return time_us if second <= 60 and 0 <= time_us < LATEST_US else None


# The payload of a message, its fill bits, and its time in microseconds, or None.
Message = tuple[bytes, int, int | None]


@dataclass
class _Partial:
    """The parts of an incomplete message that have arrived."""

    time_us: int | None
    payloads: dict[int, bytes] = field(default_factory=dict)
    fill_bits: int = 0
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
        partial.payloads[number] = sentence["payload"]
        partial.time_us = time_us if partial.time_us is None else partial.time_us
        if number == parts:
            partial.fill_bits = int(sentence["fill"])
        if len(partial.payloads) < parts:
            return None, lost + [old.sample for old in self._partial.overflow()]
        del self._partial[name]
        payload = b"".join(partial.payloads[part] for part in sorted(partial.payloads))
        return (payload, partial.fill_bits, partial.time_us), lost

    def finish(self) -> list[bytes]:
        """Forget all incomplete messages; return a sample of each."""
        lost = [partial.sample for partial in self._partial.values()]
        self._partial.clear()
        return lost
