"""Creates, edits and deletes queries, versions of a layer and regions all along, and knows what must be true."""

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import redis

from streaming.operators.region_map import InvalidMap, RegionMap
from streaming.plans import parse_plan, plan_document
from streaming.spaces import EARTH
from tests.chaos.client import ReturningClient
from tests.chaos.workload import REACH_DEG, ZONES, Workload, write_layer
from tests.live.stack import Stack

# A server carries out 50 messages a second of one connection.
PAUSE_S = 0.03
MOST_REGIONS = 8


class Editor:
    """One user's edits. What the server has acknowledged must be true; what it has not may be.

    Parameters
    ----------
    live : Stack
    client : ReturningClient
        Sends the requests.
    watchers : sequence of ReturningClient
        Follow every query that is created.
    workload : Workload
    folder : Path
        For files of the layer.

    Attributes
    ----------
    plans : dict of int to dict
        The plan of each query.
    kept : set of int
        The queries that are never edited nor deleted.
    rings : dict
        The layer.
    counts : dict of str to int
        How many edits of each sort were acknowledged.
    wrong : list of str
        What was acknowledged, and is not so.
    """

    def __init__(
        self,
        live: Stack,
        client: ReturningClient,
        watchers: Sequence[ReturningClient],
        workload: Workload,
        folder: Path,
    ) -> None:
        self.live, self.client, self.watchers, self.workload = live, client, watchers, workload
        self.plans: dict[int, dict[str, Any]] = {}
        self.rings: dict[str, list] = {}
        self.counts = {"created": 0, "edited": 0, "deleted": 0, "layer": 0, "regions": 0}
        self.wrong: list[str] = []
        self.kept: set[int] = set()
        self._unsure: set[int] = set()
        self._random, self._path = np.random.default_rng(5), folder / "zones.geojson"
        self._one = threading.Lock()
        self._layer_unsure = False

    async def keep(self, plan: dict[str, Any]) -> int:
        """Create a query that is never edited nor deleted."""
        while (query := await self.create(plan)) is None:
            pass
        self.kept.add(query)
        return query

    async def create(self, plan: dict[str, Any]) -> int | None:
        """Create a query, which all watchers follow; None if its reply was lost."""
        await asyncio.sleep(PAUSE_S)
        try:
            query = (await self.client.request("query.register", name="chaos", plan=plan))["query"]
        except ConnectionError:
            return None
        self.plans[query] = plan
        self.counts["created"] += 1
        await self._followed([query])
        return query

    async def edit(self) -> None:
        """Give a random query another plan of its kind."""
        query = int(self._random.choice(list(self.plans.keys() - self.kept)))
        plan = self._alike(self.plans[query])
        try:
            await self.client.request("query.edit", query=query, plan=plan)
        except ConnectionError:
            self._unsure.add(query)
            return
        self.plans[query] = plan
        self._unsure.discard(query)
        self.counts["edited"] += 1

    async def delete(self) -> None:
        """Delete a random query."""
        query = int(self._random.choice(list(self.plans.keys() - self.kept)))
        try:
            await self.client.request("query.cancel", query=query)
        except ConnectionError:
            self._unsure.add(query)
            return
        await self._forget(query)
        self.counts["deleted"] += 1

    async def layer(self) -> None:
        """Import another version of the layer."""
        rings, self._layer_unsure = self.workload.layer(), True
        write_layer(rings, self._path)
        if await asyncio.to_thread(self._imported):
            self.rings, self._layer_unsure = rings, False
            self.counts["layer"] += 1

    async def regions(self) -> None:
        """Split a random region, or merge two."""
        with contextlib.suppress(redis.RedisError, InvalidMap):
            self.counts["regions"] += await asyncio.to_thread(self._rescale)

    async def run(self, ended: asyncio.Event) -> None:
        """Edit until told to end."""
        sorts = [self.edit] * 5 + [self.create_one] * 2 + [self.delete] * 2 + [self.layer] + [self.regions] * 2
        while not ended.is_set():
            await sorts[self._random.integers(len(sorts))]()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), self._random.uniform(0.2, 1.0))

    async def create_one(self) -> None:
        """Create a query of the next kind."""
        await self.create(self.workload.plan())

    async def settle(self) -> None:
        """Find out what became of the requests without reply, and check what was acknowledged."""
        while self._layer_unsure:
            await self.layer()
        saved = {query: found["plan"] for query, found in (await asyncio.to_thread(self._saved)).items()}
        for query in self.plans.keys() - saved.keys():
            if query not in self._unsure:
                self.wrong.append(f"query {query} was acknowledged, and is not in the database")
            await self._forget(query)
        await self._followed([query for query in saved if query not in self.plans])
        for query, plan in saved.items():
            known = self.plans.get(query)
            if known is not None and query not in self._unsure and plan != plan_document(parse_plan(known)):
                self.wrong.append(f"query {query} was acknowledged as {known}, and is {plan}")
            self.plans[query] = plan
        self._unsure.clear()

    def _alike(self, plan):
        """Return a new plan of the kind of another one: a query stays a join with a layer, for instance."""
        wanted = _kind(plan)
        while True:
            drawn = self.workload.plan()
            if _kind(drawn) == wanted:
                return drawn

    async def _followed(self, queries):
        if queries:
            await asyncio.gather(*(watcher.follow(queries) for watcher in self.watchers))

    async def _forget(self, query):
        self.plans.pop(query, None)
        self._unsure.discard(query)
        await asyncio.gather(*(watcher.leave(query) for watcher in self.watchers))

    def _imported(self):
        try:
            with self._one:
                self.live.run("import_layer", str(self._path), ZONES, "number")
        except AssertionError:
            return False
        return True

    def _saved(self):
        with self._one:
            found = self.live.queries()
        return {query: told for query, told in found.items() if told["status"] != "cancelled"}

    def events(self, query: int) -> list[tuple[str, str]]:
        """Return the recorded events of a query as (sign, key), the oldest first."""
        with self._one:
            return [(sign, key) for sign, key, _ in self.live.run("events", query)]

    def pairs(self, query: int) -> list[tuple[str, str, int]]:
        """Return the recorded pairs of a join over event time; see `pairs.pair_faults`."""
        with self._one:
            return [(key, partner, time_us) for key, partner, time_us in self.live.run("pairs", query)]

    def statuses(self) -> dict[int, str]:
        """Return how each saved query stands that is not cancelled."""
        return {query: found["status"] for query, found in self._saved().items()}

    def _rescale(self):
        """Change the region map; return whether one was known, since an engine that has just begun reports none."""
        if "map" not in (reported := self.live.log.regions()):
            return False
        known = RegionMap.of(EARTH, reported["map"])
        if known.siblings and (known.regions >= MOST_REGIONS or self._random.random() < 0.4):
            later = known.merged(*known.siblings[self._random.integers(len(known.siblings))])
        else:
            axis, at = int(self._random.integers(2)), float(self._random.uniform(-REACH_DEG, REACH_DEG))
            cells = known.cells
            inside = np.flatnonzero((cells[:, axis] < at) & (at < cells[:, EARTH.n + axis]))
            later = known.split(int(self._random.choice(inside)), axis, at)
        self.live.log.send("regions", map=later.document())
        return True


def _kind(plan):
    """Return what an edit of a plan keeps."""
    return plan["stream"], plan.get("kind", "range"), "layer" in plan.get("join", {}), "aggregate" in plan
