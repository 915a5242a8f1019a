"""The files of imports that wait or run: each user has a quota of them, and all together are bounded, too."""

import os
import shutil
import uuid
from pathlib import Path

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext

from streaming.language import thousands
from streaming.layers import InvalidLayer, suffixes_of
from streaming.state.files import make_folder, whole
from webapp.machine.disk import check_room, room, size_of
from webapp.models import Layer
from webapp.words.refusals import Refused

INCOMING = ".incoming"


def incoming(run: uuid.UUID) -> Path:
    """Return the folder for the files of one import, on the same disk as the stored layers."""
    return settings.LAYERS_DIR / INCOMING / str(run)


def forget_upload(run: str | uuid.UUID) -> None:
    """Remove the files of an import."""
    shutil.rmtree(incoming(uuid.UUID(str(run))), ignore_errors=True)


def check_quota(user: int, size: int) -> None:
    """Raise Refused unless a user may have a further file of so many bytes wait.

    Raises
    ------
    Refused
        ``limit`` where the user's files, or all files together, would be too large; ``disk`` where there is no room.
    """
    runs = Layer.objects.filter(status=Layer.IMPORTING, importer=user).values_list("run", flat=True)
    if (mine := size + sum(size_of(incoming(run)) for run in runs)) > settings.LAYER_WAITING_BYTES:
        rule = gettext("the files of a user that are being imported, or wait for it, may have %(most)s bytes")
        raise _refused(rule, settings.LAYER_WAITING_BYTES, mine)
    if (together := size + size_of(settings.LAYERS_DIR / INCOMING)) > settings.LAYERS_WAITING_BYTES:
        rule = gettext("all files that are being imported, or wait for it, may have %(most)s bytes: try again later")
        raise _refused(rule, settings.LAYERS_WAITING_BYTES, together)
    check_room(settings.LAYERS_DIR, size)


def _refused(rule: str, most: int, got: int) -> Refused:
    rule = rule % {"most": thousands(most)}
    return Refused("limit", gettext("%(rule)s; got %(size)s") % {"rule": rule, "size": thousands(got)})


def reserve(run: uuid.UUID, size: int) -> None:
    """Have an upload count with all its bytes from now on, before they are written; `keep_upload` takes them."""
    make_folder(incoming(run))
    _reserved(run).touch()
    os.truncate(_reserved(run), size)  # a file that is all hole takes no room


def _reserved(run: uuid.UUID) -> Path:
    return incoming(run) / "reserved"


def keep_upload(layer: Layer, upload: UploadedFile) -> Path:
    """Save an uploaded file in the import's folder and return its path; only its suffix comes from the user.

    Raises
    ------
    Refused
        ``disk`` where there is no room for the rest of it.
    """
    folder = incoming(layer.run)
    path = folder / f"upload{suffixes_of(upload.name or '')}"
    left = upload.size or 0
    with whole(path) as temporary, temporary.open("wb") as kept:
        for chunk in upload.chunks():
            check_room(settings.LAYERS_DIR, len(chunk))
            left = max(0, left - len(chunk))
            os.truncate(_reserved(layer.run), left)
            kept.write(chunk)
    _reserved(layer.run).unlink()
    return path


def check_work(run: uuid.UUID) -> None:
    """Raise InvalidLayer if an import writes so much that the reserve of the disk, or its own limit, is reached."""
    if room(settings.LAYERS_DIR) < 0:
        raise InvalidLayer(
            "an import must leave %(reserve)s bytes of the disk free; this one needs more", reserve=_reserve()
        )
    if (size := size_of(incoming(run))) > settings.LAYER_WORK_BYTES:
        raise InvalidLayer(
            "the files of an import must have %(most)s bytes at most, with those that it makes; got %(size)s",
            most=thousands(settings.LAYER_WORK_BYTES),
            size=thousands(size),
        )


def _reserve() -> str:
    return thousands(settings.DISK_RESERVE)
