"""Imports of files into layers, from the upload to a new version, an error or a cancellation."""

import contextlib
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from celery import shared_task
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from streaming.language import thousands
from streaming.layers import Imported, ImportLimits, ImportOptions, InvalidLayer, Job, check_name, suffixes_of
from streaming.layers.child import import_in_child
from webapp.audit.origin import acting, origin
from webapp.bus.telling import tell_task
from webapp.layers.turns import DEAD_AFTER, others_wait, place_in_line, take_turn
from webapp.layers.versions import (
    adopted,
    announce,
    announce_refusal,
    changeable,
    check_editable,
    space_of,
)
from webapp.layers.waiting_files import INCOMING, check_quota, check_work, forget_upload, incoming, keep_upload, reserve
from webapp.models import AuditEntry, Layer, RefusedImport
from webapp.models.layers import layer_store
from webapp.models.spaces import EARTH, spaces_by_name
from webapp.rights.access import rights_of, team_of
from webapp.rights.quotas import counted_alone
from webapp.words.refusals import Refused

# Shortest time between two updates of the progress in the database and at clients.
TELL_S = 0.5
# A waiting import may wait so long.
LOST_AFTER = timedelta(hours=1)
LEAST_DIMENSIONS = 2
DIED = gettext_noop("an import must come to its end; the worker ended before it did: import the file again")


@dataclass(frozen=True)
class Label:
    """The name, title and space of a layer.

    Parameters
    ----------
    name : str
    title : str
        Empty to keep the title of an existing layer.
    space : str
        Name of the space; empty for the space of an existing layer, or ``earth`` for a new one.
    team : int, optional
        The team that a new layer is shared with; None for everybody. An existing layer stays where it is.
    """

    name: str
    title: str = ""
    space: str = ""
    team: int | None = None


def import_limits() -> ImportLimits:
    """Return the limits of an import from the settings."""
    return ImportLimits(
        unpacked_bytes=settings.LAYER_UNPACKED_BYTES,
        reserve_bytes=settings.DISK_RESERVE,
        features=settings.LAYER_MAX_FEATURES,
        memory_bytes=settings.LAYER_IMPORT_MEMORY_BYTES,
        time_s=settings.LAYER_IMPORT_S,
    )


def begin_import(user: User | None, label: Label) -> Layer:
    """Create a layer, or reuse an existing one, with the status importing. An existing version stays in use meanwhile.

    Parameters
    ----------
    user : User or None
        None for a command on the server.
    label : Label

    Raises
    ------
    Refused
        Where the label is not valid, the layer is somebody else's, in another space or being imported, or the user has
        too many layers.
    """
    check_label(label)
    with counted_alone(user):
        layer = Layer.objects.select_for_update().filter(name=label.name).first()
        if layer is None:
            _check_count(user)
            team = None if user is None else team_of(rights_of(user), label.team)
            layer = Layer(name=label.name, title=label.title, space_id=label.space or EARTH, owner=user, team=team)
            RefusedImport.objects.filter(owner=user, name=label.name).delete()
        else:
            _check_free(user, layer, label)
        layer.next_title, layer.status, layer.progress, layer.error = label.title, Layer.IMPORTING, 0.0, ""
        layer.importer = user
        # An import by a command does not wait for its turn.
        layer.run, layer.heartbeat = uuid.uuid4(), timezone.now() if user is None else None
        layer.save()
        transaction.on_commit(lambda: announce(layer))
    return layer


def begin_upload(user: User, upload: UploadedFile, label: Label, wanted: ImportOptions) -> Layer:
    """Begin the import of an uploaded file; a worker carries it out.

    Raises
    ------
    Refused
        As `begin_import` does, and where the file is too large or of an unknown kind, or there is no room for it.
    """
    size = upload.size or 0
    if size > settings.LAYER_UPLOAD_BYTES:
        raise Refused(
            "size",
            gettext("a file may have at most %(layer_upload_bytes)s bytes; got %(size)s")
            % {"layer_upload_bytes": thousands(settings.LAYER_UPLOAD_BYTES), "size": thousands(size)},
        )
    try:
        suffixes_of(upload.name or "")
    except InvalidLayer as error:
        raise Refused("file", str(error)) from None
    with counted_alone(user, everyone=True):
        check_quota(user.pk, size)
        layer = begin_import(user, label)
        reserve(layer.run, size)
    try:
        path = keep_upload(layer, upload)
    except BaseException:
        forget_upload(layer.run)
        _settle(layer, Layer.FAILED, gettext_noop("a file must arrive as a whole; this one did not"))
        raise
    transaction.on_commit(lambda: tell_task(import_layer, layer.pk, str(layer.run), str(path), asdict(wanted)))
    return layer


