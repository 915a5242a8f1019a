"""Which servers answer a query, and how many tuples each of them sent."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.live import PATIENCE_S
from streaming.elements import key_hashes, partition_of
from streaming.logs import Log
from streaming.operators.region_map import MOST_REGIONS, RegionMap
from streaming.plans import parse_plan
from streaming.results import ANSWER_NUMBERS, DROPPED, ENTERED, EXPIRED, LEFT, MOVED, PLACED, REGISTERED, STAYED
from streaming.spaces import EARTH
from tests.draws import examples
from tests.webapp.conftest import INSIDE, PLAN
from tests.webapp.test_answers import registered
from tests.webapp.test_hub import fragment
from webapp.hub import AnswerSubscription, Hub
from webapp.hub.assembly import Batch
from webapp.hub.reports import Reports
from webapp.hub.roles import TupleCounts
from webapp.hub.servers import FocusPlace, Servers, places_in

# Four regions of the earth: 0 and 1 in the west, south first, 2 and 3 in the east.
SERVERS = Servers(EARTH, 2, RegionMap.grid(EARTH, 4))
AROUND = {"stream": "ships", "around": {"key": "anna", "radius": 9260}}
FIXED = {"stream": "ships", "around": {"at": [24.5, 59.7], "radius": 9260}}
NEAREST = {"stream": "ships", "kind": "knn", "k": 3, "around": {"key": "anna"}}


@pytest.fixture(autouse=True)
def four_regions(settings):
    """Let the hub know as many regions as the batches of these tests have."""
    settings.REGIONS = 4


def place(lon, lat, reach=np.nan):
    return FocusPlace(np.array([lon, lat, -np.inf, lon, lat, np.inf]), reach)


def participants(document, at=None):
    return np.flatnonzero(SERVERS.participating(parse_plan(document), at)).tolist()


@pytest.mark.parametrize(
    ("document", "at", "regions"),
    [
        (PLAN, None, [3]),
        ({"stream": "ships", "compare": {"lo": [-10, -5], "hi": [10, 5]}}, None, [0, 1, 2, 3]),
        ({"stream": "ships", "compare": {"lo": [1, 1], "hi": [2, 2]}, "report": "outside"}, None, [0, 1, 2, 3]),
        ({"stream": "ships", "kind": "join", "join": {"layer": "a"}, "area": PLAN["compare"]}, None, [3]),
        (AROUND, place(24.5, 59.7), [3]),
        (AROUND, place(0.05, 59.7), [1, 3]),
        (AROUND, place(179.99, -0.01), [0, 1, 2, 3]),  # across the antimeridian and the equator
        (AROUND | {"area": {"lo": [0.1, 0], "hi": [90, 90]}}, place(0.05, 59.7), [3]),
        (AROUND, None, []),
        (FIXED, None, [3]),
        (FIXED | {"aggregate": {"function": "count"}}, None, [3]),
        (NEAREST, place(24.5, 0.1, reach=5_000), [3]),
        (NEAREST, place(24.5, 0.1, reach=50_000), [2, 3]),
        (NEAREST, place(24.5, 0.1), []),
    ],
)
def test_the_regions_that_a_range_meets_participate(document, at, regions):
    assert participants(document, at) == regions


def test_the_home_of_a_query_is_that_of_its_focal_objects_key_and_its_tracker_the_region_where_that_is():
    plan, (partition,) = parse_plan(AROUND), partition_of(key_hashes("ships", ["anna"]), 2)
    assert (SERVERS.home_of(plan), SERVERS.home_of(parse_plan(FIXED))) == (partition, None)
    assert [SERVERS.tracking(plan, place(*at)) for at in [(-10, -10), (-10, 10), (10, -10), (10, 10)]] == [0, 1, 2, 3]
    assert SERVERS.tracking(plan, None) is SERVERS.tracking(parse_plan(FIXED), place(1, 1)) is None


@pytest.mark.parametrize("regions", [1, 2, 4, 6, 7])
def test_a_region_is_told_by_the_corners_of_what_it_keeps(regions):
    servers, area = Servers(EARTH, 2, RegionMap.grid(EARTH, regions)), 0.0
    for region in range(regions):
        told = servers.describe(region)
        lo, hi = np.array(told["lo"]), np.array(told["hi"])
        middle = np.r_[(lo + hi) / 2, 0.0]
        assert servers.region_map.region_of(np.r_[middle, middle][None]).tolist() == [region] == [told["region"]]
        area += np.prod(hi - lo)
    assert area == pytest.approx(360 * 180)


def test_a_lost_focal_object_is_nowhere():
    rows = fragment(0, 0, [(1, "a", PLACED, MOVED), (2, "b", PLACED, EXPIRED), (3, "c", PLACED, DROPPED)]).changes
    found = places_in(rows)
    assert found[1].bounds[:2].tolist() == [1.0, 2.0] and found[2] is found[3] is None


class Listener:
    """Keeps the newest of what it is told of roles."""

    def __init__(self):
        self.slots = {}

    def waiting(self):
        return 0, 0.0

    def broadcast(self, slot, text):
        self.slots[slot] = text

    report = broadcast


def batch_of(number, *parts, sent=None):
    """Return a batch of four regions' rows, and of the assembler where it was sent partial tuples."""
    parts = [*parts, *[()] * (4 - len(parts))]
    fragments = [fragment(number, region, rows) for region, rows in enumerate(parts)]
    fragments += [] if sent is None else [replace(fragment(number, MOST_REGIONS), sent=sent)]
    return Batch("e", number, tuple(fragments))


