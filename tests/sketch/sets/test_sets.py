"""Sets of values: the same bits however elements came, exact where values are few, and within memory."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.sketch.sets import codec
from streaming.sketch.sets.dense import Dense
from streaming.sketch.sets.entries import EntryKeys, Values
from streaming.sketch.sets.hashing import hashes_of_numbers, hashes_of_texts
from streaming.sketch.sets.sets import Sets, merge, split
from streaming.sketch.sets.settings import InvalidSets, SetSettings
from streaming.sketch.settings import DAY_US
from tests.draws import examples
from tests.sketch.sets.streams import TINY, sets_of, stream_of

seeds = st.integers(0, 2**32 - 1)


def same(some, other):
    """Tell whether two versions have bitwise the same entries."""
    one, two = some.entries(), other.entries()
    columns = [(one.count, two.count), (one.place, two.place)]
    for part, cls in (("keys", EntryKeys), ("values", Values), ("dense", Dense)):
        columns += [tuple(getattr(getattr(side, part), field.name) for side in (one, two)) for field in fields(cls)]
    return one.level == two.level and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in columns)


@given(seeds, st.integers(1, 400), st.lists(st.integers(0, 400), max_size=6))
def test_any_order_and_any_cut_give_the_same_bits(seed, count, cuts):
    rng = np.random.default_rng(seed)
    stream = stream_of(rng, count)
    whole = sets_of(stream)
    shuffled, sets = rng.permutation(count), Sets(TINY)
    for rows in np.split(shuffled, sorted(min(cut, count) for cut in cuts)):
        sets = stream.take(rows).added(sets)
    assert same(sets, whole)


@given(seeds, st.integers(1, 300), st.integers(1, 4))
def test_what_is_split_and_merged_in_any_order_has_the_same_bits(seed, count, regions):
    rng = np.random.default_rng(seed)
    whole = sets_of(stream_of(rng, count))
    parts = split(whole, lambda cell, bits: cell % regions, regions)
    assert sum(part.entries().count.sum() for part in parts) == whole.entries().count.sum()
    merged = parts.pop(rng.integers(len(parts)))
    while parts:
        merged = merge(merged, parts.pop(rng.integers(len(parts))))
    assert same(merged, whole)


@given(seeds, st.lists(st.integers(0, 150), min_size=3, max_size=3))
def test_a_merge_is_associative(seed, counts):
    rng = np.random.default_rng(seed)
    a, b, c = (sets_of(stream_of(rng, count)) for count in counts)
    assert same(merge(merge(a, b), c), merge(a, merge(b, c)))


@examples(30)
@given(seeds, st.integers(0, 300))
def test_sets_survive_their_codec_and_the_way_to_the_assembler(seed, count):
    sets = sets_of(stream_of(np.random.default_rng(seed), count))
    parts = codec.encode(sets)
    stored = {name: codec.Tables(part.tables()) for name, part in parts.items()}
    assert codec.decode(stored).following == sets.following
    assert same(codec.decode(stored), sets)
    assert same(codec.partial_of(codec.partial_tables(sets)), sets)
    assert all(run is parts[f"sets-{run.number}"] for run in codec.decode(parts).runs)


def test_a_run_that_is_much_larger_is_not_written_again_by_a_small_batch():
    rng = np.random.default_rng(0)
    wide = SetSettings(("a", "b"))
    sets = sets_of(stream_of(rng, 5_000), wide)
    grown = stream_of(rng, 50).added(sets)
    assert grown.runs[0] is sets.runs[0] and len(grown.runs) == 2
    for _ in range(200):
        grown = stream_of(rng, 50).added(grown)
    assert len(grown.runs) < 12


def test_memory_stays_within_its_budget_over_a_year():
    rng = np.random.default_rng(1)
    wide = SetSettings(("key",), most_bytes=2_000_000, width_bits=8, bloom_bits=14)
    sets, taken = Sets(wide), []
    for day in range(365):
        stream = stream_of(rng, 400, values=10**9, cells=256, features=1, span_us=DAY_US)
        stream.time_us[:] += day * DAY_US
        sets = stream.added(sets)
        taken.append(sets.nbytes)
    assert max(taken) <= wide.most_bytes and sets.level > 0
    assert sets.entries().count.sum() == pytest.approx(365 * 400 * 0.9, rel=0.01)


def test_only_sets_of_equal_settings_are_merged():
    with pytest.raises(InvalidSets, match="equal settings"):
        merge(Sets(TINY), Sets(SetSettings(("a",))))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"features": ()}, "features must be names"),
        ({"features": ("a", "a")}, "features must be names that differ"),
        (
            {"features": ("a", "b\\c")},
            "features: .* no double quotes or backslashes",
        ),
        ({"cell_bits": 49}, "cell_bits must be an integer from 0 to 48; got 49"),
        ({"rows": 2.0}, r"rows must be an integer from 1 to 16; got 2\.0"),
    ],
)
def test_settings_that_break_a_rule_are_refused_with_it(keys, message):
    with pytest.raises(InvalidSets, match=message):
        SetSettings(**{"features": ("a",)} | keys)


def test_each_bit_of_a_hash_is_set_for_half_of_the_values_whatever_they_are():
    numbers = np.arange(20_000.0)
    for hashes in (hashes_of_numbers(numbers), hashes_of_texts([f"ship {number:.0f}" for number in numbers])):
        bits = (hashes[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.02
        assert len(np.unique(hashes)) == len(numbers)


def test_hashes_do_not_depend_on_the_process():
    assert hashes_of_numbers(np.array([1.0, -2.5])).tolist() == NUMBERS
    assert hashes_of_texts(["ALICE", "å"]).tolist() == TEXTS


NUMBERS = [3035652100526550566, 4700886180178471262]
TEXTS = [9514229695314853598, 2759120810427748300]
