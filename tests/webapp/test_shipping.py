"""Assembler shipping: clients that come back, to the same hub or to another, miss nothing and get nothing twice."""

import asyncio
import json
import random
from dataclasses import replace

import pytest

from bench.live import PATIENCE_S
from streaming import logs
from streaming.results import ENTERED, LEFT, MOVED, STAYED
from tests.webapp.conftest import INSIDE, OUTSIDE, PLAN
from tests.webapp.test_answers import registered
from tests.webapp.test_hub import fragment
from webapp.hub import ResumePoint
from webapp.live.programs import name_life

QUERIES = {1: PLAN, 2: {"stream": "ships", "compare": {"lo": [14, 54], "hi": [40, 56]}}}


class Client:
    """Follows answers as frames make them, and remembers how far it holds each."""

    owner = "ann"

    def __init__(self):
        self.told = {query: [] for query in QUERIES}
        self.held, self.kinds, self.heard = {}, [], asyncio.Event()
        self.begun = set()  # queries whose answers have begun on this connection

    def deliver(self, subscription, text):
        message = json.loads(text)
        query, held = message["query"], ResumePoint(message["epoch"], message["batch"])
        self.kinds.append(message["type"])
        self.begun.add(query)
        if message["type"] != "answer.resumed":
            assert query not in self.held or held.batch > self.held[query].batch
            self.told[query] += [(held.batch, *sorted((row["sign"], row["key"]) for row in message["rows"]))]
        self.held[query] = max(held, self.held.get(query, held), key=lambda held: held.batch)
        self.heard.set()

    def mark(self, space, text):
        message = json.loads(text)
        for query in self.begun - set(message["without"]):
            told = ResumePoint(message["epoch"], message["batch"])
            self.held[query] = max(told, self.held[query], key=lambda held: held.batch)
        self.heard.set()

    def waiting(self):
        return 0, 0.0

    def broadcast(self, slot, text):
        pass

    report = broadcast

    async def until(self, reached):
        """Wait until something holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not reached():
                await self.heard.wait()
                self.heard.clear()

    def reaches(self, batch):
        """Wait until all answers are held up to a batch."""
        return self.until(lambda: len(self.held) == len(QUERIES) and all(h.batch >= batch for h in self.held.values()))


async def visit(client, hub):
    """Subscribe a client to a hub, with what it holds; queries of which it holds the same in one message."""
    client.begun.clear()
    await hub.attach(client)
    for held in {client.held.get(query) for query in QUERIES}:
        await hub.subscribe(client, [q for q in QUERIES if client.held.get(q) == held], "json", held)


@pytest.fixture
def asked(engine):
    """Run the queries in the engine."""
    for query, plan in QUERIES.items():
        engine.log.send("register", query=query, revision=1, plan=plan)
    return engine


def wander(engine, chance):
    """Move some ships in or out."""
    places = (INSIDE, OUTSIDE, (100.0, 0.0), (12.0, 55.0))
    engine.move({f"ship {chance.randrange(20)}": chance.choice(places) for _ in range(5)})


async def batches(engine, count):
    """Wait until the engine has run some more batches."""
    async with asyncio.timeout(PATIENCE_S):
        end = engine.batches + count
        while engine.batches < end:
            await asyncio.sleep(0.005)


@pytest.mark.separate_seeds(*range(4))
async def test_a_client_that_roams_between_hubs_is_told_what_one_that_stays_is_told(asked, hubs, seed, monkeypatch):
    monkeypatch.setattr(logs, "RESULTS_KEPT", replace(logs.RESULTS_KEPT, most_ms=600_000))  # however slow the machine
    chance, steady, roaming = random.Random(seed), Client(), Client()
    await visit(steady, hubs[0])
    await visit(roaming, hubs[chance.randrange(2)])
    for client in (steady, roaming):
        await client.until(lambda client=client: len(client.held) == len(QUERIES))
    for _ in range(12):
        wander(asked, chance)
        if chance.random() < 0.5:
            await roaming.until(lambda: len(roaming.held) == len(QUERIES))
            (home,) = [hub for hub in hubs if roaming in hub.subscribers]
            await home.detach(roaming)
            for _ in range(chance.randrange(4)):
                wander(asked, chance)
                await batches(asked, 1)
            await visit(roaming, chance.choice(hubs))
        elif chance.random() < 0.7:
            await batches(asked, 1)
    wander(asked, chance)
    await batches(asked, 1)
    last = asked.engine.batch - 1
    await steady.reaches(last)
    await roaming.reaches(last)
    begun = {query: told[0][0] for query, told in roaming.told.items()}
    for query in QUERIES:
        since = max(begun[query], steady.told[query][0][0])
        assert [told for told in roaming.told[query] if told[0] > since] == [
            told for told in steady.told[query] if told[0] > since
        ]
    assert roaming.kinds.count("answer.snapshot") == len(QUERIES)
    assert "answer.resumed" in roaming.kinds


async def test_an_answer_that_is_subscribed_before_the_engine_knows_its_query_begins_with_what_is_in_it(engine, hubs):
    engine.move({"ship": INSIDE})
    client = Client()
    await hubs[0].attach(client)
    await hubs[0].subscribe(client, QUERIES, "json")
    await batches(engine, 2)
    assert not client.kinds
    for query, plan in QUERIES.items():
        engine.log.send("register", query=query, revision=1, plan=plan)
    await client.until(lambda: len(client.kinds) == len(QUERIES))
    assert client.kinds == ["answer.snapshot"] * len(QUERIES)
    ((_, *rows),) = client.told[1]
    assert rows == [("+", "ship")]


async def gone_on(hub, held, query=1):
    """Return the kinds of messages that a client gets who comes with what it holds, until its answer goes on."""
    client = Client()
    await hub.attach(client)
    await hub.subscribe(client, [query], "json", held)
    return client


def published(log, *numbers, epoch="e", key="a", sign=STAYED):
    """Publish whole batches in which one object stays in an answer."""
    for number in numbers:
        rows = [(1, key, sign, MOVED)]
        log.publish([fragment(number, 0, rows, epoch=epoch), fragment(number, 1, epoch=epoch)])


@pytest.mark.parametrize(
    ("held", "goes_on"),
    [
        (ResumePoint("e", 4), [5, 6, 7]),
        (ResumePoint("e", 6), [7]),
        (ResumePoint("e", 7), []),
        (ResumePoint("e", 2), None),  # batch 3 is gone
        (ResumePoint("e", 9), None),  # nobody said so
        (ResumePoint("d", 5), None),
    ],
)
async def test_an_answer_goes_on_where_the_log_reaches_back_to_and_begins_anew_elsewhere(log, hubs, held, goes_on):
    published(log, *range(4, 8))
    client = await gone_on(hubs[0], held)
    assert [batch for batch, *_ in client.told[1]] == (goes_on or [])
    assert client.kinds[:1] == ([] if goes_on is None else ["answer.resumed"])
    (subscription,) = hubs[0].subscriptions[1]
    assert (subscription.live, subscription.waiting) == (goes_on is not None, goes_on is None)
    published(log, 8)
    if goes_on is not None:
        await client.until(lambda: client.told[1] and client.told[1][-1][0] == 8)
        assert [batch for batch, *_ in client.told[1]] == [*goes_on, 8]


async def test_an_answer_of_another_life_of_redis_begins_anew(log, hubs, redis_client):
    name_life(redis_client, "first")
    published(log, *range(4, 8))
    told = await gone_on(hubs[0], ResumePoint("e.first", 6))
    assert told.kinds == ["answer.resumed", "answer.change"]
    name_life(redis_client, "second")  # after a power cut, other batches may have these numbers
    assert (await gone_on(hubs[1], ResumePoint("e.first", 6))).kinds == []
    assert (await gone_on(hubs[1], ResumePoint("e.second", 6))).kinds == ["answer.resumed", "answer.change"]


async def test_others_are_told_what_is_new_while_a_client_catches_up(log, hubs):
    """And the client is told of it after what it missed."""

    class Watching(Client):
        held_up, steady_first = (), False

        def deliver(self, subscription, text):
            if not self.kinds:
                published(log, 100)
            self.held_up += (hubs[0]._turn.locked(),)
            self.steady_first |= bool(steady.told[1]) and len(self.told[1]) < 99
            super().deliver(subscription, text)

    published(log, *range(100))
    steady, coming = await gone_on(hubs[0], ResumePoint("e", 99)), Watching()
    await hubs[0].attach(coming)
    await hubs[0].subscribe(coming, [1], "json", ResumePoint("e", 0))
    await steady.until(lambda: steady.told[1])
    await coming.until(lambda: len(coming.told[1]) == 100)
    assert [batch for batch, *_ in coming.told[1]] == list(range(1, 101))
    assert [batch for batch, *_ in steady.told[1]] == [100]
    assert not any(coming.held_up[:100])
    assert coming.steady_first


async def test_a_hub_that_starts_in_the_midst_of_a_batch_goes_on_with_it(log, hubs):
    published(log, 4, 5)
    log.publish([fragment(6, 1, [(1, "b", ENTERED, MOVED)])])
    client = await gone_on(hubs[0], ResumePoint("e", 5))
    log.publish([fragment(6, 0, [(1, "a", LEFT, MOVED)])])
    published(log, 7)
    await client.until(lambda: len(client.told[1]) == 2)
    assert client.told[1] == [(6, ("+", "b"), ("-", "a")), (7, ("~", "a"))]
    assert client.kinds == ["answer.resumed", "answer.change", "answer.change"]


async def test_a_client_ahead_of_the_hub_is_not_told_twice(log, hubs, monkeypatch):
    """It comes from a hub that had read on."""
    published(log, 4, 5)
    await gone_on(hubs[0], None)
    async with hubs[0]._turn:
        published(log, 6, 7)
        client = Client()
        coming = asyncio.create_task(hubs[0].subscribe(client, [1], "json", ResumePoint("e", 6)))
    await coming
    await client.until(lambda: client.told[1])
    assert [batch for batch, *_ in client.told[1]] == [7]


async def test_batches_that_were_repeated_are_told_once(log, hubs):
    published(log, 4, 5, 5, 6, 6)
    client = await gone_on(hubs[0], ResumePoint("e", 4))
    assert [batch for batch, *_ in client.told[1]] == [5, 6]


async def test_what_a_client_holds_is_told_without_the_answers_that_are_behind(log, hubs):
    published(log, 4, 5)
    client = await gone_on(hubs[0], ResumePoint("e", 5))
    await hubs[0].subscribe(client, [2], "json")
    published(log, 6)
    published(log, 7, key="b", sign=ENTERED)
    await client.until(lambda: client.held.get(1) == ResumePoint("e", 7))
    hubs[0]._marked = None
    await hubs[0].mark()
    assert client.held == {1: ResumePoint("e", 7)}


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
async def test_a_connection_that_comes_back_says_what_it_holds(engine, streams, user, connect):
    engine.move({"near": INSIDE})
    async with connect(user) as socket:
        number = await registered(socket)
        await socket.tell("query.subscribe", query=number)
        snapshot = await socket.hear("answer.snapshot", query=number)
        mark = await socket.hear("answer.held", space="earth")
        assert mark["epoch"] == snapshot["epoch"] and mark["batch"] >= snapshot["batch"] and mark["without"] == []
    engine.move({"near": OUTSIDE})
    await batches(engine, 1)
    engine.move({"far": INSIDE})
    await batches(engine, 1)
    async with connect(user) as socket:
        held = {"epoch": mark["epoch"], "batch": mark["batch"]}
        await socket.tell("query.subscribe", queries=[number], held=held)
        assert (await socket.hear("answer.resumed", query=number))["batch"] == mark["batch"]
        changes = [(await socket.hear("answer.change", query=number))["rows"] for _ in range(2)]
        assert [[(row["sign"], row["key"]) for row in rows] for rows in changes] == [[("-", "near")], [("+", "far")]]
        await socket.silence("answer.snapshot")
