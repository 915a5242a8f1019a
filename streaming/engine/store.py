"""The state of an engine: which states there are, how each is stored, and the features of layers.

Batch *b* reads the states that *b* - 1 left, and leaves new ones: in memory, and in files if the batch is saved.
`streaming.state` says how.
"""

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from streaming.history.snapshots import snapshots
from streaming.kinds.join.plan import STORED_PREFIX
from streaming.layers.features import InvalidLayer
from streaming.layers.store import LayerStore
from streaming.operators.features import Features, ordered
from streaming.operators.region_map import RegionMap
from streaming.servers.assembler.codec import assembly_codec
from streaming.servers.assembler.server import AssemblerState
from streaming.servers.control.entries import ControlEntries, Entry
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.registry_codec import registry_codec, restored
from streaming.servers.home import Home
from streaming.servers.home_codec import HOME
from streaming.servers.participant.codec import MEMBERS_OF_AGGREGATES, PARTIAL
from streaming.servers.participant.partial import Partial
from streaming.servers.region.codec import region_codec
from streaming.servers.region.state import Region
from streaming.spaces import Space
from streaming.state.codec import Codec
from streaming.state.errors import LostState
from streaming.state.files import write_whole
from streaming.state.manifest import Manifest, Shape
from streaming.state.recovery import newest_usable
from streaming.state.stores import LocalStore, StateStore
from streaming.state.tables import serialized, tables_in
from streaming.state.versions import Attempt, Versions

logger = logging.getLogger(__name__)

# The states that tasks write. The assembler reads the partials of its own batch, and nobody reads them later.
STATES = ("registry", "home", "region", "stream_join", "participant", "partial", "assembly")
PARTIALS = "partial"
EPOCH = "epoch"
REGISTRIES_KEPT = 3
# The versions of a layer before and after an edit.
VERSIONS_KEPT = 2
# The file system that has the layers may show a version a little later here than to the program that wrote it.
LAYER_WAIT_S, LAYER_POLL_S = 2.0, 0.05


class MissingVersion(OSError):
    """A version of a layer is not there yet. The batch has to run again: an answer without it would be wrong."""


