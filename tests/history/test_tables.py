"""Questions to stored elements and layers are answered as GeoPandas answers them."""

import itertools
from pathlib import Path

import geopandas
import numpy as np
import orjson
import pyarrow as pa
import pytest
import shapely

from streaming.elements import box_elements, point_elements, stream_number
from streaming.history import InvalidQuestion, StoredTables, layer, parse_table, reader, rows, stored, writer
from streaming.history.writer import HistoryWriter, Turn
from streaming.layers import LayerStore, feature_table
from streaming.servers.elements import tracked_schema
from streaming.spaces import EARTH, Dimension, Space

WGS84, HOUR_US = "EPSG:4326", 3600 * 1_000_000
STREAM, NUMBER = "buses", stream_number("buses")


def tracked(elements, space=EARTH):
    """Return elements as they reach a region."""
    for value in (NUMBER, 0):
        name = tracked_schema(space).names[elements.num_columns]
        elements = elements.append_column(name, pa.array(np.full(elements.num_rows, value)))
    return elements.cast(tracked_schema(space))


def keep(root, elements, space=EARTH, batches=7):
    """Store elements in some batches, of which the last are still pending."""
    kept = HistoryWriter(root, space)
    cuts = np.linspace(0, elements.num_rows, batches + 1).astype(int)
    for batch, (start, stop) in enumerate(itertools.pairwise(cuts)):
        second = min(batch, batches - 3) * writer.MERGE_AFTER_S
        mine = tracked(elements.slice(start, stop - start), space)
        kept.store(Turn("e", 0, 1, batch, second * 1_000_000), [mine], {NUMBER: STREAM})


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """Boxes that move during three days, and a layer of triangles; both as tables and as GeoDataFrames."""
    monkeypatch.setattr(rows, "ROWS_PER_GROUP", 64)
    rng = np.random.default_rng(3)
    keys = [f"bus {number}" for number in rng.integers(0, 40, 3000)]
    low = rng.uniform([0, 50], [10, 60], (3000, 2))
    high = low + rng.choice([0, 0, 0.3], (3000, 1))
    unbounded = np.full((3000, 1), np.inf)
    bounds = np.hstack([low, -unbounded, high, unbounded])
    times = np.arange(3000) * (72 * HOUR_US // 3000)
    keep(tmp_path / "history", box_elements(STREAM, keys, times, bounds, [{"n": n} for n in range(3000)]))
    shapes = shapely.box(*low.T, *high.T)
    shapes[(low == high).all(axis=1)] = shapely.points(low[(low == high).all(axis=1)])
    elements = geopandas.GeoDataFrame({"key": keys, "time": times, "n": range(3000)}, geometry=shapes, crs=WGS84)
    corners = rng.uniform([0, 50], [10, 60], (60, 1, 2)) + rng.uniform(-1, 1, (60, 3, 2))
    zones = geopandas.GeoDataFrame({"key": [f"z{n}" for n in range(60)]}, geometry=shapely.polygons(corners), crs=WGS84)
    table = feature_table("zones", zones["key"].tolist(), zones.geometry.to_numpy(), [{}] * 60)
    LayerStore(tmp_path / "layers").write("zones", table)
    return StoredTables(tmp_path / "layers", tmp_path / "history"), elements, zones


def numbers(found):
    """Return the numbers of rows, in their order."""
    return [orjson.loads(text)["n"] for text in found.rows["properties"].to_pylist()]


def in_order(elements):
    """Return the numbers of elements, by key and time."""
    return elements.sort_values(["key", "time"])["n"].tolist()


@pytest.mark.parametrize("box", [(2, 52, 5, 53), (0, 50, 0.5, 50.5), (-180, -90, 180, 90), (100, 0, 101, 1)])
@pytest.mark.parametrize("span", [(None, None), (20 * HOUR_US, 30 * HOUR_US), (71 * HOUR_US, None), (None, 0)])
def test_what_intersects_a_box_within_a_span_is_what_geopandas_finds(scene, box, span):
    tables, elements, _ = scene
    found = tables.query_by_box(stored(STREAM), EARTH.box(box[:2], box[2:]), span)
    start, stop = span[0] or 0, 10**18 if span[1] is None else span[1]
    expected = elements[elements.intersects(shapely.box(*box)) & elements["time"].between(start, stop)]
    assert numbers(found) == in_order(expected) and not found.truncated
    few = tables.query_by_box(stored(STREAM), EARTH.box(box[:2], box[2:]), span, limit=5)
    assert numbers(few) == numbers(found)[:5] and few.truncated == (len(expected) > 5)


def test_what_is_stored_under_a_key_is_told_by_time_and_the_newest_of_it_where_that_is_too_much(scene):
    tables, elements, zones = scene
    expected = in_order(elements[elements["key"] == "bus 7"])
    assert len(expected) > 20
    assert numbers(tables.get(stored(STREAM), "bus 7")) == expected
    newest = tables.get(stored(STREAM), "bus 7", limit=4)
    assert numbers(newest) == expected[-4:] and newest.truncated
    (zone,) = tables.get(layer("zones"), "z5").rows.to_pylist()
    assert shapely.from_wkb(zone["geometry"]).equals(zones.geometry[5]) and zone["time_us"] is None
    assert tables.get(layer("zones"), "nobody").rows.num_rows == tables.get(stored("ships"), "x").rows.num_rows == 0


@pytest.mark.parametrize("predicate", ["intersects", "within", "overlaps", "touches"])
def test_a_join_of_elements_with_a_layer_is_what_geopandas_finds(scene, predicate):
    tables, elements, zones = scene
    box, span = (1, 51, 9, 59), (10 * HOUR_US, 60 * HOUR_US)
    found = tables.join(stored(STREAM), layer("zones"), EARTH.box(box[:2], box[2:]), span, predicate)
    here = elements[elements.intersects(shapely.box(*box)) & elements["time"].between(*span)]
    near = zones[zones.geometry.envelope.intersects(shapely.box(*box))]
    expected = here.sjoin(near, predicate=predicate)
    pairs = set(zip(numbers(found), found.rows["partner_key"].to_pylist(), strict=True))
    assert pairs == set(zip(expected["n"], expected["key_right"], strict=True)) and not found.truncated
    assert len(pairs) == found.rows.num_rows and (len(pairs) > 100 or predicate == "touches")
    few = tables.join(stored(STREAM), layer("zones"), EARTH.box(box[:2], box[2:]), span, predicate, limit=9)
    assert few.rows.equals(found.rows.slice(0, 9)) and few.truncated == (len(pairs) > 9)


def test_a_stream_is_joined_with_itself_but_no_object_with_itself_and_distances_are_told(scene):
    tables, elements, _ = scene
    span = (10 * HOUR_US, 30 * HOUR_US)
    found = tables.join(stored(STREAM), stored(STREAM), span=span, predicate="dwithin", distance=5_000)
    here = elements[elements["time"].between(*span)]
    plane = here.to_crs(here.estimate_utm_crs())
    near = plane.sjoin(plane, predicate="dwithin", distance=5_050)
    expected = set(map(tuple, near[near["key_left"] != near["key_right"]][["n_left", "n_right"]].to_numpy().tolist()))
    others = [orjson.loads(text)["n"] for text in found.rows["partner_properties"].to_pylist()]
    pairs = set(zip(numbers(found), others, strict=True))
    # The plane that is near enough for both distorts by up to a hundredth at its border.
    assert pairs and len(pairs - expected) < 0.02 * len(pairs) and len(expected - pairs) < 0.04 * len(pairs)
    assert (found.rows["distance"].to_numpy() <= 5_000).all()
    assert {(b, a) for a, b in pairs} == pairs


def test_a_question_that_would_compare_too_much_or_says_nonsense_is_refused(scene, tmp_path):
    tables = StoredTables(tmp_path / "layers", tmp_path / "history", most_rows=100)
    with pytest.raises(InvalidQuestion, match=r"at most 100 rows of a table.*; got more of the stored 'buses'"):
        tables.join(stored(STREAM), layer("zones"))
    with pytest.raises(InvalidQuestion, match="predicate must be one of"):
        tables.join(stored(STREAM), layer("zones"), predicate="near")
    with pytest.raises(InvalidQuestion, match="distance belongs to"):
        tables.join(stored(STREAM), layer("zones"), predicate="dwithin")
    with pytest.raises(InvalidQuestion, match="must be the name of a layer; got 'roads'"):
        tables.get(layer("roads"), "a")
    for wrong in (None, {}, {"stream": "buses"}, {"layer": 5}, {"layer": "a", "stored": "b"}):
        with pytest.raises(InvalidQuestion, match="a table must be"):
            parse_table(wrong)


def test_whoever_asks_can_end_a_question(scene, tmp_path):
    def end(_):
        raise InvalidQuestion("enough")

    tables = StoredTables(tmp_path / "layers", tmp_path / "history", turn=end)
    for ask in (lambda: tables.query_by_box(stored(STREAM)), lambda: tables.join(layer("zones"), layer("zones"))):
        with pytest.raises(InvalidQuestion, match="enough"):
            ask()


def test_a_box_across_the_antimeridian_finds_what_lies_on_either_side(tmp_path):
    places = [[179.5, 0], [-179.5, 0], [178.0, 0], [0.0, 0]]
    keep(tmp_path, point_elements(STREAM, list("abcd"), [1, 2, 3, 4], np.array(places), [{}] * 4))
    tables = StoredTables(tmp_path, tmp_path)
    for lo, hi in ((179, 181), (-180, -179)):
        found = tables.query_by_box(stored(STREAM), EARTH.box([lo, -1], [hi, 1]))
        assert found.rows["key"].to_pylist() == (["a", "b"] if lo > 0 else ["b"])


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_boxes_of_any_number_of_dimensions_are_found(tmp_path, n):
    space = Space("s", tuple(Dimension(f"d{axis}", "", 0.0, 100.0) for axis in range(n)))
    rng = np.random.default_rng(n)
    low = rng.uniform(0, 90, (400, n))
    bounds = np.hstack([low, low + 20])
    keep(
        tmp_path, box_elements(STREAM, [f"{k}" for k in range(400)], range(400), bounds, [{}] * 400, space=space), space
    )
    box = np.r_[np.full(n, 30.0), np.full(n, 60.0)]
    found = StoredTables(tmp_path, tmp_path, space).query_by_box(stored(STREAM), box)
    expected = ((bounds[:, :n] <= 60) & (bounds[:, n:] >= 30)).all(axis=1)
    assert sorted(map(int, found.rows["key"].to_pylist())) == np.flatnonzero(expected).tolist()


def test_row_groups_that_lie_elsewhere_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "ROWS_PER_GROUP", 500)
    rng = np.random.default_rng(1)
    places = rng.uniform(0, 50, (20_000, 2))
    elements = point_elements(STREAM, [f"{n}" for n in range(20_000)], range(20_000), places, [{}] * 20_000)
    keep(tmp_path, elements, batches=9)
    condition = rows.meets(EARTH.box([10, 10], [12, 12]), EARTH)
    history = reader.History(tmp_path, EARTH)
    _, parts = history._in_no_part(STREAM, reader.EVER)
    groups = read = 0
    for fragment in reader.ds.dataset([str(part.path) for part in parts]).get_fragments():
        groups += len(fragment.row_groups)
        read += len(fragment.split_by_row_group(condition))
    assert groups > 20 and read < groups / 3


