"""The way of one element through the whole of Lookout, as a trace of real spans in a collector."""

import asyncio
import time

import numpy as np
import pytest

from bench.live import PATIENCE_S
from bench.ports import free_port
from streaming.elements import key_hashes
from streaming.traces import numbers, trace_id
from tests.live.collector import RATIO

pytestmark = pytest.mark.spark

STREAM = "traced_ships"
CSV = {
    "kind": "csv",
    "header": "name,time,lon,lat",
    "columns": {"key": "name", "time": "time"},
    "time_format": "epoch_ms",
}
CSV["coordinates"] = ["lon", "lat"]
WAY = {
    "gateway.receive": "lookout-gateway",
    "gateway.write": "lookout-gateway",
    "engine.home": "lookout-engine",
    "engine.send": "lookout-engine",
    "engine.evaluate": "lookout-engine",
    "engine.publish": "lookout-engine",
    "web.distribute": "lookout-web",
    "web.send": "lookout-web",
}


def traced(time_ms, wanted):
    """Return the name of a ship whose element at a time is sampled or is not, and the trace that it would have."""
    names = [f"ship {n}" for n in range(20_000)]
    made = numbers(key_hashes(STREAM, names), np.full(len(names), 1000 * time_ms))
    place = int(np.flatnonzero((made < RATIO * 2**64) == wanted)[0])
    return names[place], f"{trace_id(int(made[place])):032x}"


async def test_all_stages_of_a_sampled_element_are_in_one_trace_each_after_the_one_before(live, collector):
    port = free_port()
    live.add_stream(STREAM, {"kind": "tcp_listener", "port": port}, CSV)
    async with live.monitor() as monitor:
        plan = {"stream": STREAM, "area": {"lo": [10, 50], "hi": [11, 51]}}
        query = await monitor.register("traced", plan)
        await monitor.running(query)
        await monitor.until(lambda: query in monitor.answers, "the first snapshot")
        time_ms = time.time_ns() // 1_000_000
        (ship, trace), (other, untraced) = traced(time_ms, True), traced(time_ms, False)
        began_ns = time.time_ns()
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            for name in (ship, other):
                writer.write(f"{name},{time_ms},10.5,50.5\n".encode())
            await writer.drain()
        await monitor.until(lambda: set(monitor.answers[query]) == {ship, other}, lambda: f"{monitor.answers}")
        answered_ns = time.time_ns()
        await monitor.until(
            lambda: {span.name for span in collector.trace(trace)} == WAY.keys(),
            lambda: f"{collector.trace(trace)}, {live.words()}",
        )
        writer.close()
        await monitor.request("query.cancel", query=query)
    spans = collector.trace(trace)
    assert [(span.name, span.service) for span in spans] == list(WAY.items())
    assert [span.before for span in spans] == ["", *(span.number for span in spans[:-1])]
    # The gateway's clock counts microseconds. The client may have the frame before the server knows that it is sent.
    assert began_ns // 1000 * 1000 <= spans[0].began_ns
    assert all(span.began_ns <= span.ended_ns for span in spans)
    assert spans[-1].began_ns < answered_ns
    assert {span.attributes["lookout.object"] for span in spans} == {ship}
    assert [span.attributes["lookout.stream"] for span in spans[:2]] == [STREAM] * 2
    assert len({span.attributes["lookout.batch"] for span in spans[2:]}) == 1
    assert len({span.attributes["lookout.region"] for span in spans[3:6]}) == 1
    assert [span.attributes["lookout.queries"] for span in spans[5:]] == [[query]] * 3
    assert collector.trace(untraced) == []
    live.remove_stream(STREAM)
