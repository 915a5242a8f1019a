"""Layers on disk: immutable parts, and for each version a manifest that says which features of the parts are in force.

The parts are ``{root}/{layer}/parts/{uuid}.parquet``, the manifests ``{root}/{layer}/{version}.json``. A feature
replaces those of the same key in earlier parts, and a manifest names the keys that were removed. So an edit writes only
a small part and a manifest. A version exists once its manifest exists, so readers see whole versions only.
"""

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa

from streaming.elements import key_hashes
from streaming.layers.features import InvalidLayer, check_name
from streaming.layers.parts import (
    FeatureSummary,
    around,
    bounds_from_json,
    new_part_name,
    read_extent,
    read_hashes,
    read_parts,
    sample_bounds,
    summarize,
    write_part,
)
from streaming.spaces import EARTH, Space
from streaming.state.files import make_folder, sync, write_whole

# An edit writes all features as one fresh part if the version would have more than `MAX_PARTS` parts, or if more than
# `MIN_STALE` features, and more than this share of the version, would be replaced or removed ones.
MAX_PARTS = 16
MAX_STALE_SHARE, MIN_STALE = 0.25, 1_000
# A part that no manifest names is either new or left by a crash; beyond this age, it was left by a crash.
ORPHAN_AGE_S = 3600.0


class Conflict(InvalidLayer):
    """An edit is based on a version that is not the newest."""


@dataclass(frozen=True)
class LayerManifest:
    """One version of a layer.

    Parameters
    ----------
    layer : str
    version : int
        Starts at 1.
    space : str
        The name of the layer's space.
    parts : tuple of str
        File names. The features of a later part replace those of the same key in earlier parts.
    removed : tuple of str
        The keys of removed features.
    features : int
        The number of features.
    bounds : tuple of float, length 2n
        The box around all features; JSON null stands for an infinite bound.
    geometry_types : tuple of str
        The types that occur, or did at some time since the oldest part was written.
    title : str
    """

    layer: str
    version: int
    space: str
    parts: tuple[str, ...]
    removed: tuple[str, ...]
    features: int
    bounds: tuple[float, ...]
    geometry_types: tuple[str, ...]
    title: str = ""

    @property
    def summary(self) -> FeatureSummary:
        """The summary of all features."""
        return FeatureSummary(self.features, self.bounds, self.geometry_types)

    def to_json(self) -> bytes:
        """Return the manifest as JSON, as it is stored."""
        return orjson.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> "LayerManifest":
        """Return a stored manifest; the inverse of `to_json`."""
        document = orjson.loads(text)
        document["bounds"] = bounds_from_json(document["bounds"], empty=document["features"] == 0)
        content: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in document.items()}
        return cls(**content)


