"""Whose state a folder holds: a space that was defined anew begins anew, under whatever name."""

import os
import shutil
from pathlib import Path

from streaming.engine.store import FOLDERS
from streaming.errors import InvalidSpace
from streaming.logs import Log
from streaming.spaces import Space, parse_space, space_text

STATE = ("checkpoint", *FOLDERS, "epoch")


def claim(root: Path, space: Space, log: Log) -> bool:
    """Write down which space a state folder is of, and remove the state and the logs of another one.

    Parameters
    ----------
    root : Path
        Made if it is not there. State of a release that did not write its space down is taken for the space's own.
    space : Space
    log : Log
        Of the space's name.

    Returns
    -------
    bool
        Whether there was another space's state.
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
    except InvalidSpace:  # written by a release with other rules
        return None


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
