"""Manifests and receipts: where the parts of the state are, how large they are, and their checksums.

Both begin with the checksum of what follows. So one that a power cut has damaged is noticed. A manifest is a file; the
receipts of a batch are the lines of one file.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from isal import isal_zlib

from streaming.state.errors import LostState
from streaming.state.stores import Place, StateStore

# The format of all files of the state. It rises when a codec, a receipt or the manifest changes. Earlier releases
# wrote formats 1 and 2, without manifests.
FORMAT = 13
# The folders of a store that belong to the state.
MANIFESTS, RECEIPTS, PARTS = "manifests", "receipts", "parts"


class File(NamedTuple):
    """Where a part is: its segment, the offset there and its size in bytes, its CRC-32, and the batch that wrote it."""

    name: str
    offset: int
    size: int
    checksum: int
    batch: int

    @classmethod
    def of(cls, place: Place, offset: int, content: pa.Buffer, batch: int) -> "File":
        """Return where a content is that a batch has stored, so many bytes behind a place."""
        return cls(place.name, place.offset + offset, content.size, isal_zlib.crc32(content), batch)


# Where the parts of a state are.
Files = Mapping[str, File]


@dataclass(frozen=True)
class Shape:
    """The name of the space, and the number of partitions for which a state was written."""

    space: str
    partitions: int


@dataclass(frozen=True)
class Receipt:
    """What one task of a micro-batch has written.

    Parameters
    ----------
    states : mapping of str to Files
        The files of each state, such as ``region/0``, by part. Files of former batches are named again.
    positions : mapping of str to str
        Of a home server: the position in each log up to which the batch reads.
    blocks : int
        Of a home server: how many blocks it read.
    """

    states: Mapping[str, Files] = field(default_factory=dict)
    positions: Mapping[str, str] = field(default_factory=dict)
    blocks: int = 0


@dataclass(frozen=True)
class Manifest:
    """The whole state of an engine after a micro-batch.

    Parameters
    ----------
    batch : int
    epoch : str
    shape : Shape
    states : mapping of str to Files
    positions : mapping of str to str
        The position in each log up to which the state has read.
    blocks : sequence of int
        How many blocks the state has read since its epoch began, by partition.
    """

    batch: int
    epoch: str
    shape: Shape
    states: Mapping[str, Files] = field(default_factory=dict)
    positions: Mapping[str, str] = field(default_factory=dict)
    blocks: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The name of the manifest in its store."""
        return f"{MANIFESTS}/{self.batch}.json"

    def files(self) -> Iterator[File]:
        """Yield all files of the state."""
        for files in self.states.values():
            yield from files.values()

    def broken(self, store: StateStore) -> list[str]:
        """Return in words what is wrong with the files of the state; empty if all are whole."""
        return [words for file in self.files() if (words := _wrong(store, file))]

    def commit(self, store: StateStore) -> bool:
        """Write the manifest unless its batch has one already; return whether it was written.

        All complete attempts of a batch are equal, so the first manifest stays: the next batch may have begun with it.
        """
        return store.put(self.name, _sealed(_manifest_document(self)), once=True)


def _wrong(store: StateStore, file: File) -> str:
    try:
        content = store.get(file.name, file.offset, file.size)
    except FileNotFoundError:
        return f"{file.name} is missing"
    if content.size != file.size:
        return f"{file.name} is cut: {content.size} of {file.size} bytes are there from byte {file.offset} on"
    if isal_zlib.crc32(content) != file.checksum:
        return f"{file.name} has been altered after byte {file.offset}"
    return ""


def read_manifest(store: StateStore, batch: int) -> Manifest:
    """Return the manifest of a batch; raise LostState if it is missing, damaged, or in another format."""
    document = _unsealed(store, f"{MANIFESTS}/{batch}.json")
    if document["format"] != FORMAT:
        raise LostState(f"the manifest of batch {batch} has format {document['format']}, not {FORMAT}")
    return Manifest(
        document["batch"],
        document["epoch"],
        Shape(**document["shape"]),
        _states(document["states"]),
        document["positions"],
        tuple(document["blocks"]),
    )


def format_of(store: StateStore, batch: int) -> int:
    """Return the format of the state that a batch has left; raise LostState if its manifest is missing or damaged."""
    return _unsealed(store, f"{MANIFESTS}/{batch}.json")["format"]


def manifest_batches(store: StateStore) -> list[int]:
    """Return the batches that have a manifest, whole or not, in order."""
    return sorted(batch_of(name) for name in store.list(MANIFESTS))


def state_files(store: StateStore) -> list[str]:
    """Return the names of all manifests, receipts and segments in a store."""
    return [name for folder in (MANIFESTS, RECEIPTS, PARTS) for name in store.list(folder)]


def batch_of(name: str) -> int:
    """Return the batch in the name of a file of the state."""
    return int(name.rpartition("/")[2].partition(".")[0])


def write_receipt(store: StateStore, batch: int, task: str, receipt: Receipt) -> None:
    """Write the receipt of a task; of several attempts of the task, the last one counts."""
    document = {"states": receipt.states, "positions": receipt.positions, "blocks": receipt.blocks}
    body = task.encode() + b" " + orjson.dumps(document, default=list)
    store.append(f"{RECEIPTS}/{batch}", b"%08x %s" % (zlib.crc32(body), body))


def read_receipts(store: StateStore, batch: int, tasks: Iterable[str]) -> list[Receipt] | None:
    """Return the receipts of tasks, or None if a task has not ended yet."""
    tasks, found = list(tasks), {}
    for line in store.lines(f"{RECEIPTS}/{batch}"):
        seal, _, body = line.partition(b" ")
        if seal == b"%08x" % zlib.crc32(body):  # else it was cut, or is being written
            task, _, document = body.partition(b" ")
            found[task.decode()] = document
    if not all(task in found for task in tasks):
        return None
    documents = [orjson.loads(found[task]) for task in tasks]
    return [Receipt(_states(d["states"]), d["positions"], d["blocks"]) for d in documents]


def _states(document: Mapping[str, Any]) -> dict[str, dict[str, File]]:
    return {state: {part: File(*file) for part, file in files.items()} for state, files in document.items()}


def _manifest_document(manifest: Manifest) -> dict[str, Any]:
    kept = {name: getattr(manifest, name) for name in ("batch", "epoch", "states", "positions", "blocks")}
    return kept | {"format": FORMAT, "shape": vars(manifest.shape)}


def _sealed(document: Mapping[str, Any]) -> bytes:
    body = orjson.dumps(document, default=list)
    return b"%08x\n%s" % (zlib.crc32(body), body)


def _unsealed(store: StateStore, name: str) -> Any:
    """Return a document that `_sealed` made; raise LostState if it is missing or damaged."""
    try:
        content = store.get(name).to_pybytes()
    except FileNotFoundError:
        raise LostState(f"{name} is missing") from None
    seal, _, body = content.partition(b"\n")
    if seal != b"%08x" % zlib.crc32(body):
        raise LostState(f"{name} is damaged")
    return orjson.loads(body)
