"""A backup of a Lookout that goes on is the Lookout of one moment, and nothing that is not whole is restored."""

import contextlib
import json
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest

from bench.live import PATIENCE_S, wait_for
from streaming.eventlog import RedisEventLog
from streaming.history import StoredTables, stored
from streaming.keys import LogNames
from streaming.layers import LayerStore
from streaming.logs import Log
from streaming.spaces import EARTH
from tests.engine.test_intervals import Machine, answers, feed, often, one_by_one, run_all
from tests.house.test_embedded_redis import running
from tests.layers.test_store import content_of, features
from tests.power.test_elements import ship, there
from tests.power.test_engine import housekeeping_of
from webapp.backup import moment, taking
from webapp.backup.contents import LIST, Unusable
from webapp.backup.places import HISTORY, places_below
from webapp.backup.restoring import restore
from webapp.backup.taking import back_up
from webapp.live.home import RESTORING, CannotStart, embedded_redis_url, only_one
from webapp.live.programs import Installation


def lookout_in(home):
    """Return a Lookout with its own state folder."""
    home.mkdir(exist_ok=True)
    return Installation(home, embedded_redis_url(home), "127.0.0.1", 0)


def database_of(place):
    """Return the path of a database that has been made."""
    path = place.home / "db.sqlite3"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE IF NOT EXISTS query (number INTEGER PRIMARY KEY, settled INTEGER)")
    return path


def rows_of(home):
    """Return what a database has, by number."""
    with contextlib.closing(sqlite3.connect(home / "db.sqlite3")) as database:
        return dict(database.execute("SELECT number, settled FROM query"))


@contextlib.contextmanager
def going_on(*steps):
    """Do each step again and again in a thread of its own until the block ends; an error of a step fails the test."""
    ended = threading.Event()

    def run(step):
        for number in count():
            if ended.is_set():
                return
            step(number)

    with ThreadPoolExecutor(len(steps)) as threads:
        begun = [threads.submit(run, step) for step in steps]
        try:
            yield
        finally:
            ended.set()
    for one in begun:
        one.result()


def places_of(home):
    """Return where a Lookout has its parts; the history is where `Machine` has it."""
    return places_below(home) | {HISTORY: home / "engine" / "earth" / "history"}


def taken(place, folder, client):
    """Take a backup of a Lookout that has one space."""
    return back_up(folder, places_of(place.home), place.home / "db.sqlite3", {"earth": Log(client, "earth", 2)})


def restored(folder, home):
    """Restore a backup into a folder that is not there; return the Lookout."""
    restore(folder, home, places_of(home))
    return lookout_in(home)


def elements_in(root):
    """Return how often each version of each ship is in the history of a state folder."""
    found = StoredTables(root / "layers", root / "history", EARTH).query_by_box(stored("ships")).rows
    return Counter(zip(found["key"].to_pylist(), found["time_us"].to_pylist(), strict=True))


@pytest.fixture
def small(tmp_path):
    """Return the folder of a backup of a Lookout that has done nothing, and the Lookout."""
    place = lookout_in(tmp_path / "home")
    (place.home / "secret_key").write_text("secret")
    database_of(place)
    LayerStore(place.home / "layers").write("l", features("l", {"a": 1}))
    with running(place) as client:
        Log(client, "earth", 2).ingest(ship("one"), "ships", 1)
        taken(place, tmp_path / "backup", client)
    return tmp_path / "backup", place


def test_what_is_restored_is_what_was_backed_up_and_the_address_is_another_one(small, tmp_path):
    folder, place = small
    found = restored(folder, tmp_path / "other")
    assert (found.home / "secret_key").read_text() == "secret" and found.redis_url != place.redis_url
    assert content_of(LayerStore(found.home / "layers").read("l", 1)) == {"a": 1}
    assert not list(place.home.rglob(".backup"))
    with running(found) as client:
        assert there(client) == {"one"}


def test_database_and_logs_are_those_of_one_moment_while_writers_go_on(tmp_path):
    place = lookout_in(tmp_path / "home")
    path, control = database_of(place), LogNames("earth").control
    with running(place) as client:
        log = RedisEventLog(client)

        def save_and_tell(number):
            with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE_S)) as database:
                with database:
                    database.execute("INSERT INTO query VALUES (?, 0)", [number])
                log.append(control, {"number": number})
                with database:
                    database.execute("UPDATE query SET settled = 1 WHERE number = ?", [number])

        with going_on(save_and_tell):
            for number in range(5):
                wait_for(lambda least=20 * (number + 1): len(rows_of(place.home)) >= least, "rows")
                taken(place, tmp_path / f"backup {number}", client)
    for number in range(5):
        found = restored(tmp_path / f"backup {number}", tmp_path / f"other {number}")
        rows = rows_of(found.home)
        with running(found) as client:
            told = {int(entry.fields[b"number"]) for entry in RedisEventLog(client).read(control)}
        assert len(rows) >= 20 * (number + 1)
        assert told <= rows.keys(), "the engine has a query that the database does not know"
        assert {number for number, settled in rows.items() if settled} <= told, "the engine lacks a settled query"


