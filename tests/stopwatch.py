"""How long something takes, told on a machine that others use, too."""

import os
import time

import psutil


class Stopwatch:
    """Runs from its making."""

    def __init__(self) -> None:
        self._began_s, self._before = time.monotonic(), psutil.cpu_times()

    def seconds(self) -> float:
        """Return how long it would have taken if nothing else had run.

        What other machines took of the processors does not count, and of what their queue made it wait, the part that
        is not its own.
        """
        now, elapsed_s = psutil.cpu_times(), time.monotonic() - self._began_s
        stolen = getattr(now, "steal", 0.0) - getattr(self._before, "steal", 0.0)
        share = stolen / max(sum(now) - sum(self._before), 0.01)
        return elapsed_s * max(1 - share, 0.02) / max(1, os.getloadavg()[0] / os.cpu_count())
