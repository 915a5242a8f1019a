"""Tie the state of an engine to the definition of its space, and to the format of this release."""

import contextlib
import shutil
from pathlib import Path

from streaming.engine.store import EPOCH, STATES
from streaming.errors import InvalidSpace
from streaming.language import gettext
from streaming.logs import Log
from streaming.spaces import Space, parse_space, space_text
from streaming.state.errors import LostState
from streaming.state.manifest import FORMAT, MANIFESTS, PARTS, RECEIPTS, format_of, manifest_batches
from streaming.state.stores import LocalStore, StateStore

DEFINITION = "space.json"
# Releases that wrote no manifests kept each state in a folder of its own.
BEFORE_MANIFESTS = 2
FORMAT_BEFORE_MANIFESTS = "format"


def claim(root: Path, space: Space, log: Log, files: StateStore | None = None) -> str:
    """Record the space of a state; remove a state that belongs to another definition or has another format.

    A state in the format of another release is removed, not refused: Lookout has to work after an update without a
    person. The queries come back from the database of the web application. The logs are removed only with the state of
    another definition: their elements have other dimensions.

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
        reason = gettext("the space is defined anew")
        log.clear()
    elif (found := _format_of(files)) not in (None, FORMAT):
        reason = gettext("another release wrote it, in format %(found)s; this release reads format %(format)s") % {
            "found": found,
            "format": FORMAT,
        }
    if reason:
        _remove(root, files)
    files.put(DEFINITION, space_text(space).encode())
    files.sync([DEFINITION])
    return reason


def _other_definition(files: StateStore, space: Space) -> bool:
    try:
        return parse_space(files.get(DEFINITION).to_pybytes().decode()) != space
    except FileNotFoundError:
        return False
    except (InvalidSpace, ValueError):  # a release with other rules wrote it
        return True


def _format_of(files: StateStore) -> int | None:
    """Return the format of a state; None if there is no state, or none that can be read."""
    for batch in reversed(manifest_batches(files)):
        with contextlib.suppress(LostState):
            return format_of(files, batch)
    return BEFORE_MANIFESTS if any(map(files.list, STATES)) else None


def _remove(root: Path, files: StateStore) -> None:
    files.delete([name for folder in (MANIFESTS, RECEIPTS, PARTS, *STATES) for name in files.list(folder)])
    files.delete([EPOCH, FORMAT_BEFORE_MANIFESTS])
    shutil.rmtree(root / "checkpoint", ignore_errors=True)
