"""Where state is stored: a local folder, or any file system that fsspec knows."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import fsspec
import pyarrow as pa

from streaming.state.files import UNFINISHED, sync, whole


class StateStore(Protocol):
    """Named immutable contents. A name is a path with slashes, relative to the root of the store."""

    def get(self, name: str) -> pa.Buffer:
        """Return a content; raise FileNotFoundError if there is none."""

    def put(self, name: str, content: pa.Buffer | bytes, once: bool = False) -> bool:
        """Store a content under a name, whole or not at all; return whether it was stored.

        With `once`, an existing content stays, and the result is False.
        """

    def list(self, folder: str = "") -> list[str]:
        """Return the names in a folder and the folders below it, in order."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove contents; those that are missing do not matter."""

    def sync(self, names: Iterable[str]) -> None:
        """Make contents durable, so that they survive a power cut."""


class LocalStore:
    """A folder of this machine; contents are mapped into memory.

    Parameters
    ----------
    root : Path
        Created if missing.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self.root.mkdir(parents=True, exist_ok=True)

    def get(self, name: str) -> pa.Buffer:
        """Return a content, mapped into memory, so that processes share its pages."""
        path = self.root / name
        if not path.stat().st_size:  # an empty file cannot be mapped
            return pa.py_buffer(b"")
        with pa.memory_map(str(path)) as source:
            return source.read_buffer()

    def put(self, name: str, content: pa.Buffer | bytes, once: bool = False) -> bool:
        """Store a content; it is not durable before `sync`."""
        try:
            with whole(self.root / name, durable=False, once=once) as temporary, temporary.open("wb") as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

    def list(self, folder: str = "") -> list[str]:
        """Return the names in a folder and below, in order; temporary files are no contents."""
        return sorted(self._below(folder))

    def _below(self, folder):
        try:
            entries = list(os.scandir(self.root / folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir():
                yield from self._below(name)
            elif not entry.name.endswith(UNFINISHED):
                yield name

    def delete(self, names: Iterable[str]) -> None:
        """Remove contents; the folders stay."""
        for name in names:
            (self.root / name).unlink(missing_ok=True)

    def sync(self, names: Iterable[str]) -> None:
        """Sync files, and the folders that hold their names, to the disk."""
        folders: set[Path] = set()
        for name in names:
            path = self.root / name
            sync(path)
            folders.update(parent for parent in path.parents if parent.is_relative_to(self.root))
        for folder in sorted(folders):
            sync(folder)


class RemoteStore:
    """A folder of any file system that fsspec knows, such as ``s3://bucket/lookout``; a content is durable once put.

    Parameters
    ----------
    uri : str
    **options
        The options of the file system; see the documentation of fsspec.
    """

    def __init__(self, uri: str, **options: Any) -> None:
        self._files, self._root = fsspec.url_to_fs(uri, **options)
        self._root = self._root.rstrip("/")

    def _path(self, name):
        return f"{self._root}/{name}" if name else self._root

    def get(self, name: str) -> pa.Buffer:
        """Return a content; it is read whole."""
        return pa.py_buffer(self._files.cat_file(self._path(name)))

    def put(self, name: str, content: pa.Buffer | bytes, once: bool = False) -> bool:
        """Store a content; an object store shows it only when it is whole."""
        path = self._path(name)
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        try:
            self._files.pipe_file(path, bytes(content), mode="create" if once else "overwrite")
        except FileExistsError:
            return False
        return True

    def list(self, folder: str = "") -> list[str]:
        """Return the names in a folder and below, in order."""
        self._files.invalidate_cache()
        found = self._files.find(self._path(folder)) if self._files.exists(self._path(folder)) else []
        return sorted(path.removeprefix(f"{self._root}/") for path in found)

    def delete(self, names: Iterable[str]) -> None:
        """Remove contents."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._files.rm_file(self._path(name))

    def sync(self, names: Iterable[str]) -> None:
        """Do nothing: what such a file system has accepted is durable."""


def open_store(place: str | Path) -> StateStore:
    """Return the store at a place: a local folder, or a URI with ``://``."""
    return RemoteStore(place) if "://" in str(place) else LocalStore(Path(place))  # type: ignore[arg-type]
