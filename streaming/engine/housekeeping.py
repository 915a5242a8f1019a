"""Keep the state durable and the logs short, beside the batches."""

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from redis import RedisError

from streaming.history.files import sync_pending
from streaming.logs import Log
from streaming.redis_memory import WAITING_SHARE
from streaming.state.manifest import Manifest
from streaming.state.stores import StateStore
from streaming.state.upkeep import Upkeep

logger = logging.getLogger(__name__)

# How often states are made durable. After a power cut, the batches of about as much time run again, and those that were
# not saved.
EVERY_S = 1.0
# If Redis is fuller than this, states are made durable as soon as they are saved, so that the logs can be trimmed.
SOON_FROM, SOON_S = 0.4, 0.1


class Housekeeping:
    """Makes manifests durable, removes files that are not needed, and trims the logs behind the oldest manifest kept.

    A thread does it, once a second, or sooner if Redis fills: syncing files takes milliseconds to tenths of a second,
    and no answer has to wait. What it does in Redis takes no room, so a full Redis does not stop it.

    Parameters
    ----------
    files : StateStore
    log : Log
        The logs of the space.
    keys : dict of str to str
        The logs that the engine reads, by their name in the positions of manifests.
    history : Path
        The folder of the stored elements of the space.
    """

    def __init__(self, files: StateStore, log: Log, keys: dict[str, str], history: Path) -> None:
        self._upkeep, self._log, self._keys, self._history = Upkeep(files), log, keys, history
        self._stored: set[Path] = set()
        self._removed: Sequence[int] | None = None

    def start(self) -> None:
        """Start the thread; it ends with the process."""
        threading.Thread(target=self._run, name="housekeeping", daemon=True).start()

    def _run(self) -> None:
        while True:
            pause_s = EVERY_S
            try:
                pause_s = self.turn()
            except (OSError, RedisError) as error:  # the next time may succeed
                logger.warning("the state could not be tidied: %s", error)
            time.sleep(pause_s)

    def turn(self) -> float:
        """Do what is due now, and return after how many seconds to look again.

        If recordings have to wait for room in Redis, results that are kept for readers that lag have to go first.
        """
        share = self._log.fullness.share()
        self.work()
        if share > WAITING_SHARE:
            self._log.shorten_results()
        return EVERY_S if share < SOON_FROM else SOON_S

    def work(self) -> None:
        """Make the newest state durable if it is not yet, and remove what is not needed any more."""
        upkeep = self._upkeep
        # A state must not outlive what was told on the way to it: its results, events and stored elements.
        self._log.event_log.sync()
        self._stored = sync_pending(self._history, self._stored)
        if not upkeep.sync():
            return
        upkeep.clean()
        newest, oldest = upkeep.newest, upkeep.oldest
        assert newest is not None, "it has just been made durable"
        self._log.report_state_bytes(sum(file.size for file in newest.files()))
        removed = oldest.blocks if oldest else self._removed_before(newest)
        # First what will be true, so that never more entries are said to be kept than there are.
        self._log.report_removed(dict(enumerate(removed)))
        if oldest:
            self._log.event_log.trim({self._keys[name]: end for name, end in oldest.positions.items()})

    def _removed_before(self, manifest: Manifest) -> Sequence[int]:
        """Return how many blocks were removed from each partition before this process removes some."""
        if self._removed is None:
            counts = zip(manifest.blocks, self._log.count_read(manifest.positions), strict=True)
            self._removed = [read - there for read, there in counts]
        return self._removed
