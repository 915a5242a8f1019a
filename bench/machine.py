"""What the machine does besides: its description, its load, and the processor time that its host takes away."""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil

# A row is marked when the host took away more than this part of the processor time.
MUCH = 0.05
STAT = Path("/proc/stat")
STEAL = 7


def machine() -> str:
    """Describe the machine, and how busy other programs keep it; call this before anything is started."""
    with watched() as conditions:
        busy = psutil.cpu_percent(interval=2.0) / 100 * psutil.cpu_count()
    memory_gib = psutil.virtual_memory().total / 2**30
    versions = f"Python {platform.python_version()}, PySpark {version('pyspark')}, pyarrow {version('pyarrow')}"
    return (
        f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}: {_processor()}, {psutil.cpu_count()} cores, "
        f"{memory_gib:.0f} GiB, {platform.system()} {platform.release()}, {versions}. "
        f"Other programs kept {busy:.1f} cores busy before the start; the load was {conditions.load:.1f}, "
        f"and the host took away {100 * conditions.steal:.1f} % of the processor time."
    )


def _processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


@dataclass
class Conditions:
    """What went on while something was measured.

    Parameters
    ----------
    steal : float
        The part of the processor time that the host took away, from 0 to 1.
    load : float
        The machine's load average of the last minute, at the end.
    seconds : float
        How long it took.
    """

    steal: float = 0.0
    load: float = 0.0
    seconds: float = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether the host took away so much that the figures say little."""
        return self.steal > MUCH


@contextmanager
def watched() -> Iterator[Conditions]:
    """Yield conditions that are filled in at the end."""
    conditions, began_s, before = Conditions(), time.monotonic(), _ticks()
    try:
        yield conditions
    finally:
        conditions.steal, conditions.load = stolen(before, _ticks()), os.getloadavg()[0]
        conditions.seconds = time.monotonic() - began_s


def _ticks():
    return STAT.read_text().splitlines()[0] if STAT.exists() else ""


def stolen(before: str, after: str) -> float:
    """Return the part of processor time that the host took away between two readings of the first line of /proc/stat.

    The eighth number is that time. The two after it are of guests, which the first two numbers contain already.

    Examples
    --------
    >>> stolen("cpu 10 0 0 10 0 0 0 0 0 0", "cpu 40 0 0 70 0 0 0 10 30 0")
    0.1
    >>> stolen("", "")
    0.0
    """
    first, last = ([int(number) for number in line.split()[1:9]] for line in (before, after))
    total = sum(last) - sum(first)
    return (last[STEAL] - first[STEAL]) / total if total else 0.0
