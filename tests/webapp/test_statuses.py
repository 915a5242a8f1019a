"""What a websocket client is told of many queries: all of them, and no more at once than it reads."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from tests.webapp.conftest import PLAN
from webapp.bus.control import Acknowledgement
from webapp.consumers.monitor import Monitor
from webapp.consumers.outbox import MAX_STATUSES
from webapp.models import Query
from webapp.recording import settling

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 5_000


def make_many(owner, **fields):
    """Save queries of one user; return their numbers."""
    rows = [Query(owner=owner, name=f"query {n}", plan=PLAN, stream="ships", **fields) for n in range(MANY)]
    return [query.pk for query in Query.objects.bulk_create(rows, batch_size=500)]


def settle(numbers):
    """Have the engine acknowledge queries, in chunks as a reconciliation does."""
    for start in range(0, len(numbers), settling.CHUNK):
        chunk = numbers[start : start + settling.CHUNK]
        settling.settle({number: Acknowledgement(number, 1, "", "e") for number in chunk})


async def heard_before(socket, number):
    """Return the statuses heard until the reply to a request, in their order."""
    await socket.tell("query.snapshot", id=number, query=number)
    statuses = []
    while (message := await socket.hear_any())["type"] != "error":
        statuses += [message] if message["type"] == "query.status" else []
    assert message["id"] == number
    return statuses


@pytest.mark.long
async def test_a_client_is_told_of_all_its_queries_before_its_first_request_is_answered(user, connect):
    numbers = await sync_to_async(make_many)(user)
    async with connect(user) as socket:
        statuses = await heard_before(socket, numbers[0])
    assert [status["query"] for status in statuses] == numbers
    assert {(status["status"], status["mine"], status["owner"]) for status in statuses} == {("pending", True, "ann")}


@pytest.mark.long
async def test_a_client_that_does_not_read_while_all_queries_change_is_told_how_they_stand_in_the_end(
    user, connect, monkeypatch
):
    gate, transmit, monitors = asyncio.Event(), Monitor._transmit, set()

    async def slowly(self, frame):
        monitors.add(self)
        await gate.wait()
        await transmit(self, frame)

    monkeypatch.setattr(Monitor, "_transmit", slowly)
    numbers = await sync_to_async(make_many)(user)
    async with connect(user) as socket:
        gate.set()
        await heard_before(socket, numbers[0])
        gate.clear()
        await sync_to_async(settle)(numbers)
        (monitor,) = monitors
        while len(monitor.outbox._items) < MAX_STATUSES:
            await asyncio.sleep(0)
        gate.set()
        last, reports = {}, 0
        while len(last) < MANY:
            status = await socket.hear("query.status")
            last[status["query"]], reports = status["status"], reports + 1
    assert list(last.values()) == ["running"] * MANY
    assert reports == MANY


@pytest.mark.long
async def test_a_query_that_others_see_no_longer_ends_for_them_however_late_they_read(
    user, other, connect, monkeypatch
):
    numbers = await sync_to_async(make_many)(user, shared=True)
    looked_up, look_up = asyncio.Event(), Monitor._look_up

    async def late(self, queries):
        await looked_up.wait()
        return await look_up(self, queries)

    monkeypatch.setattr(Monitor, "_look_up", late)
    async with connect(other) as socket:
        await socket.hear("hello")
        await Query.objects.filter(pk=numbers[-1]).aupdate(shared=False)
        looked_up.set()
        statuses = await heard_before(socket, numbers[0])
    *seen, last = statuses
    assert {(status["status"], status["mine"]) for status in seen} == {("pending", False)}
    assert (last["query"], last["status"], last["error"]) == (numbers[-1], "cancelled", "no longer shared")


@pytest.mark.long
async def test_a_connection_that_cannot_look_up_its_queries_ends(user, connect, monkeypatch):
    await sync_to_async(make_many)(user)

    async def broken(self, queries):
        raise RuntimeError("the database has gone")

    monkeypatch.setattr(Monitor, "_look_up", broken)
    async with connect(user) as socket:
        assert await socket.closed() == 1011
