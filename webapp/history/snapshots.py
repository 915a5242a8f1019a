"""Snapshots of what is stored of streams, with which queries join."""

from collections.abc import Iterable
from typing import Any

from celery import shared_task
from django.conf import settings

from streaming.history import snapshots
from streaming.kinds.join.partners import STORED_PREFIX
from webapp.bus.redis import log
from webapp.bus.telling import tell
from webapp.history.upkeep import entries_of
from webapp.models import Query, Space


@shared_task(name="webapp.tasks.take_snapshots")
def take_snapshots() -> int:
    """Snapshot the stored streams that running queries join with, and tell the engines; return their number.

    Snapshots that no running query needs are dropped, and the engines are told so.
    """
    wanted = _stored_partners(Query.objects.alive().filter(plan__kind="join"))
    for space, stream in sorted(wanted):
        version = snapshots.take(settings.HISTORY_DIR, stream, Space.objects.get(pk=space).parsed)
        _send(space, "layer", stream, version=version)
    for space in Space.objects.all():
        store = snapshots.snapshots(settings.HISTORY_DIR, space.parsed)
        for folder in entries_of(store.root):
            if not folder.name.startswith(".") and (space.pk, folder.name) not in wanted:
                _send(space.pk, "drop_layer", folder.name)
                store.drop(folder.name)
    return len(wanted)


def _stored_partners(queries: Iterable[Query]) -> set[tuple[str, str]]:
    """Return the (space, stream) pairs whose stored elements the running ones among the queries join with."""
    return {
        (query.space_name, stream)
        for query in queries
        if query.should_run and (stream := query.plan.get("join", {}).get("stored"))
    }


def _send(space: str, op: str, stream: str, **entry: Any) -> None:
    layer = f"{STORED_PREFIX}{stream}"
    tell(f"the snapshot of {stream}", lambda: log(space).send(op, layer=layer, **entry))
