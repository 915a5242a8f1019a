"""Questions to sets, beside exact sets: certain where values are few, and within the bounds as often as they say."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.sketch.sets.cardinality import estimated
from streaming.sketch.sets.hashing import hash_of, hashes_of_numbers, hashes_of_texts
from streaming.sketch.sets.questions import chosen, contains, distinct, frequency
from streaming.sketch.sets.sets import Sets, add
from streaming.sketch.sets.settings import InvalidSets, SetSettings
from tests.sketch.sets.streams import sets_of, stream_of

EXACT = SetSettings(("a", "b"), cell_bits=4, time_bin_us=1_000_000)
SKETCHED = SetSettings(("a",), cell_bits=4, time_bin_us=4_000_000, bloom_bits=12, register_bits=8, width_bits=7)


def west(keys, _):
    """Select the cells below 6, of which those from 4 are cut."""
    return keys.cell < 4, keys.cell < 6


@given(st.integers(0, 2**32 - 1), st.integers(0, 300), st.sampled_from([0, 1]))
def test_entries_of_few_values_answer_exactly(seed, count, feature):
    stream = stream_of(np.random.default_rng(seed), count)
    sets, counts = sets_of(stream, EXACT), stream.counts(feature)
    asked = chosen(sets, "ab"[feature])
    for value in [*counts, 1e9]:
        number = frequency(sets, asked, hash_of(value))
        assert number.low == number.value == number.high == counts[value]
        membership = contains(sets, asked, hash_of(value))
        assert (membership.present, membership.false_positive) == (value in counts, 0.0)
    different = distinct(sets, asked)
    assert different.low == different.value == different.high == len(counts)
    assert different.elements == counts.total()


@given(st.integers(0, 2**32 - 1), st.integers(0, 300), st.sampled_from([4, 5, 6]))
def test_the_truth_of_a_selection_that_cuts_entries_is_certain_to_lie_within_the_bounds(seed, count, east):
    """What was selected ends anywhere within the cells that are cut."""
    stream = stream_of(np.random.default_rng(seed), count)
    sets = sets_of(stream, EXACT)
    truth = stream.counts(0, stream.cell < east)
    asked = chosen(sets, "a", west)
    for value in [*stream.counts(0), 1e9]:
        number = frequency(sets, asked, hash_of(value))
        assert number.low <= truth[value] <= number.high
        present = contains(sets, asked, hash_of(value)).present
        assert present is None or present == (value in truth)
    different = distinct(sets, asked)
    assert different.low <= len(truth) <= different.high


def test_frequencies_lie_within_their_bounds_as_often_as_they_say():
    rng, shares, widths = np.random.default_rng(7), {0.8: [], 0.95: [], 0.99: []}, []
    for _ in range(20):
        stream = stream_of(rng, 20_000, values=10**6, features=1, cells=2)
        sets, counts = sets_of(stream, SKETCHED), stream.counts(0)
        asked = chosen(sets, "a")
        assert len(asked.entries.dense)
        for value in rng.choice(list(counts), 50, replace=False):
            for confidence, inside in shares.items():
                number = frequency(sets, asked, hash_of(value), confidence)
                assert counts[value] <= number.high
                inside.append(number.low <= counts[value])
                widths.append((number.high - number.low) / number.elements)
    assert all(np.mean(inside) >= confidence - 0.01 for confidence, inside in shares.items())
    assert np.median(widths) < 0.01


@pytest.mark.parametrize("different", [300, 5_000])
def test_counts_of_different_values_lie_within_their_bounds_as_often_as_they_say(different):
    rng, inside = np.random.default_rng(different), {0.8: [], 0.95: [], 0.99: []}
    for _ in range(200):
        hashes = rng.integers(0, 2**64, different, dtype=np.uint64)[None]
        nothing = np.zeros(different, dtype=np.int64)
        sets = add(Sets(SKETCHED), nothing, nothing, hashes, np.ones((1, different), dtype=bool))
        asked = chosen(sets, "a")
        for confidence, told in inside.items():
            number = distinct(sets, asked, confidence)
            told.append(number.low <= different <= number.high)
    assert all(np.mean(told) >= confidence - 0.03 for confidence, told in inside.items())


def test_an_estimate_has_no_bias_from_few_values_to_many():
    rng = np.random.default_rng(3)
    for different in (1, 10, 100, 1_000, 10_000):
        found = []
        for _ in range(200):
            register = rng.integers(0, 256, different)
            registers = np.zeros(256, dtype=np.uint8)
            np.maximum.at(registers, register, rng.geometric(0.5, different).astype(np.uint8))
            found.append(estimated(registers))
        assert np.mean(found) == pytest.approx(different, rel=3 * 1.04 / 16 / np.sqrt(200) + 0.005)


@pytest.mark.parametrize("cells", [1, 4])
def test_filters_find_values_that_were_not_there_no_more_often_than_they_say(cells):
    """Filters of several entries have many values in common, so they are wrong together, and all in all less often."""
    stream = stream_of(np.random.default_rng(5), 4_000 * cells, values=10**6, features=1, cells=cells, span_us=1)
    sets = sets_of(stream, SKETCHED)
    asked, absent = chosen(sets, "a"), hashes_of_numbers(-np.arange(1.0, 5_001.0))
    found = [contains(sets, asked, hashed) for hashed in absent]
    share = np.mean([membership.present for membership in found])
    told = max(membership.false_positive for membership in found)
    spread = 4 * np.sqrt(told / 5_000)
    assert 0.01 < told < 0.5 and (1.0 if cells == 1 else 0.7) * told - spread < share < told + spread
    assert all(contains(sets, asked, hash_of(value)).present for value in stream.counts(0))


def test_a_feature_whose_values_are_not_kept_is_refused():
    with pytest.raises(InvalidSets, match="the feature of a set must be one of a, b; got 'c'"):
        chosen(sets_of(stream_of(np.random.default_rng(0), 5)), "c")


@pytest.mark.recordings
def test_ships_of_a_recording_are_told_apart_and_counted(shared_data):
    with gzip.open(shared_data / "ais" / "AISdata.csv.gz", "rt") as file:
        rows = pd.read_csv(file, usecols=["MMSI", "LON", "LAT", "BaseDateTime"], dtype={"MMSI": str})
    cell = np.clip((rows["LON"].to_numpy() + 180) // 22.5, 0, 15).astype(np.int64)
    time_us = pd.to_datetime(rows["BaseDateTime"]).to_numpy().astype("datetime64[us]").astype(np.int64)
    sets = Sets(SetSettings(("key",), cell_bits=4, bloom_bits=15, width_bits=8))
    for part in np.array_split(np.arange(len(rows)), 7):
        hashes = hashes_of_texts(rows["MMSI"].to_numpy()[part])[None]
        sets = add(sets, time_us[part], cell[part], hashes, np.ones((1, len(part)), dtype=bool))
    counts = rows["MMSI"].value_counts()
    asked = chosen(sets, "key")
    number = distinct(sets, asked)
    assert len(asked.entries.dense) and number.low <= len(counts) <= number.high
    assert number.high - number.low < 0.1 * len(counts)
    within = [
        (found := frequency(sets, asked, hash_of(key))).low <= counts[key] <= found.high for key in counts.index[::50]
    ]
    assert np.mean(within) >= 0.95
    assert all(contains(sets, asked, hash_of(key)).present for key in counts.index[::50])
