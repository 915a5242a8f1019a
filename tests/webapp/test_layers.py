"""Layers over HTTP, in the worker, in the admin, by the command; and what everybody is told of them."""

import asyncio
import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
import shapely
from asgiref.testing import ApplicationCommunicator
from celery.contrib.testing.worker import start_worker
from channels.db import database_sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from bench.live import PATIENCE_S
from streaming.layers import ImportOptions
from tests.layers.files import frame, write
from tests.webapp.conftest import cookie_of
from tests.webapp.test_tasks import entries
from webapp import layers, tasks
from webapp.celery import app as celery_app
from webapp.layers import imports
from webapp.layers.versions import share_layer
from webapp.management.commands.import_layer import Bar, name_of
from webapp.models import Layer, Membership, Query, RefusedImport, Space, Team
from webapp.models.looks import LAYER_LOOKS
from webapp.queries import queries

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.filterwarnings("ignore::RuntimeWarning")]
SQUARES = [shapely.box(n, 0, n + 0.5, 0.5) for n in range(4)]


@pytest.fixture(autouse=True)
def folder(project, tmp_path):
    """Keep layers in a folder of the test."""
    project.LAYERS_DIR = tmp_path / "layers"
    return project.LAYERS_DIR


@pytest.fixture
def site(client, user):
    """Return a browser in which the owner has logged in."""
    client.force_login(user)
    return client


def squares(count=4):
    shapes = [
        {"type": "Feature", "id": f"s{n}", "properties": {"n": n}, "geometry": _mapping(SQUARES[n])}
        for n in range(count)
    ]
    return json.dumps({"type": "FeatureCollection", "features": shapes}).encode()


def _mapping(shape):
    return shapely.geometry.mapping(shape)


def upload(client, content=None, name="squares", filename="squares.geojson", **form):
    file = SimpleUploadedFile(filename, squares() if content is None else content)
    return client.post("/layers/", {"file": file, "name": name, **form})


def keys_of(client, query="", name="squares"):
    return [feature["id"] for feature in client.get(f"/layers/{name}/features{query}").json()["features"]]


def edit(client, version, upsert=(), remove=(), name="squares"):
    body = {"version": version, "upsert": list(upsert), "remove": list(remove)}
    return client.patch(f"/layers/{name}/features", json.dumps(body), content_type="application/json")


def changed(key, shape, **properties):
    return {"type": "Feature", "id": key, "properties": properties, "geometry": _mapping(shape)}


