"""Look into a file that somebody is about to import, so that the form can ask what the file leaves open."""

import contextlib
import shutil
import uuid
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext

from streaming.language import thousands
from streaming.layers import ImportOptions, InvalidLayer, Job, suffixes_of
from streaming.layers.child import look_in_child
from webapp.layers.imports import import_limits
from webapp.layers.waiting_files import incoming
from webapp.machine.disk import check_room
from webapp.rights.access import Asker
from webapp.rights.fair import LOOKS
from webapp.words.refusals import Refused

# The file is sent once more for its import, so only files that are sent quickly are looked into.
LOOK_BYTES = 64 << 20
LOOK_S = 20.0


def look_into(user: Asker, upload: UploadedFile, wanted: ImportOptions) -> dict[str, Any]:
    """Return what `streaming.layers.looking.look` finds in a file; nothing of the file stays.

    Raises
    ------
    Refused
        ``size`` where the file is too large, ``file`` where it cannot be read, ``busy`` as `FairTurns.turn` does.
    """
    if (size := upload.size or 0) > LOOK_BYTES:
        rule = gettext("a file that is looked into may have at most %(most)s bytes; got %(size)s")
        raise Refused("size", rule % {"most": thousands(LOOK_BYTES), "size": thousands(size)})
    check_room(settings.LAYERS_DIR, size)
    with LOOKS.turn(user):
        return _seen(upload, wanted)


def _seen(upload: UploadedFile, wanted: ImportOptions) -> dict[str, Any]:
    folder = incoming(uuid.uuid4())
    try:
        path = folder / f"upload{suffixes_of(upload.name or '')}"
        (folder / "work").mkdir(parents=True)
        with path.open("wb") as kept:
            shutil.copyfileobj(upload, kept)
        job = Job(path, folder / "work", wanted=wanted, limits=replace(import_limits(), time_s=LOOK_S))
        with contextlib.closing(look_in_child(job)) as steps:
            *_, seen = steps
        return seen
    except InvalidLayer as error:
        raise Refused("file", str(error)) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
