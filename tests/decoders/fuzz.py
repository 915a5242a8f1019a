"""Feeds every decoder with mutated input: `make fuzz`, or ``python -m tests.decoders.fuzz --count 1000 --feed csv``.

An *input* is a line, or a document, of a real feed with a few mutations. No decoder may raise, and what it gives must
be sound.
"""

import argparse
import random
import re
import time
from collections import Counter
from pathlib import Path

from streaming.decoders import make_decoder
from streaming.decoders.ais_reports import LENGTHS
from streaming.decoders.ais_sentences import ARMOUR, checksum
from streaming.decoders.gate import FAILED
from streaming.spaces import EARTH
from tests.decoders.feeds import CSV, FEEDS, NOW_US, read_recording
from tests.decoders.oracle import check_elements
from tests.decoders.test_recordings import AIS_CSV

INPUTS = 1_000_000
PER_FEED = 100
DOCUMENTS = ("aircraft_json", "gtfs_realtime", "geojson_document", "gtfs_realtime_recorded")
EXTREMES = (
    *b"1e306 -1e308 1.7e308 1e999 1e-320 1e-400 NaN Infinity -0 0x1p3 1_0 400 -91 9999 0001 9999999999999999".split(),
    *b"18446744073709551615 -9223372036854775808 null true {} [[[[[[ 2013-02-31T25:61:61Z *00".split(),
    *b'"" "\\u0000" "\\ud800" \\u0000 \\ud800 " \x27 , : \\ \x00 \x1e \xe9 \xff \xed\xa0\x80 "\xe9"'.split(b" "),
    *(b" ", b"\r", b"\n", b"9" * 30, b"9" * 900, b'"%s"' % (b"x" * 20_000), b"[" * 40 + b"]" * 40),
    *(b'{"a":' * 90 + b"1" + b"}" * 90, b'{"type":"Point","coordinates":[1e308,0]}'),
    *(b"$PGHP,1,9999,1,1,0,0,0,0,", b"\\c:9999999999*00\\"),
)
VALUE = re.compile(rb'-?\d+(?:\.\d+)?|"[^"]*"|true|null')
CELL = re.compile(rb"(?<=,)[^,]*(?=,)")
SENTENCE = re.compile(rb"!([^!*\n]*)\*[0-9A-Fa-f]{2}")

RECORDINGS = Path(__file__).parents[3] / "shared" / "data"
CSV_BOXES = {
    "kind": "csv",
    "columns": {"key": "id"},
    "lo": ["x", "y"],
    "hi": ["speed", "heading"],
    "time_format": "epoch_ms",
}


def recorded(name: str, lines: int | None = None) -> bytes:
    """Return a recording, or its first lines."""
    return b"\n".join(read_recording(RECORDINGS / name).split(b"\n")[:lines])


FUZZED = {name: (definition, feed) for name, (definition, feed, *_) in FEEDS.items()} | {
    "geojson_document": ({"kind": "geojson", "framing": "document"}, FEEDS["geojson"][1].split(b"\n")[0]),
    "geojson_mapped": (
        {"kind": "geojson", "key": "w", "properties": {"t": {"name": "speed_mps", "unit": "km"}}},
        FEEDS["geojson"][1],
    ),
    "csv_boxes": (CSV_BOXES, CSV),
}
if RECORDINGS.is_dir():
    FUZZED |= {
        "ais_recorded": ({"kind": "ais"}, recorded("ais/ais-sample.txt.gz", 1000)),
        "sbs_recorded": ({"kind": "sbs"}, recorded("adsb/sbs1.txt", 1000)),
        "csv_recorded": (AIS_CSV, recorded("ais/AISdata.csv.gz", 500)),
        "gtfs_realtime_recorded": ({"kind": "gtfs_realtime"}, recorded("gtfsrt/louisville-positions.pb.bz2")),
    }


