"""Before an engine evaluates: find the state from which it continues, and prepare Spark's checkpoint for it."""

import logging
from pathlib import Path

from streaming.engine.checkpoint import committed, following, planned, read_replay, write_checkpoint, write_replay
from streaming.engine.store import EPOCH, Store
from streaming.eventlog import FIRST
from streaming.history.files import pending_of
from streaming.logs import Log
from streaming.settings import EngineSettings
from streaming.state.manifest import Shape
from streaming.state.recovery import discard_later, newest_whole, renumbered
from streaming.state.stores import LocalStore, StateStore, open_store

logger = logging.getLogger("lookout.engine")


def state_files_of(state_dir: str | Path, state_uri: str, space: str) -> StateStore:
    """Return where the state of a space is: in a state folder, or in the store of a URI if there is one."""
    return open_store(f"{state_uri.rstrip('/')}/{space}") if state_uri else LocalStore(Path(state_dir))


def resume(settings: EngineSettings, log: Log) -> list[str]:
    """Prepare the state and Spark's checkpoint so that the engine continues from the newest whole state.

    Batches that were planned after that state run again with the same entries as before, so their results are the
    same. If it is not known how they were cut, their numbers are left out, so that clients get snapshots.

    Returns
    -------
    list of str
        What was found broken, in words; empty if nothing was.

    Raises
    ------
    OtherSettings, LostState
        See `newest_whole`.
    """
    shape = Shape(settings.space.name, settings.partitions, settings.regions)
    root, checkpoint = Path(settings.state_dir), Path(settings.state_dir) / "checkpoint"
    files = state_files_of(root, settings.state_uri, shape.space)
    found = newest_whole(files, shape, committed(checkpoint))
    manifest, batch = found.manifest, found.manifest.batch if found.manifest else -1
    logs = ("control", *map(str, range(shape.partitions)))
    start = dict.fromkeys(logs, FIRST) | dict(manifest.positions if manifest else {})
    if manifest:
        files.put(EPOCH, manifest.epoch.encode())  # the file may be damaged
    epoch = Store(root, settings.space, files=files).epoch()
    ends = following(_known_cuts(root, checkpoint) | found.cuts, batch)
    published = log.newest_batch(epoch)
    if published > batch + len(ends):
        found.problems.append(f"it is not known what batches {batch + 1} to {published} read; clients get snapshots")
        _forget_pending(settings, epoch, batch)
        discard_later(files, manifest)
        manifest, ends = renumbered(files, manifest, published + 1, epoch, shape), []
        batch = manifest.batch
    log.report_kept(log.count_read(start))
    # First what is needed after a crash in the middle of this.
    write_replay(root, batch + 1, [start, *ends])
    write_checkpoint(checkpoint, batch, start)
    discard_later(files, manifest)
    for words in found.problems:
        logger.error("state: %s", words)
    if found.problems:
        logger.error("state: the engine continues from batch %d, and reads the logs from there again", batch)
    return found.problems


def _known_cuts(root, checkpoint):
    first, cuts = read_replay(root)
    return dict(enumerate(cuts[1:], first)) | planned(checkpoint)


def _forget_pending(settings, epoch, batch):
    """Remove the stored elements of batches that are cut differently when they run again."""
    for pending in pending_of(Path(settings.history_dir) / settings.space.name):
        if pending.epoch == epoch and pending.batch > batch:
            pending.path.unlink(missing_ok=True)
