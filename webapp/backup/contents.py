"""What a backup has: its files, and a list of them with sizes and checksums, which is written last."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from streaming.state.files import make_folder, sync, write_whole
from streaming.state.manifest import FORMAT

LIST = "backup.json"
CHUNK = 1 << 20


class Unusable(Exception):
    """A backup cannot be made or restored."""


class Copied(NamedTuple):
    """The size of a copied file in bytes, and its SHA-256."""

    size: int
    digest: str


@dataclass(frozen=True)
class Contents:
    """The files of a backup, by name; a name begins with the part of Lookout that the file belongs to.

    Parameters
    ----------
    files : mapping of str to Copied
    release : str
        The release that made the backup.
    state_format : int
        The format of the engine's states.
    """

    files: Mapping[str, Copied]
    release: str = version("lookout")
    state_format: int = FORMAT

    def write(self, folder: Path) -> None:
        """Write the list into a folder whose files are all on the disk. Without the list, it is no backup."""
        document = {"release": self.release, "state_format": self.state_format, "files": self.files}
        write_whole(folder / LIST, json.dumps(document, indent=1).encode())

    def names(self, part: str) -> Iterator[str]:
        """Yield the names of the files of a part, without that of the part."""
        return (name.partition("/")[2] for name in self.files if name.partition("/")[0] == part)


def read_contents(folder: Path) -> Contents:
    """Return what a backup has.

    Raises
    ------
    Unusable
        If the folder has no list of its files, or one that cannot be read, or states of another format.
    """
    try:
        document = json.loads((folder / LIST).read_bytes())
        files = {name: Copied(*told) for name, told in document["files"].items()}
        found = Contents(files, document["release"], document["state_format"])
    except FileNotFoundError:
        raise Unusable(
            f"a backup must have {LIST}, which is written last; {folder} has none, so it was cut short"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise Unusable(f"{LIST} of a backup must be whole; that of {folder} is not ({error})") from None
    if found.state_format != FORMAT:
        words = f"a backup must have states of format {FORMAT}, which this release reads; {folder} is of release"
        raise Unusable(f"{words} {found.release}, with format {found.state_format}: install that release to restore it")
    return found


def check(folder: Path, contents: Contents) -> None:
    """Raise Unusable if a file of a backup is missing, cut or altered."""
    for name, told in contents.files.items():
        try:
            found = digest_of(folder / name)
        except FileNotFoundError:
            raise Unusable(f"every file of a backup must be there; {name} is missing") from None
        if found != told:
            raise Unusable(f"every file of a backup must be as it was written; {name} was cut or altered")


def copy(source: Path, target: Path, size: int | None = None) -> Copied:
    """Copy a file, or its first bytes, to the disk.

    Parameters
    ----------
    source, target : Path
        Missing folders of the target are made.
    size : int, optional
        How many bytes to copy; by default all.
    """
    make_folder(target.parent)
    digest, left = hashlib.sha256(), os.stat(source).st_size if size is None else size
    with source.open("rb") as read, target.open("xb") as written:
        copied = left
        while left and (chunk := read.read(min(CHUNK, left))):
            digest.update(chunk)
            written.write(chunk)
            left -= len(chunk)
    sync(target)
    sync(target.parent)
    return Copied(copied - left, digest.hexdigest())


def digest_of(path: Path) -> Copied:
    """Return the size and the checksum of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return Copied(file.tell(), digest.hexdigest())