def counted(hub, listener, query):
    return {
        r["region"]: (r["participates"], r["last_s"], r["sent"]) for r in hub.roles.roles(listener, query)["regions"]
    }


def subscribed(hub, listener, *queries):
    for query in queries:
        subscription = AnswerSubscription(listener, query, "json", sent_before=hub.roles.count_from(query))
        hub.subscriptions.add(subscription)


async def test_tuples_are_counted_by_region_from_the_subscription_on_and_by_the_last_second(project):
    hub, listener, late = Hub(EARTH), Listener(), Listener()
    subscribed(hub, listener, 1, 2)
    hub.roles.follow(listener, 1, parse_plan(PLAN))
    shared = batch_of(0, [(ANSWER_NUMBERS, "a", ENTERED, MOVED), (1, "b", STAYED, MOVED), (9, "c", ENTERED, MOVED)])
    fragments = [replace(part, shared={ANSWER_NUMBERS: (1, 2, 9)}) for part in shared.fragments]
    hub.roles.observe(replace(shared, fragments=tuple(fragments)))
    assert counted(hub, listener, 1) == {0: (False, 2, 2), 3: (True, 0, 0)}
    await hub.roles.publish()
    subscribed(hub, late, 1)
    hub.roles.observe(batch_of(1, [], [], [], [(1, "d", LEFT, MOVED)], sent={1: (0, 0, 0, 5)}))
    hub.roles.follow(late, 1, parse_plan(PLAN))
    assert counted(hub, listener, 1) == {0: (False, 0, 2), 3: (True, 6, 6)}
    assert counted(hub, late, 1) == {3: (True, 6, 6)}


async def test_who_follows_a_query_is_told_what_changes_and_who_does_not_is_told_nothing(project):
    hub, listener, other = Hub(EARTH), Listener(), Listener()
    for one in (listener, other):
        subscribed(hub, one, 1)
    hub.roles.follow(listener, 1, parse_plan(PLAN))
    assert list(listener.slots) == ["query.roles 1"]
    listener.slots.clear()
    await hub.roles.publish()
    assert listener.slots == {}
    hub.roles.observe(batch_of(0, [(1, "a", ENTERED, REGISTERED)]))
    await hub.roles.publish()
    assert '"batch":0' in listener.slots.pop("query.roles 1")
    hub.roles.leave(listener, 1)
    hub.roles.observe(batch_of(1, [(1, "a", LEFT, MOVED)]))
    await hub.roles.publish()
    assert listener.slots == other.slots == {}


