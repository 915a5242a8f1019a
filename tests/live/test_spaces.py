"""A space that is added while Lookout runs: its engine, a stream, a query, events; and its end."""

import asyncio
import contextlib
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from bench.live import PATIENCE_S, wait_for
from bench.ports import free_port
from tests.docs.test_plans import recipes

pytestmark = pytest.mark.spark

PRICES = {"dimensions": [{"name": "price", "unit": "EUR", "lo": 0, "hi": 1_000_000}]}
SHARES = {
    "kind": "csv",
    "header": "name,time,price",
    "columns": {"key": "name", "time": "time"},
    "time_format": "epoch_ms",
    "coordinates": ["price"],
}


def engines(live) -> dict[str, psutil.Process]:
    """Return the engines of each space, by the names of their logs."""
    return {
        Path(f"/proc/{process.pid}/fd/1").resolve().stem: process
        for process in live.processes()
        if process.cmdline()[-1:] == ["streaming.engine"]
    }


def memory_mb(process) -> int:
    """Return the memory of a program and all that it started, what they share counted once."""
    total = 0
    for member in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # one that has just ended
            total += member.memory_full_info().pss
    return round(total / 1e6)


def quote(name, price):
    """Return a line of the feed."""
    return f"{name},{time.time_ns() // 1_000_000},{price}\n".encode()


@pytest.mark.long
async def test_a_space_added_to_a_running_lookout_answers_the_range_query_of_a_share_above_a_price(
    live, record_property
):
    before = engines(live)
    assert set(before) == {"engine", "standby"}
    async with live.monitor("ann") as monitor:
        added_s = time.monotonic()
        live.run("add_space", "prices", PRICES)
        port = free_port()
        live.add_stream("shares", {"kind": "tcp_listener", "port": port}, SHARES, space_id="prices")
        await monitor.until(lambda: monitor.engines.get("prices", {}).get("alive"), live.words)
        record_property("engine_s", round(time.monotonic() - added_s, 1))
        # BBoxDB Streams (2022), section 5.5.1.
        (plan,) = recipes('Is the price of the share "Apple" above 100 EUR?')
        query = await monitor.register("Apple above 100", plan)
        await monitor.running(query)

        _, writer = await asyncio.open_connection("127.0.0.1", port)
        for price, inside in ((99.5, False), (100.0, True), (180.25, True), (99.0, False), (101.0, True)):
            writer.write(quote("Apple", price) + quote("Microsoft", 300 + price))
            await writer.drain()
            expected = {"Apple": [price, price]} if inside else {}
            await monitor.until(
                lambda expected=expected: (
                    expected
                    == {key: row["bounds"] for key, row in monitor.answers.get(query, {"": {"bounds": 0}}).items()}
                ),
                lambda: f"{monitor.answers.get(query)}, {live.health('shares')}",
            )
        writer.close()
        await monitor.until(lambda: monitor.engine.get("alive"), "the first engine")
        assert monitor.faults == []

        told = [("+", "Apple", [100.0, 100.0]), ("-", "Apple", [99.0, 99.0]), ("+", "Apple", [101.0, 101.0])]
        wait_for(
            lambda: live.run("events", query) == [list(event) for event in told], lambda: live.run("events", query)
        )

        live.token("root", staff=True)
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(live.login_link("root"), timeout=PATIENCE_S).close()
        with browser.open(f"{live.base_url}/admin/webapp/space/", timeout=PATIENCE_S) as page:
            row = page.read().decode().split("prices</a>")[1].split("</tr>")[0]
        assert 'alt="True"' in row

        now = engines(live)
        assert set(now) - {"standby", "standby-prices"} == {"engine", "engine-prices"}
        assert now["engine"].pid == before["engine"].pid
        assert (live.home / "engine" / "prices" / "space.json").exists()
        cost = memory_mb(now["engine-prices"])
        record_property("engine_mb", cost)
        print(f"\na second engine costs {cost} MB (the first one: {memory_mb(now['engine'])} MB)")

        await monitor.request("query.cancel", query=query)
        live.run("forget_query", query)
        live.remove_stream("shares")
        live.run("remove_space", "prices")
        wait_for(lambda: live.said("engine-prices ended"), live.words)
        assert set(engines(live)) == set(before)
