"""Base maps: what the admin refuses, what the page is told, and the tiles of files, which the tests write."""

import gzip
import re
import sqlite3
import struct
import zlib

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import Writer

from webapp.models import BaseMap

pytestmark = pytest.mark.django_db(transaction=True)
TILES = "https://{s}.tile.example.org/{z}/{x}/{y}.png"


def png(red):
    """Return an image of one pixel."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(bytes([0, red, 0, 0]))))
    packed = [
        struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in (*chunks, (b"IEND", b""))
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


@pytest.fixture(autouse=True)
def folder(project, tmp_path):
    """Keep files of tiles in a folder of the test."""
    project.MAPS_DIR = tmp_path / "maps"
    project.MAPS_DIR.mkdir()
    return project.MAPS_DIR


def mbtiles(folder, form="png", tiles=None):
    with sqlite3.connect(folder / "town.mbtiles") as tables:
        tables.execute("CREATE TABLE metadata (name TEXT, value TEXT)")
        tables.execute("CREATE TABLE tiles (zoom_level INTEGER, tile_column INTEGER, tile_row INTEGER, tile_data BLOB)")
        tables.execute("INSERT INTO metadata VALUES ('format', ?)", (form,))
        for (z, x, y), blob in (tiles or {(1, 1, 0): png(10)}).items():
            tables.execute("INSERT INTO tiles VALUES (?, ?, ?, ?)", (z, x, 2**z - 1 - y, blob))
    tables.close()
    return "town.mbtiles"


def pmtiles(folder, kind=TileType.PNG, compression=Compression.NONE, tiles=None):
    with (folder / "town.pmtiles").open("wb") as file:
        writer = Writer(file)
        for place, blob in sorted((tiles or {(1, 1, 0): png(20)}).items(), key=lambda it: zxy_to_tileid(*it[0])):
            writer.write_tile(zxy_to_tileid(*place), blob)
        sides = {"min_lon_e7": -10, "min_lat_e7": -10, "max_lon_e7": 10, "max_lat_e7": 10}
        more = {"center_zoom": 0, "center_lon_e7": 0, "center_lat_e7": 0}
        writer.finalize({"tile_type": kind, "tile_compression": compression, **sides, **more}, {})
    return "town.pmtiles"


def base(**fields):
    made = BaseMap(**{"name": "Town", "kind": "xyz", "address": TILES} | fields)
    made.full_clean()
    made.save()
    return made


def page_of(client):
    answer = client.get("/")
    return answer, answer.context["page"]["base_maps"]


REFUSED = {
    "no numbers": ({"address": "https://example.org/a.png"}, "must have {z}, {x} and {y}"),
    "no host": ({"address": "https:///{z}/{x}/{y}"}, "must begin with http:// or https:// and a host"),
    "a program": ({"address": "javascript:{z}{x}{y}"}, "must begin with http:// or https:// and a host"),
    "another policy": ({"address": "https://a;script-src/{z}/{x}/{y}"}, "must begin with http:// or https://"),
    "all hosts": ({"address": "https://*/{z}/{x}/{y}"}, "must begin with http:// or https://"),
    "spaces": ({"address": "https://example.org/{z}/{x}/{y} 'unsafe-inline'"}, "must begin with http:// or https://"),
    "no layers": ({"kind": "wms", "address": "https://example.org/wms"}, "a WMS needs the names of its layers"),
    "zooms": ({"min_zoom": 9, "max_zoom": 3}, "must be at least the least zoom, 9; got 3"),
    "no file": ({"kind": "file", "address": "town.mbtiles"}, "which is not there"),
    "another file": ({"kind": "file", "address": "../secret_key"}, "a file of tiles must end in one of"),
    "outside": ({"kind": "file", "address": "../x.mbtiles"}, "and lie in"),
    "no tiles": ({"kind": "file", "address": "wrong.mbtiles"}, "a file of tiles must be whole"),
    "no archive": ({"kind": "file", "address": "wrong.pmtiles"}, "a file of tiles must be whole"),
}


@pytest.mark.parametrize(("fields", "words"), REFUSED.values(), ids=REFUSED)
def test_a_base_map_that_cannot_be_shown_is_refused(folder, fields, words):
    for suffix in ("mbtiles", "pmtiles"):
        (folder / f"wrong.{suffix}").write_bytes(b"neither tables nor tiles" * 9)
    (folder.parent / "x.mbtiles").touch()
    with pytest.raises(ValidationError, match=re.escape(words)):
        base(**fields)


def test_the_page_is_told_of_base_maps_and_may_load_from_their_hosts_alone(client, user):
    client.force_login(user)
    answer, maps = page_of(client)
    assert maps == []
    assert "example" not in answer.headers["Content-Security-Policy"]
    base(attribution="The <b>town</b>", default=True)
    base(name="Sea", kind="wms", address="http://[::1]:8080/wms?", layers="depth", default=True)
    answer, maps = page_of(client)
    assert [(one["name"], one["default"]) for one in maps] == [("Sea", True), ("Town", False)]
    policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
    assert policy["img-src"].endswith("https://*.tile.openstreetmap.org http://[::1]:8080 https://*.tile.example.org")
    assert "example" not in client.get("/password/").headers["Content-Security-Policy"]


@pytest.mark.parametrize(("write", "red"), [(mbtiles, 10), (pmtiles, 20)])
def test_tiles_of_a_file_are_given_to_who_has_logged_in(client, user, folder, write, red):
    made = base(kind="file", address=write(folder))
    address = reverse("map-tile", args=[made.pk, 1, 1, 0])
    assert client.get(address).status_code == 401
    client.force_login(user)
    (told,) = page_of(client)[1]
    assert (told["url"], told["format"]) == (f"/maps/{made.pk}/{{z}}/{{x}}/{{y}}", "png")
    answer = client.get(address)
    assert (answer.status_code, answer.headers["Content-Type"], answer.content) == (200, "image/png", png(red))
    assert client.get(reverse("map-tile", args=[made.pk, 1, 0, 0])).status_code == 204
    assert client.get(reverse("map-tile", args=[made.pk, 1, 2, 0])).status_code == 404
    assert client.get(reverse("map-tile", args=[99, 1, 1, 0])).status_code == 404
    (folder / made.address).unlink()
    assert client.get(address).status_code == 404
    assert page_of(client)[1] == []


@pytest.mark.parametrize("gzipped", [True, False])
def test_vectors_are_given_as_they_are_stored(client, user, folder, gzipped):
    client.force_login(user)
    blob = gzip.compress(b"\x1a\x00") if gzipped else b"\x1a\x00"
    form = Compression.GZIP if gzipped else Compression.NONE
    for made in (
        base(name="a", kind="file", address=pmtiles(folder, TileType.MVT, form, {(0, 0, 0): blob})),
        base(name="b", kind="file", address=mbtiles(folder, "pbf", {(0, 0, 0): blob})),
    ):
        answer = client.get(reverse("map-tile", args=[made.pk, 0, 0, 0]))
        assert (answer.content, answer.headers["Content-Type"]) == (blob, "application/x-protobuf")
        assert answer.headers.get("Content-Encoding") == ("gzip" if gzipped else None)


def test_a_base_map_is_added_in_the_admin(client, staff):
    client.force_login(staff)
    form = {"name": "Town", "kind": "xyz", "address": TILES, "min_zoom": 3, "max_zoom": 17}
    page = client.post(reverse("admin:webapp_basemap_add"), form | {"address": "https://example.org"})
    assert "must have {z}, {x} and {y}" in page.content.decode()
    assert client.post(reverse("admin:webapp_basemap_add"), form).status_code == 302
    assert page_of(client)[1][0]["min_zoom"] == 3
