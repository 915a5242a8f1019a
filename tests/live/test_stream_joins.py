"""A recorded feed joined with its own last known positions, through the whole of Lookout: pairs equal GeoPandas'."""

import asyncio

import geopandas
import pytest
import shapely

from bench.live import wait_for
from bench.ports import free_port
from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import BUSES
from tests.live.test_layer_joins import WGS84, pairs_of
from tests.live.truth import decoded, newest

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

# No two buses are within a decimetre of these distances, so that every plane at hand gives the same pairs.
DISTANCES_M = (10, 100)


def pairs_at(feed):
    """Return the pairs at the end of a feed, by distance."""
    objects = newest(decoded(BUSES, "austin", feed))
    return {distance: pairs_within(objects, distance) for distance in DISTANCES_M}


def pairs_within(objects, distance_m):
    """Return the pairs of objects that GeoPandas finds."""
    keys = list(objects)
    points = shapely.points([objects[key]["bounds"][:2] for key in keys])
    others = geopandas.GeoDataFrame(geometry=points, crs=WGS84)
    found = pairs_of(objects, others, {"predicate": "dwithin", "distance": distance_m})
    return {(key, keys[number]) for key, number in found if key != keys[number]}


@pytest.mark.long
async def test_buses_close_to_each_other_are_those_of_geopandas_in_the_midst_and_at_the_end(live, shared_data):
    head, *lines = read_recording(shared_data / "buses" / "2015-03-07.csv.gz").splitlines(keepends=True)
    # In the first fifth many stand side by side; by the end those have parted.
    ends = {"midst": 9_000, "end": len(lines)}
    port = free_port()
    live.add_stream("austin", {"kind": "tcp_listener", "port": port}, BUSES)
    async with live.monitor("ann") as monitor:
        queries = {}
        for distance in DISTANCES_M:
            join = {"stream": "austin", "predicate": "dwithin", "distance": distance}
            plan = {"stream": "austin", "kind": "join", "join": join}
            queries[distance] = await monitor.register(f"within {distance} m", plan)
        await monitor.running(*queries.values())
        wait_for(lambda: live.health("austin").get("state") == "running", lambda: live.health("austin"))
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        sent = 0
        for name, end in ends.items():
            expected = pairs_at(head + b"".join(lines[:end]))
            writer.writelines(lines[sent:end])
            await writer.drain()
            sent = end

            def wrong(expected=expected):
                held = {distance: set(monitor.answers[query]) for distance, query in queries.items()}
                return {d: sorted(held[d] ^ pairs)[:5] for d, pairs in expected.items() if held[d] != pairs}

            def arrived(end=end, wrong=wrong):
                return live.health("austin").get("elements") == end and live.log.backlog() == 0 and not wrong()

            await monitor.until(arrived, lambda wrong=wrong: f"{live.health('austin')}, {wrong()}")
            print(name, {distance: len(pairs) for distance, pairs in expected.items()}, "pairs, 0 differences")
            assert expected[100] and bool(expected[10]) == (name == "midst")
        writer.close()
        assert monitor.faults == []
        for query in queries.values():
            await monitor.request("query.cancel", query=query)
    live.remove_stream("austin")
