"""Files that are odd, but whole: curves, rows that cannot be read, links within an archive, several tables."""

import contextlib
import json
import sqlite3
import struct

import geopandas
import orjson
import pytest
import shapely

from streaming.layers import ImportOptions, InvalidLayer, Job
from streaming.layers.child import import_in_child
from streaming.layers.importing import import_file
from streaming.layers.parts import read_parts
from streaming.spaces import EARTH
from tests.layers.files import frame, zipped

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
PLACE = "<Placemark><name>{}</name><Point><coordinates>1,2</coordinates></Point></Placemark>"
LINK = "<NetworkLink><name>x</name><Link><href>{}</href></Link></NetworkLink>"
GPX = '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">{}</gpx>'
WAYPOINT = '<wpt lat="2" lon="1"><name>w</name></wpt>'
TRACK = '<trk><name>t</name><trkseg><trkpt lat="60" lon="24"/><trkpt lat="61" lon="25"/></trkseg></trk>'
ROUTE = '<rte><name>r</name><rtept lat="60" lon="24"/><rtept lat="61" lon="25"/></rte>'


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def imported(path, work, **wanted):
    """Import a file; return the shapes and properties by key, and what was told."""
    told = import_file(Job(path, work, wanted=ImportOptions(**wanted)))
    rows = read_parts("a", [told.part], [None], EARTH).to_pylist()
    return {r["key"]: (shapely.from_wkb(r["geometry"]), orjson.loads(r["properties"])) for r in rows}, told.problems


def geopackage(folder, *blobs):
    """Return a GeoPackage of a point, and after it of geometries as WKB, which may be odd."""
    path = folder / "a.gpkg"
    shapes = [shapely.Point(n, 1) for n in range(1 + len(blobs))]
    geopandas.GeoDataFrame({"n": range(len(shapes))}, geometry=shapes, crs=4326).to_file(path, layer="t", driver="GPKG")
    with contextlib.closing(sqlite3.connect(path)) as tables, tables:
        for (trigger,) in tables.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            tables.execute(f'DROP TRIGGER "{trigger}"')  # they call functions of GDAL
        for number, blob in enumerate(blobs, 1):
            head = b"GP\0\1" + struct.pack("<i", 4326)
            tables.execute("UPDATE t SET geom = ? WHERE n = ?", (head + blob, number))
    return path


def wkb(kind, count, *parts):
    return struct.pack("<BII", 1, kind, count) + b"".join(parts)


def numbers(*values):
    return struct.pack(f"<{len(values)}d", *values)


ARC = wkb(8, 3, numbers(0, 0, 1, 1, 2, 0))  # half a circle
CIRCLE = wkb(8, 5, numbers(0, 0, 1, 1, 2, 0, 1, -1, 0, 0))
CURVES = {
    "an arc": (ARC, "LineString"),
    "a curve of two parts": (wkb(9, 2, ARC, wkb(2, 2, numbers(2, 0, 3, 0))), "LineString"),
    "an area": (wkb(10, 1, CIRCLE), "Polygon"),
    "several curves": (wkb(11, 1, ARC), "MultiLineString"),
    "several areas": (wkb(12, 1, wkb(10, 1, CIRCLE)), "MultiPolygon"),
}


@pytest.mark.parametrize(("blob", "kind"), CURVES.values(), ids=CURVES)
def test_curves_become_lines(tmp_path, work, blob, kind):
    rows, problems = imported(geopackage(tmp_path, blob), work)
    (shape,) = [shape for shape, _ in rows.values() if shape.geom_type != "Point"]
    assert shape.geom_type == kind
    assert abs(shapely.Point(1, 0).hausdorff_distance(shape) - (2 if "two parts" in kind else 1)) < 1.01
    places = shapely.get_coordinates(shape)
    on_circle = places[places[:, 0] <= 2] - (1, 0)
    assert ((on_circle**2).sum(axis=1) == pytest.approx(1, abs=1e-9)) and len(on_circle) > 40
    assert problems == []


OPEN = wkb(3, 1, struct.pack("<I", 4), numbers(0, 0, 1, 0, 1, 1, 0, 1))
ROWS = {
    "an open ring": (OPEN, "repaired: a ring was not closed"),
    "an open ring of two corners": (wkb(3, 1, struct.pack("<I", 2), numbers(0, 0, 1, 0)), "left out: Too few points"),
    "a line of one point": (
        wkb(2, 1, numbers(0, 0)),
        "left out: its geometry cannot be read: point array must contain",
    ),
    "lines, one of one point": (
        wkb(5, 2, wkb(2, 1, numbers(0, 0)), wkb(2, 2, numbers(1, 0, 2, 0))),
        "repaired: a part of it was a line of one point",
    ),
    "the same with heights": (
        wkb(1005, 2, wkb(1002, 2, numbers(1, 0, 7, 2, 0, 7)), wkb(1002, 1, numbers(0, 0, 7))),
        "repaired: a part of it was a line of one point",
    ),
    "a cut one": (OPEN[:30], "left out: its geometry cannot be read: "),
    "an unknown one": (wkb(15, 1, OPEN), "left out: its geometry cannot be read: Unknown WKB type 15"),
}


@pytest.mark.parametrize(("blob", "note"), ROWS.values(), ids=ROWS)
def test_one_row_that_cannot_be_read_is_repaired_or_left_out_with_its_cause(tmp_path, work, blob, note):
    rows, ((row, told),) = imported(geopackage(tmp_path, blob), work)
    assert row == 2
    assert told.startswith(note)
    assert len(rows) == (2 if "repaired" in note else 1)


POINT = {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2]}}


