"""The roles of servers in answering queries, and how many tuples each region sent.

References
----------
PLACE* (2007), section 3.3: the Query-Track-Participate model.
"""

from typing import Any

import numpy as np
import orjson
import pyarrow.compute as pc
from django.conf import settings

from streaming.kinds.base import Plan
from streaming.plans import parse_plan
from webapp.hub.assembly import Batch
from webapp.hub.directory import Directory
from webapp.hub.engine_link import EngineLink
from webapp.hub.servers import FocusPlace, Servers, places_in
from webapp.hub.subscriptions import Subscriber

ROLES = "query.roles"


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
        self.servers = Servers(link.space, settings.PARTITIONS, settings.REGIONS)
        self._totals: dict[int, np.ndarray] = {}
        self._before: dict[int, np.ndarray] = {}  # the totals at the last `publish`, a second ago
        self._places: dict[int, FocusPlace | None] = {}
        self._plans: dict[int, Plan] = {}
        self._told: dict[tuple[Subscriber, int], str] = {}
        self._batch: int | None = None

    def count_from(self, query: int) -> np.ndarray:
        """Return how many tuples each region has sent for a query, int64 of shape (regions,); start counting if new."""
        return self._totals.setdefault(query, self._none()).copy()

    def observe(self, batch: Batch) -> None:
        """Count the tuples of a batch by region, and take the newest places of moving queries from it."""
        self._batch = batch.number
        if not self._totals:
            return
        for fragment in batch.fragments:
            if fragment.region < self.servers.regions:
                self._count(fragment)
            else:
                for query, tuples in fragment.sent.items():
                    if query in self._totals:
                        self._totals[query] += np.array(tuples)
            for rows in (fragment.changes, fragment.snapshots):
                self._places |= {query: place for query, place in places_in(rows).items() if query in self._totals}

    def _count(self, fragment):
        counted = pc.value_counts(fragment.changes["query"]).to_pylist()
        for number, count in ((entry["values"], entry["counts"]) for entry in counted):
            for query in fragment.shared.get(number, (number,)):
                if query in self._totals:
                    self._totals[query][fragment.region] += count

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
        for query in self._totals.keys() - self.subscriptions.keys():
            for kept in (self._totals, self._before, self._places, self._plans):
                kept.pop(query, None)
        for subscriber, query in list(self._told):
            if query in self._totals:
                self._tell(subscriber, query)
            else:
                self.leave(subscriber, query)
        self._before = {query: totals.copy() for query, totals in self._totals.items()}

    def _tell(self, subscriber, query):
        said = self.roles(subscriber, query)
        text = orjson.dumps(said).decode()
        if text != self._told[subscriber, query]:
            self._told[subscriber, query] = text
            subscriber.broadcast(f"{ROLES} {query}", orjson.dumps({**said, "batch": self._batch}).decode())

    def roles(self, subscriber: Subscriber, query: int) -> dict[str, Any]:
        """Return the message ``query.roles`` for a subscriber, without the batch."""
        plan, place, totals = self._plans[query], self._places.get(query), self._totals[query]
        mine = self.subscriptions.find(subscriber, query)
        last = totals - self._before.get(query, totals)
        participating = self.servers.participating(plan, place)
        since = totals - mine.sent_before
        return {
            "type": ROLES,
            "query": query,
            "home": self.servers.home_of(plan),
            "homes": self.servers.partitions,
            "tracking": self.servers.tracking(plan, place),
            "assembler": self.link.id,
            "regions": [
                self.servers.describe(region)
                | {"participates": bool(participating[region]), "last_s": int(last[region]), "sent": int(since[region])}
                for region in np.flatnonzero(participating | (since > 0)).tolist()
            ],
            "region_count": self.servers.regions,
        }

    def _none(self):
        return np.zeros(self.servers.regions, dtype=np.int64)
