"""Wrong input to the whole of Lookout: a clear error, or a count; nothing changes, and nobody else notices."""

import asyncio
import contextlib
import json
import socket

import numpy as np
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from bench.live import PATIENCE_S, wait_for
from bench.ports import free_port
from tests.live.monitor import Refusal
from tests.live.swarm import DECODER, Swarm
from tests.live.truth import answer, differences

pytestmark = pytest.mark.spark

BOX = {"lo": [-1, -1], "hi": [1, 1]}
GARBAGE_BYTES = 1_000_000
DATAGRAM_BYTES = 1_000
FLOODED = 1008
WRONG_PLANS = {
    "unknown keys": ({"colour": "red", "compare": BOX}, "plan", "colour"),
    "lo above hi": ({"compare": {"lo": [13, 55], "hi": [11, 57]}}, "plan", "lo must not exceed hi; got 13"),
    "outside the space": ({"compare": {"lo": [11, 91], "hi": [13, 95]}}, "plan", "latitude"),
    "no box": ({}, "plan", "needs an area or a compare box"),
    "unknown stream": ({"stream": "submarines", "compare": BOX}, "stream", "got 'submarines'"),
    "filter": ({"compare": BOX, "where": "speed_mps >"}, "plan", "where: a value is missing at the end"),
}


@pytest.fixture
def swarm(live):
    """Return a swarm with a stream that listens on TCP for it; the stream is removed after the test."""
    port = free_port()
    live.add_stream("swarm", {"kind": "tcp_listener", "port": port}, DECODER)
    wait_for(lambda: live.health("swarm").get("state") == "running", "the stream listens")
    yield Swarm("swarm", port)
    live.remove_stream("swarm")


async def test_a_wrong_plan_gets_a_clear_error_and_changes_nothing(live, swarm):
    async with live.monitor("ann") as monitor:
        query = await monitor.register("right", {"stream": "swarm", "compare": BOX})
        await monitor.running(query)
        before, statuses = live.queries(), dict(monitor.statuses)
        for name, (plan, code, words) in WRONG_PLANS.items():
            for kind, fields in (("query.register", {"name": name}), ("query.edit", {"query": query})):
                with pytest.raises(Refusal) as refused:
                    await monitor.request(kind, plan={"stream": "swarm", **plan}, **fields)
                assert refused.value.code == code, name
                assert words in refused.value.message, name
        with pytest.raises(Refusal) as refused:
            await monitor.view(["swarm"], {"lo": [11, 91], "hi": [13, 95]})
        assert refused.value.code == "plan"
        await monitor.snapshot(query)
        assert live.queries() == before
        assert monitor.statuses == statuses
        await monitor.request("query.cancel", query=query)


async def test_not_a_number_is_refused(live, swarm):
    async with live.monitor("ann") as monitor:
        before = live.queries()
        plan = {"stream": "swarm", "compare": {"lo": [float("nan"), 55], "hi": [13, 57]}}
        assert "NaN" in json.dumps(plan)
        await monitor.send({"type": "query.register", "name": "not a number", "plan": plan})
        await monitor.until(lambda: monitor.errors, "an error")
        assert [error["code"] for error in monitor.errors] == ["json"]
        assert live.queries() == before


async def test_garbage_on_a_tcp_listener_is_counted_and_the_next_client_is_heard(live, swarm):
    async with live.monitor("ann") as monitor:
        query = await monitor.register("swarm", {"stream": "swarm", "compare": BOX})
        await monitor.running(query)
        garbage = np.random.default_rng(1).bytes(GARBAGE_BYTES)
        _, writer = await asyncio.open_connection("127.0.0.1", swarm.port)
        writer.write(garbage)
        async with swarm.moving():
            await monitor.until(lambda: monitor.answers.get(query), "lines of another client")
        # The same client, after its garbage.
        writer.write(b"\n" + b"".join(swarm.step()))
        writer.close()
        await writer.wait_closed()
        expected = answer(swarm.objects(), {"stream": "swarm", "compare": BOX})
        await monitor.until(lambda: not differences(monitor.answers.get(query), expected), "the valid lines")
        lines = sum(1 for line in garbage.split(b"\n") if line.strip())
        wait_for(lambda: live.health("swarm")["malformed"] == {"not JSON": lines}, lambda: live.health("swarm"))
        health = live.health("swarm")
        assert health["bytes"] > GARBAGE_BYTES
        assert (health["state"], health["error"]) == ("running", None)
        assert health["last_malformed"]["not JSON"]["sample"]
        assert monitor.faults == []
        await monitor.request("query.cancel", query=query)


async def test_garbage_on_a_udp_listener_is_counted_and_valid_lines_arrive(live):
    port = free_port()
    live.add_stream("datagrams", {"kind": "udp_listener", "port": port}, DECODER)
    wait_for(lambda: live.health("datagrams").get("state") == "running", "the stream listens")
    swarm, garbage = Swarm("datagrams", port), np.random.default_rng(2).bytes(GARBAGE_BYTES)
    async with live.monitor("ann") as monitor:
        query = await monitor.register("datagrams", {"stream": "datagrams", "compare": BOX})
        await monitor.running(query)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for start in range(0, GARBAGE_BYTES, DATAGRAM_BYTES):
                sender.sendto(garbage[start : start + DATAGRAM_BYTES], ("127.0.0.1", port))
            wait_for(lambda: live.health("datagrams")["malformed"], "garbage is counted")
            for line in swarm.step():
                sender.sendto(line, ("127.0.0.1", port))
        expected = answer(swarm.objects(), {"stream": "datagrams", "compare": BOX})
        await monitor.until(lambda: not differences(monitor.answers.get(query), expected), "the valid lines")
        health = live.health("datagrams")
        assert (health["state"], health["error"]) == ("running", None)
        assert health["malformed"]["not JSON"] > 100
        await monitor.request("query.cancel", query=query)
    live.remove_stream("datagrams")


async def test_a_flood_is_refused_and_ended_while_others_go_on(live, swarm):
    headers = {"Authorization": f"Token {live.token('eve')}"}
    plan = {"stream": "swarm", "compare": BOX}
    before = live.queries()
    async with live.monitor("ann") as monitor, swarm.moving():
        query = await monitor.register("calm", plan)
        codes = []
        async with (
            asyncio.timeout(PATIENCE_S),
            connect(monitor.url, additional_headers=headers, close_timeout=1) as flood,
        ):
            with contextlib.suppress(ConnectionClosed):
                for _ in range(5_000):
                    await flood.send('{"type": "query.snapshot", "query": 0}')
            with contextlib.suppress(ConnectionClosed):
                async for frame in flood:
                    codes.append(json.loads(frame).get("code"))
        assert flood.close_code == FLOODED
        assert "rate" in codes
        await monitor.running(query)
        changes = monitor.changes
        await monitor.until(lambda: monitor.changes > changes, "changes go on")
    async with live.monitor("ann") as monitor:
        await monitor.subscribe(query)
        expected = answer(swarm.objects(), plan)
        await monitor.until(lambda: not differences(monitor.answers.get(query), expected), "the whole answer")
        assert live.queries().keys() == before.keys() | {query}
        await monitor.request("query.cancel", query=query)
