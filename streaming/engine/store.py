"""The state of an engine: which states there are, and how each is stored.

Batch *b* reads the states that *b* - 1 left, and leaves new ones: in memory, and in files if the batch is saved.
`streaming.state` says how.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streaming.engine.local_layers import LocalLayers
from streaming.engine.ways import WAYS, home_parts
from streaming.operators.layer import LayerVersion
from streaming.operators.padding import Padding
from streaming.operators.region_map import RegionMap
from streaming.servers.control.entries import ControlEntries, Entry
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.registry_codec import registry_codec, restored
from streaming.servers.home import Home
from streaming.servers.home_codec import home_codec
from streaming.servers.region.codec import region_codec
from streaming.servers.region.state import Region
from streaming.spaces import Space
from streaming.state.codec import Codec
from streaming.state.errors import LostState
from streaming.state.manifest import Manifest, Shape
from streaming.state.recovery import newest_usable
from streaming.state.stores import LocalStore, StateStore
from streaming.state.versions import Attempt, StateVersions

logger = logging.getLogger(__name__)

# The states that all ways of evaluation need.
COMMON = ("registry", "home", "region")
STATES = (*COMMON, *(state.name for way in WAYS for state in way.states))
EPOCH = "epoch"
REGISTRIES_KEPT = 3


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
    padding : Padding, optional
        Which pages of layers regions keep in memory.
    versions : type, optional
        `StateVersions`, or `MemoryVersions` for an engine whose states are never written.

    Attributes
    ----------
    layers : LocalLayers
    """

    def __init__(
        self,
        root: Path,
        space: Space,
        layers: Path | None = None,
        history: Path | None = None,
        files: StateStore | None = None,
        regions: int = 1,
        padding: Padding | None = None,
        versions: type[StateVersions] = StateVersions,
    ) -> None:
        self.root, self.space, self.padding = root, space, padding or Padding()
        self.layers = LocalLayers(root / "features", space, layers or root / "layers", history or root / "history")
        self.files = files or LocalStore(root)
        self._no_queries = Registry(space, catalogue=self.layers.layer, region_map=RegionMap.grid(space, regions))
        codecs = _codecs(space, self._no_queries)
        passed_on = {state.name for way in WAYS for state in way.states if state.passed_on}
        self._versions = versions(self.files, lambda name: codecs[_kind(name)], lambda name: _kind(name) in passed_on)
        # By region and layer: the pages that a region keeps, and why.
        self._kept: dict[tuple[int, str], tuple[LayerVersion, Any, np.ndarray]] = {}
        self._epoch = ""
        # By batch, the registry after it.
        self._registries: dict[int, Registry] = {}
        # The registry that was read or saved last, and the batch that wrote it.
        self._saved_registry = -1, self._no_queries
        self._applied: tuple[Registry, ControlEntries, Registry, Applied] | None = None

    def epoch(self) -> str:
        """Return the unique name of this state, made when it is first asked for; batch numbers count from then on."""
        if not self._epoch:
            if self.files.put(EPOCH, uuid.uuid4().hex.encode(), once=True):
                self.files.sync([EPOCH])
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

    def before(self, name: str, batch: int, keep: bool = True) -> Any:
        """Return a state before a batch; with `keep`, this process keeps it in memory."""
        return self._versions.before(name, batch, keep)

    def left(self, name: str, batch: int) -> Any:
        """Return the state after a batch that this process keeps in memory, or that is saved."""
        return self._versions.after(name, batch)

    def blocks(self, batch: int) -> tuple[int, ...] | None:
        """Return how many blocks the state after a saved batch has read, by partition; None if there is no state."""
        return self._versions.manifest(batch).blocks if batch >= 0 else None

    def keep_pages(self, region: int, batch: int, registry: Registry) -> None:
        """Have this process keep the pages of layers that a region may need, now that it runs a batch; see `Padding`.

        Raises
        ------
        MissingVersion
            If a version of a layer is not there yet.
        """
        for name in registry.layers_joined:
            layer = registry.features(name)
            reaches = frozenset(reach for reach in registry.layer_reaches if reach.layer == name)
            asked = registry.region_map, reaches
            known = self._kept.get((region, name))
            if known is None or known[0] is not layer or known[1] != asked:
                known = layer, asked, self.padding.kept(layer, registry.region_map.cells[region], reaches)
                self._kept[region, name] = known
            layer.keep(region, batch, known[2])

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

    def _remember(self, batch: int, registry: Registry) -> None:
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

    def ended(self, batch: int, shape: Shape) -> bool:
        """Tell whether all home servers and all regional servers have written what the batch changed."""
        return self._versions.ended(batch, self._servers(batch, shape)) is not None

    def _servers(self, batch: int, shape: Shape) -> list[str]:
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
        assert receipts is not None, "all tasks have ended"
        self._versions.commit(batch, assembler.since, self.epoch(), shape, [*receipts, assembler.receipt()])


def _codecs(space: Space, no_queries: Registry) -> dict[str, Codec]:
    """Return the codec of each kind of state."""
    homes = home_codec(space, home_parts())
    common = zip(COMMON, (registry_codec(no_queries), homes, region_codec(space)), strict=True)
    return dict(common) | {state.name: state.codec(space) for way in WAYS for state in way.states}


def _kind(name: str) -> str:
    return name.partition("/")[0]
