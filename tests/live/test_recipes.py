"""The recipes of docs/plans.md, as they stand there, through the whole of Lookout, and journeys that they answer.

References
----------
BBoxDB Streams (2022), section 5.5: the five examples; that of the share is in `test_spaces`, with a space of its own.
"""

import asyncio
import json
import time
from dataclasses import dataclass, field

import pytest

from bench.live import wait_for
from bench.ports import free_port
from tests.docs.test_plans import recipes
from tests.live.swarm import DECODER

pytestmark = pytest.mark.spark

EVERYWHERE = {"lo": [-180, -90], "hi": [180, 90]}
METRE_DEG = 1 / 111_320  # of latitude


def area(*ring, **properties):
    """Return a polygon as a GeoJSON feature."""
    geometry = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def street(name, *line):
    """Return a street as a GeoJSON feature."""
    return {"type": "Feature", "geometry": {"type": "LineString", "coordinates": line}, "properties": {"name": name}}


def beside(place, metres):
    """Return a place so many metres to the north."""
    return place[0], place[1] + metres * METRE_DEG


@dataclass(frozen=True)
class Journey:
    """Where objects go, and the answer after each step.

    Parameters
    ----------
    title : str
        The recipe's heading; all of its plans must give the same answer.
    stream : str
    steps : list of (dict, set)
        Places (longitude, latitude) by key, then the members of the answer: keys, or pairs of a key and a partner's.
    told : list of str
        The signs and keys of the events, in order.
    layers : dict of str to list
        GeoJSON features by the layer's name.
    """

    title: str
    stream: str
    steps: list
    told: list[str]
    layers: dict[str, list] = field(default_factory=dict)


# The borders of the tests' four regions meet in (0, 0), so the vehicles cross them side by side.
CARS = Journey(
    "Do two vehicles drive side by side?",
    "cars",
    [
        ({"vehicle1": beside((-1e-5, 0), -4), "vehicle2": (-1e-5, 0.01), "vehicle3": (-1e-5, 0)}, set()),
        ({"vehicle2": beside((-1e-5, 0), 4)}, {("vehicle1", "vehicle2")}),
        ({"vehicle2": beside((1e-5, 0), 4)}, {("vehicle1", "vehicle2")}),
        ({"vehicle1": beside((1e-5, 0), -4)}, {("vehicle1", "vehicle2")}),
        ({"vehicle1": beside((1e-5, 0), -7)}, set()),
        ({"vehicle2": beside((1e-5, 0), 2)}, {("vehicle1", "vehicle2")}),
        ({"vehicle1": (5, 5), "vehicle2": (5, 5)}, {("vehicle1", "vehicle2")}),
    ],
    ["+vehicle1", "-vehicle1", "+vehicle1"],
)
SHIPS = Journey(
    "Which ships are heading to an island?",
    "ships",
    [
        ({"ferry": (18.5, 60.1), "tanker": (25.0, 60.0), "at the island": (20.0, 60.1)}, set()),
        ({"ferry": (19.0, 60.1)}, {"ferry"}),
        ({"ferry": (19.4, 60.1), "tanker": (20.9, 60.0)}, {"ferry", "tanker"}),
        ({"ferry": (19.6, 60.1)}, {"tanker"}),
        ({"tanker": (21.1, 60.0)}, set()),
        ({"at the island": (20.6, 60.1)}, {"at the island"}),
    ],
    ["+ferry", "+tanker", "-ferry", "-tanker", "+at the island"],
)
# An L: the box around it has a corner without trees.
FOREST = area((151.0, -34.0), (151.2, -34.0), (151.2, -33.9), (151.1, -33.9), (151.1, -33.8), (151.0, -33.8))
FORESTS = Journey(
    "Which buses are driving through a forest in Sydney?",
    "buses",
    [
        ({"1": (151.15, -33.85), "2": (151.05, -33.85), "far": (-100.0, 40.0)}, {("2", "forest")}),
        ({"1": (151.15, -33.95)}, {("1", "forest"), ("2", "forest")}),
        ({"1": (151.05, -33.85), "2": (151.15, -33.85)}, {("1", "forest")}),
        ({"1": (-100.0, 40.0)}, set()),
    ],
    ["+2", "+1", "-2", "-1"],
    {"forests": [FOREST | {"properties": {"key": "forest"}}]},
)
ELIZABETH, GEORGE = (151.2, -33.9), (151.2, -33.8)
STREETS = Journey(
    "Which buses are driving on Elizabeth Street in Sydney?",
    "buses",
    [
        ({"1": beside(ELIZABETH, 8), "2": beside(GEORGE, 3)}, set()),
        ({"1": beside(ELIZABETH, 4)}, {("1", "elizabeth")}),
        ({"1": beside(ELIZABETH, -4), "2": beside(ELIZABETH, 3)}, {("1", "elizabeth"), ("2", "elizabeth")}),
        ({"1": beside(ELIZABETH, -6)}, {("2", "elizabeth")}),
        ({"2": beside(GEORGE, 1)}, set()),
    ],
    ["+1", "+2", "-1", "-2"],
    {
        "roads": [
            street(name, (place[0] - 0.01, place[1]), (place[0] + 0.01, place[1]))
            | {"properties": {"name": name, "key": name.split()[0].lower()}}
            for name, place in (("Elizabeth Street", ELIZABETH), ("George Street", GEORGE))
        ]
    },
)


