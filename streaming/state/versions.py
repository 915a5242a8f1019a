"""The versions of states: each batch reads those of the batch before it, and its tasks leave new ones.

Most batches are not *saved*: their states are only in the memory of the process that runs their server. The states
after a saved batch are also in files, so every process can read them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streaming.state.codec import HEAD, Codec, Parts
from streaming.state.errors import LostState
from streaming.state.manifest import (
    PARTS,
    File,
    Files,
    Manifest,
    Receipt,
    Shape,
    read_manifest,
    read_receipts,
    write_receipt,
)
from streaming.state.stores import StateStore
from streaming.state.tables import Packer, tables_in

# A process keeps as many manifests in memory.
MANIFESTS_KEPT = 3


class StateVersions:
    """The versions of the states in a store, as the tasks of micro-batches read and write them.

    A process keeps the newest version that it wrote or read of each state in memory. So it reads files only if another
    process wrote the version last, and of these only the files that its own version does not share.

    Parameters
    ----------
    store : StateStore
    codec_of : callable
        Returns the `Codec` of a state, given its name.
    transient : callable
        Tells whether a state is needed within its batch only, given its name. The manifest does not name it.

    Attributes
    ----------
    written_bytes : int
        How much state this process has written.
    """

    def __init__(
        self,
        store: StateStore,
        codec_of: Callable[[str], Codec],
        transient: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self.store, self._codec_of, self._transient = store, codec_of, transient
        self._newest: dict[str, _Known] = {}
        self._manifests: dict[int, Manifest] = {}
        self._packer = Packer()
        self.written_bytes = 0
        self._ended: tuple[int, Mapping[str, Files]] = (-1, {})

    def before(self, name: str, batch: int, keep: bool = True) -> Any:
        """Return a state before `batch`; with `keep`, this process keeps it in memory.

        Raises
        ------
        LostState
            If the batch before was not saved, and this process has not run its server.
        """
        state = self._read(name, batch - 1)
        if keep and not self._knows(name, batch - 1):
            self._newest[name] = _Known(batch - 1, state, self.files(name, batch - 1))
        return state

    def leave(self, name: str, batch: int, state: Any) -> None:
        """Keep a state after a batch in memory."""
        known = self._newest.get(name)
        self._newest[name] = _Known(batch, state, known.files if known else {})

    def after(self, name: str, batch: int) -> Any:
        """Return a state after `batch`, which has ended or whose tasks have; see `ended`."""
        return self._read(name, batch)

    def stored(self, name: str, batch: int) -> Parts:
        """Return the parts of a state before `batch` as they are stored; none if the state is empty."""
        return {part: _Stored(self.store, file) for part, file in self.files(name, batch - 1).items()}

    def written(self, name: str, batch: int) -> int:
        """Return the batch that wrote a state as it was saved after `batch`; -1 if the state is empty."""
        files = self.files(name, batch)
        return files[HEAD].batch if files else -1

    def files(self, name: str, batch: int) -> Files:
        """Return the files of a state after `batch` by part; none if the state is empty."""
        if batch < 0:
            return {}
        ended, states = self._ended
        return (states if ended == batch else self.manifest(batch).states).get(name, {})

    def manifest(self, batch: int) -> Manifest:
        """Return the manifest of a batch."""
        if batch not in self._manifests:
            try:
                self._manifests[batch] = read_manifest(self.store, batch)
            except LostState as error:
                raise LostState(f"batch {batch + 1} needs the state that batch {batch} left: {error}") from None
            for old in sorted(self._manifests)[:-MANIFESTS_KEPT]:
                del self._manifests[old]
        return self._manifests[batch]

    def keep(self, name: str, batch: int, since: int) -> Files:
        """Return the files of a state after `batch` that is as it was after `since`."""
        return self.files(name, since)

    def end(self, batch: int, task: str, receipt: Receipt) -> None:
        """Write the receipt of a task."""
        write_receipt(self.store, batch, task, receipt)

    def ended(self, batch: int, tasks: Iterable[str]) -> list[Receipt] | None:
        """Return the receipts of all tasks of a batch, or None if a task has not ended. Then `after` can be used."""
        receipts = read_receipts(self.store, batch, tasks)
        if receipts is not None:
            self._ended = batch, {name: files for receipt in receipts for name, files in receipt.states.items()}
        return receipts

    def commit(self, batch: int, since: int, epoch: str, shape: Shape, receipts: Iterable[Receipt]) -> None:
        """Write the manifest of a batch, given the receipts of its tasks; the batch `since` was saved before."""
        states: dict[str, Files] = {}
        positions: dict[str, str] = {}
        read = []
        for receipt in receipts:
            states |= {name: files for name, files in receipt.states.items() if not self._transient(name)}
            positions |= receipt.positions
            read.append(receipt.blocks)
        before = self.manifest(since).blocks if since >= 0 else (0,) * shape.partitions
        blocks = tuple(old + new for old, new in zip(before, read, strict=False))
        Manifest(batch, epoch, shape, states, positions, blocks).commit(self.store)

    def _knows(self, name: str, version: int) -> bool:
        return name in self._newest and self._newest[name].version == version

    def _read(self, name: str, version: int) -> Any:
        known = self._newest.get(name)
        if known is not None and known.version == version:
            return known.state
        codec, files = self._codec_of(name), self.files(name, version)
        if not files:
            return codec.empty(version + 1)
        same = {part for part, file in files.items() if part != HEAD and known and known.files.get(part) == file}
        # The state in memory may be later than its files, and have merged some of its parts into others.
        parts: Parts = codec.encode(known.state) if known and same else {}
        shared = {part: parts[part] for part in same & parts.keys()}
        return codec.decode({**self.stored(name, version + 1), **shared})

    def save(self, name: str, batch: int, since: int, state: Any) -> Files:
        """Write the parts of a state that the version after `since` does not have; return the files of all parts."""
        before, files, new = self.files(name, since), {}, {}
        for part, content in self._codec_of(name).encode(state).items():
            if part != HEAD and part in before:
                files[part] = before[part]
            else:
                new[part] = content.tables()
        written, parts = self._packer.packed(list(new.values()))
        # Each attempt gets places of its own, so that none changes what another one has written or reads.
        place = self.store.add(PARTS, batch, written)
        self.written_bytes += written.size
        for part, (offset, size) in zip(new, parts, strict=True):
            files[part] = File.of(place, offset, written.slice(offset, size), batch)
        self._newest[name] = _Known(batch, state, files)
        return files


@dataclass(frozen=True)
class _Known:
    """A version of a state in memory, and the files of the saved version from which it came."""

    version: int
    state: Any
    files: Files


@dataclass(frozen=True)
class _Stored:
    """A part in a file."""

    store: StateStore
    file: File

    def tables(self) -> list[pa.Table]:
        return tables_in(self.store.get(self.file.name, self.file.offset, self.file.size))


class Attempt:
    """One attempt of a task to save the states after a batch.

    Parameters
    ----------
    versions : StateVersions
    batch : int
    task : str
        The name of the task, such as ``home-0``.
    since : int, optional
        The batch that was saved before; by default, the batch before.
    """

    def __init__(self, versions: StateVersions, batch: int, task: str, since: int | None = None) -> None:
        self._versions, self.batch, self.task = versions, batch, task
        self.since = batch - 1 if since is None else since
        self._states: dict[str, Files] = {}

    def save(self, name: str, state: Any) -> None:
        """Write a state after the batch. A state that no task saves or keeps is empty afterwards."""
        self._states[name] = self._versions.save(name, self.batch, self.since, state)

    def keep(self, name: str) -> None:
        """Leave a state as it was after the batch that was saved before."""
        if files := self._versions.keep(name, self.batch, self.since):
            self._states[name] = files

    def receipt(self, positions: Mapping[str, str] | None = None, blocks: int = 0) -> Receipt:
        """Return the receipt for what was saved and kept."""
        return Receipt(self._states, positions or {}, blocks)

    def end(self, positions: Mapping[str, str] | None = None, blocks: int = 0) -> None:
        """Write the receipt, which makes everything that was saved count."""
        self._versions.end(self.batch, self.task, self.receipt(positions, blocks))