@shared_task(bind=True, acks_late=False, max_retries=None)
def import_layer(self: Any, layer_id: int, run: str, path: str, wanted: dict[str, str]) -> None:
    """Import an uploaded file into a layer, unless the import was cancelled or replaced.

    The task is acknowledged when it begins: a large import takes longer than tasks may take, and must not be given to
    another worker meanwhile. If its worker dies, `retire_imports` ends the import.
    """
    layer = Layer.objects.filter(pk=layer_id, run=run, status=Layer.IMPORTING).first()
    if layer is None:
        forget_upload(run)
    elif not take_turn(layer):
        raise self.retry(countdown=place_in_line(layer))
    else:
        run_import(layer, Path(path), ImportOptions(**wanted))


def cancel_import(user: User, name: str) -> Layer:
    """Cancel the import of a layer, if there is one; return the layer.

    The layer keeps its former version; without one it is removed.
    """
    with transaction.atomic():
        layer = changeable(user, name)
    if layer.status == Layer.IMPORTING:
        _settle(layer, Layer.CANCELLED, "")
        if layer.heartbeat is None:  # no worker reads its file yet
            forget_upload(layer.run)
    return Layer.objects.filter(pk=layer.pk).first() or layer


def run_import(
    layer: Layer, path: Path, wanted: ImportOptions, on_progress: Callable[[float], None] = lambda share: None
) -> Layer:
    """Import a file into a layer that `begin_import` returned, and return the layer as it then stands.

    In every case the import leaves only a new version, or the reason why there is none.

    Parameters
    ----------
    layer : Layer
    path : Path
        The file to import.
    wanted : ImportOptions
        What the user chose.
    on_progress : function of float
        Called several times a second with the share that is done, 0 to 1. A `KeyboardInterrupt` cancels the import.
    """
    folder = incoming(layer.run) / "work"
    try:
        folder.mkdir(parents=True)
        imported = _read(layer, path, folder, wanted, on_progress)
        if imported is not None:
            _adopt(layer, imported)
    except InvalidLayer as error:
        _settle(layer, Layer.FAILED, error.english)
    except KeyboardInterrupt:
        _settle(layer, Layer.CANCELLED, "")
        raise
    except BaseException as error:
        _settle(layer, Layer.FAILED, gettext_noop("an import must come to its end; got: %(error)s") % _cause(error))
        raise
    finally:
        forget_upload(layer.run)
    row = Layer.objects.filter(pk=layer.pk).first()
    if row is None and layer.status == Layer.IMPORTING:
        layer.status = Layer.CANCELLED  # somebody else cancelled it, so the row is gone
    return row or layer


def _cause(error: BaseException) -> dict[str, str]:
    """Return what a person is told of an error that no rule foresees; its log has the rest."""
    told = str(error) if isinstance(error, OSError) else gettext_noop("a fault of Lookout, which its log describes")
    return {"error": told}


def check_label(label: Label) -> None:
    """Raise Refused unless a layer may have this name, title and space."""
    try:
        check_name(label.name)
    except InvalidLayer as error:
        raise Refused("name", str(error)) from None
    limit = Layer._meta.get_field("title").max_length
    assert limit is not None  # the field has one
    if len(label.title) > limit:
        raise Refused(
            "name",
            gettext("a title may have %(limit)s characters; got %(count)s")
            % {"limit": limit, "count": len(label.title)},
        )
    space = (known := spaces_by_name()).get(label.space or EARTH)
    if space is None:
        raise Refused(
            "space",
            gettext("space must be one of %(known)s; got %(space)s")
            % {"known": ", ".join(known), "space": f"{label.space!r:.80}"},
        )
    if space.n < LEAST_DIMENSIONS:
        rule = gettext("layers lie in spaces of %(least)s dimensions at least") % {"least": LEAST_DIMENSIONS}
        raise Refused(
            "space",
            gettext("%(rule)s; got %(name)s, which has %(n)s")
            % {"rule": rule, "name": f"{space.name!r}", "n": space.n},
        )


def retire_imports() -> int:
    """End imports whose worker died, remove abandoned files and old refusals; return the number of imports ended."""
    now = timezone.now()
    importing = Layer.objects.filter(status=Layer.IMPORTING)
    dead = importing.filter(heartbeat__lt=now - DEAD_AFTER) | importing.filter(
        heartbeat__isnull=True, updated__lt=now - LOST_AFTER
    )
    ended = [layer for layer in dead if _settle(layer, Layer.FAILED, DIED)]
    RefusedImport.objects.filter(refused__lt=now - RefusedImport.KEPT).delete()
    known = {str(run) for run in importing.values_list("run", flat=True)}
    with contextlib.suppress(FileNotFoundError):
        for folder in (settings.LAYERS_DIR / INCOMING).iterdir():
            if folder.name not in known and time.time() - folder.stat().st_mtime > DEAD_AFTER.total_seconds():
                shutil.rmtree(folder, ignore_errors=True)
    return len(ended)


