"""Pause queries that take too much of the engine's time, so that no query and no owner can delay the others."""

from dataclasses import dataclass, field
from typing import Any

import redis
from django.conf import settings
from django.db import transaction
from django.db.models import Q
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
REASON_TOGETHER = gettext_noop(
    "paused: the queries of its user or team took %(together_ms)s ms of a batch of %(whole_ms)s ms, and may take "
    "%(share)s while others have queries; this one took most, %(cost_ms)s ms; make its range, its filter or its join "
    "smaller, then go on"
)


@dataclass(frozen=True)
class Dear:
    """A query that is to be paused, and the times that say why, in milliseconds.

    `together_ms` is what all queries of `owner` took, if it is not for this query alone; `owner` is then not 0.
    """

    query: int
    revision: int
    cost_ms: int
    whole_ms: int
    owner: int = 0
    together_ms: int = 0

    @property
    def is_dear(self) -> bool:
        """Whether this is more than a query, or an owner, may take."""
        took_ms = max(self.cost_ms, self.together_ms)
        return took_ms >= settings.QUERY_COST_MS and took_ms > settings.QUERY_SHARE * self.whole_ms

    @property
    def reason(self) -> str:
        """Why the query is paused."""
        figures = {name: thousands(getattr(self, name)) for name in ("cost_ms", "whole_ms", "together_ms")}
        return (REASON_TOGETHER if self.owner else REASON) % {**figures, "share": f"{settings.QUERY_SHARE:.0%}"}


@dataclass
class Strain:
    """Counts in how many consecutive batches queries, or all queries of an owner, were too expensive.

    Attributes
    ----------
    batches : int
        How many batches with elements were observed.
    running : dict of str to int
        By query and revision, or by owner, in how many of the newest batches it was too expensive without a break.
    dear : dict of str to Dear
        What was too expensive in the newest batch, by the same.
    """

    batches: int = 0
    running: dict[str, int] = field(default_factory=dict)
    dear: dict[str, Dear] = field(default_factory=dict)

    def observe(self, batch: Batch) -> None:
        """Count the expensive queries of a batch; ignore a batch without elements, which says nothing about costs."""
        if not batch.elements:
            return
        self.batches += 1
        self.dear = {}
        for told in (fragment.costs for fragment in batch.fragments if fragment.costs):
            for name, dear in _dear(told).items():
                known = self.dear.get(name, dear)
                self.dear[name] = max(known, dear, key=lambda one: (one.together_ms, one.cost_ms))
        # A batch in which something is not too expensive resets its count.
        self.running = {name: self.running.get(name, 0) + 1 for name in self.dear}


def _dear(told: dict[str, Any]) -> dict[str, Dear]:
    """Return what was too expensive in a region, given the costs that it told; an earlier release told no owners."""
    found: dict[str, Dear] = {}
    for query, revision, cost_ms in told["queries"]:
        found[f"{query} {revision}"] = Dear(query, revision, cost_ms, told["ms"])
    for owner, together_ms, query, revision, cost_ms in told.get("owners", ()):
        found[str(owner)] = Dear(query, revision, cost_ms, told["ms"], owner, together_ms)
    return {name: dear for name, dear in found.items() if dear.is_dear}


def pause_dear(client: redis.Redis, space: Space, strain: Strain) -> None:
    """Add observed batches to the counts in Redis; pause queries that were too expensive for too many batches."""
    if not strain.batches:
        return
    key = LogNames(space.name).strain
    running: dict[Any, int] = {}
    before = {name.decode(): int(count) for name, count in read_hash(client, key).items()}
    for name, count in strain.running.items():
        running[name] = count + (before.get(name, 0) if count == strain.batches else 0)
        if running[name] >= settings.QUERY_DEAR_BATCHES:
            del running[name]
            _pause(strain.dear[name])
    with client.pipeline() as pipeline:
        pipeline.delete(key)
        if running:
            pipeline.hset(key, mapping=running)
        pipeline.execute()


def _pause(dear: Dear) -> None:
    """Pause a query, unless its revision has changed, it is not a saved query, or it delays nobody but its owner."""
    with transaction.atomic():
        query = (
            Query.objects.select_for_update(of=("self",))
            .select_related("owner")
            .filter(pk=dear.query, revision=dear.revision)
            .first()
        )
        if query is None or not query.should_run or (dear.owner and not _others_wait(query)):
            return
        query.paused, query.status, query.revision = True, Query.PAUSED, dear.revision + 1
        query.warning = dear.reason
        query.save()
        close_of([query], "the query was paused, because it took too much of the engine's time")
        transaction.on_commit(lambda: announce([query]))
        transaction.on_commit(lambda: tell_task(send_query, dear.query))


def _others_wait(query: Query) -> bool:
    """Tell whether queries run in the same space that count for somebody else, examples aside."""
    others = Query.objects.filter(space=query.space_id, paused=False, owner__isnull=False)
    others = others.exclude(status__in=(Query.CANCELLED, Query.WAITING))
    mine = Q(team=query.team_id) if query.team_id else Q(team=None, owner=query.owner_id)
    return others.exclude(mine).exists()
