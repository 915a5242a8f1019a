"""Tie a state folder to the definition of its space, and to the format of this release."""

import os
import shutil
from pathlib import Path

from streaming.engine.store import FOLDERS
from streaming.errors import InvalidSpace
from streaming.logs import Log
from streaming.spaces import Space, parse_space, space_text

STATE = ("checkpoint", *FOLDERS, "epoch")
# The format of the files of the state. It rises when a release writes files that earlier ones cannot read, or cannot
# read theirs.
FORMAT = "2"


def claim(root: Path, space: Space, log: Log) -> str:
    """Record the space and the format of a state folder; remove a state of another definition or another format.

    The logs are removed only with the state of another definition: their elements have other dimensions.

    Parameters
    ----------
    root : Path
        The state folder; created if missing.
    space : Space
    log : Log
        The logs under the space's name.

    Returns
    -------
    str
        Why a state was removed, in words; empty if none was.
    """
    reason = ""
    if _is_other(root / "space.json", space):
        reason = "the space is defined anew"
        log.clear()
    elif (root / "epoch").exists() and _format_of(root) != FORMAT:
        reason = f"another release wrote it, in format {_format_of(root)}; this release reads format {FORMAT}"
    if reason:
        for name in STATE:
            _remove(root / name)
    root.mkdir(parents=True, exist_ok=True)
    for name, content in (("format", FORMAT), ("space.json", space_text(space))):
        temporary = root / f"{name}.{os.getpid()}.tmp"
        temporary.write_text(content)
        os.replace(temporary, root / name)
    return reason


def _is_other(path, space):
    try:
        return parse_space(path.read_text()) != space
    except FileNotFoundError:
        return False
    except InvalidSpace:  # a release with other rules wrote it
        return True


def _format_of(root):
    """Return the format of a state; before there were formats, no file told it."""
    path = root / "format"
    return path.read_text() if path.exists() else "1"


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
