"""Where state is stored: a local folder, or any file system that fsspec knows.

To make a file takes a local file system tenths of a millisecond, several times as long as to write a little into it. So
each process appends the parts of the state that it writes in a batch to one file, a *segment*.
"""

import contextlib
import errno
import mmap
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import fsspec
import pyarrow as pa

from streaming.state.files import UNFINISHED, sync, whole
from streaming.state.tables import ALIGNMENT

# Contents that are at least so large, in bytes, get a segment of their own: they may be needed for much longer.
LARGE = 1 << 18
# Contents that are at least so large, in bytes, are mapped when they are read; there may be very many smaller ones, and
# a process can have some ten thousand mappings.
MAPPED = 1 << 16


class Place(NamedTuple):
    """Where a content is: the name of its segment, and the offset there in bytes, a multiple of `ALIGNMENT`."""

    name: str
    offset: int


class StateStore(Protocol):
    """Named contents. A name is a path with slashes, relative to the root of the store."""

    def get(self, name: str, offset: int = 0, size: int | None = None) -> pa.Buffer:
        """Return a content from an offset on, `size` bytes or as many as there are.

        Raises
        ------
        FileNotFoundError
            If there is no content of this name.
        """

    def put(self, name: str, content: pa.Buffer | bytes, once: bool = False) -> bool:
        """Store a content under a name, whole or not at all; return whether it was stored.

        With `once`, an existing content stays, and the result is False.
        """

    def add(self, folder: str, batch: int, content: pa.Buffer) -> Place:
        """Store a content in a segment of a batch, whose name begins with the batch; return its new place."""

    def append(self, name: str, line: bytes) -> None:
        """Add a line to a content, which begins with its first line. Processes may do so at the same time."""

    def lines(self, name: str) -> list[bytes]:
        """Return the lines of a content, none if there is no such content. A line that is being added may be cut."""

    def list(self, folder: str = "") -> list[str]:
        """Return the names in a folder and the folders below it, in order."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove contents; those that are missing do not matter."""

    def sync(self, names: Iterable[str]) -> None:
        """Make contents durable, so that they survive a power cut."""


def _new_segment(folder: str, batch: int) -> str:
    return f"{folder}/{batch}.{uuid.uuid4().hex[:12]}.parts"


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
        self._segments: dict[tuple[int, str, int], str] = {}

    def get(self, name: str, offset: int = 0, size: int | None = None) -> pa.Buffer:
        """Return a content. One that is not small is mapped into memory, so that processes share its pages."""
        with open(f"{self.root}/{name}", "rb", buffering=0) as file:
            there = max(0, os.fstat(file.fileno()).st_size - offset)
            size = there if size is None else min(size, there)
            if size < MAPPED:
                return pa.py_buffer(os.pread(file.fileno(), size, offset))
            before = offset % mmap.ALLOCATIONGRANULARITY
            pages = mmap.mmap(file.fileno(), before + size, offset=offset - before, access=mmap.ACCESS_READ)
        return pa.py_buffer(pages).slice(before)

    def put(self, name: str, content: pa.Buffer | bytes, once: bool = False) -> bool:
        """Store a content; it is not durable before `sync`."""
        try:
            with whole(self.root / name, durable=False, once=once) as temporary, temporary.open("wb") as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

    def add(self, folder: str, batch: int, content: pa.Buffer) -> Place:
        """Append a content to a segment of this process; it is not durable before `sync`."""
        if content.size >= LARGE:
            return self._begin(_new_segment(folder, batch), content)
        mine = os.getpid(), folder, batch  # a process that was forked gets a segment of its own
        with contextlib.suppress(KeyError, FileNotFoundError):  # it is removed when a state before it is used again
            return self._append(self._segments[mine], content)
        self._segments = {mine: _new_segment(folder, batch)}
        return self._begin(self._segments[mine], content)

    def _begin(self, name: str, content: pa.Buffer | bytes) -> Place:
        path = f"{self.root}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb", buffering=0) as file:
            file.write(content)
        return Place(name, 0)

    def _append(self, name: str, content: pa.Buffer | bytes) -> Place:
        with open(f"{self.root}/{name}", "r+b", buffering=0) as file:
            offset = file.seek(0, os.SEEK_END)
            offset = file.seek(offset + -offset % ALIGNMENT)
            file.write(content)
        return Place(name, offset)

    def append(self, name: str, line: bytes) -> None:
        """Add a line by one write. The newline comes first, so that a line that was cut does not spoil the next."""
        path, flags = f"{self.root}/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            descriptor = os.open(path, flags, 0o644)
        except FileNotFoundError:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, flags, 0o644)
        try:
            os.write(descriptor, b"\n" + line)
        finally:
            os.close(descriptor)

    def lines(self, name: str) -> list[bytes]:
        """Return the lines of a file."""
        try:
            with open(f"{self.root}/{name}", "rb") as file:
                return file.read().split(b"\n")[1:]
        except FileNotFoundError:
            return []

    def list(self, folder: str = "") -> list[str]:
        """Return the names in a folder and below, in order; temporary files are no contents."""
        return sorted(self._below(folder))

    def _below(self, folder: str) -> Iterator[str]:
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

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def get(self, name: str, offset: int = 0, size: int | None = None) -> pa.Buffer:
        """Return a content; only what is asked for is read."""
        end = None if size is None else offset + size
        try:
            return pa.py_buffer(self._files.cat_file(self._path(name), start=offset or None, end=end))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return pa.py_buffer(b"")  # S3 refuses a range that begins behind the end

    def put(self, name: str, content: pa.Buffer | bytes, once: bool = False) -> bool:
        """Store a content; an object store shows it only when it is whole."""
        path = self._path(name)
        try:
            try:
                self._pipe(path, content, once)
            except FileNotFoundError:  # object stores have no folders
                self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
                self._pipe(path, content, once)
        except OSError:  # for a failed precondition, S3 has an error of its own
            if not once or not self._files.exists(path):
                raise
            return False
        return True

    def _pipe(self, path: str, content: pa.Buffer | bytes, once: bool) -> None:
        self._files.pipe_file(path, bytes(content), mode="create" if once else "overwrite")

    def add(self, folder: str, batch: int, content: pa.Buffer) -> Place:
        """Store a content as a segment of its own: object stores cannot append."""
        place = Place(_new_segment(folder, batch), 0)
        self.put(place.name, content)
        return place

    def append(self, name: str, line: bytes) -> None:
        """Store a line as an object of its own, whose name begins with that of the content."""
        self.put(f"{name}.{uuid.uuid4().hex[:12]}", line)

    def lines(self, name: str) -> list[bytes]:
        """Return the lines of a content, in any order."""
        names = [line for line in self.list(name.rpartition("/")[0]) if line.startswith(f"{name}.")]
        return [self.get(line).to_pybytes() for line in names]

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
    return RemoteStore(str(place)) if "://" in str(place) else LocalStore(Path(place))
