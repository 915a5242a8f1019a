"""Find the state from which an engine continues, after it was stopped, killed or cut off from power."""

from dataclasses import dataclass, field, replace

from streaming.state.errors import LostState, OtherSettings
from streaming.state.manifest import (
    MANIFESTS,
    Manifest,
    Shape,
    batch_of,
    manifest_batches,
    read_manifest,
    state_files,
)
from streaming.state.stores import StateStore


@dataclass(frozen=True)
class RecoveredState:
    """The newest whole state of a store.

    Parameters
    ----------
    manifest : Manifest, optional
        None if no micro-batch has ended yet.
    problems : list of str
        Why newer states cannot be used, in words.
    """

    manifest: Manifest | None = None
    problems: list[str] = field(default_factory=list)


def newest_whole(store: StateStore, shape: Shape, committed: int = -1) -> RecoveredState:
    """Return the newest state whose files are all there, with the right sizes and checksums.

    The results of a batch may be published after its manifest is written, and a power cut may take results from the
    log but leave the manifest. So a manifest counts only if all results up to the batch `committed` are known to be
    published, and it is not later; otherwise batches run again. If no manifest counts, nothing is known of results, for
    example because Redis was emptied. Then all but the newest count: the results of a batch are published before
    another manifest follows.

    Raises
    ------
    OtherSettings
        If the state was written with other settings.
    LostState
        If there are manifests, but none is whole.
    """
    problems: list[str] = []
    usable = _usable(store, committed)
    for batch in reversed(usable):
        try:
            manifest = read_manifest(store, batch)
        except LostState as error:
            problems.append(str(error))
            continue
        check_settings(manifest, shape)
        wrong = manifest.broken(store)
        if not wrong:
            return RecoveredState(manifest, problems)
        problems.extend(f"{words} (batch {batch})" for words in wrong)
    if usable:
        raise LostState(f"no state is whole: {'; '.join(problems)}. {ANEW}")
    return RecoveredState(None, problems)


def newest_usable(store: StateStore, committed: int) -> Manifest | None:
    """Return the newest manifest that `newest_whole` would look at, without looking at its files; None if none is."""
    usable = _usable(store, committed)
    return read_manifest(store, usable[-1]) if usable else None


def _usable(store: StateStore, committed: int) -> list[int]:
    batches = manifest_batches(store)
    published = [batch for batch in batches if batch <= committed]
    return published or [batch for batch in batches if batch < batches[-1]]


ANEW = (
    "To start from nothing, stop Lookout and remove engine/ and redis/ in the state folder: users, streams, queries "
    "and the history stay, and the queries are registered anew"
)


def check_settings(manifest: Manifest, shape: Shape) -> None:
    """Raise OtherSettings if a state belongs to another space than `shape`. It may have other partitions."""
    if manifest.shape.space != shape.space:
        raise OtherSettings(f"the state belongs to the space {manifest.shape.space}, not to {shape.space}. {ANEW}")


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
