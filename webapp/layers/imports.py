"""Imports of files into layers, from their beginning to a version, an error, or a cancellation."""

import contextlib
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from celery import shared_task
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from streaming.layers import Imported, InvalidLayer, Job, Limits, Wanted, check_name, suffixes_of
from streaming.layers.child import import_in_child
from webapp.layers.versions import (
    adopted,
    announce,
    announce_refusal,
    changeable,
    check_editable,
    layer_store,
    space_of,
)
from webapp.models import Layer, RefusedImport
from webapp.models.spaces import EARTH, spaces_by_name
from webapp.refusals import Refused
from webapp.telling import tell_task

INCOMING = ".incoming"
# Progress is written down and told this often at most.
TELL_S = 0.5
# An import that gave no sign of life for so long has died with its worker; one that waits may wait.
DEAD_AFTER = timedelta(seconds=60)
LOST_AFTER = timedelta(hours=1)
LEAST_DIMENSIONS = 2
DIED = "an import must come to its end; the worker ended before it did: import the file again"


@dataclass(frozen=True)
class Label:
    """What a layer is called, and where it lies.

    Parameters
    ----------
    name : str
    title : str
        Empty for that of the layer, where there is one.
    space : str
        Its name; empty for that of the layer, where there is one, or ``earth``.
    """

    name: str
    title: str = ""
    space: str = ""


def incoming(run: uuid.UUID) -> Path:
    """Return the folder for the files of one import, on the disk of the store."""
    return settings.LAYERS_DIR / INCOMING / str(run)


def forget_upload(run: str) -> None:
    """Remove the files of an import that is not wanted any more."""
    shutil.rmtree(incoming(uuid.UUID(run)), ignore_errors=True)


def import_limits() -> Limits:
    """Return what the settings allow an import."""
    return Limits(
        unpacked_bytes=settings.LAYER_UNPACKED_BYTES,
        features=settings.LAYER_MAX_FEATURES,
        memory_bytes=settings.LAYER_IMPORT_MEMORY_BYTES,
        time_s=settings.LAYER_IMPORT_S,
    )


def begin_import(user, label: Label) -> Layer:
    """Make a layer that is being imported, or have an existing one be imported anew; it stays as it is meanwhile.

    Parameters
    ----------
    user : User or None
        None stands for whoever runs commands on the server.
    label : Label

    Raises
    ------
    Refused
        Where the name is none, the layer is somebody else's or being imported, or the user has too many.
    """
    check_label(label)
    with transaction.atomic():
        layer = Layer.objects.select_for_update().filter(name=label.name).first()
        if layer is None:
            _check_count(user)
            layer = Layer(name=label.name, title=label.title, space_id=label.space or EARTH, owner=user)
            RefusedImport.objects.filter(owner=user, name=label.name).delete()
        else:
            _check_free(user, layer, label)
        layer.next_title, layer.status, layer.progress, layer.error = label.title, Layer.IMPORTING, 0.0, ""
        layer.importer = user
        # Who runs a command does not wait for a turn.
        layer.run, layer.heartbeat = uuid.uuid4(), timezone.now() if user is None else None
        layer.save()
        transaction.on_commit(lambda: announce(layer))
    return layer


def keep_upload(layer: Layer, upload) -> Path:
    """Write an uploaded file beside the store and return its path; its name is ours but for the suffix."""
    folder = incoming(layer.run)
    folder.mkdir(parents=True)
    path = folder / f"upload{suffixes_of(upload.name)}"
    with path.open("wb") as kept:
        for chunk in upload.chunks():
            kept.write(chunk)
    return path


