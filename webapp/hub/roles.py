"""The roles of servers in answering queries, and how many tuples each region sent.

References
----------
PLACE* (2007), section 3.3: the Query-Track-Participate model.
"""

from collections.abc import KeysView, Sequence
from typing import Any

import numpy as np
import orjson
from django.conf import settings

from streaming.kinds.base import Plan
from streaming.operators.region_map import MOST_REGIONS, RegionMap
from streaming.plans import parse_plan
from streaming.results import Fragment
from webapp.hub.assembly import Batch
from webapp.hub.directory import Directory
from webapp.hub.engine_link import EngineLink
from webapp.hub.servers import FocusPlace, Servers, places_in
from webapp.hub.subscriptions import Subscriber

ROLES = "query.roles"


class TupleCounts:
    """Counts the tuples that each region sends for some queries.

    Parameters
    ----------
    regions : int
    """

    def __init__(self, regions: int) -> None:
        self._row: dict[int, int] = {}
        self._free: list[int] = []
        # The last row takes the tuples of queries that are not counted.
        self._totals = np.zeros((1, regions), dtype=np.int64)
        self._before = self._totals.copy()

    @property
    def queries(self) -> KeysView[int]:
        """The queries that are counted."""
        return self._row.keys()

    def start(self, query: int) -> None:
        """Count for a query from now on, unless it is counted already."""
        if query in self._row:
            return
        if not self._free:
            room = len(self._totals)
            self._free = list(range(2 * room - 2, room - 2, -1))
            self._totals, self._before = (np.pad(kept, ((0, room), (0, 0))) for kept in (self._totals, self._before))
        self._row[query] = row = self._free.pop()
        self._totals[row] = self._before[row] = 0

    def stop(self, query: int) -> None:
        """Forget a query."""
        self._free.append(self._row.pop(query))

    def add(self, queries: Sequence[int], tuples: np.ndarray) -> None:
        """Add tuples, int64 of shape (len(queries), regions); a query may occur several times."""
        more = tuples.shape[1] - self._totals.shape[1]
        if more > 0:
            self._totals, self._before = (np.pad(kept, ((0, 0), (0, more))) for kept in (self._totals, self._before))
        rows = np.fromiter((self._row.get(query, -1) for query in queries), np.int64, len(queries))
        np.add.at(self._totals[:, : tuples.shape[1]], rows, tuples)

    def total(self, query: int) -> np.ndarray:
        """Return how many tuples each region has sent for a query, int64 of shape (regions,)."""
        return self._totals[self._row[query]].copy()

    def since_tick(self, query: int) -> np.ndarray:
        """Return how many of them it has sent since the last `tick`."""
        return self._totals[self._row[query]] - self._before[self._row[query]]

    def tick(self) -> None:
        """Begin another span of `since_tick`."""
        self._before = self._totals.copy()


