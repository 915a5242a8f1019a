"""Keep the state durable and the logs short, beside the batches."""

import logging
import threading
import time
from collections.abc import Sequence

from redis import RedisError

from streaming.logs import Log
from streaming.state.stores import StateStore
from streaming.state.upkeep import Upkeep

logger = logging.getLogger(__name__)

# After a power cut, at most the batches of about this time, and of an interval, run again.
SYNC_EVERY_S = 1.0


class Housekeeping:
    """Makes manifests durable, removes files that are not needed, and trims the logs behind the oldest manifest kept.

    A thread does it, because syncing files takes milliseconds to tenths of a second, and no answer has to wait for it.

    Parameters
    ----------
    files : StateStore
    log : Log
        The logs of the space.
    keys : dict of str to str
        The logs that the engine reads, by their name in the positions of manifests.
    """

    def __init__(self, files: StateStore, log: Log, keys: dict[str, str]) -> None:
        self._upkeep, self._log, self._keys = Upkeep(files), log, keys
        self._wanted, self._synced_s, self._thread = threading.Event(), 0.0, None
        self._removed: Sequence[int] | None = None

    def interval_ended(self) -> None:
        """Say that an interval has ended; return at once."""
        self._wanted.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
            self._thread.start()

    def _run(self):
        while self._wanted.wait():
            self._wanted.clear()
            try:
                self.work(sync=time.monotonic() - self._synced_s >= SYNC_EVERY_S)
            except (OSError, RedisError) as error:  # the next batch tries again
                logger.warning("the state could not be tidied: %s", error)

    def work(self, sync: bool) -> None:
        """Do what is due now; with `sync`, also make the newest state durable."""
        upkeep = self._upkeep
        if sync:
            upkeep.sync()
            self._synced_s = time.monotonic()
        upkeep.clean()
        newest, oldest = upkeep.newest, upkeep.oldest
        if newest is None:
            return
        removed = oldest.blocks if oldest else self._removed_before(newest)
        # First what will be true, so that never more entries are said to be kept than there are.
        self._log.report_removed(dict(enumerate(removed)))
        if oldest:
            self._log.event_log.trim({self._keys[name]: end for name, end in oldest.positions.items()})

    def _removed_before(self, manifest):
        """Return how many blocks were removed from each partition before this process removes some."""
        if self._removed is None:
            counts = zip(manifest.blocks, self._log.count_read(manifest.positions), strict=True)
            self._removed = [read - there for read, there in counts]
        return self._removed
