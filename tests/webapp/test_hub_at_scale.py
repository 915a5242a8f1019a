"""Many clients and many queries: work follows what changed and who comes, and no answer is wrong for it."""

import asyncio
import json
import random
from itertools import pairwise

import pytest

from streaming.results import ENTERED, MOVED, STAYED, VIEW_NUMBERS
from streaming.spaces import EARTH
from tests.webapp.test_hub import complete, fragment, whole_batch
from tests.webapp.test_shipping import Client, gone_on, published
from webapp.hub import AnswerSubscription, Hub, ResumePoint
from webapp.hub import hub as hub_module
from webapp.hub.assembly import Assembly
from webapp.hub.recent import RecentBatches
from webapp.hub.snapshot_requests import (
    LATE_S,
    PROMISED_ROWS,
    ROWS_UNDER_WAY,
    UNDER_WAY_S,
    USUAL_ROWS,
    SnapshotRequests,
)

CLIENTS, HELD, LAST = 60, 3, 99


class Counter:
    """A connection that counts what it gets."""

    owner = "ann"

    def __init__(self):
        self.frames = []

    def deliver(self, subscription, frame):
        self.frames.append((subscription.query, frame))


class Asked:
    """A link to an engine that is asked for snapshots."""

    def __init__(self):
        self.queries = []

    def ask_snapshot(self, query):
        self.queries.append(query)


def reads(client):
    """Return how often result logs were read backwards."""
    return client.info("commandstats").get("cmdstat_xrevrange", {"calls": 0})["calls"]


async def test_a_batch_that_changes_one_of_ten_thousand_watched_queries_does_work_for_one(monkeypatch):
    hub, told, encoded = Hub(EARTH), Counter(), []
    seen = [AnswerSubscription(told, query, "json", live=True) for query in range(10_000)]
    for subscription in seen:
        hub.subscriptions.add(subscription)
    encode, all_due = hub_module.encode, hub_module.all_due
    looked_at = []
    monkeypatch.setattr(hub_module, "all_due", lambda some, *more: looked_at.extend(some) or all_due(some, *more))
    monkeypatch.setattr(
        hub_module, "encode", lambda b, wanted, *more: encoded.extend(wanted) or encode(b, wanted, *more)
    )
    changes = [(7, "a", ENTERED, MOVED), (10_001, "a", ENTERED, MOVED)]
    await hub.distribute(whole_batch(fragment(0, 0, changes), fragment(0, 1)))
    assert [query for query, _ in told.frames] == [7]
    assert [want.query for want in encoded] == [7]
    assert looked_at == [seen[7]]


async def test_many_clients_that_come_back_at_once_read_the_log_once_and_each_batch_is_encoded_once(
    log,
    hubs,
    redis_client,
    monkeypatch,
):
    published(log, *range(LAST + 1))
    steady = await gone_on(hubs[0], ResumePoint("e", LAST))
    encoded, encode = [], hub_module.encode
    monkeypatch.setattr(
        hub_module, "encode", lambda b, wanted, *more: encoded.append(b.number) or encode(b, wanted, *more)
    )
    before, clients = reads(redis_client), [Client() for _ in range(CLIENTS)]
    for client in clients:
        await hubs[0].attach(client)
    held = [random.Random(number).randrange(HELD, LAST) for number in range(CLIENTS)]
    coming = zip(clients, held, strict=True)
    await asyncio.gather(*(hubs[0].subscribe(c, [1], "json", ResumePoint("e", batch)) for c, batch in coming))
    # 200 entries, 32 at a time: as if one client had come.
    assert reads(redis_client) - before <= 200 / 32 + 1
    assert len(encoded) == len(set(encoded))
    published(log, LAST + 1)
    for client, batch in zip(clients, held, strict=True):
        await client.until(lambda client=client: client.told[1] and client.told[1][-1][0] == LAST + 1)
        assert [number for number, *_ in client.told[1]] == list(range(batch + 1, LAST + 2))
        assert client.kinds[0] == "answer.resumed" and "answer.snapshot" not in client.kinds
    await steady.until(lambda: steady.told[1])


async def test_a_client_gets_the_batches_that_the_hub_still_has_without_a_look_into_the_log(log, hubs, redis_client):
    published(log, 0)
    await gone_on(hubs[0], ResumePoint("e", 0))
    published(log, *range(1, 9))
    steady = hubs[0].subscribers.copy().pop()
    await steady.until(lambda: steady.told[1] and steady.told[1][-1][0] == 8)
    before = reads(redis_client)
    redis_client.xtrim(log.names.results, 0)
    client = await gone_on(hubs[0], ResumePoint("e", 2))
    assert [number for number, *_ in client.told[1]] == list(range(3, 9))
    assert reads(redis_client) == before


