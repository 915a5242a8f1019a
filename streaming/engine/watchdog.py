"""A watchdog outside of the batches: it notices a step that does not end, and writes down which one it is.

It runs in the driver, whose interpreter no step can hold. What counts is not how long a batch takes, but for how long a
process has been at the same step. See `quarantine` for what follows.
"""

import logging
from dataclasses import replace
from pathlib import Path

import psutil

from streaming.engine.quarantine import read_quarantine, write_quarantine
from streaming.engine.slots import NamedStep, named_steps
from streaming.errors import LookoutError
from streaming.state.stores import StateStore

logger = logging.getLogger("lookout.engine")

# A look counts for this long at most. While this process or the whole machine stood still, so did the steps.
LONGEST_LOOK_S = 5.0


class Endless(LookoutError):
    """A step did not end, so the engine has to."""


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
        self._looked_s: float | None = None
        named_steps(root)

    def look(self, now_s: float) -> None:
        """Look at the slots; if a step does not end, write down what it is.

        Raises
        ------
        Endless
            If so. All processes of the engine have to end before another engine starts.
        """
        passed_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, LONGEST_LOOK_S)
        self._looked_s = now_s
        steps = named_steps(self._root)
        self._waited = {
            step: self._waited[step] + passed_s * (not _is_stopped(step.pid)) if step in self._waited else 0.0
            for step in steps
        }
        endless = [step for step in steps if self._waited[step] >= self._most_s(step)]
        if endless:
            # The engine ends anyway. What has not ended for half of the time elsewhere is rehearsed as well.
            endless += [step for step in steps if self._is_suspect(step)]
            self._write(endless)
            raise Endless(f"a step must end within {self._limit_s:g} s; got none of {', '.join(map(_words, endless))}")

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
            logger.error("query %d, revision %d, did not end in batch %d", one.query, one.revision, one.batch)
        self._quarantine = found


def _words(step: NamedStep) -> str:
    run_for = f"{step.answers} of the answers" if step.answers else "all queries, or none"
    return f"batch {step.batch} at place {step.place} for {run_for}"


def _is_stopped(pid: int) -> bool:
    """Tell whether a process was stopped by a signal, and so may go on."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
