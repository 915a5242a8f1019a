"""Tie a state folder to the definition of its space: a space that is defined anew starts with empty state."""

import os
import shutil
from pathlib import Path

from streaming.engine.store import FOLDERS
from streaming.errors import InvalidSpace
from streaming.logs import Log
from streaming.spaces import Space, parse_space, space_text

STATE = ("checkpoint", *FOLDERS, "epoch")


def claim(root: Path, space: Space, log: Log) -> bool:
    """Record the space of a state folder; remove the state and the logs if they belong to another definition.

    Parameters
    ----------
    root : Path
        The state folder; created if missing. State without a record, left by an earlier release, counts as the
        space's own.
    space : Space
    log : Log
        The logs under the space's name.

    Returns
    -------
    bool
        Whether state and logs of another definition were removed.
    """
    path = root / "space.json"
    other = path.exists() and _known(path) != space
    if other:
        log.clear()
        for name in STATE:
            _remove(root / name)
    root.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(space_text(space))
    os.replace(temporary, path)
    return other


def _known(path):
    try:
        return parse_space(path.read_text())
    except InvalidSpace:  # a release with other rules wrote it
        return None


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
