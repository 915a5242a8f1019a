"""Files of every format become parts; what cannot is said, and leaves nothing."""

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import zipfile

import geopandas
import numpy as np
import orjson
import psutil
import pyogrio
import pytest
import shapely

from bench.live import wait_for
from bench.processes import alive
from streaming.elements import bounds_of
from streaming.layers import Imported, ImportLimits, ImportOptions, InvalidLayer, Job, LayerStore, suffixes_of
from streaming.layers.child import import_in_child
from streaming.layers.importing import import_file
from streaming.layers.placing import placed
from streaming.layers.reading import DRIVERS
from streaming.spaces import EARTH, Dimension, Space
from tests.layers.files import BOW_TIE, FORMATS, frame, write, zipped

# A warning of GDAL about what a format cannot keep is none of ours.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SUFFIXES = [s for form in FORMATS for s in (form, f"{form}.gz", f"{form}.zip") if s not in ("shp", "shp.gz")]


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def imported(path, work, wanted=None, **limits):
    """Import a file, and return the features by key, and what was told."""
    told = import_file(Job(path, work, wanted=wanted or ImportOptions(), limits=ImportLimits(**limits)))
    store = LayerStore(work.parent / "store")
    table = store.read("l", store.adopt("l", told.part, told.summary))
    rows = {row["key"]: row for row in table.to_pylist()}
    for row in rows.values():
        row["shape"], row["properties"] = shapely.from_wkb(row["geometry"]), orjson.loads(row["properties"])
    return rows, told


def geojson(path, features, **members):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features, **members}))
    return path


def feature(geometry, properties=None, **members):
    mapping = geometry if geometry is None or isinstance(geometry, dict) else shapely.geometry.mapping(geometry)
    return {"type": "Feature", "properties": properties or {}, "geometry": mapping, **members}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_features(tmp_path, work, suffix):
    expected = frame()
    rows, told = imported(write(tmp_path, expected, suffix), work)
    by_lanes = {int(row["properties"]["lanes"]): row for row in rows.values()}
    assert sorted(by_lanes) == [1, 2, 3]
    for lanes, shape in zip(expected["lanes"], expected.geometry, strict=True):
        assert by_lanes[lanes]["shape"].symmetric_difference(shape).area < 1e-9
    names = {row["properties"].get("title") or row["properties"].get("Name") for row in rows.values()}
    assert suffix.startswith("kml") or names == {"ä", "b", "c"}
    assert told.summary.features == 3
    assert told.problems == []


def test_coordinates_are_brought_to_longitude_and_latitude(tmp_path, work):
    rows, _ = imported(write(tmp_path, frame().to_crs("EPSG:3857"), "gpkg"), work)
    expected = dict(zip(frame()["lanes"], frame().geometry, strict=True))
    for row in rows.values():
        assert row["shape"].symmetric_difference(expected[row["properties"]["lanes"]]).area < 1e-6


def test_a_reference_system_that_is_given_stands_in_for_a_missing_one(tmp_path, work):
    flat = frame().to_crs("EPSG:3067").set_crs(None, allow_override=True)
    with pytest.warns(UserWarning, match="'crs' was not provided"):
        path = write(tmp_path, flat, "gpkg")
    with pytest.raises(InvalidLayer, match="a layer needs a coordinate reference system"):
        import_file(Job(path, work))
    (work / "layer.gpkg").unlink()
    rows, _ = imported(path, work, ImportOptions(crs="EPSG:3067"))
    assert rows["1"]["shape"].symmetric_difference(frame().geometry[0]).area < 1e-6


@pytest.mark.parametrize(("crs", "words"), [("EPSG:999999", "got 'EPSG:999999'"), ("nonsense", "got 'nonsense'")])
def test_an_unknown_reference_system_is_refused(tmp_path, work, crs, words):
    with pytest.raises(InvalidLayer, match=words):
        import_file(Job(write(tmp_path, frame(), "gpkg"), work, wanted=ImportOptions(crs=crs)))


