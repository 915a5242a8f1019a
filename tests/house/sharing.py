"""A pytest plugin that runs the tests that need a Lookout, a browser or Spark beside the others (`--dist loadfile`).

Such tests wait for three quarters of their time, and a Lookout takes half a minute of processor time to start. So the
first workers, as many as ``--lookouts`` says, take the files of such tests, and the others have the time that these
leave: they run at a lower priority, so that what waits for an answer on a screen waits for that alone.
"""

import functools
import re
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

from streaming.confined import give_way

# A third of the weight of what has the usual priority: beside two programs that never rest, a run goes on nevertheless.
NICE = 5
SERVED = re.compile(r"pytest\.mark\.(spark|browser)\b")


@functools.cache
def served(path: Path) -> bool:
    """Tell whether a file has tests that need a Lookout, a browser or Spark."""
    return SERVED.search(path.read_text()) is not None


def number(node) -> int:
    """Return the number of a worker: those with a Lookout have the lowest, and the usual priority."""
    return int(node.gateway.id.removeprefix("gw"))


class Sharing(LoadScopeScheduling):
    """Gives whole files to workers, as the module says; see `LoadScopeScheduling`."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::", 1)[0]

    def schedule(self) -> None:
        self.config.option.loadscopereorder = False
        super().schedule()

    def _next_for(self, node) -> str | None:
        """Return the next file for a worker, or None if there is none that it may take."""
        files = {True: [], False: []}
        for file in self.workqueue:
            files[served(self.config.rootpath / file)].append(file)
        first = sorted(self.nodes, key=number)[: self.config.option.lookouts]  # they are ready in any order
        own = files[True] if node in first else []
        return next(iter(own + files[False]), None)

    def _assign_work_unit(self, node) -> None:
        if (file := self._next_for(node)) is not None:
            self.workqueue.move_to_end(file, last=False)
            super()._assign_work_unit(node)

    def _reschedule(self, node) -> None:
        if self.workqueue and self._next_for(node) is None and not node.shutting_down:
            node.shutdown()
        else:
            super()._reschedule(node)


def pytest_addoption(parser):
    """Add the option that says how many Lookouts run."""
    parser.addoption("--lookouts", type=int, default=1, help="how many workers run tests that need a Lookout")


def pytest_xdist_make_scheduler(config, log):
    """Divide runs with ``--dist loadfile`` as the module says."""
    return Sharing(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure_node(node):
    """Tell a worker whether it gives way to others."""
    later = number(node) >= node.config.option.lookouts
    node.workerinput["gives_way"] = later and node.config.getvalue("dist") == "loadfile"


def pytest_configure(config):
    """Give way to others, in a worker that is told so."""
    if getattr(config, "workerinput", {}).get("gives_way"):
        give_way(NICE)
