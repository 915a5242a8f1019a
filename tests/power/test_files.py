"""Files that Lookout has said are there, are there after a power cut, with their contents."""

import shutil

import pytest
from django.db import connection

from streaming.eventlog import BoundedEntry, RedisEventLog, Stamp
from streaming.history.files import pending_of, pending_path, sync_pending
from streaming.keys import LogNames
from streaming.layers import LayerStore
from streaming.logs import ACKS_KEPT
from streaming.state.files import make_folder, whole, write_whole
from tests.house.test_embedded_redis import running
from tests.layers.test_store import content_of, features
from tests.power.test_elements import after_a_cut, lookout_on
from webapp.live.home import embedded_redis_url
from webapp.machine.secret import kept_secret
from webapp.recording.settling import settle_acknowledged


def after(disk):
    """Return the folder that the disk has after a power cut."""
    return disk.after_a_cut(disk.root.with_name("after"))


def test_a_file_that_is_written_whole_is_there_with_the_folders_above_it(disk):
    write_whole(disk.root / "one" / "two" / "file", b"content")
    write_whole(disk.root / "one" / "not safe", b"content", durable=False)
    cut = after(disk)
    assert (cut / "one" / "two" / "file").read_bytes() == b"content"
    assert not (cut / "one" / "not safe").exists()
    assert [path.name for path in cut.rglob("*")] == ["one", "two", "file"]


def test_a_file_is_never_seen_before_its_content_is_on_the_disk(disk):
    write_whole(disk.root / "file", b"old")
    with whole(disk.root / "file") as temporary:
        temporary.write_bytes(b"new")
        assert (disk.after_a_cut(disk.root.with_name("meanwhile")) / "file").read_bytes() == b"old"
    assert (after(disk) / "file").read_bytes() == b"new"


def test_the_secret_and_the_address_of_redis_are_those_that_were_used(disk):
    secret, url = kept_secret(disk.root / "secret_key"), embedded_redis_url(disk.root)
    cut = after(disk)
    assert (cut / "secret_key").read_text() == secret and (cut / "redis" / "url").read_text().strip() == url


def test_every_version_of_a_layer_is_there_however_it_came(disk):
    kept = LayerStore(disk.root / "layers")
    part = disk.root / "incoming" / "part.parquet"
    other = LayerStore(disk.root / "other")
    made = other.manifest("l", other.write("l", features("l", {"c": 3})))
    with whole(part) as temporary:
        shutil.copy(other.paths(made)[0], temporary)
    kept.write("l", features("l", {"a": 1}))
    kept.edit("l", 1, features("l", {"b": 2}))
    kept.adopt("l", part, made)
    found = LayerStore(after(disk) / "layers")
    told = [content_of(found.read("l", version)) for version in found.versions("l")]
    assert told == [{"a": 1}, {"a": 1, "b": 2}, {"c": 3}]


def test_stored_elements_that_wait_for_a_merge_are_synced_once(disk):
    folder = disk.root / "history" / "earth"
    first, second = (pending_path(folder, "epoch", 0, batch, 1, 0) for batch in (1, 2))
    make_folder(first.parent)
    write_whole(first, b"one", durable=False)
    known = sync_pending(folder, set())
    write_whole(second, b"two", durable=False)
    assert known == {first} and sync_pending(folder, known) == {first, second}
    first.unlink()
    assert sync_pending(folder, {first, second}) == {second}
    found = pending_of(after(disk) / "history" / "earth")
    # A removal may be lost: the part that has the elements supersedes the file.
    assert [pending.path.read_bytes() for pending in found] == [b"one", b"two"]


@pytest.mark.django_db
def test_what_the_database_commits_is_on_the_disk_before_anybody_hears_of_it():
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL syncs each commit by default")
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert cursor.execute("PRAGMA journal_mode").fetchone()[0] in ("wal", "memory")


@pytest.mark.django_db
def test_the_database_never_says_that_an_engine_has_a_query_whose_entry_a_power_cut_takes(disk):
    place, names = lookout_on(disk), LogNames("earth")
    with running(place) as client:
        log = RedisEventLog(client)
        log.append(names.control, {"entry": "register"})
        acks = {"acks": b'[{"query": 1, "revision": 1, "error": null}]', "batch": 1, "epoch": "e"}
        log.append_once(Stamp("0", "e", 1), [BoundedEntry(names.acks, acks, ACKS_KEPT)])
        settle_acknowledged(client, ["earth"], 0.001)
        cut = after_a_cut(disk, place)
    with running(cut) as client:
        assert RedisEventLog(client).length(names.control) == 1