class LayerStore:
    """The layers of a folder.

    Parameters
    ----------
    root : Path
        Created when the first layer is written.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def versions(self, layer: str) -> list[int]:
        """Return the version numbers of a layer, ascending; an empty list if there is no such layer."""
        with contextlib.suppress(FileNotFoundError):
            names = (entry.name for entry in os.scandir(self.root / check_name(layer)))
            return sorted(int(stem) for name in names if (stem := name.removesuffix(".json")) != name)
        return []

    def newest(self, layer: str) -> int | None:
        """Return the number of a layer's newest version, or None if there is no such layer."""
        return max(self.versions(layer), default=None)

    def last(self, layer: str) -> int:
        """Return the last version number that a layer has used, also if it was dropped; 0 if there was none."""
        newest = self.newest(layer)
        if newest is None:
            dropped = self._last_dropped(layer)
            newest = int(dropped.read_text()) if dropped.exists() else 0
        return newest

    def manifest(self, layer: str, version: int, space: Space | None = None) -> LayerManifest:
        """Return the manifest of a version.

        Raises
        ------
        InvalidLayer
            When the version does not exist, or does not exist any more, or the layer is not of the space, if one is
            given.
        """
        try:
            manifest = LayerManifest.from_json((self.root / check_name(layer) / f"{version}.json").read_bytes())
        except FileNotFoundError:
            kept = ", ".join(map(str, self.versions(layer))) or "none"
            raise InvalidLayer(
                "the version of layer %(layer)s must be one of %(kept)s; got %(version)s",
                layer=repr(layer),
                kept=kept,
                version=repr(version),
            ) from None
        if space is not None and manifest.space != space.name:
            raise InvalidLayer(
                "layer %(layer)s must be of the space %(name)s; got %(space)s",
                layer=repr(layer),
                name=repr(space.name),
                space=repr(manifest.space),
            )
        return manifest

    def read(self, layer: str, version: int, space: Space = EARTH) -> pa.Table:
        """Return the features of a version.

        Returns
        -------
        pyarrow.Table
            With `features.feature_schema(space)`; neighbouring rows are mostly neighbours in space.

        Raises
        ------
        InvalidLayer
            When the version does not exist (any more), or the layer is of another space.
        """
        manifest = self.manifest(layer, version, space)
        paths = self.paths(manifest)
        try:
            edited = len(paths) > 1 or manifest.removed
            hashes = [read_hashes(layer, path) for path in paths] if edited else []
            masks = _in_force(hashes, key_hashes(layer, manifest.removed)) if edited else [None]
            return read_parts(layer, paths, masks, space)
        except FileNotFoundError:  # the version was discarded or dropped after its manifest was read
            raise InvalidLayer(
                "the version of layer %(layer)s must be one that is kept; got %(version)s",
                layer=repr(layer),
                version=repr(version),
            ) from None

    def sample(self, layer: str, version: int, most: int) -> np.ndarray:
        """Return the boxes of some features of a version, and of some that were edited since its oldest part.

        Returns
        -------
        ndarray of float64, shape (K, 2n)
            About `most` of each part, drawn evenly.
        """
        return np.concatenate([sample_bounds(path, most) for path in self.paths(self.manifest(layer, version))])

    def write(self, layer: str, table: pa.Table, space: Space = EARTH, title: str = "") -> int:
        """Store features as a new version of a layer, which replaces all features of the last one.

        Parameters
        ----------
        layer : str
        table : pyarrow.Table
            With `features.feature_schema(space)`.
        space : Space
        title : str

        Returns
        -------
        int
            The version.
        """
        path = self._new_part(layer)
        with _removed_on_error(path):
            summary = write_part(path, table, space)
            return self._publish(layer, [path.name], summary, space.name, title)

    def adopt(self, layer: str, part: Path, summary: FeatureSummary, space: Space = EARTH, title: str = "") -> int:
        """Move a part, written elsewhere on the same disk, into a layer as its new version; return the version."""
        path = self._new_part(layer)
        with _removed_on_error(path):
            os.replace(part, path)
            sync(path.parent)
            return self._publish(layer, [path.name], summary, space.name, title)

    def edit(
        self,
        layer: str,
        base_version: int,
        upserts: pa.Table,
        removed_keys: Iterable[str] = (),
        space: Space = EARTH,
    ) -> int:
        """Store a new version of a layer that differs from the newest one in some features.

        Parameters
        ----------
        layer : str
        base_version : int
            The version that the editor saw.
        upserts : pyarrow.Table
            With `features.feature_schema(space)`: new features, and features that replace those of the same key.
        removed_keys : iterable of str
            The keys of the features to remove from the base version.
        space : Space

        Returns
        -------
        int
            The version.

        Raises
        ------
        Conflict
            When the base is not the newest version, or another edit came first.
        InvalidLayer
            When a key to remove does not exist or is also among the upserts, or the layer is of another space.
        """
        if base_version != (newest := self.newest(layer)):
            raise Conflict(
                "an edit of layer %(layer)s must be based on its newest version %(newest)s; got %(base_version)s",
                layer=repr(layer),
                newest=newest,
                base_version=base_version,
            )
        base = self.manifest(layer, base_version, space)
        removed, added = set(removed_keys), set(upserts["key"].to_pylist())
        paths = self.paths(base)
        hashes = [read_hashes(layer, path) for path in paths]
        masks = _in_force(hashes, key_hashes(layer, base.removed))
        present = np.concatenate([known[mask] for known, mask in zip(hashes, masks, strict=True)])
        _check_removed(layer, removed, added, present)
        left_out = (set(base.removed) | removed) - added
        stale = sum(map(len, hashes)) + upserts.num_rows - len(present)
        if len(paths) >= MAX_PARTS or stale > max(MIN_STALE, MAX_STALE_SHARE * len(present)):
            return self._compact(base, upserts, removed, space)
        path = self._new_part(layer) if upserts.num_rows else None
        with _removed_on_error(path):
            hashes.append(key_hashes(layer, upserts["key"].to_numpy()))
            masks = _in_force(hashes, key_hashes(layer, sorted(left_out)))
            summary = _edited(base, paths, masks, upserts, space)
            if path is not None:
                write_part(path, upserts, space)
            parts = [*base.parts, *([path.name] if path else [])]
            return self._publish(layer, parts, summary, base.space, base.title, left_out, base_version + 1)

    def discard(self, layer: str, keep_versions: int, min_age_s: float = 0.0) -> None:
        """Remove old versions, and the parts that no other version has.

        Parameters
        ----------
        layer : str
        keep_versions : int
            How many of the newest versions stay; the newest one always stays.
        min_age_s : float
            Versions younger than this stay too, since an engine may be about to read them.
        """
        folder, now_s = self.root / check_name(layer), time.time()
        freed: set[str] = set()
        for version in self.versions(layer)[: -max(1, keep_versions)]:
            path = folder / f"{version}.json"
            if now_s - path.stat().st_mtime >= min_age_s:
                freed |= set(self.manifest(layer, version).parts)
                path.unlink()
        used = {name for version in self.versions(layer) for name in self.manifest(layer, version).parts}
        for path in (folder / "parts").glob("*"):
            orphan = path.name not in used and now_s - path.stat().st_mtime >= ORPHAN_AGE_S
            if orphan or path.name in freed - used:
                path.unlink(missing_ok=True)

    def drop(self, layer: str) -> None:
        """Remove a layer with all its versions; a later layer of the same name continues its version numbers."""
        newest = self.newest(layer)
        if newest is None:
            return
        last = self._last_dropped(layer)
        write_whole(last, str(newest).encode())
        grave = last.with_name(f"{layer}.{uuid.uuid4().hex}")
        with contextlib.suppress(FileNotFoundError):
            os.replace(self.root / layer, grave)
        shutil.rmtree(grave, ignore_errors=True)

    def _last_dropped(self, layer: str) -> Path:
        """Return the path of a dropped layer's last version number, kept so that no number is ever used twice."""
        return self.root / ".dropped" / layer

    def _compact(self, base: LayerManifest, upserts: pa.Table, removed: Collection[str], space: Space) -> int:
        """Write the edited version as one fresh part; return its number."""
        table = self.read(base.layer, base.version, space)
        gone = pd.Index([*removed, *upserts["key"].to_pylist()])
        kept = table.filter(pa.array(~pd.Index(table["key"].to_numpy()).isin(gone)))
        path = self._new_part(base.layer)
        with _removed_on_error(path):
            summary = write_part(path, pa.concat_tables([kept, upserts]), space)
            return self._publish(base.layer, [path.name], summary, base.space, base.title, (), base.version + 1)

    def _publish(
        self,
        layer: str,
        parts: Sequence[str],
        summary: FeatureSummary,
        space: str,
        title: str,
        removed: Collection[str] = (),
        version: int | None = None,
    ) -> int:
        """Write the manifest of a version, by default of the next one; return its number."""
        number = version or self._next(layer)
        content = (space, tuple(parts), tuple(sorted(removed)), summary.features, summary.bounds)
        manifest = LayerManifest(layer, number, *content, geometry_types=summary.geometry_types, title=title)
        path = self.root / layer / f"{number}.json"
        try:  # if two writers use the same number at once, this fails for one of them
            write_whole(path, manifest.to_json(), once=True)
        except FileExistsError:
            if version is None:
                return self._publish(layer, parts, summary, space, title, removed)
            raise Conflict(
                "an edit of layer %(layer)s must be based on its newest version; got %(version)s",
                layer=repr(layer),
                version=version - 1,
            ) from None
        return number

    def _next(self, layer: str) -> int:
        return self.last(layer) + 1

    def _new_part(self, layer: str) -> Path:
        folder = self.root / check_name(layer) / "parts"
        make_folder(folder)
        return folder / new_part_name()

    def paths(self, manifest: LayerManifest) -> list[Path]:
        """Return the paths of the parts of a version."""
        return [self.root / manifest.layer / "parts" / name for name in manifest.parts]


