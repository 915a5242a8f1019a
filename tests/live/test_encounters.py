"""Encounters through the whole of Lookout: the recipe of the documents, and ships of a recording."""

import asyncio
import json
import time

import pandas
import pytest

from bench.live import wait_for
from bench.ports import free_port
from tests.decoders.feeds import read_recording
from tests.docs.test_plans import recipes
from tests.live.swarm import DECODER
from tests.live.truth import decoded
from tests.servers.test_encounters_of_recordings import expected
from tests.servers.test_time_joins_of_recordings import reports

pytestmark = pytest.mark.spark

AIS = {"kind": "ais"}
# No report of the recording is later. After its end, event time goes on with the clock, until all objects are silent.
TIMES = {"lateness_s": 5, "idle_s": 2, "for_s": 10, "gap_s": 20}
COLUMNS = ["key", "partner", "since_us", "until_us"]

METRE_DEG = 1 / 111_320  # of latitude
# Near the point where four regions meet; to be exactly at 0, 0 is to have no position.
SEA, PORT = (1e-6, 0.0), (1.0, 0.0)
# Of so many ships there is one for each home server.
OTHERS = {f"other{number}": (20.0 + number, 0.0) for number in range(16)}


def beside(place, metres):
    """Return a place so many metres to the north."""
    return place[0], place[1] + metres * METRE_DEG


def lines(places, time_s, speed_mps=0.5):
    """Return GeoJSON lines of objects that reported at a time."""
    for key, place in places.items():
        point = {"type": "Point", "coordinates": place}
        properties = {"id": key, "time": round(1000 * time_s), "speed_mps": speed_mps}
        yield json.dumps({"type": "Feature", "geometry": point, "properties": properties}).encode() + b"\n"


async def test_two_ships_that_meet_at_sea_are_told_and_two_in_port_are_not(live, tmp_path):
    ports = [{"type": "Feature", "geometry": {"type": "Point", "coordinates": PORT}, "properties": {"key": "port"}}]
    path = tmp_path / "ports.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": ports}))
    port, title = free_port(), "Do two ships meet at sea?"
    live.add_stream("ships", {"kind": "tcp_listener", "port": port}, DECODER)
    async with live.monitor("ann") as monitor:
        (plan,) = recipes(title)
        query = await monitor.register(title, plan)
        await monitor.until(lambda: monitor.statuses[query]["status"] == "waiting", lambda: monitor.statuses[query])
        live.run("import_layer", str(path), "ports", "key")
        await monitor.running(query)
        wait_for(lambda: live.health("ships").get("state") == "running", lambda: live.health("ships"))
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        began_s = time.time() - 7_200
        meeting = {"anna": SEA, "berta": beside(SEA, 400), "in port": PORT, "moored": beside(PORT, 100)}
        for minute in range(0, 35, 5):
            writer.writelines(lines(meeting | {"fast": beside(SEA, 100)}, began_s + 60 * minute))
            writer.writelines(lines({"fast": beside(SEA, 100)}, began_s + 60 * minute + 1, speed_mps=9.0))
            writer.writelines(lines(OTHERS, began_s + 60 * minute + 20))
        await writer.drain()
        told = monitor.encounters[query]
        await monitor.until(lambda: len(told) == 1, lambda: (told, live.health("ships")))
        writer.writelines(lines({"anna": beside(SEA, 200)}, began_s + 60 * 35))
        writer.writelines(lines({"berta": beside(SEA, 5_000)}, began_s + 60 * 40))
        writer.writelines(lines(OTHERS, began_s + 60 * 40 + 20))
        await writer.drain()
        await monitor.until(lambda: told and told[-1]["sign"] == "-", lambda: told)
        writer.close()
        assert {frozenset({row["key"], row["partner"]["key"]}) for row in told} == {frozenset({"anna", "berta"})}
        assert [row["sign"] for row in told] in (["+", "~", "-"], ["+", "-"])
        assert monitor.faults == []
        last = told[-1]
        assert (last["until_us"] - last["since_us"]) // 1_000_000 == 40 * 60
        assert last["partner"]["distance"] == pytest.approx(200, abs=2)
        wait_for(lambda: len(live.run("events", query)) == 2, lambda: live.run("events", query))
        await monitor.request("query.cancel", query=query)
    live.remove_stream("ships")
    live.run("drop_layer", "ports")


@pytest.mark.long
@pytest.mark.recordings
async def test_ships_of_a_recording_that_stay_near_each_other_equal_pandas(live, shared_data):
    feed = read_recording(shared_data / "ais" / "ais-sample.txt.gz")
    truth, port = expected(reports(decoded(AIS, "danes", feed)), 50, TIMES["for_s"], TIMES["gap_s"]), free_port()
    live.add_stream("danes", {"kind": "tcp_listener", "port": port}, AIS)
    join = {"stream": "danes", "predicate": "dwithin", "distance": 50}
    async with live.monitor("ann") as monitor:
        plan = {"stream": "danes", "kind": "encounter", "join": join, "emit": "membership", **TIMES}
        query = await monitor.register("encounters", plan)
        await monitor.running(query)
        wait_for(lambda: live.health("danes").get("state") == "running", lambda: live.health("danes"))
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(feed)
        await writer.drain()
        writer.close()

        def ended():
            rows = [row for row in monitor.encounters[query] if row["sign"] == "-"]
            table = [[*sorted([row["key"], row["partner"]["key"]]), row["since_us"], row["until_us"]] for row in rows]
            return pandas.DataFrame(table, columns=COLUMNS)

        wanted = {tuple(row) for row in ordered(truth)[COLUMNS].itertuples(index=False)}
        await monitor.until(lambda: len(ended()) >= len(wanted), lambda: (len(ended()), len(wanted)))
        found = [tuple(row) for row in ended().itertuples(index=False)]
        assert (len(found), set(found) ^ wanted) == (len(wanted), set())
        assert len(wanted) > 20
        assert not monitor.statuses[query].get("warnings")
        await monitor.request("query.cancel", query=query)
    live.remove_stream("danes")


def ordered(encounters):
    """Return encounters of unordered pairs."""
    keys = encounters[["key", "partner"]]
    return encounters.assign(key=keys.min(axis=1), partner=keys.max(axis=1)).drop_duplicates(COLUMNS)
