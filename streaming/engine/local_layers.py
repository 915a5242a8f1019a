"""The layers that an engine joins with: copies of their parts in its state folder, mapped into memory."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from streaming.elements import key_hashes
from streaming.history.snapshots import snapshots
from streaming.kinds.join.partners import STORED_PREFIX
from streaming.layers.features import InvalidLayer
from streaming.layers.pages import SUFFIX, Pages, mapped_pages, write_pages
from streaming.layers.parts import read_groups
from streaming.layers.store import ORPHAN_AGE_S, LayerManifest, LayerStore
from streaming.operators.layer import LayerVersion
from streaming.spaces import Space
from streaming.state.files import write_whole

T = TypeVar("T")

logger = logging.getLogger(__name__)

# The versions of a layer before and after an edit.
VERSIONS_KEPT = 2
# The file system that has the layers may show a version a little later here than to the program that wrote it.
LAYER_WAIT_S, LAYER_POLL_S = 2.0, 0.05


class MissingVersion(OSError):
    """A version of a layer is not there yet. The batch has to run again: an answer without it would be wrong."""


class LocalLayers:
    """The layers that an engine joins with.

    The first process that needs a part copies it into the folder; all processes of a machine share the copy.

    Parameters
    ----------
    folder : Path
    space : Space
    layers, history : Path
        The folders of the layers, and of the stored elements with their snapshots.
    """

    def __init__(self, folder: Path, space: Space, layers: Path, history: Path) -> None:
        self.folder, self.space = folder, space
        self._layers, self._snapshots = LayerStore(layers), snapshots(history, space)
        self._known: dict[str, dict[int, LayerVersion]] = {}

    def layer(self, name: str, version: int) -> LayerVersion:
        """Return a version of a layer; this process keeps the last two versions of each layer.

        A version that was removed for good, because a newer one is there or the layer was dropped, has no features.

        Raises
        ------
        MissingVersion
            If the version is not there yet.
        """
        versions = self._known.setdefault(name, {})
        if version not in versions:
            if self._removed(name, version):
                logger.error("version %d of layer %s is removed: joins with it have no answers", version, name)
                return LayerVersion.none(self.space)
            earlier = max((known for known in versions if known < version), default=0)
            versions[version] = self._made(name, version, versions.get(earlier))
            for old in sorted(versions)[:-VERSIONS_KEPT]:
                del versions[old]
        return versions[version]

    def _made(self, name: str, version: int, before: LayerVersion | None) -> LayerVersion:
        """Return a version, which uses what an earlier one, or None, has in memory."""
        copy, (_, stream) = self.folder / name / f"{version}.json", self._stored(name)
        if copy.exists():
            manifest = LayerManifest.from_json(copy.read_bytes())
        else:
            manifest = self._waited(name, version, lambda store: store.manifest(stream, version, self.space))
        paths = self._stored(name)[0].paths(manifest)
        parts = [self._part(name, version, path) for path in paths]
        if not copy.exists():
            write_whole(copy, manifest.to_json(), durable=False)
            self._tidy(self.folder / name)
        removed = np.sort(key_hashes(stream, manifest.removed))
        return LayerVersion(parts, removed, self.space, before)

    def _part(self, name: str, version: int, path: Path) -> Pages:
        """Return a part, given its path in the store; copies it if no process has done so before."""
        copy = self.folder / name / f"{path.stem}{SUFFIX}"
        if not copy.exists():
            self._waited(name, version, lambda store: self._copy(self._stored(name)[1], path, copy))
        return mapped_pages(copy)

    def _copy(self, stream: str, path: Path, copy: Path) -> None:
        try:
            write_pages(copy, read_groups(stream, path, self.space), self.space)
        except FileNotFoundError:  # the version was discarded or dropped after its manifest was read
            raise InvalidLayer("its part %(name)s is not there any more", name=path.name) from None

    def _waited(self, name: str, version: int, read: Callable[[LayerStore], T]) -> T:
        """Return what a function returns for the store of a layer, as soon as it does not fail."""
        deadline_s = time.monotonic() + LAYER_WAIT_S
        while True:
            try:
                return read(self._stored(name)[0])
            except InvalidLayer as error:
                if time.monotonic() > deadline_s:
                    raise MissingVersion(f"version {version} of layer {name} is not there: {error}") from None
            time.sleep(LAYER_POLL_S)

    def _tidy(self, folder: Path) -> None:
        """Remove the copies of old versions, and of the parts that no other version has."""
        versions = {int(path.stem): path for path in folder.glob("*.json")}
        parts_of = {
            number: set(LayerManifest.from_json(path.read_bytes()).parts)
            for number, path in sorted(versions.items())
            if path.exists()
        }
        kept = sorted(parts_of)[-VERSIONS_KEPT:]
        used = {Path(part).stem for number in kept for part in parts_of[number]}
        freed = {Path(part).stem for parts in parts_of.values() for part in parts} - used
        for path in folder.glob(f"*{SUFFIX}"):
            # Another process may just have copied a part that no version here has yet.
            if path.stem in freed or (path.stem not in used and _age_s(path) >= ORPHAN_AGE_S):
                path.unlink(missing_ok=True)
        for number in sorted(parts_of)[:-VERSIONS_KEPT]:
            versions[number].unlink(missing_ok=True)
        for path in folder.glob("*.arrow"):  # an earlier release wrote them
            path.unlink(missing_ok=True)

    def _removed(self, name: str, version: int) -> bool:
        """Return whether a version of a layer was there once, and no copy of it is left."""
        store, stream = self._stored(name)
        copy = self.folder / name / f"{version}.json"
        return not copy.exists() and version not in store.versions(stream) and version <= store.last(stream)

    def _stored(self, name: str) -> tuple[LayerStore, str]:
        """Return the store of a layer and the layer's name there."""
        stream = name.removeprefix(STORED_PREFIX)
        return (self._layers if stream == name else self._snapshots), stream


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
