"""Tie the state of an engine to the definition of its space, and to the format of this release."""

import contextlib
import logging
import shutil
from pathlib import Path

from streaming.engine.checkpoint import REPLAY
from streaming.engine.store import EPOCH, STATES
from streaming.errors import InvalidSpace
from streaming.logs import Log
from streaming.spaces import Space, parse_space, space_text
from streaming.state.errors import LostState
from streaming.state.manifest import FORMAT, MANIFESTS, PARTS, RECEIPTS, manifest_batches, read_manifest
from streaming.state.stores import LocalStore, StateStore

logger = logging.getLogger("lookout.engine")

DEFINITION = "space.json"


def claim(root: Path, space: Space, log: Log, files: StateStore | None = None) -> str:
    """Record the space of a state; remove a state that belongs to another definition or has an earlier format.

    The logs are removed only with the state of another definition: their elements have other dimensions.

    Parameters
    ----------
    root : Path
        The state folder; created if missing.
    space : Space
    log : Log
        The logs under the space's name.
    files : StateStore, optional
        Where the state is; by default, in `root`.

    Returns
    -------
    str
        Why a state was removed, in words; empty if none was.
    """
    files = files or LocalStore(root)
    reason = ""
    if _other_definition(files, space):
        reason = "the space is defined anew"
        log.clear()
    elif _earlier_format(files):
        reason = "an earlier release wrote it, in a format that this release does not read"
    if reason:
        _remove(root, files)
    files.put(DEFINITION, space_text(space).encode())
    files.sync([DEFINITION])
    return reason


def _other_definition(files, space):
    try:
        return parse_space(files.get(DEFINITION).to_pybytes().decode()) != space
    except FileNotFoundError:
        return False
    except (InvalidSpace, ValueError):  # a release with other rules wrote it
        return True


def _earlier_format(files):
    """Return whether a release wrote the state that had an earlier format, or no manifests and other folders."""
    for batch in reversed(manifest_batches(files)):
        with contextlib.suppress(LostState):
            return read_manifest(files, batch).format < FORMAT
    return any(map(files.list, STATES))


def _remove(root, files):
    files.delete([name for folder in (MANIFESTS, RECEIPTS, PARTS, *STATES) for name in files.list(folder)])
    files.delete([EPOCH])
    shutil.rmtree(root / "checkpoint", ignore_errors=True)
    (root / REPLAY).unlink(missing_ok=True)