def test_what_was_repaired_or_left_out_is_listed_with_its_row(tmp_path, work):
    shapes = [
        shapely.Point(1, 1),
        shapely.Polygon(BOW_TIE),
        None,
        shapely.Polygon(),
        shapely.LineString([(5, 5), (5, 5)]),
        shapely.Point(200, 95),
        shapely.Point(1000, 0),
        shapely.LineString([(170, 0), (190, 10)]),
        shapely.Point(2, 91),
        shapely.Point(180 + 1e-9, 3),
    ]
    rows, told = imported(
        geojson(tmp_path / "mixed.geojson", [feature(s, {"n": n}) for n, s in enumerate(shapes)]), work
    )
    assert [(row, note.split(":")[0]) for row, note in told.problems] == [
        (2, "repaired"),
        (3, "left out"),
        (4, "left out"),
        (5, "left out"),
        (6, "left out"),
        (7, "left out"),
        (8, "cut"),
        (9, "left out"),
    ]
    assert "Self-intersection" in told.problems[0][1]
    assert "it must lie in longitude in [-180, 180] and latitude in [-90, 90]; got 2, 91" in told.problems[-1][1]
    by_number = {row["properties"]["n"]: row["shape"] for row in rows.values()}
    assert sorted(by_number) == [0, 1, 7, 9]
    assert by_number[1].is_valid
    assert by_number[1].area == pytest.approx(2)
    assert by_number[7].bounds == (-180, 0, 180, 10)
    assert by_number[7].length == pytest.approx(shapes[7].length)
    assert by_number[9].equals(shapely.Point(180, 3))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (shapely.box(180, 0, 190, 10), shapely.box(-180, 0, -170, 10)),
        (shapely.box(-190, 0, -180, 10), shapely.box(170, 0, 180, 10)),
        (shapely.LineString([(180, 0), (190, 0)]), shapely.LineString([(-180, 0), (-170, 0)])),
        (shapely.Point(190, 0), shapely.Point(-170, 0)),
        (
            shapely.box(175, 0, 185, 10),
            shapely.MultiPolygon([shapely.box(175, 0, 180, 10), shapely.box(-180, 0, -175, 10)]),
        ),
    ],
)
def test_what_reaches_over_the_antimeridian_is_cut_there_and_stays_of_its_kind(shape, expected):
    read = placed([shape], EARTH)
    assert read.geometries[0].equals(expected)
    assert read.geometries[0].geom_type == expected.geom_type
    assert read.notes == {0: "cut: it reaches over the antimeridian"}


def test_of_many_problems_some_are_told_and_all_are_counted(tmp_path, work):
    shapes = [shapely.Point(0, 0)] + [None] * 250
    _, told = imported(geojson(tmp_path / "empty.geojson", [feature(s) for s in shapes]), work)
    assert (len(told.problems), told.problem_count) == (100, 250)


def test_keys_are_the_files_ids_or_a_property_and_always_differ(tmp_path, work):
    point = shapely.Point(1, 1)
    path = geojson(tmp_path / "a.geojson", [feature(point, {"osm": 7}, id=f"way/{n}") for n in range(3)])
    assert sorted(imported(path, work)[0]) == ["way/0", "way/1", "way/2"]
    work = work.parent / "second"
    work.mkdir()
    assert sorted(imported(path, work, ImportOptions(key="osm"))[0]) == ["7", "7#2", "7#3"]
    (work / "layer.geojson").unlink()
    with pytest.raises(InvalidLayer, match="key must be a property of the features: id, osm; got 'name'"):
        import_file(Job(path, work, wanted=ImportOptions(key="name")))


def test_numbered_features_keep_their_numbers(tmp_path, work):
    path = geojson(tmp_path / "a.geojson", [feature(shapely.Point(n, 1), id=10 * n) for n in range(3)])
    assert sorted(imported(path, work)[0]) == ["0", "10", "20"]


def test_properties_of_any_kind_survive(tmp_path, work):
    properties = {"text": "ü", "count": 2**40, "share": 0.5, "flag": True, "list": [1, 2], "nested": {"a": {"b": None}}}
    path = geojson(tmp_path / "a.geojson", [feature(shapely.Point(1, 1), properties), feature(shapely.Point(2, 2))])
    rows, _ = imported(path, work)
    assert rows["0"]["properties"] == properties
    assert rows["1"]["properties"] == {}


