"""A layer is named, sorted and written without being in memory, exactly as if it were."""

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.layers import InvalidLayer, Job, LayerStore, feature_table, sorting
from streaming.layers.importing import import_file
from streaming.layers.keys import UniqueKeys
from streaming.layers.sorting import Spill
from streaming.spaces import EARTH
from tests.layers.files import write

KEYS = st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "a#2#2", "b#2"]), max_size=12)


def named_in_memory(keys):
    """Number keys that repeat, again and again until none does."""
    different = pd.Series(keys, dtype=object)
    while (repeated := different.duplicated()).any():
        turn = different.groupby(different, sort=False).cumcount()[repeated] + 1
        different[repeated] = different[repeated] + "#" + turn.astype(str)
    return different.tolist()


@given(st.lists(KEYS, min_size=1, max_size=4))
def test_keys_that_are_named_in_batches_are_those_that_are_named_together(texts):
    batches = [pa.array(keys, pa.string()) for keys in texts]
    unique, first, named = UniqueKeys(), 0, []
    for keys in batches:
        unique.add(keys)
    unique.settle(lambda: iter(batches))
    for keys in batches:
        named += unique.named(first, keys).to_pylist()
        first += len(keys)
    assert named == named_in_memory([key for keys in texts for key in keys])
    assert len(set(named)) == len(named)


def places(count, seed=5):
    return np.random.default_rng(seed).uniform(-80, 80, (count, 2))


@pytest.fixture
def small_buckets(monkeypatch):
    """Let a bucket have a group, and a group few features."""
    monkeypatch.setattr(sorting, "BUCKET_BYTES", 1)
    for module in ("sorting", "parts"):
        monkeypatch.setattr(f"streaming.layers.{module}.ROWS_PER_GROUP", 500)


def test_a_layer_that_is_sorted_in_buckets_is_the_part_that_memory_would_make(tmp_path, small_buckets):
    at = np.repeat(places(4_000).round(4), 2, axis=0)  # of two features at one place, the first comes first
    points = geopandas.GeoDataFrame(geometry=shapely.points(at), crs="EPSG:4326")
    told = import_file(Job(write(tmp_path, points, "geojsonl"), tmp_path))
    shapes = shapely.points(at)
    keys = [str(number) for number in range(len(at))]
    store = LayerStore(tmp_path / "store")
    version = store.write("l", feature_table("l", keys, shapes, [{}] * len(at)))
    (whole,) = store.paths(store.manifest("l", version))
    assert told.part.read_bytes() == whole.read_bytes()
    assert told.summary == store.manifest("l", version).summary


def test_no_step_of_an_import_holds_the_layer(tmp_path, small_buckets, monkeypatch):
    monkeypatch.setattr("streaming.layers.reading.BATCH_ROWS", 500)
    count, steps = 40_000, np.linspace(0, 1, 100).reshape(50, 2)
    lines = shapely.linestrings(places(count)[:, None, :] + steps)
    path = write(tmp_path, geopandas.GeoDataFrame(geometry=lines, crs="EPSG:4326"), "fgb")
    held, before = [], pa.total_allocated_bytes()
    told = import_file(Job(path, tmp_path), lambda _: held.append(pa.total_allocated_bytes() - before))
    assert told.summary.features == count
    assert max(held) < count * steps.nbytes / 4


def test_an_import_that_fails_leaves_no_file(tmp_path, small_buckets):
    path = write(tmp_path, geopandas.GeoDataFrame(geometry=shapely.points(places(3_000)), crs="EPSG:4326"), "fgb")

    def cancel(share):
        if share > 0.85:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_file(Job(path, tmp_path), cancel)
    assert not list(tmp_path.rglob("*.arrow")) and not list(tmp_path.rglob("*.parquet"))


def test_a_disk_without_room_refuses_the_import(tmp_path):
    spill = Spill(tmp_path / "missing", EARTH)
    with pytest.raises(InvalidLayer, match="an import needs room for its features on the disk; got"):
        spill.add(feature_table("l", ["a"], [shapely.Point(0, 0)], [{}]).drop_columns("key_hash"))
