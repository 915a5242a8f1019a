"""Versions of layers: what an edit does, what stays readable, and what a crash leaves."""

import os

import numpy as np
import orjson
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import bounds_of, key_hashes
from streaming.layers import Conflict, InvalidLayer, LayerStore, feature_schema, feature_table, store
from streaming.layers.features import hilbert_order
from streaming.spaces import EARTH, Dimension, Space
from tests.draws import examples

LINE = Space("line", (Dimension("price", "EUR", 0.0, 1000.0),))
KEYS = st.sampled_from([f"k{number}" for number in range(12)])


def features(layer, content):
    """Return the features of a dict: key to a number, which makes the place and the property."""
    return feature_table(
        layer, list(content), [shapely.Point(v, v / 2) for v in content.values()], [{"v": v} for v in content.values()]
    )


def content_of(table):
    """Return the dict of features."""
    properties = map(orjson.loads, table["properties"].to_pylist())
    return {key: it["v"] for key, it in zip(table["key"].to_pylist(), properties, strict=True)}


edits = st.lists(
    st.tuples(st.dictionaries(KEYS, st.integers(-90, 90), max_size=4), st.sets(KEYS, max_size=3)), max_size=8
)


@given(st.dictionaries(KEYS, st.integers(-90, 90), max_size=6), edits, st.sampled_from([1, 3, 100]))
@examples(40)
def test_edits_do_what_they_do_to_a_dict_and_every_version_stays_readable(tmp_path_factory, first, edits, most_parts):
    kept = LayerStore(tmp_path_factory.mktemp("layers"))
    before, store.MAX_PARTS = store.MAX_PARTS, most_parts
    try:
        expected = [first]
        assert kept.write("l", features("l", first)) == 1
        for upserts, asked in edits:
            removed = (asked & set(expected[-1])) - set(upserts)
            assert kept.edit("l", len(expected), features("l", upserts), removed) == len(expected) + 1
            expected.append({k: v for k, v in (expected[-1] | upserts).items() if k not in removed})
        for version, content in enumerate(expected, 1):
            table, manifest = kept.read("l", version), kept.manifest("l", version)
            assert content_of(table) == content
            assert manifest.features == len(content)
            assert manifest.bounds == store.around(bounds_of(table["bounds"]), EARTH)
    finally:
        store.MAX_PARTS = before


def test_a_table_of_features_comes_back_as_it_was(tmp_path):
    rng = np.random.default_rng(1)
    shapes = shapely.linestrings(rng.uniform(-80, 80, (500, 3, 2)))
    table = feature_table("roads", [f"r{n}" for n in range(500)], shapes, [{"n": n} for n in range(500)])
    version = LayerStore(tmp_path).write("roads", table, title="Roads")
    back = LayerStore(tmp_path).read("roads", version)
    assert back.schema == feature_schema(EARTH)
    assert back.sort_by("key").equals(table.sort_by("key"))
    manifest = LayerStore(tmp_path).manifest("roads", version)
    assert (manifest.features, manifest.geometry_types, manifest.title) == (500, ("LineString",), "Roads")


def test_features_that_are_boxes_of_one_dimension_come_back(tmp_path):
    table = feature_table("bands", ["low", "high"], [None, None], [{}, {}], np.array([[0.0, 10], [50, 90]]), LINE)
    kept = LayerStore(tmp_path)
    kept.write("bands", table, LINE)
    kept.edit("bands", 1, table.slice(0, 1), ["high"], LINE)
    assert kept.read("bands", 1, LINE).sort_by("key").equals(table.sort_by("key"))
    assert kept.read("bands", 2, LINE).equals(table.slice(0, 1))
    with pytest.raises(InvalidLayer, match="must be of the space 'earth'; got 'line'"):
        kept.read("bands", 1)


def test_the_hashes_are_those_of_the_layers_name(tmp_path):
    table = features("l", {"a": 1})
    assert table["key_hash"].to_pylist() == key_hashes("l", ["a"]).tolist()


def test_a_part_is_geoparquet_that_geopandas_reads_by_box(tmp_path):
    import geopandas

    LayerStore(tmp_path).write("l", features("l", {f"k{v}": v for v in range(-80, 80)}))
    (part,) = (tmp_path / "l" / "parts").iterdir()
    frame = geopandas.read_parquet(part, bbox=(9.5, 0, 12.5, 80))
    assert sorted(frame["key"]) == ["k10", "k11", "k12"]
    assert frame.crs == "OGC:CRS84"
    assert orjson.loads(pq.read_schema(part).metadata[b"geo"])["version"] == "1.1.0"


def test_neighbours_along_the_curve_are_neighbours_in_space():
    lon, lat = np.meshgrid(np.arange(32.0), np.arange(32.0))
    points = np.column_stack([lon.ravel(), lat.ravel(), np.full(1024, -np.inf)] * 2)
    points[:, 5] = np.inf
    walk = points[hilbert_order(points, EARTH)][:, :2]
    assert np.abs(np.diff(walk, axis=0)).sum(axis=1).max() == 1


def test_an_edit_of_an_old_version_is_a_conflict_and_changes_nothing(tmp_path):
    kept = LayerStore(tmp_path)
    kept.write("l", features("l", {"a": 1}))
    kept.edit("l", 1, features("l", {"a": 2}))
    with pytest.raises(Conflict, match="newest version 2; got 1"):
        kept.edit("l", 1, features("l", {"a": 3}))
    assert content_of(kept.read("l", 2)) == {"a": 2}


