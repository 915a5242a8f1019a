"""One element that cannot be told is the trouble of the queries that hold it; everybody else is served."""

import asyncio
import time

import pyarrow as pa
import pytest
from asgiref.sync import sync_to_async

from bench.live import PATIENCE_S
from streaming.elements import point_elements
from streaming.spaces import EARTH
from tests.webapp.conftest import PLAN
from tests.webapp.test_answers import INSIDE
from webapp.models import Event, Query
from webapp.recording import recording

pytestmark = pytest.mark.django_db(transaction=True)


def poison(engine, key, text):
    """Tell of an object whose properties are a text."""
    now_us = time.time_ns() // 1000
    table = point_elements("ships", [key], [now_us], [INSIDE], [None], EARTH)
    column = table.schema.get_field_index("properties")
    engine.log.ingest(table.set_column(column, "properties", pa.array([text])), "ships", now_us)


async def running(socket, name, plan):
    await socket.tell("query.register", name=name, plan=plan)
    number = (await socket.hear("query.status", status="running"))["query"]
    await socket.tell("query.subscribe", query=number)
    await socket.hear("answer.snapshot", query=number)
    return number


async def test_an_element_that_is_no_json_is_told_on_its_query_and_nobody_else_waits(
    engine, redis_client, streams, user, connect
):
    async with connect(user) as socket:
        all_ships = await running(socket, "All", PLAN)
        anna = await running(socket, "Anna", PLAN | {"filters": [{"key": "anna"}]})
        poison(engine, "bad", '{"speed_mps": Infinity}')
        engine.move({"anna": INSIDE})
        changes = {}
        warned = ""
        async with asyncio.timeout(PATIENCE_S):
            while not (warned and "anna" in changes.get(anna, {}) and len(changes.get(all_ships, {})) == 2):
                message = await socket.hear_any()
                if message["type"] == "answer.change":
                    changes.setdefault(message["query"], {}).update(
                        {r["key"]: r["properties"] for r in message["rows"]}
                    )
                elif message["type"] == "query.status" and message["warnings"]:
                    assert message["query"] == all_ships
                    (warned,) = (one["warning"] for one in message["warnings"])
        assert changes[all_ships]["bad"] == {}
        assert "those of 'bad' are told as empty" in warned
        async with asyncio.timeout(PATIENCE_S):
            while await Event.objects.acount() < 3:
                await sync_to_async(recording.record_events)(redis_client, EARTH)
        assert (await Query.objects.aget(pk=anna)).warnings == {}