class Store:
    """The state of one engine: the registry, the home servers, the regional servers and the assembler.

    Parameters
    ----------
    root : Path
        The state folder; created if missing. It has the features of layers, which all processes of a machine share.
    space : Space
    layers, history : Path, optional
        The folders of the layers and of the stored elements with their snapshots; by default, ``layers`` and
        ``history`` in `root`.
    files : StateStore, optional
        Where the states are; by default, in `root`.
    regions : int, optional
        In how many equal regions the space is cut at first.
    """

    def __init__(
        self,
        root: Path,
        space: Space,
        layers: Path | None = None,
        history: Path | None = None,
        files: StateStore | None = None,
        regions: int = 1,
    ) -> None:
        self.root, self.space = root, space
        self.files = files or LocalStore(root)
        self._no_queries = Registry(space, catalogue=self.features, region_map=RegionMap.grid(space, regions))
        codecs = _codecs(space, self._no_queries)
        self._versions = Versions(self.files, lambda name: codecs[_kind(name)], lambda name: _kind(name) == PARTIALS)
        self._layers = LayerStore(layers or root / "layers")
        self._snapshots = snapshots(history or root / "history", space)
        self._features: dict[str, dict[int, Features]] = {}
        self._epoch = ""
        # By batch, the registry after it.
        self._registries: dict[int, Registry] = {}
        # The registry that was read or saved last, and the batch that wrote it.
        self._saved_registry = -1, self._no_queries
        self._applied: tuple[Registry, ControlEntries, Registry, Applied] | None = None

    def epoch(self) -> str:
        """Return the unique name of this state, made when it is first asked for; batch numbers count from then on."""
        if not self._epoch:
            self.files.put(EPOCH, uuid.uuid4().hex.encode(), once=True)
            self._epoch = self.files.get(EPOCH).to_pybytes().decode()
        return self._epoch

    @property
    def written_bytes(self) -> int:
        """How much state this process has written, in bytes."""
        return self._versions.written_bytes

    def attempt(self, batch: int, task: str, since: int | None = None) -> Attempt:
        """Return an attempt to save what a task leaves after a batch; see `Attempt`."""
        return Attempt(self._versions, batch, task, since)

    def leave(self, name: str, batch: int, state: Any) -> None:
        """Keep a state after a batch in the memory of this process."""
        self._versions.leave(name, batch, state)

    def left(self, name: str, batch: int) -> Any:
        """Return the state after a batch that this process keeps in memory, or that is saved."""
        return self._versions.after(name, batch)

    def blocks(self, batch: int) -> tuple[int, ...] | None:
        """Return how many blocks the state after a saved batch has read, by partition; None if there is no state."""
        return self._versions.manifest(batch).blocks if batch >= 0 else None

    def features(self, layer: str, version: int) -> Features:
        """Return the features of a layer's version; this process keeps the last two versions of each layer in memory.

        A version that was removed for good, because a newer one is there or the layer was dropped, has no features.

        Raises
        ------
        MissingVersion
            If the version is not there yet.
        """
        versions = self._features.setdefault(layer, {})
        if version not in versions:
            if self._removed(layer, version):
                logger.error("version %d of layer %s is removed: joins with it have no answers", version, layer)
                return Features.none(self.space)
            versions[version] = Features(self._mapped(layer, version), self.space)
            for old in sorted(versions)[:-VERSIONS_KEPT]:
                del versions[old]
        return versions[version]

    def _mapped(self, layer, version):
        """Return the table of a layer's version, mapped into memory so that all processes share its pages."""
        folder = self.root / "features" / layer
        path = folder / f"{version}.arrow"
        if not path.exists():
            write_whole(path, serialized([ordered(self._features_of(layer, version))]), durable=False)
            pa.default_memory_pool().release_unused()
            for old in sorted(int(other.stem) for other in folder.glob("*.arrow"))[:-VERSIONS_KEPT]:
                (folder / f"{old}.arrow").unlink(missing_ok=True)
        return tables_in(LocalStore(folder).get(path.name))[0]

    def _removed(self, layer, version):
        """Return whether a version of a layer was there once, and no copy of it is left."""
        store, stream = self._stored(layer)
        copy = self.root / "features" / layer / f"{version}.arrow"
        return not copy.exists() and version not in store.versions(stream) and version <= store.last(stream)

    def _features_of(self, layer, version):
        store, stream = self._stored(layer)
        deadline_s = time.monotonic() + LAYER_WAIT_S
        while True:
            try:
                return store.read(stream, version, self.space)
            except InvalidLayer as error:
                if time.monotonic() > deadline_s:
                    raise MissingVersion(f"version {version} of layer {layer} is not there: {error}") from None
            time.sleep(LAYER_POLL_S)

    def _stored(self, layer):
        """Return the store of a layer and the layer's name there."""
        stream = layer.removeprefix(STORED_PREFIX)
        return (self._layers if stream == layer else self._snapshots), stream

    def registry(self, batch: int) -> Registry:
        """Return the registry before `batch`.

        If this process has not made it, it is read; but not what it has in common with one that this process knows.
        """
        if batch - 1 not in self._registries:
            written, known = self._versions.written("registry", batch - 1), self._no_queries
            if self._registries:
                known = self._registries[max(self._registries)]
            if self._saved_registry[0] != written:
                self._saved_registry = written, restored(self._versions.stored("registry", batch), known)
            self._remember(batch - 1, self._saved_registry[1])
        return self._registries[batch - 1]

    def save_registry(self, attempt: Attempt, registry: Registry) -> None:
        """Save the registry after a batch, unless it is the one that was saved before."""
        written, saved = self._saved_registry
        if saved is registry and written == self._versions.written("registry", attempt.since):
            attempt.keep("registry")
        else:
            attempt.save("registry", registry)
            self._saved_registry = attempt.batch, registry

    def applied(self, batch: int, control: Sequence[Entry] | ControlEntries) -> tuple[Registry, Applied]:
        """Return the registry after the control entries of `batch`, and what the entries did."""
        before, control = self.registry(batch), ControlEntries.of(control, self.space)
        # The tasks of a process get the same entries, and share the registry that the first of them made.
        known = self._applied
        if known is None or known[0] is not before or (known[1] is not control and known[1] != control):
            known = self._applied = (before, control, *before.apply(control))
        _, _, after, applied = known
        self._remember(batch, after)
        return after, applied

    def _remember(self, batch, registry):
        self._registries[batch] = registry
        for old in sorted(self._registries)[:-REGISTRIES_KEPT]:
            del self._registries[old]

    def home(self, partition: int, batch: int) -> Home:
        """Return the state of a home server before `batch`."""
        return self._versions.before(f"home/{partition}", batch)

    def region(self, number: int, batch: int) -> Region:
        """Return the state of a regional server before `batch`."""
        return self._versions.before(f"region/{number}", batch)

    def regions(self, batch: int) -> Iterator[Region]:
        """Yield the states of all regional servers before `batch`, even if some of them have run it already."""
        for number in range(self.registry(batch).region_map.regions):
            yield self._versions.before(f"region/{number}", batch, keep=False)

    def stream_joins(self, number: int, batch: int, keep: bool = True) -> Region:
        """Return the state of a region's joins with streams before `batch`; kept only while there are such joins."""
        return self._versions.before(f"stream_join/{number}", batch, keep)

    def members(self, number: int, batch: int, keep: bool = True) -> pl.DataFrame:
        """Return the members of aggregates in a region before `batch`; kept while there are distributed queries."""
        return self._versions.before(f"participant/{number}", batch, keep)

    def partial(self, number: int, batch: int) -> Partial:
        """Return what a participating server sent to the assembler in `batch`."""
        return self._versions.after(f"{PARTIALS}/{number}", batch)

    def assembly(self, batch: int) -> AssemblerState:
        """Return the state of the assembler before `batch`; it is kept while there are distributed queries."""
        return self._versions.before("assembly", batch, keep=False)

    def ended(self, batch: int, shape: Shape) -> bool:
        """Tell whether all home servers and all regional servers have written what the batch changed."""
        return self._versions.ended(batch, self._servers(batch, shape)) is not None

    def _servers(self, batch, shape):
        homes = (f"home-{number}" for number in range(shape.partitions))
        return [*homes, *(f"region-{number}" for number in range(self.registry(batch + 1).region_map.regions))]

    def newest_saved(self, published: int) -> Manifest | None:
        """Return the manifest of the newest saved batch whose results are published, given the newest such batch."""
        return newest_usable(self.files, published)

    def is_saved(self, batch: int) -> bool:
        """Tell whether the state after a batch is whole, so that every process can read it."""
        try:
            self._versions.manifest(batch)
        except LostState:
            return False
        return True

    def commit(self, batch: int, shape: Shape, assembler: Attempt) -> None:
        """Write the manifest of a batch whose tasks have all ended, with what the assembler saved."""
        receipts = self._versions.ended(batch, self._servers(batch, shape))
        self._versions.commit(batch, assembler.since, self.epoch(), shape, [*receipts, assembler.receipt()])


def _codecs(space, no_queries) -> dict[str, Codec]:
    """Return the codec of each kind of state."""
    region = region_codec(space)
    codecs = (registry_codec(no_queries), HOME, region, region, MEMBERS_OF_AGGREGATES, PARTIAL)
    return dict(zip(STATES, (*codecs, assembly_codec(space)), strict=True))


def _kind(name):
    return name.partition("/")[0]