def test_of_two_editors_at_once_one_gets_in_and_the_other_leaves_nothing(tmp_path, monkeypatch):
    kept = LayerStore(tmp_path)
    kept.write("l", features("l", {"a": 1}))
    publish = LayerStore._publish

    def slower(self, *arguments):
        monkeypatch.setattr(LayerStore, "_publish", publish)
        kept.edit("l", 1, features("l", {"b": 2}))
        return publish(self, *arguments)

    monkeypatch.setattr(LayerStore, "_publish", slower)
    with pytest.raises(Conflict, match="newest version; got 1"):
        kept.edit("l", 1, features("l", {"b": 3}))
    assert content_of(kept.read("l", kept.newest("l"))) == {"a": 1, "b": 2}
    assert len(list((tmp_path / "l" / "parts").iterdir())) == 2


@pytest.mark.parametrize("step", ["replace", "link"])
def test_a_crash_between_part_and_manifest_leaves_the_old_version(tmp_path, monkeypatch, step):
    kept = LayerStore(tmp_path)
    kept.write("l", features("l", {"a": 1}))

    def crash(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, step, crash)
    with pytest.raises(OSError, match="the disk is full"):
        kept.edit("l", 1, features("l", {"a": 2}))
    monkeypatch.undo()
    assert kept.versions("l") == [1]
    assert content_of(kept.read("l", 1)) == {"a": 1}
    assert sorted(path.name for path in (tmp_path / "l").iterdir()) == ["1.json", "parts"]
    assert len(list((tmp_path / "l" / "parts").iterdir())) == 1


def test_a_part_that_a_power_cut_left_goes_once_it_is_old_and_no_other_however_old(tmp_path):
    kept = LayerStore(tmp_path)
    kept.write("l", features("l", {"a": 1}))
    orphan = tmp_path / "l" / "parts" / "orphan.parquet"
    orphan.write_bytes(b"half")
    kept.discard("l", 3)
    assert orphan.exists()
    for part in orphan.parent.iterdir():  # also those that are used
        os.utime(part, (0, 0))
    kept.discard("l", 3)
    assert not orphan.exists()
    assert content_of(kept.read("l", 1)) == {"a": 1}


def test_old_versions_go_with_the_parts_that_only_they_had(tmp_path):
    kept = LayerStore(tmp_path)
    for value in range(3):
        kept.write("l", features("l", {"a": value}))
    kept.edit("l", 3, features("l", {"b": 7}))
    kept.discard("l", 2, min_age_s=3600)
    assert kept.versions("l") == [1, 2, 3, 4]
    kept.discard("l", 1)
    assert kept.versions("l") == [4]
    assert content_of(kept.read("l", 4)) == {"a": 2, "b": 7}
    assert len(list((tmp_path / "l" / "parts").iterdir())) == 2
    with pytest.raises(InvalidLayer, match="must be one of 4; got 1"):
        kept.read("l", 1)


def test_a_version_whose_parts_go_while_it_is_read_is_no_more(tmp_path):
    kept = LayerStore(tmp_path)
    kept.write("l", features("l", {"a": 1}))
    (part,) = (tmp_path / "l" / "parts").iterdir()
    part.unlink()
    with pytest.raises(InvalidLayer, match="must be one that is kept; got 1"):
        kept.read("l", 1)


def test_a_dropped_layer_is_gone(tmp_path):
    kept = LayerStore(tmp_path)
    kept.write("l", features("l", {"a": 1}))
    kept.drop("l")
    kept.drop("l")
    assert kept.newest("l") is None
    assert [path.name for path in tmp_path.iterdir()] == [".dropped"]
    assert [path.read_text() for path in (tmp_path / ".dropped").iterdir()] == ["1"]


def test_a_layer_made_again_goes_on_with_the_numbers_of_the_dropped_one(tmp_path):
    kept = LayerStore(tmp_path)
    kept.write("l", features("l", {"a": 1}))
    kept.edit("l", 1, features("l", {"a": 2}))
    kept.drop("l")
    assert kept.write("l", features("l", {"b": 1})) == 3
    assert kept.edit("l", 3, features("l", {"b": 2})) == 4


@pytest.mark.parametrize("name", ["", "../etc", "A", "a b", "a" * 41, "é", None])
def test_the_name_of_a_layer_is_a_name(tmp_path, name):
    with pytest.raises(InvalidLayer, match="the name of a layer must be"):
        LayerStore(tmp_path).write(name, features("l", {}))


def test_edits_that_contradict_themselves_are_refused(tmp_path):
    kept = LayerStore(tmp_path)
    kept.write("l", features("l", {"a": 1}))
    with pytest.raises(InvalidLayer, match="got both of 'a'"):
        kept.edit("l", 1, features("l", {"a": 2}), ["a"])
    with pytest.raises(InvalidLayer, match="must remove features of its base version; got 'b'"):
        kept.edit("l", 1, features("l", {}), ["b"])


def test_features_need_different_keys_and_a_place():
    with pytest.raises(InvalidLayer, match="the keys of a layer must differ; got 'a' twice"):
        feature_table("l", ["a", "b", "a"], [shapely.Point(0, 0)] * 3, [None] * 3)
    with pytest.raises(InvalidLayer, match="got none in row 1"):
        feature_table("l", ["a", "b"], [shapely.Point(0, 0), shapely.Point()], [None] * 2)
