"""Archives that are bombs, archives of many shapefiles, and files whose reading never ends."""

import contextlib
import gzip
import json
import sqlite3
import zipfile

import pytest

from streaming.layers import ImportLimits, ImportOptions, InvalidLayer, Job, unpack
from streaming.layers.child import import_in_child
from streaming.layers.parts import read_parts
from streaming.spaces import EARTH
from tests.layers.files import frame, write, zipped
from tests.stopwatch import Stopwatch

MIB = 1 << 20
BOMB_MIB = 300  # more than an archive may unpack to whatever its size


@pytest.fixture
def work(tmp_path):
    """Return the folder of an import."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def imported(path, work, wanted=None, **limits):
    """Import a file in a process of its own; return the properties by key, and what came of it."""
    *_, told = import_in_child(Job(path, work, EARTH, wanted or ImportOptions(), ImportLimits(**limits)))
    table = read_parts("a", [told.part], [None], EARTH)
    properties = map(json.loads, table["properties"].to_pylist())
    return dict(zip(table["key"].to_pylist(), properties, strict=True)), told


def disk_used(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def gzip_bomb(folder):
    path = folder / "bomb.geojson.gz"
    with gzip.open(path, "wb", compresslevel=1) as packed:
        for _ in range(BOMB_MIB):
            packed.write(b" " * MIB)
    return path


def zip_bomb(folder):
    path = folder / "bomb.zip"
    archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
    with archive, archive.open("bomb.geojson", "w") as packed:
        for _ in range(BOMB_MIB):
            packed.write(b" " * MIB)
    return path


@pytest.mark.parametrize("made", [gzip_bomb, zip_bomb], ids=lambda made: made.__name__)
def test_a_bomb_is_refused_within_seconds_and_before_it_fills_the_disk(tmp_path, work, made):
    path, watch = made(tmp_path), Stopwatch()
    with pytest.raises(InvalidLayer, match=r"[\d,]+ bytes of an archive must unpack to [\d,]+ at most; got"):
        list(import_in_child(Job(path, work)))
    assert watch.seconds() < 10
    assert disk_used(work) <= unpack.FREE_OF_RATIO_BYTES + MIB


def test_what_is_unpacked_takes_at_most_half_of_the_free_disk(tmp_path, work, monkeypatch):
    monkeypatch.setattr(unpack.shutil, "disk_usage", lambda _: type("Disk", (), {"free": 200}))
    with pytest.raises(InvalidLayer, match="half of the free disk, 100 bytes, must hold what is unpacked; got"):
        unpack.unpacked(write(tmp_path, frame(), "geojson.zip"), work, ImportLimits())


@pytest.mark.long
def test_a_view_without_an_end_is_ended_by_the_time_limit(tmp_path, work):
    path = write(tmp_path, frame(), "gpkg")
    with contextlib.closing(sqlite3.connect(path)) as tables, tables:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"
        tables.execute("ALTER TABLE areas RENAME TO stored")
        tables.execute(f"CREATE VIEW areas AS SELECT fid, geom, ({endless}) AS title FROM stored")
    watch = Stopwatch()
    with pytest.raises(InvalidLayer, match="an import must take 3 s at most; this one takes longer"):
        list(import_in_child(Job(path, work, limits=ImportLimits(time_s=3.0))))
    assert watch.seconds() < 8


def shapefiles(folder, names):
    """Return a zip of shapefiles of three features each."""
    contents = {}
    for name in names:
        inner = folder / name
        inner.mkdir(parents=True)
        frame().to_crs("EPSG:3857" if name.endswith("b") else "EPSG:4326").to_file(inner / "x.shp")
        contents |= {f"{name}{path.suffix}": path.read_bytes() for path in inner.iterdir()}
    return zipped(folder / "many.zip", contents)


def test_a_zip_of_many_shapefiles_is_one_layer_that_tells_the_files_names(tmp_path, work):
    rows, told = imported(shapefiles(tmp_path, ["all/a", "all/b"]), work)
    assert sorted(rows) == ["a/0", "a/1", "a/2", "b/0", "b/1", "b/2"]
    assert {key: row["file"] for key, row in rows.items()} == {key: key[0] for key in rows}
    assert told.summary.bounds[:2] + told.summary.bounds[3:5] == pytest.approx((0, 0, 22, 51), abs=1e-6)


def test_files_of_one_name_in_several_folders_are_told_apart(tmp_path, work):
    rows, _ = imported(shapefiles(tmp_path, ["n/a", "s/a"]), work)
    assert {row["file"] for row in rows.values()} == {"n/a", "s/a"}


def test_a_property_names_the_features_of_many_files_too(tmp_path, work):
    rows, _ = imported(shapefiles(tmp_path, ["a", "b"]), work, ImportOptions(key="lanes"))
    assert sorted(rows) == ["1", "1#2", "2", "2#2", "3", "3#2"]


def test_an_archive_of_many_other_files_is_refused_with_what_it_may_hold(tmp_path, work):
    path = zipped(tmp_path / "a.zip", {"a.geojson": b"{}", "b.geojson": b"{}"})
    with pytest.raises(InvalidLayer, match=r"or several that end in .shp; got 2 in a.geojson, b.geojson"):
        list(import_in_child(Job(path, work)))
    path = shapefiles(tmp_path, ["a", "b"])
    (work / "zip").rename(tmp_path / "former")
    with pytest.raises(InvalidLayer, match="no table can be named where an archive holds several files; got 'a'"):
        list(import_in_child(Job(path, work, wanted=ImportOptions(table="a"))))