def test_heights_are_left_out(tmp_path, work):
    path = geojson(tmp_path / "a.geojson", [feature({"type": "Point", "coordinates": [1, 2, 500]})])
    rows, _ = imported(path, work)
    assert not rows["0"]["shape"].has_z
    assert rows["0"]["bounds"] == [1, 2, -np.inf, 1, 2, np.inf]


def test_a_part_is_sorted_along_the_curve(tmp_path, work):
    rng = np.random.default_rng(3)
    points = geopandas.GeoDataFrame(geometry=shapely.points(rng.uniform(-80, 80, (4000, 2))), crs="EPSG:4326")
    told = import_file(Job(write(tmp_path, points, "fgb"), work))
    store = LayerStore(tmp_path / "store")
    places = bounds_of(store.read("l", store.adopt("l", told.part, told.summary))["bounds"])[:, :2]
    step = np.linalg.norm(np.diff(places, axis=0), axis=1).mean()
    shuffled = np.linalg.norm(np.diff(rng.permutation(places), axis=0), axis=1).mean()
    assert step < shuffled / 20


def test_progress_goes_up_to_one_and_what_it_raises_ends_the_import(tmp_path, work):
    path = geojson(tmp_path / "a.geojson", [feature(shapely.Point(1, 1))] * 40_000)
    shares = []
    import_file(Job(path, work), shares.append)
    assert shares == sorted(shares)
    assert len([share for share in shares if 0 < share < 1]) > 2
    assert shares[-1] == 1

    def cancel(share):
        raise KeyboardInterrupt

    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(KeyboardInterrupt):
        import_file(Job(path, other), cancel)
    assert not list(other.glob("*.parquet*"))


def test_a_geometry_of_ten_thousand_parts_is_imported(tmp_path, work):
    corners = np.stack(np.meshgrid(np.arange(100), np.arange(100) * 0.5), axis=-1).reshape(-1, 2)
    parts = shapely.box(*corners.T, *(corners + 0.4).T)
    rows, told = imported(geojson(tmp_path / "many.geojson", [feature(shapely.MultiPolygon(list(parts)))]), work)
    assert shapely.get_num_geometries(rows["0"]["shape"]) == 10_000
    assert told.problems == []


def _cut(path, share=0.6):
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    return path


def _linked(path):
    with zipfile.ZipFile(path, "w") as archive:
        member = zipfile.ZipInfo("a.geojson")
        member.external_attr = 0o120777 << 16
        archive.writestr(member, "/etc/passwd")
    return path


def _lying(path, content):
    """Write an archive whose table says that a file is small."""
    zipped(path, {"a.geojson": content})
    stored, told = len(content).to_bytes(4, "little"), (100).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(stored, told))
    return path


