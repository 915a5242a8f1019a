"""A pytest plugin that divides a run among its workers: each test file as a whole, and few workers with a Lookout.

A Lookout takes half a minute of processor time to start, so one for each worker costs more than it brings. The files
that share one, those of `SHARED`, run on the first `LOOKOUTS` workers, which take others when none of them is left; the
other workers never start one.
"""

from collections.abc import Iterable

from xdist.scheduler import LoadScopeScheduling

# Folders whose tests share the Lookout of their worker; clusters come first, since they have one of their own.
SHARED = ("tests/live/", "tests/chaos/", "tests/browser/")
CLUSTER = "tests/live/test_cluster.py"
LOOKOUTS = 2
# The most that one worker takes is begun first, so that none runs at the end while others have nothing to do.
FIRST = ("tests/engine/", "tests/house/", "tests/servers/", "tests/backtest/", "tests/explaining/", "tests/sketch/")


def ordered(files: Iterable[str]) -> list[str]:
    """Return test files in the order in which they begin."""
    first = (CLUSTER, *SHARED, *FIRST)
    rank = {file: next((i for i, prefix in enumerate(first) if file.startswith(prefix)), len(first)) for file in files}
    return sorted(rank, key=rank.get)


class Sharing(LoadScopeScheduling):
    """Gives files to workers as the module says; see `LoadScopeScheduling`."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::", 1)[0]

    def schedule(self) -> None:
        self.config.option.loadscopereorder = False
        super().schedule()

    def _next_for(self, node) -> str | None:
        """Return the next file for a worker, or None if there is none that it may take."""
        files = ordered(self.workqueue)
        if node not in self.nodes[:LOOKOUTS]:
            files = [file for file in files if not file.startswith(SHARED)]
        return next(iter(files), None)

    def _assign_work_unit(self, node) -> None:
        if (file := self._next_for(node)) is not None:
            self.workqueue.move_to_end(file, last=False)
            super()._assign_work_unit(node)

    def _reschedule(self, node) -> None:
        if self.workqueue and self._next_for(node) is None and not node.shutting_down:
            node.shutdown()
        else:
            super()._reschedule(node)


def pytest_xdist_make_scheduler(config, log):
    """Divide runs with ``--dist loadfile`` as the module says."""
    return Sharing(config, log) if config.getvalue("dist") == "loadfile" else None
