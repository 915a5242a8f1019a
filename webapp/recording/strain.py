"""Pause queries that take too much of the engine's time, so that no query and no owner can delay the others."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import redis
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext_noop

from streaming.eventlog import FIRST, EventLog
from streaming.keys import LogNames
from streaming.language import thousands
from streaming.logs import read_fragment
from streaming.operators.region_map import MOST_REGIONS
from streaming.redis_client import read_hash
from streaming.spaces import Space
from webapp.alarms.incidents import close_of
from webapp.bus.notify import announce
from webapp.bus.redis import event_log
from webapp.bus.sending import send_query
from webapp.bus.telling import tell_task
from webapp.hub.assembly import Assembly, Batch
from webapp.models import Query

REASON = gettext_noop(
    "paused: it took %(cost_ms)s ms of a batch of %(whole_ms)s ms, and a query may take %(share)s; "
    "make its range, its filter or its join smaller, then go on"
)
REASON_TOGETHER = gettext_noop(
    "paused: the queries of its user or team took %(together_ms)s ms of a batch of %(whole_ms)s ms, and may take "
    "%(share)s while others have queries; this one is among those that took most, %(cost_ms)s ms; make its range, its "
    "filter or its join smaller, then go on"
)

# The fields of a fragment without its rows; so many fragments are read at once.
HEAD, MOST_READ = ("epoch", "batch", "region", "regions", "head"), 512
POSITION = b"position"
# A batch in which a query, or an owner, took more than so many times its bound counts as two batches.
VERY = 4


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
    more_ms : float, optional
        What it may always take beyond the settings, see `_more_ms`.
    has_begun : bool, optional
        Whether the costliest one began, or was edited, with the batch: that is expensive once.
    """

    costs: tuple[Cost, ...]
    took_ms: int
    whole_ms: int
    owner: int = 0
    more_ms: float = 0.0
    has_begun: bool = False

    @property
    def is_dear(self) -> bool:
        """Whether this is more than a query, or an owner, may take."""
        return self.took_ms > max(self._always_ms, settings.QUERY_SHARE * self.whole_ms)

    @property
    def counts(self) -> int:
        """As how many batches this one counts: what hurts much is waited for less."""
        return 2 if self.took_ms > VERY * self._always_ms and not self.has_begun else 1

    @property
    def most_batches(self) -> int:
        """In how many batches running it may be too dear."""
        return settings.QUERIES_DEAR_BATCHES if self.owner else settings.QUERY_DEAR_BATCHES

    @property
    def paused(self) -> tuple[Cost, ...]:
        """Those that are to be paused: as few as possible, so that the rest takes half of what it may always take.

        If it took all of that, the next query would be one too many. Less than its share is enough as well.
        """
        paused_ms = 0
        for number, one in enumerate(self.costs):
            left_ms, whole_ms = self.took_ms - paused_ms, self.whole_ms - paused_ms
            if left_ms <= max(self._always_ms / 2, settings.QUERY_SHARE * whole_ms):
                return self.costs[:number]
            paused_ms += one.cost_ms
        return self.costs

    def reason(self, one: Cost) -> str:
        """Why one of the queries is paused."""
        figures = {"cost_ms": one.cost_ms, "whole_ms": self.whole_ms, "together_ms": self.took_ms}
        told = {name: thousands(figure) for name, figure in figures.items()}
        return (REASON_TOGETHER if self.owner else REASON) % {**told, "share": f"{settings.QUERY_SHARE:.0%}"}

    @property
    def _always_ms(self) -> float:
        """What it may always take, whatever part of the batch that is."""
        least_ms = settings.QUERIES_COST_MS if self.owner else settings.QUERY_COST_MS
        return least_ms + self.more_ms


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
        regions = [fragment.costs for fragment in batch.fragments if fragment.costs and fragment.region < MOST_REGIONS]
        everywhere = [fragment.costs for fragment in batch.fragments if fragment.costs]
        for told in (*everywhere, _shared(regions)):
            for name, dear in _dear(told, _more_ms(told, batch.elements)).items():
                known = self.dear.get(name, dear)
                self.dear[name] = max(known, dear, key=lambda one: one.took_ms)
        # A batch in which something is not too expensive resets its count.
        self.running = {name: self.running.get(name, 0) + dear.counts for name, dear in self.dear.items()}

    def since(self, before: Mapping[str, int]) -> tuple[dict[str, int], list[Dear]]:
        """Return the counts after those before, and what is to be paused, which is counted no more."""
        if not self.batches:
            return dict(before), []
        counts = {name: n + (before.get(name, 0) if n == self.batches else 0) for name, n in self.running.items()}
        dear = [name for name, count in counts.items() if count >= self.dear[name].most_batches]
        return {name: count for name, count in counts.items() if name not in dear}, [self.dear[name] for name in dear]


