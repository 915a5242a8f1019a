"""Slots: where a process that runs tasks names the step that it runs, for a watchdog in another process.

A slot is a small file that both map into memory, so to name a step costs a few microseconds, and works while the step
holds the interpreter. Its process holds a lock on it, which the kernel gives back when the process ends.
"""

import fcntl
import mmap
import os
import signal
import uuid
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streaming.servers.control.watched import Revisions

FOLDER = "slots"
# Each slot has the number of the step, which is 0 between steps; batch and place; how many answers the step is run for
# alone, and how many queries are named; then as many of these queries as there is room for, each with its revision.
HEADER = 5
BYTES = 1 << 17
MOST_QUERIES = (BYTES // 8 - HEADER) // 2
_UNFINISHED = "."


class NamedStep(NamedTuple):
    """A step that a process runs.

    Parameters
    ----------
    pid : int
        The process.
    number : int
        Of the step among those of the process, from 1 on.
    batch, place : int
        See `quarantine.home_place` for places that are no regions.
    answers : int
        For how many answers it is run alone; 0 if it is run for all queries, or for none.
    queries : tuple of (int, int)
        The queries that have this answer, or one of each if there are several, and their revisions; at most
        `MOST_QUERIES` of them.
    whole : bool
        Whether all of them are there.
    fatal : bool
        Whether the process has ended in the step.
    """

    pid: int
    number: int
    batch: int
    place: int
    answers: int
    queries: tuple[tuple[int, int], ...]
    whole: bool
    fatal: bool


class Slot:
    """The slot of this process.

    Parameters
    ----------
    root : Path
        The state folder.
    """

    def __init__(self, root: Path) -> None:
        folder = root / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{os.getpid()}.{uuid.uuid4().hex[:8]}"
        # It gets its name once it is locked, since a slot without a lock is taken for one of a process that has ended.
        hidden = folder / f"{_UNFINISHED}{name}"
        self._file = hidden.open("w+b", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        # Written, not made longer: where there is no room, this fails, and not what writes to the memory later.
        self._file.write(bytes(BYTES))
        self._numbers = np.frombuffer(mmap.mmap(self._file.fileno(), BYTES), dtype=np.int64)
        os.replace(hidden, folder / name)
        self._steps = 0

    def begin(self, batch: int, place: int, answers: int, queries: Revisions) -> None:
        """Name the step that begins; see `NamedStep`."""
        self._steps += 1
        numbers, count = self._numbers, len(queries)
        if count:
            some = np.array(list(queries)[:MOST_QUERIES], dtype=np.int64).ravel()
            numbers[HEADER : HEADER + len(some)] = some
        numbers[:HEADER] = (self._steps, batch, place, answers, count)

    def end(self) -> None:
        """Say that the step has ended."""
        self._numbers[0] = 0

    def close(self) -> None:
        """Give the slot back, as the end of the process does."""
        self._file.close()


def named_steps(root: Path) -> list[NamedStep]:
    """Return the steps that processes run which have a slot in a state folder, and those in which processes ended.

    The slots of processes that ended are removed.
    """
    found = []
    for path in _slots(root):
        with suppress(FileNotFoundError), path.open("rb", buffering=0) as file:
            locked = _is_locked(file.fileno())
            found.append(_step(path, np.frombuffer(file.read(BYTES), dtype=np.int64), fatal=not locked))
            if not locked:
                path.unlink()
    return [step for step in found if step.number]


def end_processes(root: Path) -> None:
    """Kill the processes that have a slot in a state folder."""
    for path in _slots(root):
        with suppress(FileNotFoundError, ProcessLookupError), path.open("rb", buffering=0) as file:
            if _is_locked(file.fileno()):
                os.kill(_pid(path), signal.SIGKILL)


def _slots(root: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return [path for path in (root / FOLDER).iterdir() if not path.name.startswith(_UNFINISHED)]
    return []


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _step(path: Path, numbers: np.ndarray, fatal: bool) -> NamedStep:
    number, batch, place, answers, count = numbers[:HEADER].tolist()
    queries = numbers[HEADER : HEADER + 2 * min(count, MOST_QUERIES)].reshape(-1, 2)
    named = tuple((query, revision) for query, revision in queries.tolist())
    return NamedStep(_pid(path), number, batch, place, answers, named, count <= MOST_QUERIES, fatal)


def _pid(path: Path) -> int:
    return int(path.name.partition(".")[0])