def begin_upload(user, upload, label: Label, wanted: Wanted) -> Layer:
    """Begin an import of an uploaded file, which a worker carries out.

    Raises
    ------
    Refused
        As `begin_import` does, and where the file is too large or of no known kind.
    """
    if upload.size > settings.LAYER_UPLOAD_BYTES:
        raise Refused("size", f"a file may have at most {settings.LAYER_UPLOAD_BYTES:,} bytes; got {upload.size:,}")
    try:
        suffixes_of(upload.name)
    except InvalidLayer as error:
        raise Refused("file", str(error)) from None
    layer = begin_import(user, label)
    try:
        path = keep_upload(layer, upload)
    except BaseException:
        shutil.rmtree(incoming(layer.run), ignore_errors=True)
        _settle(layer, Layer.FAILED, "a file must arrive as a whole; this one did not")
        raise
    options = {"crs": wanted.crs, "key": wanted.key, "table": wanted.table}
    transaction.on_commit(lambda: tell_task(import_layer, layer.pk, str(layer.run), str(path), options))
    return layer


@shared_task(bind=True, acks_late=False, max_retries=None)
def import_layer(self, layer_id: int, run: str, path: str, wanted: dict[str, str]) -> None:
    """Import an uploaded file into a layer, unless the import is not wanted any more.

    It is acknowledged as it begins: a large import takes longer than tasks may, and must not be handed to another
    worker meanwhile. One whose worker dies is ended by `retire_imports`.
    """
    layer = Layer.objects.filter(pk=layer_id, run=run, status=Layer.IMPORTING).first()
    if layer is None:
        forget_upload(run)
    elif not _take_turn(layer):
        raise self.retry(countdown=1)
    else:
        run_import(layer, Path(path), Wanted(**wanted))


def cancel_import(user, name: str) -> Layer:
    """End an import; the version before it stays in use, or nothing. Where none is on its way, nothing changes."""
    with transaction.atomic():
        layer = changeable(user, name)
    if layer.status == Layer.IMPORTING:
        _settle(layer, Layer.CANCELLED, "")
    return Layer.objects.filter(pk=layer.pk).first() or layer


def run_import(
    layer: Layer, path: Path, wanted: Wanted, on_progress: Callable[[float], None] = lambda share: None
) -> Layer:
    """Import a file into a layer that `begin_import` returned, and return the layer as it then stands.

    Whatever happens, nothing is left of the import but a version, or the words why there is none.

    Parameters
    ----------
    layer : Layer
    path : Path
    wanted : Wanted
    on_progress : function of float
        Called with the share that is done, several times a second. A `KeyboardInterrupt` cancels the import.
    """
    folder = incoming(layer.run) / "work"
    try:
        folder.mkdir(parents=True)
        imported = _read(layer, path, folder, wanted, on_progress)
        if imported is not None:
            _adopt(layer, imported)
    except InvalidLayer as error:
        _settle(layer, Layer.FAILED, str(error))
    except KeyboardInterrupt:
        _settle(layer, Layer.CANCELLED, "")
        raise
    except BaseException as error:
        _settle(layer, Layer.FAILED, f"an import must come to its end; got {type(error).__name__}: {error}")
        raise
    finally:
        shutil.rmtree(incoming(layer.run), ignore_errors=True)
    row = Layer.objects.filter(pk=layer.pk).first()
    if row is None and layer.status == Layer.IMPORTING:
        layer.status = Layer.CANCELLED  # by somebody else
    return row or layer


def check_label(label: Label) -> None:
    """Raise Refused unless a layer may be called so, and lie there."""
    try:
        check_name(label.name)
    except InvalidLayer as error:
        raise Refused("name", str(error)) from None
    limit = Layer._meta.get_field("title").max_length
    if len(label.title) > limit:
        raise Refused("name", f"a title may have {limit} characters; got {len(label.title)}")
    space = (known := spaces_by_name()).get(label.space or EARTH)
    if space is None:
        raise Refused("space", f"space must be one of {', '.join(known)}; got {label.space!r:.80}")
    if space.n < LEAST_DIMENSIONS:
        rule = f"layers lie in spaces of {LEAST_DIMENSIONS} dimensions at least"
        raise Refused("space", f"{rule}; got {space.name!r}, which has {space.n}")


def running_imports() -> int:
    """Return how many imports are at work."""
    return Layer.objects.filter(status=Layer.IMPORTING, heartbeat__gt=timezone.now() - DEAD_AFTER).count()


