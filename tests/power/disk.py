"""A disk that loses at a power cut all that no program has synced: contents of files, and names in folders."""

import itertools
import os
import stat
import threading
from pathlib import Path

import pytest


class Disk:
    """Notes what the syncs of this process make durable below a folder. The syncs themselves are real.

    Parameters
    ----------
    root : Path
        The folder; its own name is durable.
    """

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._open: list[int] = []  # so that no number of a file is used again
        self._turns, self._noted = itertools.count(), dict[int, int]()
        self._lock = threading.Lock()
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._noting(getattr(os, name)))

    def _noting(self, real):
        def sync(descriptor):
            # What another program writes while the disk syncs may be lost, so this is taken before.
            with self._lock:
                turn, number, taken = next(self._turns), os.fstat(descriptor).st_ino, self._taken(descriptor)
            real(descriptor)
            with self._lock:  # two threads may sync one file, and who took less may come back last
                if turn >= self._noted.get(number, 0):
                    self._noted[number] = turn
                    (self._names if isinstance(taken, dict) else self._contents)[number] = taken

        return sync

    def _taken(self, descriptor):
        self._open.append(os.dup(descriptor))
        path = f"/proc/self/fd/{descriptor}"
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            with os.scandir(path) as entries:
                return {entry.name: self._number(entry) for entry in entries}
        return Path(path).read_bytes()

    def _number(self, entry):
        self._open.append(os.open(entry.path, os.O_RDONLY))
        number = entry.stat().st_ino
        # Of what is never synced, the name may be durable; a file is empty then.
        (self._names if entry.is_dir() else self._contents).setdefault(number, {} if entry.is_dir() else b"")
        return number

    def after_a_cut(self, target: Path) -> Path:
        """Make a folder with what the disk has after a power cut; return it."""
        self._restore(self.root.stat().st_ino, target)
        return target

    def _restore(self, number, target):
        if number in self._contents:
            target.write_bytes(self._contents[number])
            return
        target.mkdir()
        for name, found in self._names.get(number, {}).items():
            self._restore(found, target / name)

    def close(self):
        """Let the files go."""
        for descriptor in self._open:
            os.close(descriptor)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """Yield a disk whose folder is ``disk``, in the folder of the test."""
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk", monkeypatch)
    yield disk
    disk.close()