BAD = {
    "no GIS file": (lambda f: _text(f / "a.geojson", b"hello"), "must be whole and of a known kind"),
    "JSON that is no GeoJSON": (lambda f: _text(f / "a.geojson", b'{"a": 1}'), "must be whole and of a known kind"),
    "an unknown suffix": (lambda f: _text(f / "a.exe", b"MZ"), "a layer's file must end in one of"),
    "a shapefile alone": (lambda f: _text(f / "a.shp", b""), "a layer's file must end in one of"),
    "an empty file": (lambda f: _text(f / "a.gpkg", b""), "must be whole and of a known kind"),
    "no features": (lambda f: geojson(f / "a.geojson", []), "a layer needs"),
    "features without geometries": (lambda f: geojson(f / "a.geojson", [feature(None)] * 2), "a layer needs"),
    "a broken archive": (lambda f: _text(f / "a.zip", b"PK\x03\x04" + bytes(500)), "an archive must be whole"),
    "an archive cut off": (lambda f: _cut(write(f, frame(), "gpkg.zip")), "an archive must be whole"),
    "a stream cut off": (lambda f: _cut(write(f, frame(), "geojson.gz")), "an archive must be whole"),
    "a GeoJSON file cut off": (lambda f: _cut(write(f, frame(), "geojson")), "must be whole"),
    "a GeoPackage cut off": (lambda f: _cut(write(f, frame(), "gpkg")), "must be whole"),
    "a FlatGeobuf cut off": (lambda f: _cut(write(f, frame(), "fgb"), 0.9), "must be whole"),
    "lines of something else": (lambda f: _text(f / "a.geojsonl", b"x\n"), "row 1 was left out: the line must be"),
    "a way out": (lambda f: zipped(f / "a.zip", {"../a.geojson": b"{}"}), "must lie inside of it; got '../a.geojson'"),
    "an absolute way": (
        lambda f: zipped(f / "a.zip", {"/a.geojson": b"{}"}),
        "must lie inside of it; got '/a.geojson'",
    ),
    "a windows way": (lambda f: zipped(f / "a.zip", {"..\\a.geojson": b"{}"}), "must lie inside of it"),
    "a link": (lambda f: _linked(f / "a.zip"), "must lie inside of it; got 'a.geojson'"),
    "an empty archive": (lambda f: zipped(f / "a.zip", {}), "got 0 in an empty archive"),
    "nothing known inside": (lambda f: zipped(f / "a.zip", {"a.txt": b""}), "got 0 in a.txt"),
    "two files inside": (lambda f: zipped(f / "a.zip", {"a.gpkg": b"", "b.gpkg": b""}), "got 2 in a.gpkg, b.gpkg"),
    "a zip bomb": (
        lambda f: zipped(f / "a.zip", {"a.geojson": bytes(3_000_000)}),
        "at most 2,000,000 bytes.*3,000,000",
    ),
    "a bomb that lies": (lambda f: _lying(f / "a.zip", bytes(3_000_000)), "an archive must be whole|at most 2,000,000"),
    "a gzip bomb": (lambda f: _text(f / "a.json.gz", gzip.compress(bytes(3_000_000))), "at most 2,000,000 bytes"),
    "a large file": (lambda f: _text(f / "a.json", bytes(3_000_000)), "at most 2,000,000 bytes"),
    "many files": (lambda f: zipped(f / "a.zip", {f"{n}.txt": b"" for n in range(11)}), "at most 10 files; got 11"),
    "many features": (lambda f: write(f, frame(x=1), "gpkg"), None),
    "another text": (lambda f: _text(f / "a.json", b'{"a": 1}'), "got: the file not recognized as"),
    "no feature": (lambda f: _collection(f), "a layer needs a feature with a geometry; got none in 0 rows$"),
    "no geometry": (lambda f: _collection(f, None, None), "got none in 2 rows; row 1 was left out: it has no geometry"),
}


def _collection(folder, *geometries):
    features = [{"type": "Feature", "properties": {"a": 1}, "geometry": geometry} for geometry in geometries]
    return _text(folder / "a.geojson", json.dumps({"type": "FeatureCollection", "features": features}).encode())


def _text(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("make", "words"), [case for case in BAD.values() if case[1]], ids=[k for k in BAD if BAD[k][1]]
)
def test_bad_input_is_refused_with_the_rule_and_makes_no_part(tmp_path, work, make, words):
    with pytest.raises(InvalidLayer, match=words):
        import_file(Job(make(tmp_path), work, limits=ImportLimits(unpacked_bytes=2_000_000, members=10)))
    assert not list(work.glob("*.parquet*"))
    assert not list(tmp_path.parent.glob("a.geojson"))


def test_a_key_has_so_many_characters_at_most(tmp_path, work):
    path = geojson(tmp_path / "a.geojson", [feature(shapely.Point(1, 1), {"long": "x" * 201})])
    with pytest.raises(InvalidLayer, match="a key must have at most 200 characters; got 'xxx"):
        import_file(Job(path, work, wanted=ImportOptions(key="long")))


KML = """<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document>
<Folder><name>one</name><Placemark><Point><coordinates>10,50,0</coordinates></Point></Placemark></Folder>
<Folder><name>two</name><Placemark><Point><coordinates>1,2,0</coordinates></Point></Placemark></Folder>
</Document></kml>"""
GPX = """<?xml version="1.0"?><gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">
<wpt lat="2" lon="1"><name>w</name></wpt></gpx>"""
RING = {"type": "Polygon", "arcs": [[0]]}
TOPOLOGY = {"type": "Topology", "objects": {"a": RING}, "arcs": [[[1, 2], [2, 2], [2, 3], [1, 2]]]}