def _in_force(hashes: Sequence[np.ndarray], removed: np.ndarray) -> list[np.ndarray]:
    """Return a mask for each part of the rows in force: the last row of each key, unless the key is removed.

    Keys are given by their hashes.
    """
    together = np.concatenate(hashes)
    mask = ~pd.Index(together).duplicated(keep="last") & ~np.isin(together, removed)
    return np.split(mask, np.cumsum([len(part) for part in hashes])[:-1])


def _check_removed(layer: str, removed: Set[str], added: Set[str], present: np.ndarray) -> None:
    if both := removed & added:
        raise InvalidLayer("an edit must either change or remove a feature; got both of %(both)s", both=repr(min(both)))
    keys = sorted(removed)
    if not (known := np.isin(key_hashes(layer, keys), present)).all():
        raise InvalidLayer(
            "an edit must remove features of its base version; got %(keys)s", keys=repr(keys[int(np.argmin(known))])
        )


def _edited(
    base: LayerManifest, paths: Sequence[Path], masks: Sequence[np.ndarray], upserts: pa.Table, space: Space
) -> FeatureSummary:
    """Return the summary of an edited version, given its base, its upserts and the rows in force of each part."""
    new = summarize(upserts, space)
    boxes = [*(read_extent(path, mask, space) for path, mask in zip(paths, masks[:-1], strict=True)), new.bounds]
    types = tuple(sorted({*base.geometry_types, *new.geometry_types}))
    return FeatureSummary(sum(int(mask.sum()) for mask in masks), around(np.array(boxes), space), types)


@contextlib.contextmanager
def _removed_on_error(path: Path | None) -> Iterator[None]:
    """Remove the part of a version that could not be written."""
    try:
        yield
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
        raise
