"""Nothing that a file says makes an import ask an address: a server listens, and nobody comes."""

import contextlib
import socket
import sqlite3
import subprocess
import sys

import geopandas
import pytest
import shapely

from streaming.layers import ImportOptions, InvalidLayer, Job
from streaming.layers.child import import_in_child
from tests.layers.files import frame, write, zipped

POINT = '{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [25, 60]}}'
HEAD = '<?xml version="1.0"?>'
KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
PLACE = "<Placemark><name>a</name><Point><coordinates>25,60</coordinates></Point></Placemark>"


@pytest.fixture
def server():
    """Listen; no connection may come."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def address_of(server):
    return f"http://127.0.0.1:{server.getsockname()[1]}/told.xml"


def linked_system(folder, address):
    link = f'{{"type": "link", "properties": {{"href": "{address}", "type": "proj4"}}}}'
    path = folder / "a.geojson"
    path.write_text(f'{{"type": "FeatureCollection", "crs": {link}, "features": [{POINT}]}}')
    return path


def table_elsewhere(folder, address):
    layer = f'<OGRVRTLayer name="a"><SrcDataSource>/vsicurl/{address}</SrcDataSource></OGRVRTLayer>'
    path = folder / "a.geojson"
    path.write_text(f"<OGRVRTDataSource>{layer}</OGRVRTDataSource>")
    return path


def gml_reference(folder, address):
    head = 'xmlns:gml="http://www.opengis.net/gml" xmlns:xlink="http://www.w3.org/1999/xlink"'
    member = f'<gml:featureMember xlink:href="{address}"/>'
    path = folder / "a.kml"
    path.write_text(f"{HEAD}<gml:FeatureCollection {head}>{member}</gml:FeatureCollection>")
    return path


def network_link(folder, address):
    path = folder / "a.kml"
    link = f"<NetworkLink><Link><href>{address}</href></Link></NetworkLink>"
    path.write_text(HEAD + KML.format(link + PLACE))
    return path


def external_entity(folder, address):
    path = folder / "a.kml"
    path.write_text(f'{HEAD}<!DOCTYPE kml [<!ENTITY far SYSTEM "{address}">]>' + KML.format("&far;" + PLACE))
    return path


def link_in_an_archive(folder, address):
    link = f"<NetworkLink><Link><href>{address}</href></Link></NetworkLink>"
    return zipped(folder / "a.kmz", {"doc.kml": (HEAD + KML.format(link + PLACE)).encode()})


def view_that_asks(folder, address):
    path = write(folder, frame(), "gpkg", name="a")
    with contextlib.closing(sqlite3.connect(path)) as tables, tables:
        ask = f"ogr_geocode('x', 'geometry', 'SERVICE=OSM_NOMINATIM', 'QUERY_TEMPLATE={address}?q=%s')"
        tables.execute("ALTER TABLE a RENAME TO b")
        tables.execute(f"CREATE VIEW a AS SELECT fid, geom, {ask} AS title FROM b")
    return path


def wkt_elsewhere(folder, address):
    frame().to_file(folder / "b.shp")
    names = {path.name: path.read_bytes() for path in folder.glob("b.*")}
    return zipped(folder / "a.zip", names | {"b.prj": address.encode()})


WAYS = (
    linked_system,
    table_elsewhere,
    gml_reference,
    network_link,
    external_entity,
    link_in_an_archive,
    view_that_asks,
    wkt_elsewhere,
)


@pytest.mark.parametrize("made", WAYS, ids=lambda made: made.__name__)
def test_no_file_makes_an_import_ask_an_address(tmp_path, server, made):
    work = tmp_path / "work"
    work.mkdir()
    with contextlib.suppress(InvalidLayer):
        list(import_in_child(Job(made(tmp_path, address_of(server)), work)))
    with pytest.raises(BlockingIOError):
        server.accept()


def test_a_reference_system_is_not_asked_of_an_address(tmp_path, server):
    job = Job(write(tmp_path, frame(), "gpkg"), tmp_path, wanted=ImportOptions(crs=address_of(server)))
    with pytest.raises(InvalidLayer, match="must be one that PROJ knows"):
        list(import_in_child(job))
    with pytest.raises(BlockingIOError):
        server.accept()


def test_a_link_to_a_reference_system_is_refused_unless_one_is_given(tmp_path, server):
    work = tmp_path / "work"
    work.mkdir()
    path = linked_system(tmp_path, address_of(server))
    with pytest.raises(InvalidLayer, match=r"must not be a link; name it, as crs, .* got http://127"):
        list(import_in_child(Job(path, work)))
    (work / "layer.geojson").unlink()
    *_, imported = import_in_child(Job(path, work, wanted=ImportOptions(crs="EPSG:4326")))
    assert geopandas.read_parquet(imported.part).geometry.tolist() == [shapely.Point(25, 60)]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must be asked")
def test_the_process_that_reads_cannot_open_a_socket(server):
    code = f"""
import socket
from streaming.layers.offline import go_offline
assert go_offline()
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    try:
        socket.socket(family)
    except PermissionError:
        continue
    raise SystemExit("a socket was opened")
print(open("/proc/self/status").read().count("NoNewPrivs:\\t1"), {server.getsockname()[1]})
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split()[0] == "1"


@pytest.mark.parametrize("made", [linked_system, view_that_asks], ids=lambda made: made.__name__)
def test_options_alone_keep_gdal_from_the_network(tmp_path, server, made):
    path = made(tmp_path, address_of(server))
    code = "import os, sys; from streaming.layers.offline import OPTIONS; os.environ.update(OPTIONS)\n"
    code += "import pyogrio; pyogrio.read_dataframe(sys.argv[1], use_arrow=True)"
    subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=False)
    with pytest.raises(BlockingIOError):
        server.accept()
