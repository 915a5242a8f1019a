"""Measure this checkout and another one in turn, so that the same hour is good or bad for both.

The other checkout runs with its own interpreter and its own code. Its load, clients and counters are those of this
benchmark if they work with that code; else its own, so that scenarios with figures of their own are left out. Either
way they run in a folder that refers to the other checkout, which is not written to.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bench.live import ROOT, StackFailed
from bench.machine import Conditions, watched
from bench.scenarios import Case, Scenario

ROUNDS = 2
BENCH, ONE = "bench", "one.py"
MODULES = ("one", "written", "panning", "registering", "crowd")
ONE_S = 900.0


@dataclass(frozen=True)
class Place:
    """A checkout that can be measured: its interpreter, and the folder in which ``bench.one`` runs."""

    python: Path
    folder: Path


@dataclass
class Compared:
    """Figures of a scenario here and there, a mapping for each round; and what failed, if anything did."""

    name: str
    here: list[Mapping[str, float | None]] = field(default_factory=list)
    there: list[Mapping[str, float | None]] = field(default_factory=list)
    failed: str = ""
    conditions: Conditions = field(default_factory=Conditions)

    def ratios(self) -> list[tuple[str, float, float, float | None]]:
        """Return name, median here, median there, and their ratio, of each figure that both sides have."""
        if not self.here or not self.there:
            return []
        names = [name for name in self.here[0] if name in self.there[0]]
        return [(name, *_compared(name, self.here, self.there)) for name in names if _known(name, self)]


def _known(name, compared):
    return all(row.get(name) is not None for row in (*compared.here, *compared.there))


def _compared(name, here, there):
    ours, theirs = (float(np.median([row[name] for row in rows])) for rows in (here, there))
    return ours, theirs, ours / theirs if theirs else None


@contextmanager
def other(checkout: Path) -> Iterator[Place]:
    """Yield what measures another checkout.

    Raises
    ------
    StackFailed
        When the checkout has no interpreter, or neither benchmark works there.
    """
    checkout = checkout.resolve()
    python = checkout / ".venv" / "bin" / "python"
    if not python.exists():
        raise StackFailed(f"{checkout} must have an environment of its own, made by `make install`: no {python}")
    with tempfile.TemporaryDirectory(prefix="lookout-against-") as folder:
        for ours in (True, False):
            place = Place(python, Path(folder) / ("ours" if ours else "theirs"))
            _refer(place.folder, checkout, ours)
            if not (wrong := _wrong(place, MODULES if ours else MODULES[:1])):
                yield place
                return
        raise StackFailed(f"neither benchmark works in {checkout}: {wrong}")


def _refer(folder: Path, checkout: Path, ours: bool) -> None:
    """Fill a folder with references to a checkout, except for the benchmark: either ours, or theirs and `bench.one`."""
    folder.mkdir()
    for path in checkout.iterdir():
        if path.name != BENCH:
            (folder / path.name).symlink_to(path)
    (folder / BENCH).mkdir()
    for path in ((ROOT if ours else checkout) / BENCH).iterdir():
        if path.name not in (ONE, "__pycache__"):
            (folder / BENCH / path.name).symlink_to(path)
    (folder / BENCH / ONE).symlink_to(ROOT / BENCH / ONE)


def _wrong(place, modules):
    """Return why the benchmark does not work at a place; empty if it does."""
    imports = "; ".join(f"import bench.{module}" for module in modules)
    done = subprocess.run([place.python, "-c", imports], cwd=place.folder, capture_output=True, text=True)
    return done.stderr[-1_000:] if done.returncode else ""


def compare(
    checkout: Path,
    chosen: Sequence[Scenario | Case],
    seconds: float,
    say: Callable[[str], None],
    rounds: int = ROUNDS,
) -> list[Compared]:
    """Measure scenarios here and there in turn, each time on a stack of its own.

    Parameters
    ----------
    checkout : Path
        Of another version of Lookout, with its own ``.venv``.
    chosen : sequence of Scenario or Case
    seconds : float
        Of each measurement.
    say : function of a text
        Tells of progress.
    rounds : int
        How often each side is measured.

    Raises
    ------
    StackFailed
        As `other`.
    """
    here, compared = Place(Path(sys.executable), ROOT), []
    with other(checkout) as there:
        for scenario in chosen:
            row = Compared(scenario.name)
            with watched() as row.conditions:
                try:
                    for number in range(rounds):
                        say(f"{scenario.name}, round {number + 1} of {rounds}: here ...")
                        row.here.append(_one(here, scenario, seconds))
                        say(f"{scenario.name}, round {number + 1} of {rounds}: there ...")
                        row.there.append(_one(there, scenario, seconds))
                except StackFailed as failed:
                    row.failed = str(failed)
            compared.append(row)
    return compared


def _one(place, scenario, seconds):
    document = json.dumps({"kind": type(scenario).__name__, "fields": asdict(scenario)})
    command = [place.python, "-m", "bench.one", document, "--seconds", str(seconds)]
    try:
        done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, timeout=ONE_S)
    except subprocess.TimeoutExpired as late:
        raise StackFailed(f"{place.folder}: not within {ONE_S:g} s") from late
    if done.returncode:
        raise StackFailed(f"{place.folder}: {(done.stderr.strip() or 'no word').splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])