@pytest.mark.parametrize("kept_bytes", [1, 20_000, 60_000])
async def test_an_answer_whose_batches_are_not_all_kept_begins_anew_and_has_no_hole(log, hubs, kept_bytes):
    """Whether the hub has dropped the batches itself or has no room for those of the log."""
    published(log, *range(10))
    hubs[0].recent.most_bytes = kept_bytes
    clients = [await gone_on(hubs[0], ResumePoint("e", held)) for held in (9, 8, 4, 0)]
    published(log, *range(10, 20))
    await clients[0].until(lambda: clients[0].told[1] and clients[0].told[1][-1][0] == 19)
    clients += [await gone_on(hubs[0], ResumePoint("e", held)) for held in (18, 14, 9, 0)]
    for client, held in zip(clients, (9, 8, 4, 0, 18, 14, 9, 0), strict=True):
        numbers = [number for number, *_ in client.told[1]]
        assert numbers in ([], list(range(held + 1, 20)))
        assert bool(numbers) == (client.kinds[:1] == ["answer.resumed"])
    recent = hubs[0].recent
    assert recent.bytes <= kept_bytes or len(recent.after("e", 18)) == 1
    assert (await clients_ended(hubs[0])) == 0


async def clients_ended(hub):
    """Detach all clients; return how many subscriptions are left."""
    for subscriber in list(hub.subscribers):
        await hub.detach(subscriber)
    return len(hub.subscriptions)


def test_a_batch_that_does_not_follow_is_not_kept_with_those_before_it():
    recent, assembly = RecentBatches(None), Assembly()
    for number in (4, 5, 7, 8):
        recent.add(complete(assembly, number))
    assert [kept.batch.number for kept in recent.after("e", 6)] == [7, 8]
    assert recent.after("e", 5) is None
    recent.add(complete(assembly, 0, epoch="f"))
    assert recent.after("e", 7) is None
    assert [kept.batch.number for kept in recent.after("f", -1)] == [0]


async def test_who_gets_few_rows_has_them_before_those_of_others_are_encoded(monkeypatch):
    hub, greedy, modest, order = Hub(EARTH), Counter(), Counter(), []
    modest.owner, encode = "bob", hub_module.encode
    for number, told in enumerate([greedy, greedy, modest], 1):
        hub.subscriptions.add(AnswerSubscription(told, number, "json", live=True))

    def encoded(batch, wanted, *more):
        order.append((sorted(want.query for want in wanted), len(modest.frames)))
        return encode(batch, wanted, *more)

    monkeypatch.setattr(hub_module, "encode", encoded)
    monkeypatch.setattr("webapp.hub.subscriptions.LIGHT", 3)
    rows = [(1, "a", ENTERED, MOVED), (1, "b", ENTERED, MOVED), (2, "a", ENTERED, MOVED), (2, "b", ENTERED, MOVED)]
    await hub.distribute(whole_batch(fragment(0, 0, rows), fragment(0, 1, [(3, "a", ENTERED, MOVED)])))
    assert order == [([3], 0), ([1, 2], 1)]
    assert [len(told.frames) for told in (greedy, modest)] == [2, 1]


def test_a_snapshot_for_which_many_wait_is_asked_for_once_until_it_has_come():
    link = Asked()
    requests = SnapshotRequests(link, lambda _: "ann")
    for _ in range(3):
        requests.ask([1, 2])
    assert link.queries == [1, 2]
    requests.settle({1: 0})
    requests.ask([1, 2])
    assert link.queries == [1, 2, 1]
    requests.ask([2], again=True)
    assert link.queries == [1, 2, 1, 2]


def test_requests_for_snapshots_are_paced_and_views_do_not_wait():
    link, gone = Asked(), {3}
    requests = SnapshotRequests(link, lambda query: None if query in gone else "ann", most=2)
    requests.ask(range(6))
    requests.ask([VIEW_NUMBERS + 1])
    assert link.queries == [0, 1, VIEW_NUMBERS + 1]
    requests.settle({0: 0})
    requests.settle({1: 0})
    assert link.queries == [0, 1, VIEW_NUMBERS + 1, 2, 4]
    requests.settle({2: 0, 4: 0})
    assert link.queries == [0, 1, VIEW_NUMBERS + 1, 2, 4, 5]


def test_the_first_answers_of_a_user_come_in_parts_and_nobody_else_waits_for_them(monkeypatch):
    link, now = Asked(), [0.0]
    monkeypatch.setattr("webapp.hub.snapshot_requests.time.monotonic", lambda: now[0])
    owners = dict.fromkeys(range(VIEW_NUMBERS, VIEW_NUMBERS + 100), "greedy") | {VIEW_NUMBERS + 200: "other"}
    requests = SnapshotRequests(link, owners.get)
    requests.ask([query for query, owner in owners.items() if owner == "greedy"])
    # Nothing is known of this user's answers: as many are asked for as have room if they are usual.
    assert len(link.queries) == ROWS_UNDER_WAY // USUAL_ROWS
    requests.ask([VIEW_NUMBERS + 200])
    assert owners[link.queries[-1]] == "other"
    parts, done, size = [], {VIEW_NUMBERS + 200}, ROWS_UNDER_WAY // 4
    while waiting := set(link.queries) - done:
        parts.append(waiting)
        done |= waiting
        requests.settle(dict.fromkeys(waiting, size))
    assert [len(part) for part in parts[1:]] == [4] * 24 and sum(map(len, parts)) == 100


