"""Room on the disks: what users send may fill them down to a reserve, which Redis, the database and the engine need."""

import contextlib
import os
import shutil
import stat
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext

from streaming.language import thousands
from webapp.words.refusals import Refused


def room(folder: Path) -> int:
    """Return how many bytes users may still put onto the disk of a folder; below 0 where the reserve is in use."""
    folder = _existing(folder)
    kept = {_existing(place).stat().st_dev for place in (settings.HOME, settings.LAYERS_DIR, settings.HISTORY_DIR)}
    return shutil.disk_usage(folder).free - (settings.DISK_RESERVE if folder.stat().st_dev in kept else 0)


def rule_of_reserve() -> str:
    """Return in words what must stay free."""
    return gettext(
        "%(reserve)s bytes of the disk must stay free for Lookout itself: remove layers, or tell an operator"
    ) % {"reserve": thousands(settings.DISK_RESERVE)}


def check_room(folder: Path, size: int = 0) -> None:
    """Raise Refused (``disk``) unless there is room for so many bytes on the disk of a folder."""
    if (left := room(folder)) < size:
        raise Refused(
            "disk",
            gettext("%(rule)s; got %(size)s bytes more, with room for %(left)s")
            % {"rule": rule_of_reserve(), "size": thousands(size), "left": thousands(max(0, left))},
        )


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder and below; those that go meanwhile do not count."""
    size = 0
    for parent, _, names in os.walk(folder):  # passes over folders that go meanwhile, which `Path.rglob` does not
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                about = os.lstat(os.path.join(parent, name))
                size += about.st_size if stat.S_ISREG(about.st_mode) else 0
    return size


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())
