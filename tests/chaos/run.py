"""One run: a whole Lookout under load and edits, one fault after the other, and quiet points."""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from bench.kafka_broker import Broker
from bench.live import wait_for
from bench.ports import free_port
from streaming.engine.standalone import Cluster
from tests.chaos.client import ReturningClient
from tests.chaos.editor import Editor
from tests.chaos.faults import FAULTS, Place, schedule
from tests.chaos.feed import AcknowledgedFeed
from tests.chaos.oracle import Truth
from tests.chaos.pairs import EVENTS_KEPT, PAIR_PLANS, pair_faults
from tests.chaos.workload import FLEET, PAIRED, WIRE, Workload
from tests.live.stack import Stack
from tests.live.swarm import DECODER, Swarm

# An element that was sent so long after a fault was not on its way yet when the fault happened.
AFTER_US = 500_000
# Far above what is right, since a machine may be slow: a program that died often starts after pauses of up to 30 s.
RECOVERY_S, SETTLED_S = 300.0, 120.0
LOOK_S = 0.25
# Of what a client notices, this tells that it missed something.
MISSED = ("is not what changes led to", "resumed at")
PROBE = {"stream": FLEET, "compare": {"lo": [-0.05, -0.05], "hi": [0.05, 0.05]}}


@dataclass(frozen=True)
class Options:
    """How a run is.

    Parameters
    ----------
    seed, faults, rate, queries, objects : int
        `rate` is in elements a second, a tenth of them through the gateway.
    quiet : int
        How often everything rests and is compared, the end among them.
    only : tuple of str
        Names of `FAULTS`.
    stopped_s : float
        For how long programs are stopped.
    """

    seed: int = 1
    faults: int = 50
    rate: int = 20_000
    queries: int = 200
    objects: int = 2_000
    quiet: int = 11
    only: tuple[str, ...] = tuple(FAULTS)
    stopped_s: float = 20.0


