"""Find the state from which an engine continues, after it was stopped, killed or cut off from power."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streaming.state.errors import LostState, OtherSettings
from streaming.state.manifest import (
    MANIFESTS,
    RECEIPTS,
    Manifest,
    Shape,
    batch_of,
    manifest_batches,
    read_manifest,
    read_receipts,
    state_files,
)
from streaming.state.stores import StateStore


@dataclass(frozen=True)
class Found:
    """The newest whole state of a store.

    Parameters
    ----------
    manifest : Manifest, optional
        None if no micro-batch has ended yet.
    problems : list of str
        Why newer states cannot be used, in words.
    cuts : dict of int to mapping
        The positions up to which newer batches read, as far as their manifests and receipts tell.
    """

    manifest: Manifest | None = None
    problems: list[str] = field(default_factory=list)
    cuts: dict[int, Mapping[str, str]] = field(default_factory=dict)


def newest_whole(store: StateStore, shape: Shape, committed: int = -1) -> Found:
    """Return the newest state whose files are all there, with the right sizes and checksums.

    Results are published after the manifest is written. So the newest manifest counts only if its batch is known to be
    `committed`; otherwise the batch runs again. A batch that others follow was committed.

    Raises
    ------
    OtherSettings
        If the state was written with other settings.
    LostState
        If there are manifests, but none is whole.
    """
    problems: list[str] = []
    cuts: dict[int, Mapping[str, str]] = {}
    batches = manifest_batches(store)
    usable = [batch for batch in batches if batch <= max(committed, batches[-1] - 1)]
    for batch in batches[len(usable) :]:
        with contextlib.suppress(LostState):
            cuts[batch] = read_manifest(store, batch).positions
    for batch in reversed(usable):
        try:
            manifest = read_manifest(store, batch)
        except LostState as error:
            problems.append(str(error))
            continue
        check_settings(manifest, shape)
        wrong = manifest.broken(store)
        if not wrong:
            return Found(manifest, problems, cuts | _cuts_of_receipts(store, batch))
        problems.extend(f"{words} (batch {batch})" for words in wrong)
        cuts[batch] = manifest.positions
    if usable:
        raise LostState(f"no state is whole: {'; '.join(problems)}. {ANEW}")
    return Found(None, problems, _cuts_of_receipts(store, -1))


ANEW = (
    "To start from nothing, stop Lookout and remove engine/ and redis/ in the state folder: users, streams, queries "
    "and the history stay, and the queries are registered anew"
)


def check_settings(manifest: Manifest, shape: Shape) -> None:
    """Raise OtherSettings if a state was written with other settings than `shape`."""
    for name, setting in (("partitions", "LOOKOUT_PARTITIONS"), ("regions", "LOOKOUT_REGIONS")):
        was, now = getattr(manifest.shape, name), getattr(shape, name)
        if was != now:
            raise OtherSettings(
                f"the state was written with {setting}={was}, and the engine was started with {now}: set "
                f"{setting}={was} again. {ANEW}"
            )
    if manifest.shape.space != shape.space:
        raise OtherSettings(f"the state belongs to the space {manifest.shape.space}, not to {shape.space}. {ANEW}")


def _cuts_of_receipts(store, after):
    """Return the positions that home servers noted in the receipts of batches later than `after`."""
    cuts = {}
    for batch in {batch_of(name) for name in store.list(RECEIPTS)}:
        receipts = read_receipts(store, batch, ["home-0"])
        if batch > after and receipts:
            cuts[batch] = receipts[0].positions
    return cuts


def discard_later(store: StateStore, manifest: Manifest | None) -> None:
    """Remove everything that batches after a state have written, and make the state durable."""
    last = -1 if manifest is None else manifest.batch
    later = [name for name in state_files(store) if batch_of(name) > last]
    # Without its manifest, a state does not exist. So manifests go first.
    store.delete(sorted(later, key=lambda name: not name.startswith(MANIFESTS)))
    if manifest is not None:
        store.sync([*sorted({file.name for file in manifest.files()}), manifest.name])


def renumbered(store: StateStore, manifest: Manifest | None, batch: int, epoch: str, shape: Shape) -> Manifest:
    """Write a state as that of a later batch; return its manifest.

    Readers of the results then see a gap in the numbers, and ask for snapshots.
    """
    found = manifest or Manifest(0, epoch, shape, blocks=(0,) * shape.partitions)
    later = replace(found, batch=batch)
    later.commit(store)
    return later
