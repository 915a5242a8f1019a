"""Texts come out right, whatever the encoding of a file: named, marked, or neither."""

import json
import re
import zipfile

import geopandas
import orjson
import pytest
import shapely

from streaming.layers import ImportLimits, ImportOptions, InvalidLayer, Job
from streaming.layers.importing import import_file
from streaming.layers.parts import read_parts
from streaming.spaces import EARTH

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

WESTERN, CYRILLIC = "Malmö “hamn”", "Привет"
GUESSED = "its texts were read as Windows-1252, since they are not UTF-8, and it names no other encoding"
KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><name>{}</name><Point><coordinates>1,2'
KML += "</coordinates></Point></Placemark></Document></kml>"
GPX = '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="2" lon="1"><name>{}</name>'
GPX += "</wpt></gpx>"


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def names_in(path, work, encoding=""):
    """Import a file; return the texts of its features, by their order, and what was told of the file."""
    told = import_file(Job(path, work, EARTH, ImportOptions(encoding=encoding), ImportLimits()))
    rows = sorted(read_parts("a", [told.part], [None], EARTH).to_pylist(), key=lambda row: row["key"])
    names = [next(value for value in orjson.loads(row["properties"]).values() if value) for row in rows]
    return names, [note for row, note in told.problems if row is None]


def shapefile(folder, text, encoding, page="", mark=0, column="name"):
    """Return a zip of a shapefile with a text in an encoding, which a code page file or a mark names, or nothing."""
    points = geopandas.GeoDataFrame({column: [text]}, geometry=[shapely.Point(1, 2)], crs=4326)
    points.to_file(folder / "x.shp", encoding=encoding)
    table = bytearray((folder / "x.dbf").read_bytes())
    table[29] = mark
    (folder / "x.dbf").write_bytes(table)
    (folder / "x.cpg").unlink(missing_ok=True)
    if page:
        (folder / "x.cpg").write_text(page)
    with zipfile.ZipFile(folder / "x.zip", "w") as archive:
        for path in folder.glob("x.[!z]*"):
            archive.write(path, path.name)
    return folder / "x.zip"


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        (CYRILLIC, "cp1251", {"page": "1251"}),
        ("Malmö", "cp850", {"page": "OEM 850"}),
        (CYRILLIC, "cp1251", {"page": " \r\n", "mark": 0xC9}),
        (CYRILLIC, "cp1251", {"page": "ANSI 1251"}),
        (CYRILLIC, "cp1251", {"page": "windows-1251"}),
        (CYRILLIC, "cp1251", {"mark": 0xC9}),
        ("東京", "shift_jis", {"page": "932"}),
        ("Malmö", "cp437", {"mark": 0x01}),
        (CYRILLIC, "utf-8", {"page": "UTF-8"}),
        (CYRILLIC, "utf-8", {}),
        (CYRILLIC, "utf-8", {"mark": 0x57}),
    ],
)
def test_a_shapefile_has_the_encoding_that_it_names_or_utf_8(tmp_path, work, text, encoding, said):
    assert names_in(shapefile(tmp_path, text, encoding, **said), work) == ([text], [])


@pytest.mark.parametrize("said", [{}, {"mark": 0x57}, {"page": "UTF-8"}, {"page": "Western European"}])
def test_a_shapefile_that_names_none_or_a_wrong_one_is_western_and_that_is_told(tmp_path, work, said):
    names, (note,) = names_in(shapefile(tmp_path, WESTERN, "cp1252", **said), work)
    assert names == [WESTERN]
    assert note.startswith(GUESSED)


def test_names_of_properties_have_the_encoding_of_the_texts(tmp_path, work):
    told = import_file(Job(shapefile(tmp_path, "x", "cp1252", column="größe"), work))
    assert read_parts("a", [told.part], [None], EARTH)["properties"].to_pylist() == ['{"größe":"x"}']


def test_an_encoding_that_is_asked_for_replaces_what_a_shapefile_says(tmp_path, work):
    assert names_in(shapefile(tmp_path, CYRILLIC, "cp1251", mark=0x57), work, "windows-1251") == ([CYRILLIC], [])


def test_a_character_that_the_end_of_a_field_cuts_is_left_out(tmp_path, work):
    text = "a" + "ö" * 127  # a field of 254 bytes holds half of the last one
    path = shapefile(tmp_path, "b" + text[1:], "utf-8", page="UTF-8")
    cut = (tmp_path / "x.dbf").read_bytes().replace(b"b" + "ö".encode() * 127, text.encode()[:254] + b" ")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("x.dbf", cut[: len((tmp_path / "x.dbf").read_bytes())])
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    (name,), _ = names_in(path, work)
    assert set(name[1:]) == {"ö"}


def collection(*names):
    point = {"type": "Point", "coordinates": [1, 2]}
    features = [{"type": "Feature", "properties": {"name": name}, "geometry": point} for name in names]
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False)


def written(folder, name, text, encoding):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_geojson_in_any_form_of_unicode_is_read(tmp_path, work, encoding):
    path = written(tmp_path, "a.geojson", collection(WESTERN, CYRILLIC), encoding)
    assert names_in(path, work) == ([WESTERN, CYRILLIC], [])


@pytest.mark.parametrize(("name", "text"), [("a.kml", KML), ("a.gpx", GPX)])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "windows-1251", "koi8-r"])
def test_xml_has_the_encoding_that_it_declares(tmp_path, work, name, text, encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + text.format(CYRILLIC)
    assert names_in(written(tmp_path, name, text, encoding), work) == ([CYRILLIC], [])


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.kml", KML.format(WESTERN)), ("a.gpx", GPX.format(WESTERN)), ("a.geojson", collection(WESTERN))],
)
def test_a_file_of_text_that_is_not_unicode_is_western_unless_an_encoding_is_asked_for(tmp_path, work, name, text):
    names, (note,) = names_in(written(tmp_path, name, text, "cp1252"), work)
    assert names == [WESTERN]
    assert note.startswith(GUESSED)
    other = tmp_path / "other"
    other.mkdir()
    assert names_in(written(tmp_path, name, text.replace(WESTERN, CYRILLIC), "cp1251"), other, "cp1251") == (
        [CYRILLIC],
        [],
    )


def test_one_wrong_byte_does_not_change_the_encoding_of_the_others(tmp_path, work):
    path = written(tmp_path, "a.geojson", collection("Malmö", "Århus å"), "utf-8")
    path.write_bytes(path.read_bytes().replace("Å".encode(), b"\xc5"))
    names, notes = names_in(path, work)
    assert names == ["Malmö", "\ufffdrhus å"]
    assert notes == ["places of its texts that are not utf-8: 1; each was read as a question mark"]


@pytest.mark.parametrize("encoding", ["nonsense", "hex", "a\0b"])
def test_an_encoding_that_is_none_is_refused(tmp_path, work, encoding):
    with pytest.raises(InvalidLayer, match=re.escape(f"such as utf-8, cp1252 or cp1251; got {encoding!r}")):
        names_in(written(tmp_path, "a.geojson", collection("a"), "utf-8"), work, encoding)


def test_a_text_with_half_a_character_of_json_is_read(tmp_path, work):
    path = written(tmp_path, "a.geojson", collection("a", "b").replace('"b"', '"b\\ud800"'), "utf-8")
    (first, second), _ = names_in(path, work)
    assert (first, second[0]) == ("a", "b")