def test_nobody_saves_while_the_moment_is_held_and_everybody_while_it_is_copied(tmp_path, monkeypatch):
    place = lookout_in(tmp_path / "home")
    path, begin, copy = database_of(place), moment._begin_reading, taking.copy_database

    def save(number):
        with contextlib.closing(sqlite3.connect(path, timeout=0)) as database, database:
            database.execute("INSERT INTO query VALUES (?, 0)", [number])

    def begin_reading(database):
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            save(2)
        begin(database)

    def copy_database(held, target):
        save(3)
        copy(held, target)

    monkeypatch.setattr(moment, "_begin_reading", begin_reading)
    monkeypatch.setattr(taking, "copy_database", copy_database)
    save(1)
    with running(place) as client:
        taken(place, tmp_path / "backup", client)
    assert rows_of(place.home).keys() == {1, 3}
    assert rows_of(restored(tmp_path / "backup", tmp_path / "other").home).keys() == {1}


def going_on_while_backed_up(place, client, folders):
    """Run an engine that stores all elements, and take backups in the midst of its intervals; return its last batch."""
    machine = Machine(place.home / "engine" / "earth", place.redis_url, seed=9)
    send = machine.log.send
    machine.log.send = lambda op, **told: send(op, **told, **({"stored": True} if op == "stream" else {}))
    feed(machine.log, np.random.default_rng(9))
    housekeeping = housekeeping_of(machine)
    with going_on(lambda number: housekeeping.work()):
        for folder in folders:
            before = machine.batches
            with going_on(lambda number: machine.interval(trouble=False)):
                wait_for(lambda before=before: machine.batches > before, "an interval")
                taken(place, folder, client)
    return machine.point.batch


@pytest.mark.long
def test_a_restored_engine_gives_exact_answers_whenever_the_backup_was_taken(tmp_path, monkeypatch):
    often(monkeypatch)
    monkeypatch.setattr(RedisEventLog, "trim", lambda self, behind: None)  # so that one process can run all again
    place, folders = lookout_in(tmp_path / "home"), [tmp_path / f"backup {number}" for number in range(2)]
    database_of(place)
    with running(place) as client:
        batches = going_on_while_backed_up(place, client, folders)
    for folder in folders:
        found = restored(folder, tmp_path / f"after {folder.name}")
        with running(found):
            again = Machine(found.home / "engine" / "earth", found.redis_url, seed=10)
            assert 0 < again.point.batch <= batches
            run_all(again, trouble=False)
            truth, told = tmp_path / "truth" / folder.name, answers(again.log)
            assert told == one_by_one(truth, found.redis_url, again.layout(0).store.epoch())
            assert len(told) == again.point.batch + 1 > 40 and any(told)
            elements = elements_in(again.root)
            assert elements == elements_in(truth) and set(elements.values()) == {1}


def test_a_backup_that_was_cut_short_is_not_restored(small, tmp_path):
    folder, _ = small
    (folder / LIST).rename(tmp_path / LIST)
    with pytest.raises(Unusable, match=rf"must have {LIST}.*cut short"):
        restored(folder, tmp_path / "other")
    (folder / LIST).write_bytes((tmp_path / LIST).read_bytes()[:-40])
    with pytest.raises(Unusable, match="must be whole"):
        restored(folder, tmp_path / "other")


def test_a_backup_with_a_file_that_is_cut_altered_or_missing_is_not_restored(small, tmp_path):
    folder, _ = small
    names = json.loads((folder / LIST).read_bytes())["files"]
    assert {name.partition("/")[0] for name in names} == {"database", "redis", "layers", "files"}
    for name in names:
        path, content = folder / name, (folder / name).read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(Unusable, match="cut or altered"):
            restored(folder, tmp_path / "other")
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(Unusable, match="cut or altered"):
            restored(folder, tmp_path / "other")
        path.unlink()
        with pytest.raises(Unusable, match="is missing"):
            restored(folder, tmp_path / "other")
        path.write_bytes(content)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["live.lock"]
    restored(folder, tmp_path / "other")


def test_nothing_is_restored_over_a_lookout_or_into_one_that_runs(small, tmp_path):
    folder, place = small
    with pytest.raises(Unusable, match=r"empty folder; .* has db\.sqlite3"):
        restored(folder, place.home)
    other = tmp_path / "other"
    other.mkdir()
    with only_one(other), pytest.raises(CannotStart, match="already runs"):
        restored(folder, other)


def test_lookout_does_not_start_from_a_backup_that_was_restored_in_part(small, tmp_path):
    folder, _ = small
    other = tmp_path / "other"
    other.mkdir()
    (other / RESTORING).touch()
    with pytest.raises(CannotStart, match="restored whole"), only_one(other):
        pass
    with pytest.raises(CannotStart, match="restored whole"):
        restored(folder, other)


def test_a_backup_goes_into_a_new_folder(small, tmp_path):
    folder, place = small
    with running(place) as client, pytest.raises(Unusable, match=r"new folder; .* not empty"):
        taken(place, folder, client)
