"""Pause queries that take too much of the engine's time, so that no query can delay the others."""

from dataclasses import dataclass, field
from typing import Any

import redis
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_noop

from streaming.language import thousands
from streaming.logs import LogNames
from streaming.redis_client import read_hash
from streaming.spaces import Space
from webapp.hub.assembly import Batch
from webapp.incidents import close_of
from webapp.models import Query
from webapp.notify import announce
from webapp.sending import send_query
from webapp.telling import tell_task

REASON = gettext_noop(
    "paused: it took %(cost_ms)s ms of a batch of %(whole_ms)s ms, and a query may take %(share)s; "
    "make its range, its filter or its join smaller, then go on"
)


@dataclass
class Strain:
    """Counts in how many consecutive batches queries were too expensive.

    Attributes
    ----------
    batches : int
        How many batches with elements were observed.
    dear : dict of (int, int) to int
        By query and revision, in how many of the newest batches it was too expensive without a break.
    figures : dict of (int, int) to (int, int)
        By query and revision, the query's cost and the whole time of the region's step in the newest batch, in
        milliseconds.
    """

    batches: int = 0
    dear: dict[tuple[int, int], int] = field(default_factory=dict)
    figures: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def observe(self, batch: Batch) -> None:
        """Count the expensive queries of a batch; ignore a batch without elements, which says nothing about costs."""
        if not batch.elements:
            return
        self.batches += 1
        costs: dict[tuple[int, int], tuple[int, int]] = {}
        for told in (fragment.costs for fragment in batch.fragments if fragment.costs):
            for query, revision, cost_ms in told["queries"]:
                if cost_ms >= settings.QUERY_COST_MS and cost_ms > settings.QUERY_SHARE * told["ms"]:
                    costs[query, revision] = max(costs.get((query, revision), (0, 0)), (cost_ms, told["ms"]))
        # A batch in which a query is not too expensive resets its count.
        self.dear = {known: self.dear.get(known, 0) + 1 for known in costs}
        self.figures = costs


def pause_dear(client: redis.Redis, space: Space, strain: Strain) -> None:
    """Add observed batches to the counts in Redis; pause queries that were too expensive for too many batches."""
    if not strain.batches:
        return
    key = LogNames(space.name).strain
    running: dict[Any, int] = {}
    before = {name.decode(): int(count) for name, count in read_hash(client, key).items()}
    for (query, revision), count in strain.dear.items():
        name = f"{query} {revision}"
        running[name] = count + (before.get(name, 0) if count == strain.batches else 0)
        if running[name] >= settings.QUERY_DEAR_BATCHES:
            del running[name]
            _pause(query, revision, *strain.figures[query, revision])
    with client.pipeline() as pipeline:
        pipeline.delete(key)
        if running:
            pipeline.hset(key, mapping=running)
        pipeline.execute()


def _pause(number: int, revision: int, cost_ms: int, whole_ms: int) -> None:
    """Pause a query, unless its revision has changed or it is not a saved query."""
    with transaction.atomic():
        query = (
            Query.objects.select_for_update(of=("self",))
            .select_related("owner")
            .filter(pk=number, revision=revision)
            .first()
        )
        if query is None or not query.should_run:
            return
        query.paused, query.status, query.revision = True, Query.PAUSED, revision + 1
        query.warning = REASON % {
            "cost_ms": thousands(cost_ms),
            "whole_ms": thousands(whole_ms),
            "share": f"{settings.QUERY_SHARE:.0%}",
        }
        query.save()
        close_of([query], "the query was paused, because it took too much of the engine's time")
        transaction.on_commit(lambda: announce([query]))
        transaction.on_commit(lambda: tell_task(send_query, number))
