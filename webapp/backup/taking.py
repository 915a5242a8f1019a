"""Take a backup."""

from collections.abc import Mapping
from pathlib import Path

from streaming.logs import Log
from streaming.state.files import make_folder, sync
from streaming.state.stores import LocalStore
from webapp.backup.contents import Contents, Copied, Unusable, copy, digest_of
from webapp.backup.moment import Moment, copy_database, moment
from webapp.backup.places import DATABASE, ENGINE


def back_up(folder: Path, places: Mapping[str, Path], database: Path, logs: Mapping[str, Log]) -> Contents:
    """Write a Lookout that runs, as it is at one moment, into a new folder; return what was written.

    Parameters
    ----------
    folder : Path
        It must not exist, or be empty.
    places : mapping of str to Path
        See `places.part_places`.
    database : Path
    logs : mapping of str to Log
        The logs of each space.

    Raises
    ------
    Unusable
        If the folder has something, or no moment could be held.
    """
    if folder.exists() and any(folder.iterdir()):
        raise Unusable(f"a backup must go into a new folder; {folder} is not empty")
    make_folder(folder)
    with moment(places, database, logs) as taken:
        files = {name: copy(held.path, folder / name, held.size) for name, held in taken.files.items()}
        files[f"{DATABASE}/{database.name}"] = _database(taken, folder / DATABASE / database.name)
    broken = [
        words
        for space, manifest in taken.states.items()
        for words in manifest.broken(LocalStore(folder / ENGINE / space))
    ]
    if broken:
        raise Unusable(f"the newest state must be whole; got {'; '.join(broken)}")
    contents = Contents(files)
    contents.write(folder)
    return contents


def _database(taken: Moment, target: Path) -> Copied:
    make_folder(target.parent)
    copy_database(taken, target)
    sync(target)
    sync(target.parent)
    return digest_of(target)
