"""The resident memory of each process of a Lookout, taken each second."""

import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil

from bench.processes import processes, program_of

EVERY_S = 1.0
MIB = 2**20
Samples = Mapping[str, Sequence[tuple[float, float]]]


class Memory:
    """Samples the memory of every process of a state folder in its own thread, as a context manager.

    Parameters
    ----------
    home : Path
        The state folder.

    Attributes
    ----------
    samples : dict of str to list of (float, float)
        By process, times since 1970 in seconds with MiB.
    """

    def __init__(self, home: Path) -> None:
        self.samples: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._home, self._stop = home, threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self):
        while not self._stop.wait(EVERY_S):
            for process in processes(self._home):
                with contextlib.suppress(psutil.Error, ProcessLookupError):
                    if os.getsid(process.pid) == os.getsid(0):
                        continue  # the benchmark's own, which prepares something
                    name = f"{program_of(process)} ({process.name()} {process.pid})"
                    self.samples[name].append((time.time(), process.memory_info().rss / MIB))


def grown_most(samples: Samples, began_s: float) -> tuple[str, float]:
    """Return the process that was largest in comparison with before a time, and by how many MiB.

    A process that began later counts from nothing.

    Examples
    --------
    >>> grown_most({"web": [(0, 100), (1, 90), (2, 120)], "new": [(2, 15)]}, began_s=1.5)
    ('web', 20)
    """
    grown = {
        name: max(size for _, size in sizes) - max((size for at_s, size in sizes if at_s < began_s), default=0)
        for name, sizes in samples.items()
        if sizes
    }
    return max(grown.items(), key=lambda one: one[1], default=("", 0))
