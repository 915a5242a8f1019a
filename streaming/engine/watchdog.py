"""A watchdog outside of the batches: it notices a step that does not end, or is fatal, and writes down what it was.

It runs in the driver, whose interpreter no step can hold. What counts is not how long a batch takes, but for how long a
process has been at the same step. See `quarantine` for what follows.
"""

import contextlib
import logging
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psutil

from streaming.engine.quarantine import Quarantine, read_quarantine, write_quarantine
from streaming.engine.slots import NamedStep, named_steps
from streaming.engine.store import Store
from streaming.errors import LookoutError
from streaming.logs import Log
from streaming.operators.region_map import MOST_REGIONS
from streaming.settings import EngineSettings
from streaming.state.errors import LostState
from streaming.state.manifest import manifest_batches
from streaming.state.stores import StateStore

logger = logging.getLogger("lookout.engine")

# A look counts for this long at most. While this process or the whole machine stood still, so did the steps.
LONGEST_LOOK_S = 5.0
# A process may end for other reasons. So a step is called fatal when processes have ended in it for the second time.
FATAL_ENDS = 2


class Endless(LookoutError):
    """A step did not end, or was fatal, so the engine has to end."""


def settle(settings: EngineSettings, files: StateStore, log: Log, after: int) -> None:
    """Settle the quarantine for an engine that continues after a batch; it alone has the lease.

    Parameters
    ----------
    settings : EngineSettings
    files : StateStore
        Where the states and the quarantine are.
    log : Log
        The logs of the space, which know what regions have told.
    after : int
        The batch.
    """
    known = read_quarantine(files)
    if known == Quarantine():
        return
    store = Store(settings.state_dir, settings.space, files=files)
    published = sorted(log.published(store.epoch(), 2 * MOST_REGIONS).items())
    told = {region: batch for batch, (regions, _) in published for region in regions}
    settled = known.settled(store.epoch(), after, told, settings.partitions)
    if kept := manifest_batches(files):
        with contextlib.suppress(LostState):  # then nothing is known of it, and it may need everything
            settled = settled.without(kept[0], store.registry(kept[0] + 1).revision)
    write_quarantine(files, settled)


class StepWatch:
    """Watches the steps of an engine.

    Parameters
    ----------
    root : Path
        The state folder. Slots that earlier engines have left there are removed.
    files : StateStore
        Where the quarantine is.
    epoch : str
        Of the state.
    limit_s : float
        How much time a step has, in seconds, unless it was given more.
    """

    def __init__(self, root: Path, files: StateStore, epoch: str, limit_s: float) -> None:
        self._root, self._files, self._limit_s = root, files, limit_s
        self._quarantine = replace(read_quarantine(files), epoch=epoch)
        self._waited: dict[NamedStep, float] = {}
        self._ends = Counter[NamedStep]()
        self._looked_s: float | None = None
        named_steps(root)

    def look(self, now_s: float) -> None:
        """Look at the slots; if a step does not end, or is fatal, write down what it is.

        Raises
        ------
        Endless
            If so. All processes of the engine have to end before another engine starts.
        """
        passed_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, LONGEST_LOOK_S)
        self._looked_s = now_s
        steps = named_steps(self._root)
        running = [step for step in steps if not step.fatal]
        endless = [*self._overdue(running, passed_s), *self._fatal([step for step in steps if step.fatal])]
        if endless:
            # The engine ends anyway. What has not ended for half of the time elsewhere is probed as well.
            self._write([*endless, *filter(self._is_suspect, running)])
            rule = f"each step must end within {self._limit_s:g} s, and leave its process running"
            raise Endless(f"{rule}; got {', '.join(map(_words, endless))}")

    def _overdue(self, running: list[NamedStep], passed_s: float) -> list[NamedStep]:
        """Return the steps that have not ended in time, some seconds after the last look."""
        before = self._waited
        self._waited = {
            step: before[step] + passed_s * (not _is_stopped(step.pid)) if step in before else 0.0 for step in running
        }
        return [step for step in running if self._waited[step] >= self._most_s(step)]

    def _fatal(self, ended: list[NamedStep]) -> list[NamedStep]:
        """Return the steps in which processes have ended often enough, given those in which some ended now."""
        self._ends.update(map(_what, ended))
        return [step for step in ended if self._ends[_what(step)] >= FATAL_ENDS]

    def _most_s(self, step: NamedStep) -> float:
        known = self._quarantine.suspicion(step.batch, step.place)
        return known.limit_s if known else self._limit_s

    def _is_suspect(self, step: NamedStep) -> bool:
        new = not step.answers and self._quarantine.suspicion(step.batch, step.place) is None
        return new and self._most_s(step) / 2 <= self._waited[step] < self._most_s(step)

    def _write(self, endless: list[NamedStep]) -> None:
        found = self._quarantine
        for step in endless:
            found = found.noticed(step, self._limit_s)
        write_quarantine(self._files, found)
        for one in found.queries[len(self._quarantine.queries) :]:
            logger.error("query %d, revision %d, in batch %d: %s", one.query, one.revision, one.batch, one.why)
        self._quarantine = found


def _what(step: NamedStep) -> NamedStep:
    """Return a step without what differs when it runs again in another process."""
    return step._replace(pid=0, number=0)


def _words(step: NamedStep) -> str:
    run_for = f"{step.answers} answers alone" if step.answers else "all queries together, or for none"
    return f"one of batch {step.batch} at place {step.place} for {run_for}"


def _is_stopped(pid: int) -> bool:
    """Tell whether a process was stopped by a signal, and so may go on."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
