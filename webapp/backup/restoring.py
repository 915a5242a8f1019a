"""Restore a backup into an empty place."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from streaming.state.files import write_whole
from webapp.backup.contents import Contents, Unusable, check, copy, read_contents
from webapp.live.home import RESTORING, only_one

# What a state folder may have before: a command makes these.
BEFORE = {"secret_key", "live.lock", "log"}


def restore(folder: Path, home: Path, places: Mapping[str, Path]) -> Contents:
    """Copy all files of a backup to where Lookout looks for them; return what the backup has.

    Parameters
    ----------
    folder : Path
    home : Path
        The state folder.
    places : mapping of str to Path
        Where each part goes; see `places.places_below`.

    Raises
    ------
    Unusable
        If the backup is not whole, or the places are not empty.
    CannotStart
        If a Lookout runs from the state folder.
    """
    contents = read_contents(folder)
    with only_one(home):
        _check_empty(home, places.values())
        check(folder, contents)
        write_whole(home / RESTORING, str(folder).encode())
        for name in contents.files:
            part, _, rest = name.partition("/")
            target = places[part] / rest
            if rest in BEFORE:
                target.unlink(missing_ok=True)
            copy(folder / name, target)
        (home / RESTORING).unlink()
    return contents


def _check_empty(home: Path, places: Iterable[Path]) -> None:
    for place in dict.fromkeys([home, *places]):
        found = {path.name for path in place.iterdir()} if place.exists() else set()
        if other := sorted(found - (BEFORE if place == home else set())):
            raise Unusable(f"a backup must be restored into an empty folder; {place} has {', '.join(other)}")