@pytest.mark.parametrize(
    ("name", "content", "table"),
    [
        ("a.kml", KML, "two"),
        ("a.gpx", GPX, "waypoints"),
        ("a.topojson", json.dumps(TOPOLOGY), ""),
        ("a.json", json.dumps(TOPOLOGY), ""),
        ("a.geojsons", "\x1e" + json.dumps(feature(shapely.Point(1, 2))), ""),
    ],
)
def test_other_formats_are_read_too(tmp_path, work, name, content, table):
    rows, _ = imported(_text(tmp_path / name, content.encode()), work, ImportOptions(table=table))
    ((_, row),) = rows.items()
    assert row["shape"].bounds[:2] == (1, 2)


def test_a_zipped_kml_with_pictures_is_read(tmp_path, work):
    path = zipped(tmp_path / "a.kmz", {"doc.kml": KML.encode(), "files/icon.png": b""})
    assert len(imported(path, work, ImportOptions(table="one"))[0]) == 1


def test_a_layer_has_so_many_features_at_most(tmp_path, work):
    path, count = write(tmp_path, frame(), "gpkg"), len(frame())
    with pytest.raises(InvalidLayer, match=f"at most {count - 1} features; got more"):
        import_file(Job(path, work, limits=ImportLimits(features=count - 1)))
    (work / "layer.gpkg").unlink(missing_ok=True)
    import_file(Job(path, work, limits=ImportLimits(features=count)))


def test_a_table_without_geometry_is_refused_and_one_of_several_is_named(tmp_path, work):
    path = tmp_path / "a.gpkg"
    pyogrio.write_dataframe(frame().drop(columns="geometry"), path, layer="numbers")
    with pytest.raises(InvalidLayer, match="a layer needs geometries; got the tables numbers"):
        import_file(Job(path, work))
    (work / "layer.gpkg").unlink()
    for name in ("one", "two"):
        frame().to_file(path, layer=name, driver="GPKG")
    with pytest.raises(InvalidLayer, match=r"must be named where a file has several, or be \* for all; got one, two"):
        import_file(Job(path, work))
    (work / "layer.gpkg").unlink()
    assert len(imported(path, work, ImportOptions(table="two"))[0]) == 3


@pytest.mark.parametrize("name", ["a.geojson", "A.GeoJSON.GZ", "b.v2.zip", "doc.kmz", "x.ndjson"])
def test_suffixes_are_known_in_any_case(name):
    assert suffixes_of(name)


def test_the_process_that_reads_imports_like_this_one(tmp_path, work):
    *shares, told = import_in_child(Job(write(tmp_path, frame(), "gpkg"), work))
    assert shares == sorted(shares)
    here = tmp_path / "here"
    here.mkdir()
    expected = import_file(Job(tmp_path / "areas.gpkg", here))
    assert isinstance(told, Imported)
    assert told.summary == expected.summary
    assert told.part.read_bytes() == expected.part.read_bytes()


def test_coordinates_of_a_plane_need_no_reference_system(tmp_path, work):
    plane = Space(
        "plane", (Dimension("x", "m", 0.0, 1e6), Dimension("y", "m", 0.0, 1e6), Dimension("z", "m", 0.0, 9.0))
    )
    path = geojson(tmp_path / "a.geojson", [feature(shapely.Point(5000, 70)), feature(shapely.Point(-5, 70))])
    *_, told = import_in_child(Job(path, work, plane))
    assert told.summary.bounds == (5000, 70, -np.inf, 5000, 70, np.inf)
    assert told.problems == [(2, "left out: it must lie in x in [0, 1e+06] and y in [0, 1e+06]; got -5, 70, -5, 70")]


def test_the_process_that_reads_says_what_is_wrong(tmp_path, work):
    with pytest.raises(InvalidLayer, match="must be whole and of a known kind"):
        list(import_in_child(Job(_text(tmp_path / "a.kml", b"hello"), work)))


