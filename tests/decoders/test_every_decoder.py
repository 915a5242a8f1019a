"""What holds for every decoder, whatever it decodes."""

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.decoders import decoder_class, decoder_kinds, make_decoder
from streaming.elements import bounds_of, element_schema
from streaming.spaces import EARTH
from tests.decoders.feeds import CSV, FEEDS, NOW_US, cut, decode, decode_whole
from tests.draws import examples

DOCUMENTS = ("aircraft_json", "gtfs_realtime")
MEGABYTE = 1 << 20

feeds = pytest.mark.parametrize("name", FEEDS)


def garbage(size, seed):
    """Random bytes with line ends and separators of all kinds among them."""
    drawn = random.Random(seed)
    return bytes(drawn.choices(b"\n\r\x1e,;\\!$*{}[]\"'\x00\xff0123456789abcAISVDMG-." * 4 + bytes(range(256)), k=size))


def definition_of(name):
    return FEEDS[name][0]


def noise_for(name, size, seed):
    """Garbage that gets as far into the decoder as it can: after a good header, where there is one."""
    return (CSV.split(b"\n")[0] + b"\n" if name == "csv" else b"") + garbage(size, seed)


@feeds
def test_a_feed_gives_its_elements_and_counts_what_is_malformed(name):
    definition, feed, count, reasons = FEEDS[name]
    elements, malformed = decode_whole(definition, feed)
    assert elements.num_rows == count
    assert malformed == reasons


@feeds
def test_elements_have_the_schema_and_finite_positions_on_earth(name):
    elements, _ = decode_whole(definition_of(name), FEEDS[name][1])
    assert elements.schema == element_schema(EARTH)
    bounds = bounds_of(elements["bounds"])
    assert not np.isnan(bounds).any()
    assert (bounds[:, 0] >= -180).all() and (bounds[:, 0] < 180).all()
    assert (np.abs(bounds[:, [1, 4]]) <= 90).all()


@feeds
def test_a_feed_given_byte_by_byte_gives_the_same(name):
    definition, feed, _, _ = FEEDS[name]
    elements, malformed = decode(make_decoder(definition, "s"), [feed[i : i + 1] for i in range(len(feed))])
    whole, whole_malformed = decode_whole(definition, feed)
    assert elements.equals(whole)
    assert malformed == whole_malformed


@feeds
@examples(25)
@given(places=st.lists(st.integers(0, 10_000), max_size=12))
def test_any_cut_of_the_bytes_gives_the_same_elements(name, places):
    definition, feed, _, _ = FEEDS[name]
    elements, malformed = decode(make_decoder(definition, "s"), cut(feed, places))
    whole, whole_malformed = decode_whole(definition, feed)
    assert elements.equals(whole)
    assert malformed == whole_malformed


@feeds
@examples(15)
@given(places=st.lists(st.integers(0, 4000), max_size=8), seed=st.integers(0, 2**32))
def test_any_cut_of_garbage_gives_the_same_faults(name, places, seed):
    feed = noise_for(name, 4000, seed)
    elements, malformed = decode(make_decoder(definition_of(name), "s"), cut(feed, places))
    whole, whole_malformed = decode_whole(definition_of(name), feed)
    assert elements.equals(whole)
    assert malformed == whole_malformed


@feeds
@examples(25)
@given(length=st.integers(0, 10_000))
def test_a_truncated_feed_never_raises_and_the_decoder_can_be_used_again(name, length):
    definition, feed, count, _ = FEEDS[name]
    decoder = make_decoder(definition, "s")
    decode(decoder, [feed[: length % len(feed)]])
    again, _ = decode(decoder, [feed])
    # An aircraft that is known already has less news.
    assert 1 <= again.num_rows <= count if name == "sbs" else again.num_rows == count


@pytest.mark.parametrize("name", [name for name in FEEDS if name not in (*DOCUMENTS, "geojson_sequence")])
def test_garbage_between_the_lines_changes_no_element(name):
    definition, feed, count, reasons = FEEDS[name]
    header, lines = (feed.split(b"\n")[:1], feed.split(b"\n")[1:]) if name == "csv" else ([], feed.split(b"\n"))
    noise = b'\x00\xff garbage \x80"\n'
    elements, malformed = decode_whole(definition, b"\n".join([*header, noise + (b"\n" + noise).join(lines)]))
    assert elements.equals(decode_whole(definition, feed)[0])
    assert elements.num_rows == count
    assert sum(malformed.values()) == sum(reasons.values()) + len(lines)


@feeds
def test_a_megabyte_of_garbage_is_counted_in_bounded_memory(name):
    decoder = make_decoder(definition_of(name), "s")
    noise = noise_for(name, MEGABYTE, 7)
    elements, malformed = decode(decoder, [noise[i : i + 65_536] for i in range(0, MEGABYTE, 65_536)])
    assert elements.num_rows == 0
    assert sum(malformed.values()) >= 1


@feeds
def test_an_endless_line_is_counted_once_and_not_kept(name):
    limits = {"geojson": "max_bytes", "geojson_sequence": "max_bytes", "csv": "max_line_bytes"}
    limit = limits.get(name, "max_document_bytes" if name in DOCUMENTS else "max_line_bytes")
    decoder = make_decoder(definition_of(name) | {limit: 5000}, "s")
    piece = b"x" * 65_536
    # What measures coverage keeps something, too, the first times that a line runs.
    faults = [fault for _ in range(64) for fault in decoder.feed(piece, NOW_US).malformed]
    tracemalloc.start()
    faults += [fault for _ in range(64) for fault in decoder.feed(piece, NOW_US).malformed]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [fault.reason for fault in faults] == ["document too long" if name in DOCUMENTS else "line too long"]
    assert len(faults[0].sample) <= 200
    assert kept < 200_000


@feeds
def test_a_stream_gives_its_name_to_the_key_hashes(name):
    definition, feed, _, _ = FEEDS[name]
    ships, buses = decode_whole(definition, feed, "ships")[0], decode_whole(definition, feed, "buses")[0]
    assert ships["key"].equals(buses["key"])
    assert not ships["key_hash"].equals(buses["key_hash"])


@pytest.mark.parametrize("kind", decoder_kinds())
def test_every_option_says_its_type_default_and_meaning(kind):
    described = decoder_class(kind).options.describe()
    assert described
    assert all(option.name and option.type and option.doc for option in described)
    assert decoder_class(kind).options.parse({option.name: option.default for option in described})


def test_the_feeds_of_these_tests_are_of_every_kind():
    assert {definition["kind"] for definition, *_ in FEEDS.values()} == set(decoder_kinds())
