"""Upkeep of what is stored of streams: how much there is, and the removal of what is too old."""

import logging
import time
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext

from streaming.history import upkeep
from streaming.language import thousands
from webapp.models import Stream
from webapp.models.spaces import spaces_by_name

logger = logging.getLogger(__name__)

MICROSECONDS = 1_000_000


def folder_of(stream: Stream) -> Path:
    """Return the folder of a stream's history."""
    return settings.HISTORY_DIR / stream.space_name / stream.name


def extent_in_words(stream: Stream) -> str:
    """Return size, number of files and days of a stream's history, in words; empty if there is none."""
    extent = upkeep.extent(folder_of(stream))
    if not extent.files:
        return ""
    return gettext("%(size)s MB in %(files)s files, %(first_day)s to %(last_day)s") % {
        "size": f"{extent.size / 1e6:,.1f}",
        "files": thousands(extent.files),
        "first_day": extent.first_day,
        "last_day": extent.last_day,
    }


def maintain(time_s: float) -> None:
    """Remove stored data that is too old or of deleted streams and spaces; merge small files for `time_s` at most."""
    deadline = time.monotonic() + time_s
    folders = _folders()  # list them before the database is read, so that a new stream's folder is not removed
    streams = {(stream.space_id, stream.name): stream for stream in Stream.objects.all()}
    spaces = spaces_by_name()
    for space, name, folder in folders:
        stream = streams.get((space, name))
        if stream is None:
            upkeep.forget(folder)
            logger.info("the history of %s in %s is removed: there is no such stream any more", name, space)
            continue
        _expire(stream, folder)
        upkeep.compact(folder, spaces[space], lambda: time.monotonic() < deadline)
    for folder in entries_of(settings.HISTORY_DIR):
        if folder.name in spaces:
            upkeep.tidy(folder)
        else:
            upkeep.forget(folder)
            logger.info("the history of the space %s is removed: there is no such space any more", folder.name)


def _expire(stream: Stream, folder: Path) -> None:
    """Remove the files of a stream that are older than it keeps them."""
    age_s = stream.retention_s
    if age_s is not None:
        before_us = int((time.time() - age_s) * MICROSECONDS)
        if count := upkeep.expire(folder, before_us):
            logger.info("history of %s: %d files are older than %g s, and removed", stream.name, count, age_s)


def _folders() -> list[tuple[str, str, Path]]:
    """Return the space, the stream and the folder of every history."""
    return [
        (space.name, folder.name, folder)
        for space in entries_of(settings.HISTORY_DIR)
        for folder in entries_of(space)
        if not folder.name.startswith(".")
    ]


def entries_of(folder: Path) -> list[Path]:
    """Return what lies in a folder, in order; nothing if it is not there."""
    return sorted(folder.iterdir()) if folder.is_dir() else []
