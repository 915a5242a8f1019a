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
    "%(share)s while others have queries; this one is among those that took most, %(cost_ms)s ms; make its range, its "
    "filter or its join smaller, then go on"
)


@dataclass(frozen=True)
class Cost:
    """What a query took of a batch, in milliseconds."""

    query: int
    revision: int
    cost_ms: int


@dataclass(frozen=True)
class Dear:
    """What took much of a batch: a query, or the queries of an owner together.

    Parameters
    ----------
    costs : tuple of Cost
        The query, or the costliest ones of the owner, those that cost most first.
    took_ms, whole_ms : int
        What it took, and what the batch took.
    owner : int, optional
        0 if it is one query.
    elements : int, optional
        How many elements came with the batch: after an outage, or when a recording is played fast, there is more to do.
    """

    costs: tuple[Cost, ...]
    took_ms: int
    whole_ms: int
    owner: int = 0
    elements: int = 0

    @property
    def is_dear(self) -> bool:
        """Whether this is more than a query, or an owner, may take."""
        return self._is_dear(self.took_ms, self.whole_ms)

    @property
    def most_batches(self) -> int:
        """In how many batches running it may be too dear."""
        return settings.QUERIES_DEAR_BATCHES if self.owner else settings.QUERY_DEAR_BATCHES

    @property
    def paused(self) -> tuple[Cost, ...]:
        """Those that are to be paused: as few as possible, so that the rest is not too dear."""
        paused_ms = 0
        for number, one in enumerate(self.costs):
            if not self._is_dear(self.took_ms - paused_ms, self.whole_ms - paused_ms):
                return self.costs[:number]
            paused_ms += one.cost_ms
        return self.costs

    def reason(self, one: Cost) -> str:
        """Why one of the queries is paused."""
        figures = {"cost_ms": one.cost_ms, "whole_ms": self.whole_ms, "together_ms": self.took_ms}
        told = {name: thousands(figure) for name, figure in figures.items()}
        return (REASON_TOGETHER if self.owner else REASON) % {**told, "share": f"{settings.QUERY_SHARE:.0%}"}

    def _is_dear(self, took_ms: int, whole_ms: int) -> bool:
        least_ms = settings.QUERIES_COST_MS if self.owner else settings.QUERY_COST_MS
        most_ms = max(least_ms + settings.ELEMENT_COST_MS * self.elements, settings.QUERY_SHARE * whole_ms)
        return took_ms > most_ms


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
            for name, dear in _dear(told, batch.elements).items():
                known = self.dear.get(name, dear)
                self.dear[name] = max(known, dear, key=lambda one: one.took_ms)
        # A batch in which something is not too expensive resets its count.
        self.running = {name: self.running.get(name, 0) + 1 for name in self.dear}


def _dear(told: dict[str, Any], elements: int) -> dict[str, Dear]:
    """Return what was too expensive in a region, given the costs that it told; an earlier release told no owners."""
    found: dict[str, Dear] = {}
    for query, revision, cost_ms in told["queries"]:
        found[f"{query} {revision}"] = Dear((Cost(query, revision, cost_ms),), cost_ms, told["ms"], elements=elements)
    for owner, together_ms, costs in told.get("owners", ()):
        found[str(owner)] = Dear(tuple(Cost(*one) for one in costs), together_ms, told["ms"], owner, elements)
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
        if running[name] >= strain.dear[name].most_batches:
            del running[name]
            for one in strain.dear[name].paused:
                _pause(one, strain.dear[name])
    with client.pipeline() as pipeline:
        pipeline.delete(key)
        if running:
            pipeline.hset(key, mapping=running)
        pipeline.execute()


def _pause(one: Cost, dear: Dear) -> None:
    """Pause a query, unless its revision has changed, it is not a saved query, or it delays nobody but its owner."""
    with transaction.atomic():
        query = (
            Query.objects.select_for_update(of=("self",))
            .select_related("owner")
            .filter(pk=one.query, revision=one.revision)
            .first()
        )
        if query is None or not query.should_run or (dear.owner and not _others_wait(query)):
            return
        query.paused, query.status, query.revision = True, Query.PAUSED, one.revision + 1
        query.warning = dear.reason(one)
        query.save()
        close_of([query], "the query was paused, because it took too much of the engine's time")
        transaction.on_commit(lambda: announce([query]))
        transaction.on_commit(lambda: tell_task(send_query, one.query))


def _others_wait(query: Query) -> bool:
    """Tell whether queries run in the same space that count for somebody else, examples aside."""
    others = Query.objects.filter(space=query.space_id, paused=False, owner__isnull=False)
    others = others.exclude(status__in=(Query.CANCELLED, Query.WAITING))
    mine = Q(team=query.team_id) if query.team_id else Q(team=None, owner=query.owner_id)
    return others.exclude(mine).exists()