def _take_turn(layer):
    """Let an import begin if few are at work, and none of the same user; return whether it may."""
    with transaction.atomic():
        # Who takes a turn holds all rows that are importing, so two cannot take the last one.
        importing = list(Layer.objects.select_for_update().filter(status=Layer.IMPORTING).order_by("pk"))
        busy = [one for one in importing if one.heartbeat and one.heartbeat > timezone.now() - DEAD_AFTER]
        importers = {one.importer_id for one in busy if one.importer_id is not None}
        if len(busy) >= settings.LAYER_IMPORTS_AT_ONCE or layer.importer_id in importers:
            return False
        return bool(_current(layer).update(heartbeat=timezone.now()))


def retire_imports() -> int:
    """End imports whose worker died, and remove what they left; return their number."""
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


def _read(layer, path, folder, wanted, on_progress) -> Imported | None:
    """Return what came of the file, None where the import is not wanted any more."""
    job, told_s = Job(path, folder, space_of(layer), wanted, import_limits()), float("-inf")
    with contextlib.closing(import_in_child(job)) as steps:
        for step in steps:
            if isinstance(step, Imported):
                return step
            on_progress(step)
            if time.monotonic() - told_s >= TELL_S:
                told_s = time.monotonic()
                if not _tell(layer, step):
                    return None
    return None


def _tell(layer, share):
    """Write progress down and tell it; return whether the import is still wanted."""
    changed = layer.progress != share or layer.heartbeat is None
    layer.progress, layer.heartbeat = share, timezone.now()
    wanted = _current(layer).update(progress=share, heartbeat=layer.heartbeat)
    if wanted and changed:
        announce(layer)
    return bool(wanted)


def _adopt(layer, imported):
    """Make a part the layer's new version, unless the import was cancelled meanwhile."""
    with transaction.atomic():
        row = _current(layer).select_for_update().first()
        if row is None:
            return
        row.title, row.next_title = row.next_title or row.title, ""
        version = layer_store().adopt(row.name, imported.part, imported.summary, space_of(row), str(row))
        row.status, row.progress, row.error, row.heartbeat = Layer.READY, 1.0, "", None
        row.problems = [{"row": number, "reason": reason} for number, reason in imported.problems]
        row.problem_count = imported.problem_count
        adopted(row, version, imported.summary)


def _settle(layer, status, error):
    """End an import without a version, unless it has ended already; return whether that was so.

    A layer that has a version stays as it was before; one that has none is gone, and who asked is told why.
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


def _withdraw(row):
    """Remove a layer that never had a version."""
    refused = RefusedImport.keep(row, row.error) if row.error else None
    row.delete()
    if refused is not None:
        transaction.on_commit(lambda: announce_refusal(refused))


def forget_refusal(user, name: str) -> bool:
    """Forget that an import was refused to a user; return whether one was."""
    refused = RefusedImport.objects.filter(owner=user, name=name).first()
    if refused is None:
        return False
    refused.delete()
    announce_refusal(refused, status="deleted")
    return True


def _current(layer):
    """Select the row of a layer as long as this import is its own."""
    return Layer.objects.filter(pk=layer.pk, run=layer.run, status=Layer.IMPORTING)


def _check_free(user, layer, label):
    """Raise Refused unless a user may import into a layer now."""
    if user is not None:
        check_editable(user, layer)
    if label.space not in ("", layer.space_id):
        raise Refused(
            "conflict", f"a layer stays in its space; {layer.name!r} is in {layer.space_id!r}; got {label.space!r}"
        )
    if layer.status == Layer.IMPORTING:
        raise Refused("conflict", f"a layer has one import at a time; {layer.name!r} is being imported")


def _check_count(user):
    if user is None:
        return
    count = Layer.objects.filter(owner=user).count()
    if count >= settings.MAX_LAYERS_PER_USER:
        raise Refused("limit", f"a user may have at most {settings.MAX_LAYERS_PER_USER} layers; got {count} already")
