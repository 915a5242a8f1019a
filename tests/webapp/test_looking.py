"""A look into a file before its import: what it leaves open, and nothing of it stays."""

import contextlib
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.layers.files import frame
from tests.webapp.test_layers import SQUARES, _mapping, nothing_left
from tests.webapp.test_layers import folder as folder
from tests.webapp.test_layers import site as site
from webapp.models import Layer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def test_a_look_into_a_file_tells_what_it_leaves_open_and_leaves_nothing(site, folder):
    features = {"type": "Feature", "properties": {"name": "Malmö"}, "geometry": _mapping(SQUARES[0])}
    file = SimpleUploadedFile("a.geojson", json.dumps(features, ensure_ascii=False).encode("cp1252"))
    seen = site.post("/layers/?look", {"file": file}).json()
    assert (seen["tables"], seen["crs"], seen["columns"], seen["rows"]) == ([], "EPSG:4326", ["name"], [["Malmö"]])
    assert [note[:41] for note in seen["notes"]] == ["its texts were read as Windows-1252, sinc"]
    file = SimpleUploadedFile("a.geojson", json.dumps(features, ensure_ascii=False).encode("cp1252"))
    assert site.post("/layers/?look", {"file": file, "encoding": "cp1250"}).json()["notes"] == []
    assert not Layer.objects.exists() and nothing_left(folder)


def test_a_look_lists_the_tables_of_a_file_and_says_why_one_cannot_be_read(site, folder, tmp_path):
    path = tmp_path / "two.gpkg"
    for name, crs in (("one", 4326), ("two", None)):
        with pytest.warns(UserWarning) if crs is None else contextlib.nullcontext():
            frame().set_crs(crs, allow_override=True).to_file(path, layer=name, driver="GPKG")
    seen = site.post("/layers/?look", {"file": SimpleUploadedFile("two.gpkg", path.read_bytes())}).json()
    assert [(table["name"], table["features"]) for table in seen["tables"]] == [("one", 3), ("two", 3)]
    assert seen["table"] == ""
    refused = site.post("/layers/?look", {"file": SimpleUploadedFile("a.gpkg", b"hello")})
    assert refused.status_code == 400 and "must be whole and of a known kind" in refused.json()["error"]
    assert nothing_left(folder)