def test_the_process_that_reads_opens_nothing_that_a_file_names(tmp_path, work):
    secret = write(tmp_path, frame(), "geojson", name="secret")
    table = f'<OGRVRTDataSource><OGRVRTLayer name="secret"><SrcDataSource>{secret}</SrcDataSource></OGRVRTLayer>'
    path = _text(tmp_path / "a.kml", f"{table}</OGRVRTDataSource>".encode())
    with pytest.raises(InvalidLayer, match="must be whole and of a known kind"):
        list(import_in_child(Job(path, work)))


def test_the_process_that_reads_has_drivers_for_files_alone():
    code = "import os; from streaming.layers.__main__ import SKIPPED; os.environ['GDAL_SKIP'] = SKIPPED; "
    code += "import pyogrio; print(','.join(pyogrio.list_drivers()))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert sorted(out.strip().split(",")) == sorted(DRIVERS)


@pytest.fixture
def endless(tmp_path):
    """Return the path of a file that never says anything, so that whoever reads it waits."""
    os.mkfifo(tmp_path / "a.geojsonl")
    return tmp_path / "a.geojsonl"


def test_an_import_that_is_not_wanted_any_more_ends_its_process(endless, work):
    steps = import_in_child(Job(endless, work))
    assert next(steps) == 0
    (child,) = [p for p in psutil.Process().children() if "streaming.layers" in " ".join(p.cmdline())]
    steps.close()
    assert not child.is_running()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must be told to do it")
@pytest.mark.parametrize("steps", [1, 12], ids=["as it starts", "as it reads"])
def test_the_process_that_reads_ends_with_who_asked_for_it(endless, work, steps):
    code = f"""
import os, pathlib, psutil
from streaming.layers import Job
from streaming.layers.child import import_in_child
steps = import_in_child(Job(pathlib.Path({str(endless)!r}), pathlib.Path({str(work)!r})))
for _ in range({steps}):
    next(steps)
print(psutil.Process().children()[0].pid, flush=True)
os.kill(os.getpid(), 9)
"""
    asking = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(asking.stdout)
    try:
        wait_for(lambda: not alive(child), "the end of who reads")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def test_an_import_that_needs_too_much_memory_says_so(tmp_path, work):
    path = geojson(tmp_path / "a.geojson", [feature(shapely.Point(1, 1))] * 100_000)
    with pytest.raises(InvalidLayer, match="an import must"):
        list(import_in_child(Job(path, work, EARTH, ImportOptions(), ImportLimits(memory_bytes=100 << 20))))


LAYERS = {
    "austin.geojson.gz": (70, {}),
    "liechtenstein_green.geojsonl.gz": (None, {"key": "osm_id"}),
    "liechtenstein_roads.geojsonl.gz": (None, {"key": "osm_id"}),
    "munchen_green.geojsonl.gz": (None, {"key": "osm_id"}),
    "munchen_roads.geojsonl.gz": (2884, {"key": "osm_id"}),
    "ne_10m_airports.json.gz": (None, {}),
    "ne_10m_geography_marine_polys.json.gz": (None, {}),
    "ne_10m_land.json.gz": (None, {}),
    "ne_10m_ports.json.gz": (None, {}),
    "ne_10m_reefs.json.gz": (None, {}),
    "ne_50m_admin_0_countries.json.gz": (None, {}),
    "ne_50m_urban_areas.json.gz": (None, {}),
    "switzerland.geojson.gz": (26, {}),
}


@pytest.mark.recordings
@pytest.mark.parametrize("name", LAYERS)
def test_real_layers_are_imported_whole(shared_data, tmp_path, work, name):
    count, wanted = LAYERS[name]
    path = shared_data / "layers" / name
    rows, told = imported(path, work, ImportOptions(**wanted))
    form = name.removesuffix(".gz").rsplit(".", 1)[-1]
    (tmp_path / f"plain.{form}").write_bytes(gzip.decompress(path.read_bytes()))
    expected = geopandas.read_file(tmp_path / f"plain.{form}")
    assert len(rows) == count or count is None
    left_out = sum("left out" in note for _, note in told.problems)
    assert len(rows) == len(expected) - left_out
    assert all(row["shape"].is_valid for row in rows.values())
    area = shapely.area(expected.geometry.make_valid().to_crs("OGC:CRS84").values).sum()
    assert sum(row["shape"].area for row in rows.values()) == pytest.approx(area, rel=1e-6)
