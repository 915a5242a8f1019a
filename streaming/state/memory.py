"""Versions of states in the memory of one process alone: for an engine that begins, runs and ends there."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streaming.state.codec import Codec
from streaming.state.errors import LostState
from streaming.state.manifest import Files, Receipt, Shape
from streaming.state.stores import StateStore
from streaming.state.versions import StateVersions

# A batch reads what the batch before it left, also after some of its tasks have left something themselves.
VERSIONS_KEPT = 2


class MemoryVersions(StateVersions):
    """As `StateVersions`, but nothing is encoded or written: what is saved stays in memory while a batch may read it.

    All tasks must run in this process, each batch once, and each with a `Saving`.

    Parameters
    ----------
    store : StateStore
        Not used.
    codec_of : callable
    transient : callable
    """

    def __init__(
        self,
        store: StateStore,
        codec_of: Callable[[str], Codec],
        transient: Callable[[str], bool] = lambda name: False,
    ) -> None:
        super().__init__(store, codec_of, transient)
        self._left: dict[str, dict[int, Any]] = {}
        self._tasks: tuple[int, set[str]] = -1, set()

    def before(self, name: str, batch: int, keep: bool = True) -> Any:
        """Return a state before `batch`; that of a server which did not run is empty."""
        return self.after(name, batch - 1)

    def leave(self, name: str, batch: int, state: Any) -> None:
        """Keep a state after a batch."""
        versions = self._left.setdefault(name, {})
        versions[batch] = state
        for old in sorted(versions)[:-VERSIONS_KEPT]:
            del versions[old]

    def after(self, name: str, batch: int) -> Any:
        """Return a state after `batch`."""
        versions = self._left.get(name, {})
        return versions[batch] if batch in versions else self._codec_of(name).empty(batch + 1)

    def files(self, name: str, batch: int) -> Files:
        """Return no files."""
        return {}

    def save(self, name: str, batch: int, since: int, state: Any) -> Files:
        """Keep a state after a batch."""
        self.leave(name, batch, state)
        return {}

    def keep(self, name: str, batch: int, since: int) -> Files:
        """Leave a state after a batch as it was after the batch `since`, if it was saved then."""
        versions = self._left.get(name, {})
        if since in versions:
            self.leave(name, batch, versions[since])
        return {}

    def end(self, batch: int, task: str, receipt: Receipt) -> None:
        """Note that a task has ended."""
        if self._tasks[0] != batch:
            self._tasks = batch, set()
        self._tasks[1].add(task)

    def ended(self, batch: int, tasks: Iterable[str]) -> list[Receipt] | None:
        """Return empty receipts of all tasks of a batch, or None if a task has not ended."""
        names = list(tasks)
        known = self._tasks[1] if self._tasks[0] == batch else set()
        return [Receipt({}, {}, 0) for _ in names] if known.issuperset(names) else None

    def commit(self, batch: int, since: int, epoch: str, shape: Shape, receipts: Iterable[Receipt]) -> None:
        """Do nothing: there is no manifest."""

    def manifest(self, batch: int) -> Any:
        """Raise `LostState`: there is none."""
        raise LostState(f"a batch must be in files to have a manifest; batch {batch} is in memory")

    def stored(self, name: str, batch: int) -> Mapping[str, Any]:
        """Return no parts."""
        return {}