class Roles:
    """Counts the tuples that regions send for a hub's subscribed queries, and reports the roles to who follows them.

    Parameters
    ----------
    link : EngineLink
    subscriptions : Directory
        The hub's subscriptions.
    """

    def __init__(self, link: EngineLink, subscriptions: Directory) -> None:
        self.link, self.subscriptions = link, subscriptions
        self.servers = Servers(link.space, settings.PARTITIONS, RegionMap.grid(link.space, settings.REGIONS))
        self._counts = TupleCounts(settings.REGIONS)
        self._places: dict[int, FocusPlace | None] = {}
        self._plans: dict[int, Plan] = {}
        self._told: dict[tuple[Subscriber, int], str] = {}
        self._batch: int | None = None
        self._driving: dict[int, str] = {}

    def count_from(self, query: int) -> np.ndarray:
        """Return how many tuples each region has sent for a query, int64 of shape (regions,); start counting if new."""
        self._counts.start(query)
        return self._counts.total(query)

    def observe(self, batch: Batch) -> None:
        """Count the tuples of a batch by region, and take the newest places of moving queries from it."""
        self._batch, counted = batch.number, self._counts.queries
        if not counted:
            return
        for fragment in batch.fragments:
            if fragment.region < MOST_REGIONS:  # else it is the assembler's
                self._count(fragment)
            elif fragment.sent:
                self._counts.add(list(fragment.sent), np.array([*fragment.sent.values()], dtype=np.int64))
            for rows in (fragment.changes, fragment.snapshots):
                self._places |= {query: place for query, place in places_in(rows).items() if query in counted}

    def _count(self, fragment: Fragment) -> None:
        numbers, counts = np.unique(fragment.changes["query"].to_numpy(), return_counts=True)
        # Tuples of a shared answer count for each of its queries.
        groups = [fragment.shared.get(number, (number,)) for number in numbers.tolist()]
        tuples = np.zeros((sum(map(len, groups)), fragment.region + 1), dtype=np.int64)
        tuples[:, fragment.region] = np.repeat(counts, [len(group) for group in groups])
        self._counts.add([query for group in groups for query in group], tuples)

    def rescale(self, region_map: RegionMap) -> None:
        """Know another region map. What regions have sent is counted by their numbers, whatever cells they had."""
        self.servers = Servers(self.link.space, settings.PARTITIONS, region_map)

    def drive(self, joins: Sequence[Sequence[Any]]) -> None:
        """Know which stream drives each join over event time; see `logs.regions_of`."""
        self._driving = {query: partner if by_partner else own for query, _, own, partner, by_partner, _ in joins}

    def follow(self, subscriber: Subscriber, query: int, plan: Plan) -> None:
        """Send a subscriber the roles of a query's servers, now and when they change, at most once a second."""
        self._plans[query] = plan
        if self.servers.home_of(plan) is not None and query not in self._places:
            self.link.ask_snapshot(query)
        self._told[subscriber, query] = ""
        self._tell(subscriber, query)

    def leave(self, subscriber: Subscriber, query: int) -> None:
        """Stop sending a subscriber the roles of a query's servers."""
        self._told.pop((subscriber, query), None)

    def edited(self, query: int, document: dict) -> None:
        """Use the new plan of a query, if anybody follows its roles."""
        if query in self._plans:
            self._plans[query] = parse_plan(document, self.link.space)

    async def publish(self) -> None:
        """Send changed roles to their followers, and forget queries without subscriptions. Call it every second."""
        for query in self._counts.queries - self.subscriptions.keys():
            self._counts.stop(query)
            self._places.pop(query, None)
            self._plans.pop(query, None)
        for subscriber, query in list(self._told):
            if query in self._counts.queries:
                self._tell(subscriber, query)
            else:
                self.leave(subscriber, query)
        self._counts.tick()

    def _tell(self, subscriber: Subscriber, query: int) -> None:
        said = self.roles(subscriber, query)
        text = orjson.dumps(said).decode()
        if text != self._told[subscriber, query]:
            self._told[subscriber, query] = text
            subscriber.broadcast(f"{ROLES} {query}", orjson.dumps({**said, "batch": self._batch}).decode())

    def roles(self, subscriber: Subscriber, query: int) -> dict[str, Any]:
        """Return the message ``query.roles`` for a subscriber, without the batch."""
        plan, place = self._plans[query], self._places.get(query)
        before = self.subscriptions.find(subscriber, query).sent_before
        assert before is not None  # it is set when the subscription begins
        participating = self.servers.participating(plan, place)
        last, since = (
            _as_wide(told, len(participating))
            for told in (self._counts.since_tick(query), _less(self._counts.total(query), before))
        )
        return {
            "type": ROLES,
            "query": query,
            "home": self.servers.home_of(plan),
            "homes": self.servers.partitions,
            "tracking": self.servers.tracking(plan, place),
            "assembler": self.link.id,
            "driving": self._driving.get(query),
            "regions": [
                self.servers.describe(region)
                | {"participates": bool(participating[region]), "last_s": int(last[region]), "sent": int(since[region])}
                for region in np.flatnonzero(participating | (since > 0)).tolist()
            ],
            "region_count": self.servers.regions,
        }


def _as_wide(counts: np.ndarray, regions: int) -> np.ndarray:
    """Return counts by region for as many regions as there are now."""
    return np.pad(counts[:regions], (0, max(0, regions - len(counts))))


def _less(counts: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return counts by region less those before, when there may have been fewer regions."""
    return counts - np.pad(before, (0, len(counts) - len(before)))