def test_while_batches_come_late_less_is_asked_for_at_once():
    link, done = Asked(), set()
    requests = SnapshotRequests(link, lambda _: "ann")
    requests.ask(range(200))

    def under_way(lag_s):
        """Return how many requests are under way after those so far were answered by a batch that was so late."""
        waiting = set(link.queries) - done
        done.update(waiting)
        requests.pace(lag_s)
        requests.settle(dict.fromkeys(waiting, USUAL_ROWS))
        return len(set(link.queries) - done)

    late_s = 2 * LATE_S
    # A part is promised, for so many rows: these come two at a time.
    promised = [2] * (PROMISED_ROWS // USUAL_ROWS // 2 - 3)
    lags = [LATE_S, *[late_s] * len(promised), late_s, late_s]
    assert [under_way(lag_s) for lag_s in lags] == [4, *promised, 1, 1]
    assert [under_way(0.0) for _ in range(16)][-1] == 4


# How many rows the answers of a page have.
PAGES = {"small": [20] * 167, "usual": [200] * 167, "of all sizes": [*range(0, 501, 3)], "a few large": [2, 1500] * 30}


@pytest.mark.parametrize("sizes", PAGES.values(), ids=PAGES)
def test_the_answers_of_a_page_come_within_ten_seconds_from_an_engine_that_is_late(sizes, monkeypatch):
    link, now = Asked(), [0.0]
    monkeypatch.setattr("webapp.hub.snapshot_requests.time.monotonic", lambda: now[0])
    requests = SnapshotRequests(link, lambda _: "ann")
    for _ in range(9):
        requests.pace(2 * LATE_S)
    requests.ask(range(len(sizes)))
    # A snapshot comes a second after it was asked for.
    came: list[int] = []
    while len(came) < len(sizes):
        asked = link.queries[len(came) :]
        now[0] += 1
        requests.pace(2 * LATE_S)
        requests.settle({query: sizes[query] for query in asked})
        came += asked
    assert now[0] <= 10 and came == [*range(len(sizes))]


def test_each_user_has_a_first_answer_under_way_however_large_they_are(monkeypatch):
    link, now, owners = Asked(), [0.0], {}
    monkeypatch.setattr("webapp.hub.snapshot_requests.time.monotonic", lambda: now[0])
    requests = SnapshotRequests(link, owners.get)
    # With those of many users, each has one under way at least.
    several = range(VIEW_NUMBERS + 300, VIEW_NUMBERS + 400)
    owners |= {query: query % 25 for query in several}
    requests.ask(several)
    assert {owners[query] for query in link.queries if query in several} == set(range(25))
    assert len([query for query in link.queries if query in several]) == 25
    requests.settle(dict.fromkeys(several, 10))
    # One that is larger than all the room comes alone. What never comes makes room again.
    owners |= dict.fromkeys(range(VIEW_NUMBERS + 200, VIEW_NUMBERS + 203), "other")
    requests.ask([VIEW_NUMBERS + 200])
    requests.settle({VIEW_NUMBERS + 200: 10 * ROWS_UNDER_WAY})
    requests.ask([VIEW_NUMBERS + 201, VIEW_NUMBERS + 202])
    assert link.queries[-1] == VIEW_NUMBERS + 201
    now[0] += 2 * UNDER_WAY_S
    requests.send()
    assert link.queries[-1] == VIEW_NUMBERS + 202


def test_a_snapshot_that_does_not_come_is_asked_for_again_with_growing_patience(monkeypatch):
    link, now = Asked(), [0.0]
    monkeypatch.setattr("webapp.hub.snapshot_requests.time.monotonic", lambda: now[0])
    requests = SnapshotRequests(link, lambda _: "ann")
    requests.ask([1])
    asked_at = [0.0]
    while now[0] < 60:
        now[0] += 0.5
        before = len(link.queries)
        requests.remind()
        asked_at += [now[0]] * (len(link.queries) - before)
    assert [later - at for at, later in pairwise(asked_at)] == [2.5, 4.5, 8.5, 16.5]


async def test_the_subscriptions_of_a_connection_end_with_it_and_those_of_others_stay():
    hub, one, other = Hub(EARTH), Counter(), Counter()
    for told, queries in ((one, (1, 2)), (other, (2, 3))):
        for query in queries:
            hub.subscriptions.add(AnswerSubscription(told, query, "json", live=True))
    mine = [hub.subscriptions.find(one, query) for query in (1, 2)]
    await hub.detach(one)
    assert all(subscription.closed for subscription in mine)
    assert sorted(hub.subscriptions) == [2, 3]
    changes = [(2, "a", STAYED, MOVED)]
    await hub.distribute(whole_batch(fragment(0, 0, changes), fragment(0, 1)))
    assert not one.frames
    assert [(query, json.loads(frame)["batch"]) for query, frame in other.frames] == [(2, 0)]
