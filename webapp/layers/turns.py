"""Whose import begins next: few run at once, and users take turns. All workers count the same turns."""

import time
from datetime import timedelta
from typing import cast

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from streaming.keys import IMPORTS_ASKED_KEY, IMPORTS_BEGUN_KEY
from webapp.bus.redis import waiting_client
from webapp.models import Layer

# A running import without a sign of life for so long has died with its worker.
DEAD_AFTER = timedelta(seconds=60)
# The next import of a user that waits asks for its turn every second; a worker that is busy asks later.
ASKING_S = 10.0


def running_imports() -> int:
    """Return how many imports are running, without those that wait."""
    return Layer.objects.filter(status=Layer.IMPORTING, heartbeat__gt=timezone.now() - DEAD_AFTER).count()


def take_turn(layer: Layer) -> bool:
    """Start an import if a place is free, and it is its user's turn; return whether it started.

    A user has one import at a time, and gets no other one while somebody waits who had none for longer.
    """
    with transaction.atomic():
        # Lock all rows that are importing, so that two imports cannot both take the last free place.
        importing = list(
            Layer.objects.select_for_update()
            .filter(status=Layer.IMPORTING)
            .order_by("pk")
            .only("importer_id", "heartbeat")
        )
        busy = [one for one in importing if one.heartbeat and one.heartbeat > timezone.now() - DEAD_AFTER]
        importers = {one.importer_id for one in busy if one.importer_id is not None}
        free = settings.LAYER_IMPORTS_AT_ONCE - len(busy)
        earlier = _earlier(layer.importer_id, importers)
        if layer.importer_id in importers or earlier >= free:
            return False
        waiting_client().zadd(IMPORTS_BEGUN_KEY, {str(layer.importer_id): time.time()})
        waiting_client().zrem(IMPORTS_ASKED_KEY, str(layer.importer_id))
        return bool(Layer.objects.filter(pk=layer.pk, run=layer.run).update(heartbeat=timezone.now()))


def place_in_line(layer: Layer) -> int:
    """Return which of its user's imports that wait an import is, from 1 on: it asks for its turn so many seconds later.

    So a user's imports ask a few times a second all together, however many they are.
    """
    waiting = Layer.objects.filter(status=Layer.IMPORTING, heartbeat=None, importer_id=layer.importer_id)
    return waiting.filter(pk__lt=layer.pk).count() + 1


def others_wait(user: int | None) -> bool:
    """Tell whether imports of other users wait for their turn."""
    return bool(_asking() - {str(user)})


def _earlier(user: int | None, running: set[int]) -> int:
    """Note that a user's import waits; return how many other users wait whose turn is before."""
    client, mine = waiting_client(), str(user)
    client.zadd(IMPORTS_ASKED_KEY, {mine: time.time()})
    others = sorted(_asking() - {mine} - set(map(str, running)))
    begun = client.zmscore(IMPORTS_BEGUN_KEY, [mine, *others])
    return sum((other or 0.0) < (begun[0] or 0.0) for other in begun[1:])


def _asking() -> set[str]:
    """Return the users whose imports wait; forget those who have not asked lately."""
    client, now = waiting_client(), time.time()
    client.zremrangebyscore(IMPORTS_ASKED_KEY, "-inf", now - ASKING_S)
    client.zremrangebyscore(IMPORTS_BEGUN_KEY, "-inf", now - 86_400)
    asking = cast(list[bytes], client.zrange(IMPORTS_ASKED_KEY, 0, -1))
    return {user.decode() for user in asking}
