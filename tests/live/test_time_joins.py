"""Ships of a recording joined over event time, through the whole of Lookout: pairs equal pandas and GeoPandas."""

import asyncio

import pytest

from bench.live import wait_for
from bench.ports import free_port
from tests.decoders.feeds import read_recording
from tests.live.truth import decoded
from tests.servers.test_time_joins_of_recordings import near, reports

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

MINUTE_US = 60_000_000
AIS = {"kind": "ais"}
# No report of the recording is later, and the last window is told soon after its end.
TIMES = {"lateness_s": 5, "idle_s": 2}
JOIN = {"stream": "danes", "predicate": "dwithin", "distance": 50}
PLANS = {
    "window": {"stream": "danes", "kind": "window_join", "window_s": 60, "join": JOIN, **TIMES},
    "interval": {"stream": "danes", "kind": "interval_join", "lower_s": -10, "upper_s": 10, "join": JOIN, **TIMES},
}


def expected(feed):
    """Return the pairs of reports by plan, each as the set of its two reports."""
    known = reports(decoded(AIS, "danes", feed))
    pairs = near(known, known, 50)
    pairs = pairs[pairs.key != pairs.partner]
    same = pairs.time_us // MINUTE_US == pairs.partner_time_us // MINUTE_US
    close = (pairs.time_us - pairs.partner_time_us).abs() <= 10_000_000
    return {"window": unordered(pairs[same]), "interval": unordered(pairs[close])}


def unordered(pairs):
    columns = (pairs.key, pairs.time_us, pairs.partner, pairs.partner_time_us)
    return {frozenset({(key, at), (other, then)}) for key, at, other, then in zip(*columns, strict=True)}


def told(rows):
    """Return the pairs of rows; each must be there once."""
    pairs = [
        frozenset({(row["key"], row["time_us"]), (row["partner"]["key"], row["partner"]["time_us"])}) for row in rows
    ]
    assert len(pairs) == len(set(pairs))
    assert all(row["sign"] == "+" for row in rows)
    return set(pairs)


@pytest.mark.long
async def test_ships_that_met_in_a_minute_or_within_ten_seconds_are_told_once(live, shared_data):
    feed = read_recording(shared_data / "ais" / "ais-sample.txt.gz")
    truth, port = expected(feed), free_port()
    live.add_stream("danes", {"kind": "tcp_listener", "port": port}, AIS)
    async with live.monitor("ann") as monitor:
        queries = {name: await monitor.register(name, plan) for name, plan in PLANS.items()}
        await monitor.running(*queries.values())
        wait_for(lambda: live.health("danes").get("state") == "running", lambda: live.health("danes"))
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(feed)
        await writer.drain()
        writer.close()

        def wrong():
            found = {name: told(monitor.told[query]) for name, query in queries.items()}
            return {name: (len(found[name] - pairs), len(pairs - found[name])) for name, pairs in truth.items()}

        await monitor.until(lambda: set(wrong().values()) == {(0, 0)}, wrong)
        print({name: len(pairs) for name, pairs in truth.items()}, "pairs, 0 differences")
        assert min(map(len, truth.values())) > 1_000
        windows = {row["window_us"] % MINUTE_US for row in monitor.told[queries["window"]]}
        assert windows == {0}
        assert all(not monitor.statuses[query].get("warnings") for query in queries.values())
        for query in queries.values():
            await monitor.request("query.cancel", query=query)
    live.remove_stream("danes")