@dataclass
class Outcome:
    """What a run found.

    Parameters
    ----------
    recoveries : dict of str to list of float
        By fault, the seconds until each client had fresh answers of both streams and a new query ran.
    lost, doubled, differences : list of str
        Acknowledged edits that are gone and changes that a client missed; tuples that came twice or in a wrong order;
        what a client holds that is not what the oracle finds.
    """

    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    longest_gap_s: float = 0.0
    elements: int = 0
    compared: int = 0
    resumed: int = 0
    events: int = 0
    pairs: int = 0
    edits: dict[str, int] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether nothing was wrong."""
        return not (self.lost or self.doubled or self.differences)

    def report(self) -> str:
        """Return the figures as text."""
        survived = sum(map(len, self.recoveries.values()))
        lines = [
            f"faults survived: {survived}",
            f"elements acknowledged: {self.elements:,}",
            f"edits acknowledged: {', '.join(f'{count} {name}' for name, count in self.edits.items())}",
            f"answers compared with the oracle: {self.compared:,}",
            f"answers resumed after a connection ended: {self.resumed:,}",
            f"events compared: {self.events:,}",
            f"pairs over event time compared: {self.pairs:,}",
            f"longest gap in answers: {self.longest_gap_s:.1f} s",
            f"lost: {len(self.lost)}",
            f"doubled: {len(self.doubled)}",
            f"differences: {len(self.differences)}",
            "",
            "| fault | times | median s | max s |",
            "| --- | --- | --- | --- |",
        ]
        for name, times in sorted(self.recoveries.items()):
            lines.append(f"| `{name}` | {len(times)} | {median(times):.1f} | {max(times):.1f} |")
        return "\n".join([*lines, "", *self.lost[:20], *self.doubled[:20], *self.differences[:20]])


class Chaos:
    """A run on a Lookout that is up.

    Parameters
    ----------
    live : Stack
    options : Options
    say : function of str
        Tells of progress.
    broker : Broker, optional
        Of Kafka, if the logs are there.
    cluster : Cluster, optional
        Of Spark, if the engines run on one.
    """

    def __init__(
        self,
        live: Stack,
        options: Options,
        say: Callable[[str], None],
        broker: Broker | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.live, self.options, self.say, self.broker, self.cluster = live, options, say, broker, cluster
        self.outcome = Outcome()
        self._random = np.random.default_rng(options.seed)
        self._workload = Workload(options.seed, options.objects)

    async def run(self) -> Outcome:
        """Run to the end, whatever is found on the way."""
        ports = {stream: free_port() for stream in (FLEET, WIRE, PAIRED)}
        for stream, port in ports.items():
            self.live.add_stream(stream, {"kind": "tcp_listener", "port": port}, DECODER)
            wait_for(lambda stream=stream: self.live.health(stream)["state"] == "running", f"{stream} listens")
        options = self.options
        self._swarm = Swarm(WIRE, ports[WIRE], max(10, options.rate // 100), options.seed)
        # The swarm reports ten times a second.
        rate = options.rate - 10 * self._swarm.count
        with AcknowledgedFeed(self.live, FLEET, rate, options.objects, options.seed) as self._feed:
            async with self._connected() as clients:
                self._clients = clients
                await self._prepare()
                for number, names in enumerate(self._parts(), 1):
                    await self._part(names)
                    await self._quiet(number)
                await self._compare_events()
                await self._compare_pairs()
        self._conclude()
        return self.outcome

    def _parts(self) -> list[list[str]]:
        """Return the faults before each quiet point."""
        names = schedule(self.options.only, self.options.faults, self._random)
        return [part.tolist() for part in np.array_split(names, self.options.quiet) if len(part)]

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Sequence[ReturningClient]]:
        """Connect the clients, in each form in which answers come, and the one that edits."""
        url, token = self.live.socket_url, self.live.token("ann")
        clients = [
            ReturningClient(url, token),
            ReturningClient(url, token, joined=True),
            ReturningClient(url, token, "arrow"),
        ]
        async with contextlib.AsyncExitStack() as entered:
            for client in [*clients, writer := ReturningClient(url, token)]:
                await entered.enter_async_context(client)
            self._editor = Editor(self.live, writer, clients, self._workload, self.live.home.parent)
            yield clients

    async def _prepare(self):
        await self._editor.layer()
        # These stay. The first makes sure that answers of the second feed always come, the second shows each element
        # that is lost, and the events of the third are compared.
        await self._editor.keep({"stream": WIRE, "compare": {"lo": [-2, -2], "hi": [2, 2]}})
        everything = {"stream": FLEET, "compare": {"lo": [-2, -2], "hi": [2, 2]}}
        await self._editor.keep({**everything, "aggregate": {"function": "sum", "property": "speed_mps"}})
        self._recorded = await self._editor.keep({"stream": FLEET, "compare": {"lo": [-0.1, -0.1], "hi": [0.1, 0.1]}})
        self._paired = [await self._editor.keep(plan) for plan in PAIR_PLANS]
        for _ in range(self.options.queries - len(self._editor.kept)):
            await self._editor.create_one()
        await self._all_running()
        self._feed.joined.clear()
        await asyncio.to_thread(wait_for, self.live.standing_by, "an engine that stands by")

    async def _part(self, names):
        """Inject faults while everything moves; the last one is not waited for before everything rests."""
        ended = asyncio.Event()
        for client in self._clients:
            client.watch(True)
        self._feed.move()
        async with self._swarm.moving():
            editing = asyncio.create_task(self._editor.run(ended))
            for number, name in enumerate(names, 1):
                place = self._place()
                fault = asyncio.create_task(self._fault(name, place))
                if number == len(names):  # what is acknowledged now must not be lost
                    await asyncio.wait([fault], timeout=self._random.uniform(0.2, 2.0))
                    await asyncio.to_thread(self._feed.rest)
                    self._feed.move()
                await fault
                await asyncio.sleep(self._random.uniform(0.0, 2.0))
            ended.set()
            await editing
            await asyncio.to_thread(self._feed.rest)
        for client in self._clients:
            client.watch(False)

    def _place(self):
        stopped_s = self.options.stopped_s
        return Place(self.live, self._clients, self._random, stopped_s, self.broker, self.cluster)

    async def _fault(self, name, place):
        """Inject a fault, and wait until everything works again."""
        began_s, began_us = time.monotonic(), time.time_ns() // 1000
        await FAULTS[name](place)
        await self._recovered(name, began_us)
        took_s = time.monotonic() - began_s
        self.outcome.recoveries[name].append(took_s)
        self.say(f"{name}: everything works again after {took_s:.1f} s")

    async def _recovered(self, name, began_us):
        """Wait until each client has elements of both streams that were sent after a fault, and a new query runs."""

        def fresh():
            return all(
                client.newest_us[letter] > began_us + AFTER_US for client in self._clients for letter in ("f", "o")
            )

        await self._clients[0].until(fresh, lambda: f"{name}: fresh answers, {self._ages()}", RECOVERY_S)
        query = None
        while query is None:
            query = await self._editor.create(PROBE)
        writer = self._editor.client
        await writer.until(
            lambda: query not in self._editor.plans or writer.status(query) == "running",
            lambda: f"{name}: a new query runs, {writer.statuses.get(query)}",
            RECOVERY_S,
        )

    def _ages(self):
        now_us = time.time_ns() // 1000
        return [{letter: (now_us - at) / 1e6 for letter, at in client.newest_us.items()} for client in self._clients]

    async def _all_running(self):
        """Wait until the database says that all queries run."""

        def waiting():
            return {query: status for query, status in self._editor.statuses().items() if status != "running"}

        await asyncio.to_thread(wait_for, lambda: not waiting(), lambda: f"all queries run: {waiting()}")

    async def _quiet(self, number):
        """Compare each client's answer of each query with the oracle's."""
        await self._editor.settle()
        await self._all_running()
        await asyncio.to_thread(wait_for, lambda: self.live.log.backlog() == 0, "the engine has read everything")
        objects = {FLEET: self._feed.objects(), WIRE: self._swarm.objects()}
        truth = Truth(objects, self._editor.rings)
        deadline_s, wrong = time.monotonic() + SETTLED_S, self._wrong(truth)
        while wrong and time.monotonic() < deadline_s:
            await asyncio.sleep(LOOK_S)
            wrong = self._wrong(truth)
        # What changes have led to must be what a snapshot says, too: a client compares the two.
        await asyncio.gather(*(self._snapshots(client) for client in self._clients))
        wrong = self._wrong(truth)
        self.outcome.differences += [f"quiet point {number}: {words}" for words in wrong]
        self.outcome.compared += len(self._clients) * len(self._editor.plans)
        self.say(f"quiet point {number}: {len(self._editor.plans)} queries, {len(wrong)} differences")

    async def _snapshots(self, client):
        """Get another snapshot of each answer."""
        before = {query: client.snapshots_of(query) for query in self._editor.plans}
        for query in before:
            await client.send({"type": "query.snapshot", "query": query})
            await asyncio.sleep(LOOK_S / 10)
        await client.until(
            lambda: all(client.snapshots_of(query) > count for query, count in before.items()),
            lambda: f"snapshots of {[query for query in before if client.snapshots_of(query) == before[query]]}",
        )

    def _wrong(self, truth):
        return [
            f"client {number}, query {query}, {plan}: {words}"
            for query, plan in self._editor.plans.items()
            for number, client in enumerate(self._clients)
            if (words := truth.differences(client, query, plan))
        ]

    async def _compare_events(self):
        """Check that the recorded events of a query lead to its answer, and that no object enters or leaves twice."""
        query, held = self._recorded, set(self._clients[0].answers[self._recorded])
        wrong = [""]
        deadline_s = time.monotonic() + SETTLED_S
        while wrong and time.monotonic() < deadline_s:
            await asyncio.sleep(LOOK_S)
            events = await asyncio.to_thread(self._editor.events, query)
            wrong = event_faults(events, held)
        self.outcome.events = len(events)
        left_out = "were left out" in self.live.text_of("worker")
        self.say(
            f"{len(events)} events recorded of query {query}{' (some were left out)' if left_out else ''}: {wrong}"
        )
        if not left_out:  # of more than 2,000 events within some seconds, only the newest are stored
            self.outcome.doubled += wrong

    async def _compare_pairs(self):
        """Check that each pair of the joins over event time is recorded, and once."""
        for query in self._paired:
            plan, wrong = self._editor.plans[query], [""]
            deadline_s = time.monotonic() + SETTLED_S
            while wrong and time.monotonic() < deadline_s:
                await asyncio.sleep(LOOK_S)
                told = await asyncio.to_thread(self._editor.pairs, query)
                wrong = pair_faults(plan, told, self._feed.joined)
            self.outcome.pairs += len(told)
            self.say(f"{len(told)} pairs recorded of the {plan['kind']}, {len(wrong)} wrong")
            self.outcome.differences += [f"{plan['kind']}: {words}" for words in wrong]

    def _conclude(self):
        outcome = self.outcome
        outcome.lost += self._editor.wrong
        for number, client in enumerate(self._clients):
            for fault in [*client.faults, *map(str, client.errors)]:
                missed = any(words in fault for words in MISSED)
                (outcome.lost if missed else outcome.doubled).append(f"client {number}: {fault}")
        outcome.longest_gap_s = max(client.longest_gap_s for client in self._clients)
        outcome.resumed = sum(client.resumed for client in self._clients)
        outcome.elements = self._feed.sent + self._swarm.sent
        outcome.edits = self._editor.counts


def event_faults(events: Sequence[tuple[str, str]], held: set[str]) -> list[str]:
    """Return what is wrong with the events of a query, the oldest first, given the keys of its answer.

    Examples
    --------
    >>> event_faults([("+", "a"), ("-", "a"), ("+", "b")], {"b"})
    []
    >>> event_faults([("+", "a"), ("+", "a")], {"b"})
    ['events: + of a twice running', 'events do not lead to the answer: a, b']
    """
    inside: dict[str, str] = {}
    wrong = []
    for sign, key in events:
        if inside.get(key) == sign:
            wrong.append(f"events: {sign} of {key} twice running")
        inside[key] = sign
    differing = {key for key, sign in inside.items() if (sign == "+") != (key in held)}
    if len(events) < EVENTS_KEPT:  # of more, the oldest are gone
        differing |= held - inside.keys()
    return wrong + ([f"events do not lead to the answer: {', '.join(sorted(differing))}"] if differing else [])
