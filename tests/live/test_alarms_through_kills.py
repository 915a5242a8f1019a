"""Incidents from reports of objects to a receiver of webhooks, while the worker, Redis and the receiver are killed."""

import asyncio
import time

import orjson
import pytest

from bench.live import wait_for
from bench.ports import free_port
from tests.live.swarm import DECODER
from tests.webapp.lasting_receiver import LastingReceiver

pytestmark = pytest.mark.spark

OBJECTS, AT_ONCE, EVERY_S = 1_000, 50, 1.0
# After so many steps these are killed; the receiver stays away for a step.
KILLS = {5: "worker", 10: "redis", 14: "receiver", 15: "worker", 18: "redis"}
BOX = {"lo": [-1, -1], "hi": [1, 1]}


def lines(numbers):
    """Return a report of each of some objects, inside the area."""
    now_ms = time.time_ns() // 1_000_000
    for number in numbers:
        place = {"type": "Point", "coordinates": [number / OBJECTS - 0.5, 0.5]}
        properties = {"id": f"o{number}", "time": now_ms, "speed_mps": 1.0}
        yield orjson.dumps({"type": "Feature", "geometry": place, "properties": properties}) + b"\n"


@pytest.mark.long
async def test_a_thousand_incidents_reach_a_receiver_once_whatever_is_killed(live, tmp_path, record_property):
    """More than a thousand a minute."""
    port = free_port()
    live.add_stream("alarming", {"kind": "tcp_listener", "port": port}, DECODER)
    wait_for(lambda: live.health("alarming").get("state") == "running", "the stream listens")
    with LastingReceiver(tmp_path) as receiver:
        async with live.monitor("ann") as monitor:
            plan = {"stream": "alarming", "compare": BOX}
            registered = await monitor.request("query.register", name="Inside", plan=plan, severity="critical")
            query = registered["query"]
            await monitor.subscribe(query)
            await monitor.running(query)
            live.run("subscribe_webhook", "ann", receiver.url)
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            began = time.monotonic()
            for step in range(OBJECTS // AT_ONCE):
                writer.writelines(lines(range(step * AT_ONCE, (step + 1) * AT_ONCE)))
                await writer.drain()
                match KILLS.get(step):
                    case "receiver":
                        receiver.die()
                    case str(program):
                        await asyncio.to_thread(live.kill, program)
                if KILLS.get(step - 1) == "receiver":
                    receiver.live()
                await asyncio.sleep(max(0.0, began + (step + 1) * EVERY_S - time.monotonic()))
            writer.close()

            def sent():
                return live.run("sent", query)

            def is_over():
                found = sent()
                return len(found["keys"]) == OBJECTS and found["open"] == 0

            await asyncio.to_thread(wait_for, is_over, lambda: str({n: v for n, v in sent().items() if n != "keys"}))
            record_property("seconds until all were sent", time.monotonic() - began)
            found = sent()
            assert sorted(found["objects"]) == sorted(f"o{number}" for number in range(OBJECTS))
            assert set(receiver.requests()) == set(found["keys"])
            print(f"{sum(receiver.requests().values()) - OBJECTS} of {OBJECTS} messages came twice")
            await monitor.request("query.cancel", query=query)
    live.clear()