def lines(places):
    """Return GeoJSON lines of objects."""
    now_ms = time.time_ns() // 1_000_000
    for key, place in places.items():
        point = {"type": "Point", "coordinates": place}
        feature = {"type": "Feature", "geometry": point, "properties": {"id": key, "time": now_ms}}
        yield json.dumps(feature).encode() + b"\n"


def shown(answer, places):
    """Tell whether objects are where they were put: then the engine has taken them, and answered all queries."""
    return all(
        answer.get(key, {"bounds": []})["bounds"][:2] == pytest.approx(place, abs=1e-9) for key, place in places.items()
    )


@pytest.mark.parametrize("journey", [CARS, SHIPS, FORESTS, STREETS], ids=["cars", "ships", "forests", "streets"])
async def test_a_recipe_answers_its_question_at_every_step(live, tmp_path, journey):
    for name, features in journey.layers.items():
        path = tmp_path / f"{name}.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        live.run("import_layer", str(path), name, "key")
    port = free_port()
    live.add_stream(journey.stream, {"kind": "tcp_listener", "port": port}, DECODER)
    async with live.monitor("ann") as monitor:
        queries = [await monitor.register(journey.title, plan) for plan in recipes(journey.title)]
        await monitor.running(*queries)
        view = (await monitor.view([journey.stream], EVERYWHERE))[journey.stream]
        wait_for(lambda: live.health(journey.stream).get("state") == "running", lambda: live.health(journey.stream))
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        for places, expected in journey.steps:
            writer.writelines(lines(places))
            await writer.drain()
            await monitor.until(
                lambda places=places, expected=expected: (
                    all(monitor.answers.get(query, {}).keys() == expected for query in queries)
                    and shown(monitor.answers.get(view, {}), places)
                ),
                lambda places=places: f"{places}: {monitor.answers}, {live.health(journey.stream)}",
            )
        writer.close()
        sent = sum(len(places) for places, _ in journey.steps)
        wait_for(lambda: live.health(journey.stream)["elements"] == sent, lambda: live.health(journey.stream))
        assert monitor.faults == []
        for query in queries:
            wait_for(
                lambda query=query: [sign + key for sign, key, _ in live.run("events", query)] == journey.told,
                lambda query=query: live.run("events", query),
            )
            await monitor.request("query.cancel", query=query)
            live.run("forget_query", query)
    live.remove_stream(journey.stream)
    for name in journey.layers:
        live.run("drop_layer", name)
