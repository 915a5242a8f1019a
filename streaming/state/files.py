"""Write a local file whole: its name shows either the former content or all of the new one."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

UNFINISHED = ".tmp"


@contextlib.contextmanager
def whole(path: Path, durable: bool = True, once: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write to; then give the file its name, or remove it on an error.

    Two writers of one path never share a temporary file, whether they are threads, processes or attempts.

    Parameters
    ----------
    path : Path
        Its folder is created if missing.
    durable : bool
        Whether the file is also to survive a power cut: file and folder are synced to the disk.
    once : bool
        Whether an existing file stays as it is.

    Raises
    ------
    FileExistsError
        If `once` and the file exists.
    """
    make_folder(path.parent, durable)
    temporary = path.with_name(f".{uuid.uuid4().hex}{UNFINISHED}")
    try:
        yield temporary
        if durable:
            sync(temporary)
        if once:
            os.link(temporary, path)
        else:
            os.replace(temporary, path)
        if durable:
            sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes, durable: bool = True, once: bool = False) -> None:
    """Write a file whole; see `whole`."""
    with whole(path, durable, once) as temporary:
        temporary.write_bytes(content)


def make_folder(folder: Path, durable: bool = True) -> None:
    """Make a folder, and those above it, if missing; a durable one is still there after a power cut."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing if durable else ():
        sync(path.parent)


def sync(path: Path) -> None:
    """Write what the system holds in memory of a file, or of the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_content(path: Path) -> int:
    """Write what the system holds in memory of a file, without its times, to the disk; return the file's inode."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)
        return os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)
