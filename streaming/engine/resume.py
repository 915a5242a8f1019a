"""Before an engine evaluates: find the state from which it continues, and the batches that run again."""

import contextlib
import logging
from dataclasses import dataclass
from pathlib import Path

from streaming.engine.cuts import CUTS, CutLog, Point, beginning
from streaming.engine.repartition import repartitioned
from streaming.engine.store import EPOCH, Store
from streaming.history.files import pending_of
from streaming.logs import Log
from streaming.published import published_streams
from streaming.settings import EngineSettings
from streaming.state.manifest import Manifest, Shape
from streaming.state.recovery import discard_later, newest_whole, renumbered
from streaming.state.stores import LocalStore, StateStore, open_store

logger = logging.getLogger("lookout.engine")


@dataclass(frozen=True)
class Resumed:
    """From where an engine continues.

    Parameters
    ----------
    point : Point
    problems : list of str
        What was found broken, in words; empty if nothing was.
    """

    point: Point
    problems: list[str]


def state_files_of(state_dir: str | Path, state_uri: str, space: str) -> StateStore:
    """Return where the state of a space is: in a state folder, or in the store of a URI if there is one."""
    return open_store(f"{state_uri.rstrip('/')}/{space}") if state_uri else LocalStore(Path(state_dir))


def resume(settings: EngineSettings, log: Log) -> Resumed:
    """Prepare the state and the logs so that the engine continues from the newest whole state.

    The log of cuts says where the batches after that state end. They run again with the same entries as before, so
    their results are the same. If it does not know all batches that are published, their numbers are left out, so that
    clients get snapshots.

    Raises
    ------
    OtherSettings, LostState
        See `newest_whole`.
    """
    shape = Shape(settings.space.name, settings.partitions)
    root = Path(settings.state_dir)
    files = state_files_of(root, settings.state_uri, shape.space)
    found = newest_whole(files, shape, log.newest_whole_batch(_epoch(files)))
    manifest, problems = found.manifest, list(found.problems)
    most = max(shape.partitions, manifest.shape.partitions if manifest else 0)
    if manifest:
        files.put(EPOCH, manifest.epoch.encode())  # the file may be damaged
    if manifest and manifest.shape.partitions != shape.partitions:
        manifest = _repartitioned(settings, log, files, manifest)
    epoch = Store(root, settings.space, files=files).epoch()
    point = _point(log, manifest, shape)
    known = last_known(CutLog(log.event_log, log.names.cuts, epoch), point)
    if known < 0:
        log.event_log.delete([log.names.cuts])  # all that it has is of earlier epochs
    published = log.newest_batch(epoch)
    if published > known:
        problems.append(f"it is not known what batches {known + 1} to {published} read; clients get snapshots")
        _forget_pending(settings, epoch, point.batch)
        discard_later(files, manifest)
        manifest = renumbered(files, manifest, published + 1, epoch, shape)
        point = Point(manifest.batch, point.positions)
    # What an earlier engine has sent between its tasks is made again: another release may have written it.
    log.event_log.delete(map(log.names.exchange, range(most)))
    _report(log, manifest, point)
    discard_later(files, manifest)
    for words in problems:
        logger.error("state: %s", words)
    if problems:
        logger.error("state: the engine continues from batch %d, and reads the logs from there again", point.batch)
    return Resumed(point, problems)


def _repartitioned(settings: EngineSettings, log: Log, files: StateStore, manifest: Manifest) -> Manifest:
    """Return the manifest of the state for other partitions. Batches after the former one are cut anew."""
    published = log.newest_batch(manifest.epoch)
    _forget_pending(settings, manifest.epoch, manifest.batch)
    discard_later(files, manifest)
    if published > manifest.batch:
        manifest = renumbered(files, manifest, published + 1, manifest.epoch, manifest.shape)
    log.event_log.delete([log.names.cuts])
    return repartitioned(settings, log, files, manifest)


def _point(log: Log, manifest: Manifest | None, shape: Shape) -> Point:
    """Return from where an engine continues; without a state, define streams, since the log has only some of them."""
    point = beginning(shape.partitions)
    if manifest:
        return Point(manifest.batch, {**point.positions, **manifest.positions})
    for told in published_streams(log.client, shape.space):
        log.send("stream", **told)
    return point


def last_known(cuts: CutLog, point: Point) -> int:
    """Return the last batch after a point whose end is known, and that of each batch before it."""
    last = point.batch
    for cut in cuts.after(point.positions[CUTS]):
        if not cut.closes and cut.batch == last + 1:
            last += 1
    return last


def _epoch(files: StateStore) -> str:
    with contextlib.suppress(FileNotFoundError):
        return files.get(EPOCH).to_pybytes().decode(errors="replace")
    return ""


def _report(log: Log, manifest: Manifest | None, point: Point) -> None:
    there = log.count_read(point.positions)
    read = manifest.blocks if manifest else (0,) * len(there)
    log.report_read(dict(enumerate(read)))
    log.report_removed({number: was - now for number, (was, now) in enumerate(zip(read, there, strict=True))})


def _forget_pending(settings: EngineSettings, epoch: str, batch: int) -> None:
    """Remove the stored elements of batches that are cut differently when they run again."""
    for pending in pending_of(Path(settings.history_dir) / settings.space.name):
        if pending.epoch == epoch and pending.batch > batch:
            pending.path.unlink(missing_ok=True)