def _read(
    layer: Layer, path: Path, folder: Path, wanted: ImportOptions, on_progress: Callable[[float], None]
) -> Imported | None:
    """Return the result of the import; None if it was cancelled or replaced meanwhile."""
    job, told_s = Job(path, folder, space_of(layer), wanted, import_limits()), float("-inf")
    began_s = time.monotonic()
    with contextlib.closing(import_in_child(job)) as steps:
        for step in steps:
            if isinstance(step, Imported):
                return step
            on_progress(step)
            if time.monotonic() - told_s >= TELL_S:
                told_s = time.monotonic()
                if not _tell(layer, step):
                    return None
                _check_shared(layer, time.monotonic() - began_s)
    return None


def _check_shared(layer: Layer, taken_s: float) -> None:
    """Raise InvalidLayer if an import takes too much disk, or long while others wait; a command may do so."""
    if layer.importer_id is None:
        return
    check_work(layer.run)
    if taken_s > settings.LAYER_SHARED_S and others_wait(layer.importer_id):
        raise InvalidLayer(
            "an import must take %(shared_s)g s at most while others wait; this one takes longer",
            shared_s=settings.LAYER_SHARED_S,
        )


def _tell(layer: Layer, share: float) -> bool:
    """Save and announce the progress; return False if the import was cancelled or replaced."""
    changed = layer.progress != share or layer.heartbeat is None
    layer.progress, layer.heartbeat = share, timezone.now()
    wanted = _current(layer).update(progress=share, heartbeat=layer.heartbeat)
    if wanted and changed:
        announce(layer)
    return bool(wanted)


def _adopt(layer: Layer, imported: Imported) -> None:
    """Make the imported part the layer's new version, unless the import was cancelled meanwhile."""
    with transaction.atomic():
        row = _current(layer).select_for_update().first()
        if row is None:
            return
        row.title, row.next_title = row.next_title or row.title, ""
        version = layer_store().adopt(row.name, imported.part, imported.summary, space_of(row), str(row))
        row.status, row.progress, row.error, row.heartbeat = Layer.READY, 1.0, "", None
        row.problems = [{"row": number, "reason": reason} for number, reason in imported.problems]
        row.problem_count = imported.problem_count
        with acting(row.importer, AuditEntry.LOOKOUT if row.importer else origin().way, origin().address):
            adopted(row, version, imported.summary)


def _settle(layer: Layer, status: str, error: str) -> bool:
    """End an import without a new version; return False if it had ended already.

    A layer that has a version keeps it. A layer without one is removed, and the user who asked is told why.
    """
    with transaction.atomic():
        row = _current(layer).select_for_update().first()
        if row is None:
            return False
        layer.status = row.status = status
        layer.error = row.error = error
        if row.version is None:
            _withdraw(row)
        else:
            row.heartbeat, row.next_title = None, ""
            row.save(update_fields=["status", "error", "heartbeat", "next_title", "updated"])
            transaction.on_commit(lambda: announce(row))
    return True


def _withdraw(row: Layer) -> None:
    """Remove a layer that never had a version; keep and announce the error, if any, as a refusal."""
    refused = RefusedImport.keep(row, row.error) if row.error else None
    row.delete()
    if refused is not None:
        transaction.on_commit(lambda: announce_refusal(refused))


def forget_refusal(user: User, name: str) -> bool:
    """Delete the refusal of a user's import; return whether there was one."""
    refused = RefusedImport.objects.filter(owner=user, name=name).first()
    if refused is None:
        return False
    refused.delete()
    announce_refusal(refused, status="deleted")
    return True


def _current(layer: Layer) -> QuerySet[Layer]:
    """Select the row of a layer, if this import is still its current one."""
    return Layer.objects.filter(pk=layer.pk, run=layer.run, status=Layer.IMPORTING)


def _check_free(user: User | None, layer: Layer, label: Label) -> None:
    """Raise Refused unless a user may import into an existing layer now."""
    if user is not None:
        check_editable(user, layer)
    if label.space not in ("", layer.space_id):
        raise Refused(
            "conflict",
            gettext("a layer stays in its space; %(name)s is in %(space_id)s; got %(space)s")
            % {"name": f"{layer.name!r}", "space_id": f"{layer.space_id!r}", "space": f"{label.space!r}"},
        )
    if layer.status == Layer.IMPORTING:
        raise Refused(
            "conflict",
            gettext("a layer has one import at a time; %(name)s is being imported") % {"name": f"{layer.name!r}"},
        )


def _check_count(user: User | None) -> None:
    if user is None:
        return
    count = Layer.objects.filter(owner=user).count()
    if count >= settings.MAX_LAYERS_PER_USER:
        raise Refused(
            "limit",
            gettext("a user may have at most %(max_layers_per_user)s layers; got %(count)s already")
            % {"max_layers_per_user": settings.MAX_LAYERS_PER_USER, "count": count},
        )