def mutated(drawn: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return an input with one to three mutations, most often of one value, so that it gets far into the decoder."""
    for _ in range(drawn.choice((1, 1, 1, 2, 3))):
        at, to = sorted((drawn.randrange(len(data) + 1), drawn.randrange(len(data) + 1)))
        to = min(to, at + drawn.choice((1, 1, 4, 30)))
        data = drawn.choice(MUTATIONS)(drawn, data, at, to, others)
    return data


def _byte(drawn, data, at, to, others):
    return data[:at] + bytes([drawn.randrange(256)]) + data[at + 1 :]


def _bit(drawn, data, at, to, others):
    return data[:at] + bytes([byte ^ 1 << drawn.randrange(8) for byte in data[at : at + 1]]) + data[at + 1 :]


def _removed(drawn, data, at, to, others):
    return data[:at] + data[to:]


def _repeated(drawn, data, at, to, others):
    return data[:at] + data[at:to] * drawn.choice((2, 3, 50)) + data[to:]


def _replaced(drawn, data, at, to, others):
    return data[:at] + drawn.choice(EXTREMES) + data[to:]


def _spliced(drawn, data, at, to, others):
    return data[:at] + drawn.choice(others)[at:]


def _value(drawn, data, at, to, others):
    """Replace one value: a number, a quoted text, or what stands between two commas."""
    values = list(drawn.choice((VALUE, CELL)).finditer(data))
    if not values:
        return data
    chosen = drawn.choice(values)
    return data[: chosen.start()] + drawn.choice(EXTREMES) + data[chosen.end() :]


MUTATIONS = (_byte, _bit, _removed, _repeated, _replaced, _spliced, *[_value] * 6)


def signed(line: bytes) -> bytes:
    """Return a line of AIS with the right checksum, so that its payload is read."""
    return SENTENCE.sub(lambda found: b"!%s*%02X" % (found[1], checksum(found[1])), line)


def _messages(drawn):
    """Return sentences of good form whose payloads are of the length of their type, and random otherwise."""
    made = []
    for kind in drawn.choices(list(LENGTHS), k=PER_FEED // 4):
        characters = -(-LENGTHS[kind][1] // 6)
        payload = bytes([ARMOUR[kind], *drawn.choices(ARMOUR, k=characters - 1)])
        made.append(signed(b"!AIVDM,1,1,,A,%s,%d*00" % (payload, characters * 6 - LENGTHS[kind][1])))
    return made


def feeds(name: str, drawn: random.Random):
    """Yield for ever the bytes of `PER_FEED` inputs, cut anywhere; a document is one input and comes alone."""
    definition, feed = FUZZED[name]
    if name in DOCUMENTS:
        while True:
            yield [mutated(drawn, feed, [feed])]
    lines = feed.split(b"\n")
    header, lines = (lines[0] + b"\n", lines[1:]) if definition["kind"] == "csv" else (b"", lines)
    ending = b"\n\x1e" if name == "geojson_sequence" else b"\n"
    while True:
        made = [mutated(drawn, drawn.choice(lines), lines) for _ in range(PER_FEED)]
        if definition["kind"] == "ais":
            made = [signed(line) if drawn.random() < 0.8 else line for line in made] + _messages(drawn)
        whole = header + ending.join(made) + ending
        place = drawn.randrange(len(whole))
        yield [whole[:place], whole[place:]]


def fuzz(name: str, count: int, seed: int) -> Counter:
    """Feed a decoder with mutated inputs; return how many elements came, and how many faults of each reason.

    Raises
    ------
    AssertionError
        When the decoder raised, or an element is unsound; with the seed, and what the decoder was given.
    """
    drawn = random.Random(seed)
    decoder, counts, inputs = make_decoder(FUZZED[name][0], "s"), Counter(), 0
    per_feed = 1 if name in DOCUMENTS else PER_FEED
    for pieces in feeds(name, drawn):
        given = [decoder.feed(piece, NOW_US) for piece in pieces] + [decoder.finish(NOW_US)]
        for decoded in given:
            counts.update(fault.reason for fault in decoded.malformed)
            counts["elements"] += decoded.elements.num_rows
            raised = [fault for fault in decoded.malformed if fault.reason.startswith(FAILED)]
            assert not raised, (raised, seed, pieces)
            check_elements(decoded.elements, EARTH)
        inputs += per_feed
        if inputs >= count:
            return counts


def main() -> None:
    """Fuzz every decoder, or one, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=INPUTS, help="inputs of each decoder")
    parser.add_argument("--feed", choices=FUZZED, action="append", help="one of the feeds; all by default")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in options.feed or FUZZED:
        began = time.monotonic()
        counts = fuzz(name, options.count, options.seed)
        told = ", ".join(f"{reason}: {count:,}" for reason, count in counts.most_common())
        print(f"{name}: {options.count:,} inputs in {time.monotonic() - began:.0f} s; {told}", flush=True)


if __name__ == "__main__":
    main()