async def test_the_stream_that_drives_a_join_over_event_time_is_told_and_whenever_that_changes(project, redis_client):
    hub, listener, log = Hub(EARTH), Listener(), Log(redis_client, "earth", 2)
    subscribed(hub, listener, 1, 2)
    hub.roles.follow(listener, 1, parse_plan(PLAN))
    hub.link.open()
    log.send("tick", now_us=0)
    reports = Reports(hub.link, listener.report, listener.broadcast, hub.roles.rescale, hub.roles.drive)
    for by_partner, driver in ((False, "buses"), (True, "trams")):
        log.report_regions({}, joins=[[1, 1, "buses", "trams", by_partner, True]])
        await reports.publish()
        await hub.roles.publish()
        assert f'"driving":"{driver}"' in listener.slots["query.roles 1"]
    assert hub.roles.roles(listener, 1)["driving"] == "trams"
    hub.roles.follow(listener, 2, parse_plan(PLAN))
    assert hub.roles.roles(listener, 2)["driving"] is None
    await hub.link.close()


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
async def test_a_moving_query_is_followed_from_region_to_region(engine, streams, user, connect):
    engine.move({"anna": INSIDE, "berta": (15.01, 55.0)})
    async with connect(user) as socket:
        number = await registered(socket, AROUND)
        await socket.tell("roles.subscribe", id=1, query=number)
        assert (await socket.hear("error", id=1))["code"] == "query"
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
        await socket.tell("roles.subscribe", query=number)

        async def until(name, value):
            async with asyncio.timeout(PATIENCE_S):
                while (roles := await socket.hear("query.roles"))[name] != value:
                    pass
            return roles

        roles = await until("tracking", 3)
        (partition,) = partition_of(key_hashes("ships", ["anna"]), 2)
        assert (roles["home"], roles["homes"], roles["region_count"]) == (partition, 2, 4)
        assert roles["assembler"].startswith("earth:")
        engine.move({"anna": (15.0, -55.0), "berta": (15.01, -55.0)})
        roles = await until("tracking", 2)
        assert [region["region"] for region in roles["regions"] if region["participates"]] == [2]
        await socket.tell("query.edit", query=number, plan=PLAN)
        assert (await until("home", None))["tracking"] is None
        await socket.tell("roles.unsubscribe", query=number)
        engine.move({"anna": (15.5, 55.0)})
        await socket.hear("answer.change", query=number)
        await socket.silence("query.roles", seconds=1.5)


@examples(100)
@given(st.lists(st.tuples(st.sampled_from(["start", "stop", "add", "tick"]), st.integers(0, 6), st.integers(0, 9))))
def test_tuples_are_counted_as_a_dictionary_counts_them(steps):
    counts, known, before = TupleCounts(2), {}, {}
    for step, query, number in steps:
        if step == "start":
            counts.start(query)
            known.setdefault(query, np.zeros(2, dtype=np.int64))
        elif step == "stop" and query in known:
            counts.stop(query)
            known.pop(query), before.pop(query, None)
        elif step == "add":
            counts.add([query, 6, query], np.array([[number, 0], [1, 2], [0, number]]))
            for told, more in ((query, (number, number)), (6, (1, 2))):
                if told in known:
                    known[told] += more
        elif step == "tick":
            counts.tick()
            before = {told: total.copy() for told, total in known.items()}
        assert counts.queries == known.keys()
        for told, total in known.items():
            assert counts.total(told).tolist() == total.tolist()
            assert counts.since_tick(told).tolist() == (total - before.get(told, 0)).tolist()