def nothing_left(folder, versions=0):
    """Tell whether there are no files but those of versions."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return (
        len([p for p in files if p.suffix == ".parquet"]) <= versions == len([p for p in files if p.suffix == ".json"])
    )


def test_an_uploaded_file_becomes_a_layer_that_the_engine_hears_of(site, redis_client, folder):
    answer = upload(site, title="Squares")
    assert answer.status_code == 202
    assert answer.json()["layer"]["status"] == "importing"
    (layer,) = site.get("/layers/").json()["layers"]
    assert (layer["status"], layer["version"], layer["features"], layer["progress"]) == ("ready", 1, 4, 1.0)
    assert (layer["title"], layer["bounds"], layer["stream_space"]) == ("Squares", [0, 0, 3.5, 0.5], "earth")
    assert layer["geometry_types"] == ["Polygon"]
    assert entries(redis_client, "layer") == [{"op": "layer", "layer": "squares", "version": 1}]
    assert nothing_left(folder, versions=1)
    assert not list((folder / ".incoming").iterdir())


def test_features_come_by_box_simplified_for_the_zoom_and_bounded_in_number(site, monkeypatch):
    upload(site)
    assert sorted(keys_of(site)) == ["s0", "s1", "s2", "s3"]
    assert keys_of(site, "?bbox=0.9,0,1.2,1") == ["s1"]
    assert keys_of(site, "?bbox=361,0,361.2,1") == ["s1"]
    assert keys_of(site, "?bbox=2.9,0,-170,1") == ["s3"]
    assert keys_of(site, "?key=s2") == ["s2"]
    monkeypatch.setattr("webapp.layers.drawing.MAX_FEATURES", 2)
    answer = site.get("/layers/squares/features?bbox=-180,-90,180,90&zoom=2").json()
    assert (answer["truncated"], len(answer["features"])) == (True, 2)


def test_a_zoom_shows_no_more_detail_than_half_a_pixel(site):
    circle = shapely.Point(10, 10).buffer(1, quad_segs=4000)
    upload(site, json.dumps(changed("c", circle, a=1)).encode())
    whole = site.get("/layers/squares/features").json()["features"][0]
    shown = [site.get(f"/layers/squares/features?zoom={z}").json()["features"][0] for z in (3, 8)]
    counts = [shapely.get_num_coordinates(shapely.geometry.shape(f["geometry"])) for f in (*shown, whole)]
    assert counts == sorted(counts)
    assert counts[1] < 200 < counts[2]
    assert shapely.hausdorff_distance(shapely.geometry.shape(shown[1]["geometry"]), circle) < 360 / 256 / 2**8
    near = site.get("/layers/squares/features?zoom=18&bbox=10.9,9.9,11.1,10.1").json()["features"][0]
    assert shapely.geometry.shape(near["geometry"]).bounds[0] > 10.5
    assert whole["properties"]["a"] == 1


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("?bbox=1,2,3", 400, "bbox must be west,south,east,north"),
        ("?bbox=0,2,1,1", 400, "bbox must be west,south,east,north"),
        ("?bbox=nan,0,1,1", 400, "bbox must be west,south,east,north"),
        ("?zoom=x", 400, "zoom must be a whole number from 0 to 24; got 'x'"),
        ("?version=x", 400, "version must be the number of a version"),
        ("?version=9", 404, "must be one of 1; got 9"),
    ],
)
def test_wrong_questions_get_the_rule(site, query, status, words):
    upload(site)
    answer = site.get(f"/layers/squares/features{query}")
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_an_edit_is_a_new_version_and_the_old_one_stays_readable(site, redis_client):
    upload(site)
    answer = edit(site, 1, [changed("s0", shapely.box(50, 50, 51, 51), n=9), changed("new", SQUARES[0])], ["s3"])
    assert (answer.status_code, answer.json()) == (200, {"version": 2})
    assert sorted(keys_of(site)) == ["new", "s0", "s1", "s2"]
    assert sorted(keys_of(site, "?version=1")) == ["s0", "s1", "s2", "s3"]
    assert keys_of(site, "?bbox=50,50,51,51") == ["s0"]
    (layer,) = site.get("/layers/").json()["layers"]
    assert (layer["version"], layer["features"], layer["bounds"]) == (2, 4, [0, 0, 51, 51])
    assert [entry["version"] for entry in entries(redis_client, "layer")] == [1, 2]
    late = edit(site, 1, remove=["s1"])
    assert late.status_code == 409
    assert "must be based on its newest version 2; got 1" in late.json()["error"]


BAD_EDITS = {
    "no id": ({"upsert": [{"type": "Feature", "geometry": None}]}, "GeoJSON features with an id"),
    "no feature": ({"upsert": [7]}, "GeoJSON features with an id"),
    "no geometry": (
        {"upsert": [{"type": "Feature", "id": "a", "geometry": None}]},
        "must have a geometry|must be one of GeoJSON",
    ),
    "a geometry of text": ({"upsert": [{"type": "Feature", "id": "a", "geometry": "x"}]}, "must be one of GeoJSON"),
    "outside": ({"upsert": [changed("a", shapely.Point(0, 95))]}, "must lie in longitude"),
    "properties of text": ({"upsert": [changed("a", SQUARES[0]) | {"properties": "x"}]}, "must be an object"),
    "twice": ({"upsert": [changed("a", SQUARES[0])] * 2}, "must differ; got 'a' twice"),
    "unknown key": ({"remove": ["zz"]}, "must remove features of its base version; got 'zz'"),
    "both": ({"upsert": [changed("s0", SQUARES[0])], "remove": ["s0"]}, "got both of 's0'"),
    "keys of numbers": ({"remove": [1]}, "remove must be a list of keys"),
    "too many": ({"remove": ["a"] * 1001}, "remove must be a list of at most 1000"),
    "no version": ({"version": None}, "version must be the number of the version that is edited"),
    "unknown field": ({"extra": 1}, "an edit must be an object with version, upsert, remove"),
}


@pytest.mark.parametrize(("body", "words"), BAD_EDITS.values(), ids=BAD_EDITS)
def test_a_wrong_edit_is_refused_and_changes_nothing(site, folder, body, words):
    upload(site)
    answer = site.patch("/layers/squares/features", json.dumps({"version": 1} | body), content_type="application/json")
    assert answer.status_code == 400
    assert re.search(words, answer.json()["error"])
    assert Layer.objects.get().version == 1
    assert nothing_left(folder, versions=1)


def test_a_bow_tie_that_is_drawn_is_repaired(site):
    upload(site)
    bow_tie = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
    edit(site, 1, [{"type": "Feature", "id": "tie", "properties": None, "geometry": bow_tie}])
    (tie,) = site.get("/layers/squares/features?key=tie").json()["features"]
    assert shapely.geometry.shape(tie["geometry"]).is_valid


def test_reading_is_for_those_who_have_logged_in_and_changing_for_owner_and_staff(client, user, other, staff):
    client.force_login(user)
    upload(client)
    client.logout()
    for answer in (client.get("/layers/"), client.get("/layers/squares/features"), upload(client)):
        assert (answer.status_code, answer.json()) == (401, {"error": "log in first"})
    client.force_login(other)
    assert client.get("/layers/").status_code == 200
    assert client.get("/layers/squares/features").status_code == 200
    for answer in (
        upload(client),
        edit(client, 1, remove=["s0"]),
        client.post("/layers/squares/cancel"),
        client.post("/layers/squares/look", {"look": 9}, content_type="application/json"),
        client.delete("/layers/squares"),
    ):
        assert answer.status_code == 403
        assert "only its owner, an analyst of its team, or staff, may change a layer" in answer.json()["error"]
    client.force_login(staff)
    assert edit(client, 1, remove=["s0"]).status_code == 200
    client.force_login(user)
    assert edit(client, 2, remove=["s1"]).status_code == 200
    assert client.delete("/layers/squares").status_code == 204


def test_a_layer_is_drawn_for_everybody_as_somebody_chose(client, user):
    client.force_login(user)
    upload(client)
    assert (layer := Layer.objects.get()).document()["look"] == layer.pk % LAYER_LOOKS
    for look, status in ((9, 200), (None, 200), (LAYER_LOOKS, 400), (True, 400), ("9", 400)):
        answer = client.post("/layers/squares/look", {"look": look}, content_type="application/json")
        assert answer.status_code == status
        if look == 9:
            assert answer.json()["layer"]["look"] == client.get("/layers/squares").json()["layer"]["look"] == 9


def test_changes_need_the_token_of_the_page(user):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)
    assert upload(strict).status_code == 403
    assert not Layer.objects.exists()


def test_a_dropped_layer_is_gone_for_the_engine_too(site, redis_client, folder):
    upload(site)
    assert site.delete("/layers/squares").status_code == 204
    assert site.get("/layers/").json() == {"layers": [], "refused": []}
    assert entries(redis_client, "drop_layer") == [{"op": "drop_layer", "layer": "squares"}]
    assert nothing_left(folder)
    for answer in (
        site.get("/layers/squares/features"),
        site.delete("/layers/squares"),
        site.post("/layers/squares/cancel"),
    ):
        assert answer.status_code == 404
    upload(site)
    assert Layer.objects.get().version == 2, "no number names two contents"


BAD_UPLOADS = {
    "no file": ({}, 400, "file must be the file to import"),
    "a wrong name": ({"name": "My Layer"}, 400, "the name of a layer must be 1 to 40 lower case letters"),
    "no name": ({"name": ""}, 400, "the name of a layer must be 1 to 40 lower case letters"),
    "a long title": ({"title": "x" * 81}, 400, "a title may have 80 characters; got 81"),
    "an unknown space": ({"space": "mars"}, 400, "space must be one of earth; got 'mars'"),
    "an unknown kind": ({"filename": "a.exe"}, 400, "a layer's file must end in one of"),
    "a large file": ({"content": bytes(3000)}, 413, "a file may have at most 2,000 bytes; got 3,"),
}


@pytest.mark.parametrize(("form", "status", "words"), BAD_UPLOADS.values(), ids=BAD_UPLOADS)
def test_a_wrong_upload_is_refused_and_makes_no_layer(site, project, folder, form, status, words):
    project.LAYER_UPLOAD_BYTES = 2000
    answer = upload(site, **form) if form else site.post("/layers/", {"name": "squares"})
    assert answer.status_code == status
    assert words in answer.json()["error"]
    assert not Layer.objects.exists()
    assert not folder.exists() or nothing_left(folder)


def test_a_file_that_cannot_be_imported_fails_and_the_last_version_stays(site, redis_client, folder):
    upload(site)
    assert upload(site, b"hello").status_code == 202
    (layer,) = site.get("/layers/").json()["layers"]
    assert (layer["status"], layer["version"], layer["features"]) == ("failed", 1, 4)
    assert "must be whole and of a known kind" in layer["error"]
    assert sorted(keys_of(site)) == ["s0", "s1", "s2", "s3"]
    assert len(entries(redis_client, "layer")) == 1
    assert nothing_left(folder, versions=1)
    upload(site, squares(2))
    (layer,) = site.get("/layers/").json()["layers"]
    assert (layer["status"], layer["version"], layer["features"], layer["error"]) == ("ready", 2, 2, None)


def test_a_first_import_that_is_refused_leaves_nothing_but_its_reason(site, client, other, staff, folder):
    assert upload(site, b"hello", title="Squares").status_code == 202
    assert not Layer.objects.exists()
    assert nothing_left(folder)
    (refused,) = site.get("/layers/").json()["refused"]
    assert (refused["name"], refused["title"], refused["status"]) == ("squares", "Squares", "failed")
    assert "must be whole and of a known kind" in refused["error"]
    answer = site.get("/layers/squares")
    assert answer.status_code == 404
    assert "whose import was refused: a layer's file must be whole" in answer.json()["error"]
    site.force_login(staff)
    assert site.get("/layers/").json()["refused"] == [], "it was told to who asked"
    page = site.get(reverse("admin:webapp_refusedimport_changelist")).content.decode()
    assert "must be whole and of a known kind" in page
    form = {"name": "areas", "title": "", "file": SimpleUploadedFile("a.geojson", b"hello")}
    page = site.post(reverse("admin:webapp_layer_add"), form, follow=True).content.decode()
    assert "for a new layer the list of refused imports" in page
    assert not Layer.objects.exists()


def test_a_refusal_is_forgotten_when_it_is_dismissed_and_when_the_name_is_tried_again(site, folder):
    upload(site, b"hello")
    assert site.delete("/layers/squares").status_code == 204
    assert site.get("/layers/").json() == {"layers": [], "refused": []}
    assert site.delete("/layers/squares").status_code == 404
    upload(site, b"hello")
    upload(site)
    listed = site.get("/layers/").json()
    assert ([layer["status"] for layer in listed["layers"]], listed["refused"]) == (["ready"], [])
    assert not RefusedImport.objects.exists()


def test_old_refusals_go(site, folder):
    upload(site, b"hello")
    RefusedImport.objects.update(refused=timezone.now() - timedelta(days=8))
    tasks.retire_imports()
    assert not RefusedImport.objects.exists()


async def test_who_asked_for_an_import_is_told_that_it_was_refused(site, user, other, connect):
    async with connect(user) as asking, connect(other) as another:
        await asking.hear("hello")
        await another.hear("hello")
        await database_sync_to_async(upload)(site, b"hello")
        heard = await asking.hear("layer.status")
        while heard["layer"]["status"] != "failed":
            heard = await asking.hear("layer.status")
        assert "must be whole" in heard["layer"]["error"]
        heard = await another.hear("layer.status")
        while heard["layer"]["status"] != "deleted":
            assert heard["layer"]["status"] == "importing"
            heard = await another.hear("layer.status")
        await another.silence("layer.status")


def test_a_failed_import_leaves_title_and_features_as_they_were(site):
    upload(site, title="Squares")
    upload(site, b"hello", title="Circles")
    (layer,) = site.get("/layers/").json()["layers"]
    assert (layer["title"], layer["version"], layer["features"]) == ("Squares", 1, 4)
    upload(site, squares(2), title="Two squares")
    (layer,) = site.get("/layers/").json()["layers"]
    assert (layer["title"], layer["version"], layer["error"]) == ("Two squares", 2, None)


async def test_an_upload_that_is_cut_off_makes_no_layer(user, folder):
    from webapp.asgi import application

    headers = [*await database_sync_to_async(cookie_of)(user), (b"content-length", b"100000")]
    headers += [(b"content-type", b"multipart/form-data; boundary=x"), (b"host", b"localhost:8000")]
    scope = {"type": "http", "method": "POST", "path": "/layers/", "headers": headers, "query_string": b""}
    browser = ApplicationCommunicator(application, scope | {"http_version": "1.1", "scheme": "http"})
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.geojson"\r\n\r\n{"type":'
    await browser.send_input({"type": "http.request", "body": part, "more_body": True})
    await browser.send_input({"type": "http.disconnect"})
    await browser.wait(timeout=PATIENCE_S)
    assert not await database_sync_to_async(Layer.objects.exists)()
    assert not folder.exists()


def test_an_import_that_is_cancelled_on_its_way_leaves_the_last_version(site, user, folder, monkeypatch):
    upload(site)
    monkeypatch.setattr(imports, "TELL_S", 0.0)
    told = imports.announce

    def cancelled(layer, **changes):
        told(layer, **changes)
        if layer.heartbeat is not None and layer.status == "importing":
            imports.cancel_import(user, layer.name)

    monkeypatch.setattr(imports, "announce", cancelled)
    upload(site, squares(2))
    (layer,) = site.get("/layers/").json()["layers"]
    assert (layer["status"], layer["version"], layer["features"]) == ("cancelled", 1, 4)
    assert nothing_left(folder, versions=1)
    assert not list((folder / ".incoming").iterdir())


def test_an_import_ends_as_soon_as_it_is_cancelled(user, folder, tmp_path):
    path = tmp_path / "a.geojsonl"
    os.mkfifo(path)  # whoever reads it waits for ever
    layer = layers.begin_import(user, layers.Label("squares"))
    steps = iter(range(20))

    def cancel(share):
        assert next(steps, None) is not None, "the import goes on"
        layers.cancel_import(user, "squares")

    assert layers.run_import(layer, path, ImportOptions(), cancel).status == "cancelled"
    assert not Layer.objects.exists()
    assert nothing_left(folder)


def test_an_import_cancelled_before_its_turn_never_begins(site, user, folder, monkeypatch):
    sent = []
    monkeypatch.setattr(imports.import_layer, "apply_async", lambda arguments, **_: sent.append(arguments))
    upload(site)
    assert upload(site).status_code == 409, "a layer has one import at a time"
    assert site.post("/layers/squares/cancel").json()["layer"]["status"] == "cancelled"
    imports.import_layer(*sent[0])
    assert site.get("/layers/").json() == {"layers": [], "refused": []}
    assert nothing_left(folder)
    assert site.get("/layers/squares/features").status_code == 404


def test_a_crash_of_the_import_is_said_and_leaves_nothing(site, folder, monkeypatch):
    def crash(*_):
        raise OSError("no space left")

    monkeypatch.setattr(imports, "import_in_child", crash)
    with pytest.raises(OSError, match="no space left"):
        upload(site)
    assert not Layer.objects.exists()
    (refused,) = site.get("/layers/").json()["refused"]
    assert (refused["status"], refused["version"]) == ("failed", None)
    assert refused["error"] == "an import must come to its end; got: no space left"
    assert nothing_left(folder)


def test_an_import_whose_worker_died_is_ended(site, folder, monkeypatch):
    monkeypatch.setattr(imports.import_layer, "apply_async", lambda *_, **__: None)
    upload(site)
    assert layers.retire_imports() == 0
    Layer.objects.update(heartbeat=timezone.now())
    assert layers.running_imports() == 1
    assert layers.retire_imports() == 0
    Layer.objects.update(heartbeat=timezone.now() - timedelta(seconds=90))
    assert layers.running_imports() == 0
    monkeypatch.setattr(imports, "DEAD_AFTER", timedelta(0))
    assert tasks.retire_imports() == 1
    assert not Layer.objects.exists()
    assert "the worker ended before it did" in RefusedImport.objects.get().reason
    assert nothing_left(folder)


def test_a_version_whose_writer_died_before_it_was_saved_is_taken(site, redis_client):
    upload(site)
    store = layers.layer_store()
    store.edit("squares", 1, store.read("squares", 1).slice(0, 0), ["s0"])
    assert edit(site, 1, remove=["s1"]).status_code == 409
    tasks.retire_imports()
    assert (Layer.objects.get().version, Layer.objects.get().features) == (2, 3)
    assert [entry["version"] for entry in entries(redis_client, "layer")] == [1, 2]
    assert layers.catch_up() == 0
    assert edit(site, 2, remove=["s1"]).status_code == 200


def test_only_the_last_versions_and_the_young_ones_stay(site, project, folder):
    upload(site)
    for version in range(1, 6):
        edit(site, version, [changed("s0", SQUARES[1], n=version)])
    assert layers.layer_store().versions("squares") == [1, 2, 3, 4, 5, 6]
    project.LAYER_VERSION_LIFE_S = 0
    edit(site, 6, [changed("s0", SQUARES[2])])
    assert layers.layer_store().versions("squares") == [5, 6, 7]


def test_a_reconciliation_tells_the_engine_of_every_version(site, redis_client):
    upload(site)
    upload(site, name="other")
    redis_client.flushall()
    tasks.reconcile()
    told = [(entry["layer"], entry["version"]) for entry in entries(redis_client, "layer")]
    assert told == [("other", 1), ("squares", 1)]


async def test_everybody_is_told_how_a_layer_stands(site, other, connect):
    async with connect(other) as socket:
        await socket.hear("hello")
        await database_sync_to_async(upload)(site)
        heard = await socket.hear("layer.status")
        while heard["layer"]["status"] != "ready":
            heard = await socket.hear("layer.status")
        (layer,) = (await database_sync_to_async(site.get)("/layers/")).json()["layers"]
        assert heard["layer"] == layer
        await database_sync_to_async(edit)(site, 1, remove=["s0"])
        assert (await socket.hear("layer.status"))["layer"]["version"] == 2
        await database_sync_to_async(site.delete)("/layers/squares")
        assert (await socket.hear("layer.status"))["layer"]["status"] == "deleted"


async def test_a_worker_imports_and_everybody_sees_its_progress(site, other, connect, monkeypatch):
    celery_app.conf.task_always_eager = False
    monkeypatch.setattr(imports, "TELL_S", 0.0)
    lines = b"".join(json.dumps(changed(f"p{n}", shapely.Point(n % 90, 1))).encode() + b"\n" for n in range(60_000))

    def work():
        with start_worker(celery_app, pool="solo", perform_ping_check=False, shutdown_timeout=PATIENCE_S):
            assert upload(site, lines, filename="points.geojsonl").json()["layer"]["status"] == "importing"
            done.wait(PATIENCE_S)
        connections.close_all()

    done, heard = threading.Event(), []
    async with connect(other) as socket:
        await socket.hear("hello")
        working = asyncio.create_task(asyncio.to_thread(work))
        try:
            while not heard or heard[-1]["status"] == "importing":
                heard.append((await socket.hear("layer.status", timeout=PATIENCE_S))["layer"])
        finally:
            done.set()
            await working
    shares = [layer["progress"] for layer in heard]
    assert shares == sorted(shares)
    assert any(0 < share < 1 for share in shares)
    assert (heard[-1]["status"], heard[-1]["features"]) == ("ready", 60_000)


def test_layers_are_imported_cancelled_and_dropped_in_the_admin(client, staff, folder, monkeypatch):
    client.force_login(staff)
    form = {"name": "areas", "title": "Areas"}
    page = client.post(reverse("admin:webapp_layer_add"), form)
    assert "a new layer needs a file" in page.content.decode()
    file = SimpleUploadedFile("a.geojson", squares())
    assert client.post(reverse("admin:webapp_layer_add"), form | {"file": file}).status_code == 302
    layer = Layer.objects.get()
    assert (layer.status, layer.features, layer.owner) == ("ready", 4, staff)
    change = reverse("admin:webapp_layer_change", args=[layer.pk])
    page = client.get(change).content.decode()
    assert "1: 4 features in 1 parts" in page
    client.post(change, {"title": "New", "file": SimpleUploadedFile("a.geojson", squares(3))})
    layer.refresh_from_db()
    assert (layer.version, layer.features, layer.title) == (2, 3, "New")
    client.post(change, {"title": "Newer"})
    assert Layer.objects.get().title == "Newer"
    monkeypatch.setattr(imports.import_layer, "apply_async", lambda *_, **__: None)
    client.post(change, {"title": "New", "file": SimpleUploadedFile("a.geojson", squares(3))})
    assert Layer.objects.get().status == "importing"
    body = {"action": "cancel", "_selected_action": [layer.pk]}
    client.post(reverse("admin:webapp_layer_changelist"), body)
    assert Layer.objects.get().status == "cancelled"
    assert client.get(reverse("admin:webapp_layer_changelist")).status_code == 200
    client.post(reverse("admin:webapp_layer_delete", args=[layer.pk]), {"post": "yes"})
    assert not Layer.objects.exists()
    assert not (folder / "areas").exists()


def test_a_layer_of_another_space_is_imported_in_the_admin(client, staff, folder):
    dimensions = [{"name": name, "unit": "m", "lo": 0, "hi": 100} for name in ("x", "y")]
    Space.objects.create(name="hall", title="The hall", definition={"dimensions": dimensions})
    Space.objects.create(name="line", definition={"dimensions": dimensions[:1]})
    client.force_login(staff)
    add = reverse("admin:webapp_layer_add")
    assert "The hall" in client.get(add).content.decode()

    def upload(**form):
        file = SimpleUploadedFile("a.geojson", squares())
        return client.post(add, {"name": "shelves", "title": "", "file": file, **form})

    page = upload(space="line").content.decode()
    assert "layers lie in spaces of 2 dimensions at least; got &#x27;line&#x27;, which has 1" in page
    assert "Select a valid choice" in upload(space="mars").content.decode()
    assert not Layer.objects.exists()
    assert upload(space="hall").status_code == 302
    layer = Layer.objects.get()
    assert (layer.space_id, layer.status, layer.features) == ("hall", "ready", 4)
    change = reverse("admin:webapp_layer_change", args=[layer.pk])
    assert 'name="space"' not in client.get(change).content.decode()
    client.post(change, {"title": "Shelves", "space": "earth", "file": SimpleUploadedFile("a.geojson", squares(3))})
    layer.refresh_from_db()
    assert (layer.space_id, layer.version, layer.features, layer.title) == ("hall", 2, 3, "Shelves")


def test_the_command_imports_a_file_and_tells_of_its_problems(tmp_path, redis_client, folder):
    path = write(tmp_path, frame(), "gpkg.zip", name="Some-Areas")
    out = StringIO()
    call_command("import_layer", str(path), stdout=out)
    assert "layer 'some-areas': version 1, 3 features, 0 problems" in out.getvalue()
    assert path.exists(), "the file is the user's"
    assert Layer.objects.get().owner is None
    assert [entry["layer"] for entry in entries(redis_client, "layer")] == ["some-areas"]
    assert nothing_left(folder, versions=1)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.geojson", b"hello", "must be whole and of a known kind"),
        ("a.exe", b"MZ", "a layer's file must end in one of"),
        (None, b"", "file must be the path of a file"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path, folder, name, content, words):
    path = tmp_path / (name or "nowhere.geojson")
    if name:
        path.write_bytes(content)
    with pytest.raises(CommandError, match=words):
        call_command("import_layer", str(path), stdout=StringIO())
    assert not folder.exists() or nothing_left(folder)


def test_the_command_works_without_redis(tmp_path, project):
    project.REDIS_URL = "redis://127.0.0.1:1/0"
    call_command("import_layer", str(write(tmp_path, frame(), "gpkg")), stdout=StringIO())
    assert Layer.objects.get().status == "ready"


def test_ctrl_c_cancels_the_command_cleanly(tmp_path, folder, monkeypatch):
    def interrupt(self, share):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(CommandError, match="cancelled; layer 'areas' is as it was"):
        patched.setattr("webapp.management.commands.import_layer.Bar.show", interrupt)
        call_command("import_layer", str(write(tmp_path, frame(), "gpkg")), stdout=StringIO())
    assert not Layer.objects.exists()
    assert nothing_left(folder)
    call_command("import_layer", str(tmp_path / "areas.gpkg"), stdout=StringIO())
    assert Layer.objects.get().status == "ready"


def test_in_a_terminal_the_command_draws_a_bar():
    class Terminal(StringIO):
        def isatty(self):
            return True

        def write(self, text, ending="\n"):
            return super().write(text + ending)

    out = Terminal()
    bar = Bar(out, "roads")
    bar.show(0.25)
    bar.end()
    assert out.getvalue() == f"\rroads [{'#' * 10}{'.' * 30}]  25%\n"


def test_imports_wait_for_their_turn(site, project, monkeypatch):
    from celery.exceptions import Retry

    project.LAYER_IMPORTS_AT_ONCE = 1
    sent = []
    monkeypatch.setattr(imports.import_layer, "apply_async", lambda arguments, **_: sent.append(arguments))
    upload(site)
    upload(site, name="second")
    Layer.objects.filter(name="squares").update(heartbeat=timezone.now())

    def wait(**options):
        raise Retry(when=options["countdown"])

    monkeypatch.setattr(imports.import_layer, "retry", wait)
    with pytest.raises(Retry):
        imports.import_layer(*sent[1])
    Layer.objects.filter(name="squares").update(heartbeat=None)
    imports.import_layer(*sent[1])
    assert Layer.objects.get(name="second").status == "ready"


def test_a_user_has_one_import_at_a_time_and_others_go_on(site, other, monkeypatch):
    from celery.exceptions import Retry

    sent = []
    monkeypatch.setattr(imports.import_layer, "apply_async", lambda arguments, **_: sent.append(arguments))
    upload(site)
    upload(site, name="second")
    site.force_login(other)
    upload(site, name="third")
    Layer.objects.filter(name="squares").update(heartbeat=timezone.now())

    def wait(**_):
        raise Retry

    monkeypatch.setattr(imports.import_layer, "retry", wait)
    with pytest.raises(Retry):
        imports.import_layer(*sent[1])
    imports.import_layer(*sent[2])
    assert Layer.objects.get(name="third").status == "ready"
    assert Layer.objects.get(name="second").status == "importing"
    Layer.objects.filter(name="squares").update(heartbeat=None)
    imports.import_layer(*sent[1])
    assert Layer.objects.get(name="second").status == "ready"


@pytest.mark.long
def test_ctrl_c_in_a_terminal_ends_the_import_and_leaves_nothing(tmp_path):
    home = tmp_path / "home"
    point = b'{"type":"Feature","properties":{"name":"x"},"geometry":{"type":"Point","coordinates":[1,2]}}\n'
    (tmp_path / "points.geojsonl").write_bytes(point * 300_000)
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"LOOKOUT_HOME": str(home), "LOOKOUT_REDIS_URL": "redis://127.0.0.1:1/0"}
    manage = [sys.executable, "manage.py"]
    subprocess.run([*manage, "migrate", "--verbosity=0"], env=environment, check=True)
    ours, theirs = pty.openpty()
    command = [*manage, "import_layer", str(tmp_path / "points.geojsonl")]
    terminal = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    with subprocess.Popen(command, env=environment, **terminal) as run:
        os.close(theirs)
        shown = b""
        while not re.search(rb"\] +[1-9]", shown):
            shown += os.read(ours, 1000)
        os.kill(run.pid, signal.SIGINT)
        with contextlib.suppress(OSError):  # a terminal that nobody has open any more
            while more := os.read(ours, 1000):
                shown += more
    os.close(ours)
    assert run.returncode == 130
    assert b"cancelled; layer 'points' is as it was" in shown
    assert nothing_left(home / "layers")
    assert not list((home / "layers" / ".incoming").iterdir())


def test_progress_is_told_at_most_twice_a_second(user, monkeypatch, folder):
    told, clock = [], iter(n / 100 for n in range(10_000))
    monkeypatch.setattr(imports, "import_in_child", lambda job: (n / 500 for n in range(500)))
    monkeypatch.setattr(imports, "announce", lambda layer: told.append(layer.progress))
    monkeypatch.setattr(imports.time, "monotonic", lambda: next(clock))
    layers.run_import(layers.begin_import(user, layers.Label("squares")), folder / "a.geojson", ImportOptions())
    seconds = next(clock)
    assert 4 < len(told) <= 2 * seconds + 2


@pytest.mark.parametrize(
    ("file", "name"),
    [("Münchner Straßen-2.geojsonl.gz", "m-nchner-stra-en-2"), ("10m_land.zip", "m_land"), ("ä.kml", "layer")],
)
def test_a_layer_is_named_after_its_file(file, name):
    assert name_of(Path(file)) == name


def test_a_join_waits_while_its_owner_may_not_see_the_layer(site, streams, user, other):
    join = {"stream": "ships", "kind": "join", "join": {"layer": "squares", "predicate": "within"}}
    waits = queries.register(other, "theirs", join)  # there is no such layer yet
    team = Team.objects.create(name="harbour")
    Membership.objects.create(team=team, user=user, role="analyst")
    assert upload(site, team=team.pk).status_code == 202

    def status():
        waits.refresh_from_db()
        return waits.status

    assert Layer.objects.get().team == team and status() == Query.WAITING
    member = Membership.objects.create(team=team, user=other, role="viewer")
    assert status() == Query.PENDING
    member.delete()
    assert status() == Query.WAITING
    share_layer(user, "squares", None)
    assert status() == Query.PENDING
    share_layer(user, "squares", team.pk)
    assert status() == Query.WAITING