@pytest.mark.parametrize("step", range(4))
def test_a_reader_misses_and_doubles_nothing_that_is_merged_meanwhile(scene, monkeypatch, step):
    """The merge begins when files are listed, or after some are read, and removes each next file before it is read."""
    tables, elements, _ = scene
    listed, read, merged, reads, left = reader.pending_of, reader._pending_table, [], [], []

    def merge():
        if len(reads) == step and not merged:
            merged.extend(listed(tables.history.folder))
            with monkeypatch.context() as slowly:
                slowly.setattr(Path, "unlink", lambda path, missing_ok=False: left.append(path))
                merge_all(tables)

    def listing(folder):
        found = listed(folder)
        merge()
        return found

    def reading(path, space):
        if path in left:
            path.unlink()
        reads.append(path)
        table = read(path, space)
        merge()
        return table

    monkeypatch.setattr(reader, "pending_of", listing)
    monkeypatch.setattr(reader, "_pending_table", reading)
    assert numbers(tables.query_by_box(stored(STREAM))) == in_order(elements)
    assert len(merged) >= 3 and len(reads) == len(merged)
    assert [path.exists() for path in reads] == [number < step for number in range(len(reads))]


def test_a_reader_reads_what_was_written_anew_since_it_listed_the_files(scene, monkeypatch):
    """A batch that runs again may get another file: it has other rows then."""
    tables, elements, _ = scene
    listed, anew = reader.pending_of, []

    def listing(folder):
        found = listed(folder)
        if not anew:
            one = found[0]
            anew.append(one.path.with_name(f"{one.batch}.{one.rows + 1}.{one.second}.arrow"))
            one.path.rename(anew[0])
        return found

    monkeypatch.setattr(reader, "pending_of", listing)
    assert numbers(tables.query_by_box(stored(STREAM))) == in_order(elements)
    assert anew[0].exists()


@pytest.mark.parametrize("often", [1, 4, 5])
def test_a_reader_asks_again_where_parts_were_merged_meanwhile_and_says_when_that_goes_on(scene, monkeypatch, often):
    tables, elements, _ = scene
    merge_all(tables)
    listed, times, folder = reader.parts_of, [], tables.history.folder / STREAM

    def outrun(*arguments):
        found = listed(*arguments)
        times.append(len(found))
        if len(times) <= often:
            for part in listed(folder):
                part.path.rename(part.path.with_name(f"{part.epoch}.{part.first}.{part.last + 1}.parquet"))
        return found

    monkeypatch.setattr(reader, "parts_of", outrun)
    if often < reader.ATTEMPTS:
        assert numbers(tables.query_by_box(stored(STREAM))) == in_order(elements)
        assert len(times) == often + 1 and all(times)
    else:
        with pytest.raises(reader.Moved, match="it moved several times: ask again"):
            tables.query_by_box(stored(STREAM))


def merge_all(tables):
    HistoryWriter(tables.history.folder.parent, EARTH).store(Turn("e", 0, 1, 99, 10**12), [], {})