@pytest.mark.parametrize("line", ["x", "{}", '{"type": "Feature", "geom', "[1]", '{"type": "Topology"}'])
@pytest.mark.parametrize("before", ["", "\x1e"], ids=["lines", "separated"])
def test_a_line_that_is_no_feature_is_left_out_and_told(tmp_path, work, line, before):
    path = tmp_path / "a.geojsonl"
    path.write_text("".join(f"{before}{text}\n" for text in [json.dumps(POINT), line, "", json.dumps(POINT), line]))
    rows, problems = imported(path, work)
    assert len(rows) == 2
    assert [row for row, _ in problems] == [2, 5]
    assert problems[0][1].startswith("left out: the line must be a GeoJSON feature; got")


def test_a_separated_text_may_have_several_lines(tmp_path, work):
    path = tmp_path / "a.geojsons"
    path.write_text("".join(f"\x1e{json.dumps(POINT, indent=1)}\n" for _ in range(3)))
    assert len(imported(path, work)[0]) == 3


def test_a_date_that_python_does_not_know_is_kept_as_text(tmp_path, work):
    path = geopackage(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as tables, tables:
        tables.execute("ALTER TABLE t ADD COLUMN day DATE")
        tables.execute("UPDATE t SET day = '20222-11-01'")
    assert [properties["day"] for _, properties in imported(path, work)[0].values()] == ["20222-11-01"]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"doc.kml": KML.format(LINK.format("files/a.kml")), "files/a.kml": KML.format(PLACE.format("a"))}, ["a"]),
        (
            {
                "doc.kml": KML.format(PLACE.format("own") + LINK.format("<![CDATA[./b%20c.KML#x]]>")),
                "B c.kml": KML.format(PLACE.format("b")),
            },
            ["b", "own"],
        ),
        (
            {
                "x/doc.kml": KML.format(LINK.format("y/a.kml")),
                "x/y/a.kml": KML.format(LINK.format("../b.kml") + LINK.format("a.kml")),
                "x/b.kml": KML.format(PLACE.format("b")),
            },
            ["b"],
        ),
    ],
    ids=["one", "its own and another", "a chain"],
)
def test_what_a_kmz_links_to_within_itself_is_imported(tmp_path, work, files, names):
    rows, problems = imported(zipped(tmp_path / "a.kmz", files), work)
    assert sorted(properties["Name"] for _, properties in rows.values()) == names
    assert problems == []


def test_a_link_that_leads_out_of_the_file_is_told(tmp_path, work):
    path = tmp_path / "a.kml"
    path.write_text(KML.format(PLACE.format("a") + LINK.format("http://x.org/b.kml")))
    told = "its link to 'http://x.org/b.kml' was not followed, since it leads out of the file"
    assert imported(path, work)[1] == [(None, told)]
    path = zipped(tmp_path / "a.kmz", {"doc.kml": KML.format(LINK.format("gone.kml"))})
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(InvalidLayer, match=r"got none in 0 rows; its link to 'gone.kml' was not followed"):
        imported(path, other)


@pytest.mark.parametrize(("content", "kind"), [(WAYPOINT, "Point"), (TRACK, "MultiLineString"), (ROUTE, "LineString")])
def test_gpx_of_one_kind_is_imported_without_a_question(tmp_path, work, content, kind):
    path = tmp_path / "a.gpx"
    path.write_text(GPX.format(content))
    ((shape, _),) = imported(path, work)[0].values()
    assert shape.geom_type == kind


def test_several_tables_are_one_layer_if_all_are_asked_for(tmp_path, work):
    path = tmp_path / "a.gpx"
    path.write_text(GPX.format(WAYPOINT + TRACK))
    with pytest.raises(InvalidLayer, match=r"or be \* for all; got waypoints, tracks"):
        imported(path, work)
    other = tmp_path / "other"
    other.mkdir()
    rows, _ = imported(path, other, table="*")
    assert {key: properties["table"] for key, (_, properties) in rows.items()} == {
        "waypoints/0": "waypoints",
        "tracks/0": "tracks",
    }


def test_tables_of_different_reference_systems_come_into_one(tmp_path, work):
    path = tmp_path / "a.gpkg"
    frame().to_file(path, layer="one", driver="GPKG")
    frame().to_crs(3857).to_file(path, layer="two", driver="GPKG")
    rows, _ = imported(path, work, table="*")
    assert sorted(rows) == ["one/1", "one/2", "one/3", "two/1", "two/2", "two/3"]
    assert rows["one/1"][0].equals_exact(rows["two/1"][0], 1e-6)


def test_folders_of_kml_are_one_layer_with_the_folder_as_property(tmp_path, work):
    folder = "<Folder><name>{}</name>{}</Folder>"
    path = tmp_path / "a.kml"
    inner = folder.format("deep", PLACE.format("c"))
    path.write_text(
        KML.format("".join(folder.format(*one) for one in [("A", PLACE.format("a")), ("B", inner), ("C", "")]))
    )
    rows, _ = imported(path, work)
    assert {properties["Name"]: properties["folder"] for _, properties in rows.values()} == {"a": "A", "c": "deep"}


def test_an_import_that_breaks_says_so_without_words_of_python(tmp_path, work, monkeypatch, caplog):
    (tmp_path / "work").rmdir()
    with pytest.raises(FileNotFoundError):
        list(import_in_child(Job(tmp_path / "a.gpkg", work)))
    work.mkdir()
    with pytest.raises(InvalidLayer, match=r"must come to its end; this one ended with code 1, and the log says why$"):
        list(import_in_child(Job(tmp_path / "a.gpkg", work)))
    assert "FileNotFoundError" in caplog.text
