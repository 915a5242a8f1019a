"""What users send leaves the reserve of the disk alone, and each of them has a quota of files that wait."""

import contextlib
import sqlite3
from types import SimpleNamespace

import pytest

from tests.chaos.faults import small_disk
from tests.layers.files import frame, write
from tests.webapp.test_layers import folder, site, squares, upload  # noqa: F401
from tests.webapp.test_uploads import refused
from webapp.layers.imports import import_layer
from webapp.machine import disk
from webapp.models import Layer, RefusedImport

pytestmark = pytest.mark.django_db(transaction=True)
MIB = 1 << 20


@pytest.fixture
def free(monkeypatch):
    """Return a function that lets the disks have so many free bytes."""

    def has(count):
        monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=count))

    return has


@pytest.fixture
def waiting(monkeypatch):
    """Let imports wait for ever."""
    monkeypatch.setattr(import_layer, "apply_async", lambda *_, **__: None)


def test_an_upload_that_would_use_the_reserve_is_refused_and_leaves_nothing(site, project, free, folder):  # noqa: F811
    project.DISK_RESERVE = 100 * MIB
    free(100 * MIB + 10)
    answer = upload(site)
    assert answer.status_code == 507
    assert "104,857,600 bytes of the disk must stay free" in answer.json()["error"]
    assert "with room for 10" in answer.json()["error"]
    assert not Layer.objects.exists() and not disk.size_of(folder)
    free(101 * MIB)
    assert upload(site).status_code == 202


def test_an_edit_is_refused_too(site, project, free):  # noqa: F811
    upload(site)
    project.DISK_RESERVE = 100 * MIB
    free(99 * MIB)
    edit = {"version": 1, "remove": ["s0"]}
    answer = site.patch("/layers/squares/features", edit, content_type="application/json")
    assert answer.status_code == 507
    free(200 * MIB)
    assert site.patch("/layers/squares/features", edit, content_type="application/json").status_code == 200


async def test_a_request_is_refused_before_and_while_it_arrives(project, free, tmp_path):
    project.DISK_RESERVE = 0
    free(15 * MIB)
    length = str(8 * MIB).encode()
    status, error, sent = await refused("/layers/", [(b"content-length", length)], 1)
    assert (status, sent) == (507, 0) and "must stay free for Lookout itself" in error
    free(7 * MIB)
    status, _, sent = await refused("/layers/", [(b"transfer-encoding", b"chunked")], 20)
    assert status == 507 and sent <= 6


def test_the_files_of_a_user_that_wait_are_bounded_and_so_are_all(site, other, project, waiting):  # noqa: F811
    project.LAYER_WAITING_BYTES = 2 * len(squares())
    project.LAYERS_WAITING_BYTES = 3 * len(squares())
    assert [upload(site, name=name).status_code for name in ("one", "two", "three")] == [202, 202, 400]
    error = upload(site, name="three").json()["error"]
    assert f"may have {2 * len(squares()):,} bytes; got {3 * len(squares()):,}" in error
    site.force_login(other)
    assert upload(site, name="four").status_code == 202
    assert "all files that are being imported" in upload(site, name="five").json()["error"]
    site.post("/layers/four/cancel")
    assert upload(site, name="five").status_code == 202


def test_an_import_that_writes_too_much_is_ended(site, project):  # noqa: F811
    project.LAYER_WORK_BYTES = 10
    upload(site)
    assert "the files of an import must have 10 bytes at most" in RefusedImport.objects.get().reason


@pytest.mark.long
def test_a_view_that_is_too_large_leaves_the_reserve_of_a_real_disk(site, project, tmp_path):  # noqa: F811
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk", 600) as mounted:
        if not mounted:
            pytest.skip("a disk of its own needs root")
        project.LAYERS_DIR, project.DISK_RESERVE = tmp_path / "disk" / "layers", 400 * MIB
        path = write(tmp_path, frame(), "gpkg")
        with contextlib.closing(sqlite3.connect(path)) as tables, tables:
            numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 3000000"
            tables.execute("ALTER TABLE areas RENAME TO stored")
            pad = "hex(randomblob(500))"
            tables.execute(
                f"CREATE VIEW areas AS SELECT n.i AS fid, s.geom, {pad} || n.i AS title FROM ({numbers}) n, "
                "(SELECT geom FROM stored LIMIT 1) s"
            )
        least = []
        room = disk.room
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("webapp.layers.waiting_files.room", lambda place: least.append(room(place)) or least[-1])
            assert upload(site, path.read_bytes(), filename="areas.gpkg").status_code == 202
        assert "must leave 419,430,400 bytes of the disk free" in RefusedImport.objects.get().reason
        assert min(least) > -300 * MIB and room(project.LAYERS_DIR) > 150 * MIB