def _shared(regions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what each of the tasks that carry out all regions took on average, as a region tells its costs."""
    tasks, took, of = settings.PARTITIONS, Counter[int](), defaultdict[int, Counter[tuple[int, int]]](Counter)
    for owner, together_ms, costs in chain.from_iterable(told.get("owners", ()) for told in regions):
        took[owner] += together_ms
        of[owner].update({(query, revision): cost_ms for query, revision, cost_ms in costs})
    whole_ms = sum(told.get("processor_ms", told["ms"]) for told in regions) // tasks
    costs = {owner: [[*query, ms // tasks] for query, ms in of[owner].most_common()] for owner in took}
    return {
        "ms": whole_ms,
        "queries": [],
        "owners": [[owner, took[owner] // tasks, costs[owner]] for owner in took],
        "begun": set().union(*(told.get("begun", ()) for told in regions)),
        "rows": sum(told.get("rows", 0) for told in regions) // tasks,
    }


def _more_ms(told: dict[str, Any], elements: int) -> float:
    """Return what more may be taken of a batch, since more was to be done.

    After an outage, or when a recording is played fast, many elements come. Whoever opens much at once asks for many
    snapshots, and is not to be paused for it.
    """
    return float(settings.ELEMENT_COST_MS * elements + settings.ROW_COST_MS * told.get("rows", 0))


def _dear(told: dict[str, Any], more_ms: float) -> dict[str, Dear]:
    """Return what was too expensive in a region, given the costs that it told; an earlier release told no owners."""
    found: dict[str, Dear] = {}
    for query, revision, cost_ms in told["queries"]:
        found[f"{query} {revision}"] = Dear((Cost(query, revision, cost_ms),), cost_ms, told["ms"], more_ms=more_ms)
    whole_ms = told.get("processor_ms", told["ms"])
    for owner, together_ms, costs in told.get("owners", ()):
        begun = told.get("begun", ())
        once_ms = min(settings.BEGUN_COST_MS, sum(cost_ms for query, _, cost_ms in costs if query in begun))
        known = tuple(Cost(*one) for one in costs)
        found[str(owner)] = Dear(known, together_ms, whole_ms, owner, more_ms + once_ms, costs[0][0] in begun)
    return {name: dear for name, dear in found.items() if dear.is_dear}


def watch(client: redis.Redis, space: Space) -> None:
    """Count what queries cost in the batches of a space since the last call; pause those that were too expensive.

    Of the log of events, only the heads are read. So this is soon done, however much there is to record.
    """
    key, logs = LogNames(space.name).strain, event_log(client)
    before = read_hash(client, key)
    position, strain = _observed(logs, space, before.pop(POSITION, b"").decode() or FIRST)
    running, dear = strain.since({name.decode(): int(count) for name, count in before.items()})
    counts: dict[Any, Any] = {POSITION: position, **running}
    with client.pipeline() as pipeline:
        # Together: what two workers count at the same time is counted once, whoever comes last.
        pipeline.delete(key)
        pipeline.hset(key, mapping=counts)
        pipeline.execute()
    for one in dear:
        for cost in one.paused:
            _pause(cost, one)


def _observed(logs: EventLog, space: Space, position: str) -> tuple[str, Strain]:
    """Return the end of the whole batches behind a position of a space's log of events, and what was too expensive."""
    log, assembly, strain, behind = LogNames(space.name).events, Assembly(), Strain(), position
    for entry in logs.read(log, position, limit=MOST_READ, only=HEAD):
        batch = assembly.add(read_fragment({b"changes": b"", b"snapshots": b"", **entry.fields}, space))
        if batch is not None:
            strain.observe(batch)
        if not assembly.waiting:
            behind = entry.position
    return behind, strain


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
