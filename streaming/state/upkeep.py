"""Make manifests durable, and remove what is no longer needed.

Only one process does this, between micro-batches or beside them, and never a task. So an attempt that ends late cannot
remove what others need.
"""

from streaming.state.errors import LostState
from streaming.state.manifest import File, Manifest, batch_of, manifest_batches, read_manifest, state_files
from streaming.state.stores import StateStore

# As many durable manifests are kept. The logs keep what is needed to continue from the oldest of them.
DURABLE_KEPT = 3
# The newest manifests are kept, durable or not: attempts that are running, or were started twice, need them.
NEWEST_KEPT = 3


class Upkeep:
    """Keeps the files of a store durable and few.

    Parameters
    ----------
    store : StateStore
    durable : Manifest, optional
        A manifest that is known to be durable: that from which the engine continues.
    """

    def __init__(self, store: StateStore, durable: Manifest | None = None) -> None:
        self.store = store
        self._durable = [] if durable is None else [durable]
        self._known: dict[int, Manifest] = {}
        self._synced: set[File] = set()

    @property
    def oldest(self) -> Manifest | None:
        """The oldest durable manifest that is kept, once there are enough of them.

        What is before its positions is not needed any more. Until then, the manifests that an earlier process has made
        durable are needed, and what they need.
        """
        return self._durable[0] if len(self._durable) == DURABLE_KEPT else None

    @property
    def newest(self) -> Manifest | None:
        """The newest manifest that was seen."""
        return self._known[max(self._known)] if self._known else None

    def sync(self) -> bool:
        """Make the newest manifest and all of its files durable; return whether this had to be done."""
        self._look()
        newest = self.newest
        if newest is None or newest.batch in [manifest.batch for manifest in self._durable]:
            return False
        files = set(newest.files())
        self.store.sync(sorted({file.name for file in files - self._synced}))
        self.store.sync([newest.name])
        self._synced = files
        self._durable = [*self._durable, newest][-DURABLE_KEPT:]
        return True

    def clean(self) -> None:
        """Remove manifests, and files and receipts of former batches, that are not needed any more."""
        self._look()
        if self.oldest is None:
            return
        recent = sorted(self._known)[-NEWEST_KEPT:]
        kept = {manifest.batch: manifest for manifest in self._durable}
        kept |= {batch: self._known[batch] for batch in recent}
        # Without its manifest, a file does not exist. So manifests go first.
        self.store.delete(manifest.name for batch, manifest in self._known.items() if batch not in kept)
        self._known = {batch: manifest for batch, manifest in self._known.items() if batch in kept}
        named = {name for manifest in kept.values() for name in (manifest.name, *(f.name for f in manifest.files()))}
        self.store.delete(name for name in state_files(self.store) if name not in named and batch_of(name) < recent[0])

    def _look(self) -> None:
        """Read the manifests that are new."""
        for batch in manifest_batches(self.store):
            if batch not in self._known:
                try:
                    self._known[batch] = read_manifest(self.store, batch)
                except LostState:
                    continue  # a later manifest takes its place
