"""Compaction and expiry change nothing that is to stay, whenever they are cut off; snapshots are features."""

import contextlib

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import point_elements
from streaming.history import StoredTables, snapshots, stored, upkeep
from streaming.history.files import parts_of
from streaming.operators.features import Features
from streaming.spaces import EARTH
from tests.draws import examples
from tests.history.test_tables import STREAM, keep
from tests.history.test_writer import DAY_US, Killed

HOUR_US = DAY_US // 24


def moves(count, step_us=HOUR_US):
    """Return elements of five objects, one every step."""
    places = np.random.default_rng(count).uniform(-50, 50, (count, 2))
    keys = [f"k{n % 5}" for n in range(count)]
    return point_elements(STREAM, keys, np.arange(count) * step_us, places, [{"n": n} for n in range(count)])


def everything(root):
    return StoredTables(root, root).query_by_box(stored(STREAM)).rows


@given(
    count=st.integers(1, 120),
    batches=st.integers(1, 12),
    at_once=st.integers(2, 5),
    small=st.sampled_from([1, 3_000, 1 << 20]),
    more=st.integers(0, 9),
)
@examples(25)
def test_what_is_read_is_the_same_before_and_after_a_compaction(tmp_path_factory, count, batches, at_once, small, more):
    root, steps = tmp_path_factory.mktemp("history"), iter([True] * more)
    keep(root, moves(count), batches=batches)
    before, folder = everything(root), root / "earth" / STREAM
    kept = upkeep.MERGED_AT_ONCE, upkeep.SMALL_BYTES
    upkeep.MERGED_AT_ONCE, upkeep.SMALL_BYTES = at_once, small
    try:
        upkeep.compact(folder, EARTH, lambda: next(steps, False))
        assert everything(root).equals(before) and before.num_rows == count
        upkeep.compact(folder, EARTH)
        assert everything(root).equals(before)
        assert not upkeep.compact(folder, EARTH) or small > 1
    finally:
        upkeep.MERGED_AT_ONCE, upkeep.SMALL_BYTES = kept


@pytest.mark.parametrize("deadly", range(4))
def test_a_compaction_that_is_cut_off_between_writing_and_removing_doubles_nothing(tmp_path, monkeypatch, deadly):
    keep(tmp_path, moves(20, 60_000_000), batches=8)
    before, folder = everything(tmp_path), tmp_path / "earth" / STREAM
    monkeypatch.setattr(upkeep, "MERGED_AT_ONCE", 2)
    assert len(parts_of(folder)) > 3
    left = [None] * deadly

    def removed(parts):
        for part in parts:
            if not left:
                raise Killed
            left.pop()
            part.path.unlink()

    with monkeypatch.context() as cut:
        cut.setattr(upkeep, "remove", removed)
        with contextlib.suppress(Killed):
            upkeep.compact(folder, EARTH)
    assert everything(tmp_path).equals(before)
    upkeep.compact(folder, EARTH)
    assert everything(tmp_path).equals(before)
    assert len(parts_of(folder)) == 1


def test_a_stream_that_is_dropped_during_a_compaction_does_not_come_back(tmp_path, monkeypatch):
    keep(tmp_path, moves(20, 60_000_000), batches=8)
    folder, write = tmp_path / "earth" / STREAM, upkeep.write_rows
    monkeypatch.setattr(upkeep, "MERGED_AT_ONCE", 2)

    def dropped(*arguments):
        upkeep.remove(parts_of(folder))
        write(*arguments)

    monkeypatch.setattr(upkeep, "write_rows", dropped)
    upkeep.compact(folder, EARTH)
    assert not parts_of(folder)


@pytest.mark.parametrize("hours", [0, 1, 23, 24, 25, 60, 1000])
def test_what_is_younger_stays_and_what_is_older_goes_with_its_file(tmp_path, hours):
    keep(tmp_path, moves(70), batches=9)
    pending = StoredTables(tmp_path, tmp_path).history.pending()
    before = everything(tmp_path)["time_us"].to_numpy()
    parts = parts_of(tmp_path / "earth" / STREAM)
    newest = [max(pq.read_table(part.path)["time"].cast("int64").to_pylist()) for part in parts]
    removed = upkeep.expire(tmp_path / "earth" / STREAM, hours * HOUR_US)
    after = everything(tmp_path)["time_us"].to_numpy()
    young = before[before >= hours * HOUR_US]
    assert set(young) <= set(after)
    assert removed == sum(time_us < hours * HOUR_US for time_us in newest)
    if hours == 1000:
        assert len(after) == pending and removed == len(parts)


def test_a_snapshot_is_a_version_of_features_and_another_only_where_something_is_new(tmp_path):
    assert snapshots.take(tmp_path, "nothing", EARTH) == 1
    assert snapshots.snapshots(tmp_path, EARTH).read("nothing", 1).num_rows == 0
    keep(tmp_path, moves(12), batches=4)
    assert [snapshots.take(tmp_path, STREAM, EARTH) for _ in range(2)] == [1, 1]
    store = snapshots.snapshots(tmp_path, EARTH)
    features = Features(store.read(STREAM, 1), EARTH)
    assert len(features) == 12
    assert "k1@1970-01-01T01:00:00.000000Z" in features.table["key"].to_pylist()
    assert snapshots.take(tmp_path, STREAM, EARTH, most_rows=5) == 2
    hours = {key.split("T")[1][:2] for key in store.read(STREAM, 2)["key"].to_pylist()}
    assert hours == {"07", "08", "09", "10", "11"}


def test_elements_of_one_key_and_time_are_one_feature_of_a_snapshot(tmp_path):
    twice = point_elements(STREAM, ["a", "a", "a"], [1, 1, 2], np.zeros((3, 2)), [{}] * 3)
    keep(tmp_path, twice, batches=3)
    snapshots.take(tmp_path, STREAM, EARTH)
    assert snapshots.snapshots(tmp_path, EARTH).read(STREAM, 1).num_rows == 2
    assert everything(tmp_path).num_rows == 3
