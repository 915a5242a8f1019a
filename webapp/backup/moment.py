"""Hold a Lookout fast as it is at one moment, without stopping it.

All writers of the database wait for some milliseconds. Meanwhile, the newest states, the file of Redis and the layers
get a second name, and a reader of the database begins. What these names and the reader see stays as it is, however long
it takes to copy it: what a state or a layer names never changes, Redis only appends to its file or begins another one,
and a reader of SQLite sees the database as it was when it began.
"""

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from streaming.history.files import PENDING, parts_of, pending_of, stream_names
from streaming.logs import Log
from streaming.state.errors import LostState
from streaming.state.files import UNFINISHED
from streaming.state.manifest import Manifest
from streaming.state.recovery import newest_usable
from streaming.state.stores import LocalStore
from webapp.backup.contents import Unusable
from webapp.backup.places import ENGINE, FILES, HISTORY, KEPT, LAYERS, REDIS

APPEND_FILE = "appendonly.aof"
STAGING = ".backup"
# Files of a state besides those that its manifest names.
NAMES = ("epoch", "space.json", "quarantine.json")
TRIES, PAUSE_S = 20, 0.2
LOCK_WAIT_S = 60.0


class MomentPassed(Exception):
    """Something went on while it was named, so the moment has to be another one."""


class Held(NamedTuple):
    """A file that stays as it is up to a size."""

    path: Path
    size: int | None = None


@dataclass
class Moment:
    """A Lookout at one moment.

    Attributes
    ----------
    files : dict of str to Held
        By the name that each has in a backup.
    database : sqlite3.Connection
        Reads the database as it was.
    states : dict of str to Manifest
        The state of each space that has one.
    """

    database: sqlite3.Connection
    files: dict[str, Held] = field(default_factory=dict)
    states: dict[str, Manifest] = field(default_factory=dict)


@contextlib.contextmanager
def moment(places: Mapping[str, Path], database: Path, logs: Mapping[str, Log]) -> Iterator[Moment]:
    """Yield a moment, and let go of it at the end.

    Parameters
    ----------
    places : mapping of str to Path
        See `places.part_places`.
    database : Path
    logs : mapping of str to Log
        The logs of each space.

    Raises
    ------
    Unusable
        If no moment could be held: merges or state files came in between each time.
    """
    for _ in range(TRIES):
        with contextlib.ExitStack() as held:
            try:
                taken = _take(held, places, database, logs)
            except (MomentPassed, FileNotFoundError, LostState):
                time.sleep(PAUSE_S)
                continue
            yield taken
            return
    raise Unusable(f"the files must stay for a moment; they changed in each of {TRIES} tries")


def _take(held: contextlib.ExitStack, places: Mapping[str, Path], database: Path, logs: Mapping[str, Log]) -> Moment:
    staging = {part: held.enter_context(_staging(places[part])) for part in (REDIS, ENGINE, HISTORY, LAYERS)}
    taken = Moment(held.enter_context(contextlib.closing(sqlite3.connect(database, isolation_level=None))))
    with _writers_waiting(database):
        for space, log in logs.items():
            _name_state(taken, space, log, places[ENGINE] / space, staging[ENGINE])
        told = {space: log.newest_batch(_epoch(places[ENGINE] / space)) for space, log in logs.items()}
        log_file = staging[REDIS] / APPEND_FILE
        os.link(places[REDIS] / APPEND_FILE, log_file)
        taken.files[f"{REDIS}/{APPEND_FILE}"] = Held(log_file, log_file.stat().st_size)
        _name_all(taken, LAYERS, places[LAYERS], staging[LAYERS], _files_below(places[LAYERS]))
        _begin_reading(taken.database)
    for space, manifest in taken.states.items():
        # The logs keep what is behind a manifest as long as the manifest is kept.
        if not (places[ENGINE] / space / manifest.name).exists():
            raise MomentPassed
    for space, newest in told.items():
        _name_history(taken, places[HISTORY], staging[HISTORY], space, (_epoch(places[ENGINE] / space), newest))
    for name in KEPT:
        path = places[FILES] / name
        found = [path] if path.is_file() else _files_below(path)
        taken.files |= {f"{FILES}/{one.relative_to(places[FILES])}": Held(one) for one in found}
    return taken


@contextlib.contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """Yield a new folder on the same disk for the second names of files."""
    staging = folder / STAGING
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        yield staging
    finally:
        shutil.rmtree(staging)


@contextlib.contextmanager
def _writers_waiting(database: Path) -> Iterator[None]:
    """Have all who write to the database wait; it changes nothing."""
    with contextlib.closing(sqlite3.connect(database, timeout=LOCK_WAIT_S, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            writer.execute("ROLLBACK")


def _begin_reading(database: sqlite3.Connection) -> None:
    database.execute("BEGIN")
    database.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _epoch(state: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return (state / "epoch").read_text()
    return ""


def _name_state(taken: Moment, space: str, log: Log, state: Path, staging: Path) -> None:
    """Name the newest state whose results are all in the log, from which an engine would continue."""
    store = LocalStore(state)
    manifest = newest_usable(store, log.newest_whole_batch(_epoch(state)))
    names = {name for name in NAMES if (state / name).exists()}
    if manifest is not None:
        taken.states[space] = manifest
        names |= {manifest.name, *(file.name for file in manifest.files())}
    _name_all(taken, f"{ENGINE}/{space}", state, staging / space, (state / name for name in names))


def _name_history(taken: Moment, root: Path, staging: Path, space: str, told: tuple[str, int]) -> None:
    """Name the stored elements of the batches whose results are in the log; the other batches run again.

    Pending files come first: one that goes meanwhile has been merged into a part, which is found then.
    """
    folder, (epoch, newest) = root / space, told
    pending = [one.path for one in pending_of(folder) if one.epoch != epoch or one.batch <= newest]
    _name_all(taken, f"{HISTORY}/{space}", folder, staging / space, pending, may_go=True)
    parts = [part for stream in stream_names(folder) for part in parts_of(folder / stream)]
    if any(part.epoch == epoch and part.last > newest for part in parts):
        raise MomentPassed
    others = [path for path in _files_below(folder) if PENDING not in path.relative_to(folder).parts]
    _name_all(taken, f"{HISTORY}/{space}", folder, staging / space, others)


def _name_all(
    taken: Moment, part: str, folder: Path, staging: Path, paths: Iterable[Path], may_go: bool = False
) -> None:
    """Give files of a folder second names."""
    for path in paths:
        name = path.relative_to(folder)
        second = staging / name
        second.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, second)
        except FileNotFoundError:
            if not may_go:
                raise
            continue
        taken.files[f"{part}/{name}"] = Held(second)


def _files_below(folder: Path) -> list[Path]:
    """Return the regular files in a folder and below, without those that are being written."""
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != STAGING]
        found += [Path(root, name) for name in names if not name.endswith(UNFINISHED)]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def copy_database(taken: Moment, target: Path) -> None:
    """Copy the database of a moment by SQLite's own way of backing up."""
    with contextlib.closing(sqlite3.connect(target)) as copied:
        taken.database.backup(copied)
        copied.execute("PRAGMA journal_mode=DELETE")
