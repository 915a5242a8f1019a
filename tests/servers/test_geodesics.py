"""Every kind of query measures the same distance on the earth: the geodesic."""

import numpy as np
import pytest
import shapely

from streaming.elements import bounds_of, box_elements
from streaming.history import StoredTables, layer, stored
from streaming.layers import LayerStore, feature_table
from tests.decoders.feeds import decode_whole, read_recording
from tests.geodesy import points_m
from tests.history.test_tables import STREAM, keep
from tests.servers.harness import Client, Engine, one

# 49,993.5 m apart: in a plane that is scaled at the first place farther than 50 km, in one at the other place nearer.
HERE, THERE, APART_M = (20.0, 60.0), (20.639638, 60.315754), 49_993.5
KINDS = {
    "around": lambda limit: {"kind": "range", "around": {"at": list(HERE), "radius": limit}},
    "knn": lambda limit: {"kind": "knn", "k": 5, "around": {"at": list(HERE)}, "max_distance": limit},
    "layer": lambda limit: {"kind": "join", "join": {"layer": "ports", "predicate": "dwithin", "distance": limit}},
    "stream": lambda limit: {"kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": limit}},
}
PORTS = feature_table("ports", ["port"], shapely.points([HERE]), [{}])
SHIPS = "ais/exact-earth-augmented.txt.gz", "ais/exact-earth-augmented-2.txt"


def ship(key, place):
    return ("ships", 0, one("ships", key, 1, [*place, -np.inf, *place, np.inf], {}))


def told(path, kind, limit):
    """What a query of a kind tells of a ship that is `THERE`, with a port and another ship `HERE`."""
    engine, client = Engine(path, 1, 4), Client()
    version = engine.layers.write("ports", PORTS)
    plan = {"stream": "ships", **KINDS[kind](limit)}
    control = [
        {"op": "layer", "layer": "ports", "version": version},
        {"op": "register", "query": 1, "revision": 1, "plan": plan},
    ]
    client.receive(engine.run([ship("there", THERE), ship("here", HERE)], control))
    return [row for row in client.told if row["key"] == "there"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_is_within_its_distance_by_every_kind_of_query(tmp_path, kind):
    apart = float(points_m(*HERE, *THERE))
    assert apart == pytest.approx(APART_M, abs=0.1)
    for number, (limit, expected) in enumerate([(50_000.0, 1), (apart + 1e-6, 1), (apart - 1e-6, 0), (49_990.0, 0)]):
        rows = told(tmp_path / str(number), kind, limit)
        assert len(rows) == expected, limit
        if kind != "around":
            assert [row["distance"] for row in rows] == [pytest.approx(apart, abs=1e-6)] * expected


def test_a_pair_is_within_its_distance_of_what_is_stored(tmp_path):
    bounds = np.array([[*place, -np.inf, *place, np.inf] for place in (HERE, THERE)])
    keep(tmp_path / "history", box_elements(STREAM, ["here", "there"], np.array([1, 2]), bounds, [{}, {}]))
    LayerStore(tmp_path / "layers").write("ports", PORTS)
    tables, apart = StoredTables(tmp_path / "layers", tmp_path / "history"), float(points_m(*HERE, *THERE))
    for other in (layer("ports"), stored(STREAM)):
        for limit, expected in ((50_000.0, True), (apart + 1e-6, True), (apart - 1e-6, False)):
            rows = tables.join(stored(STREAM), other, predicate="dwithin", distance=limit).rows.to_pylist()
            found = [row["distance"] for row in rows if row["key"] == "there" and row["partner_key"] != "there"]
            assert found == [pytest.approx(apart, abs=1e-6)] * expected


def test_500_neighbours_all_over_a_continent_are_those_of_the_least_geodesics(tmp_path, shared_data):
    places = {}
    for path in SHIPS:
        elements, _ = decode_whole({"kind": "ais"}, read_recording(shared_data / path), "ships")
        places |= dict(zip(elements["key"].to_pylist(), bounds_of(elements["bounds"])[:, :2].tolist(), strict=True))
    engine, client, middle = Engine(tmp_path, 2, 6), Client(), (133.0, -25.0)
    bounds = np.array([[*place, -np.inf, *place, np.inf] for place in places.values()])
    table = box_elements("ships", list(places), np.ones(len(places), dtype=np.int64), bounds, [{}] * len(places))
    plan = {"stream": "ships", "kind": "knn", "k": 500, "around": {"at": list(middle)}}
    client.receive(engine.run([("ships", 0, table)], [{"op": "register", "query": 1, "revision": 1, "plan": plan}]))
    distance = dict(zip(places, points_m(*middle, *bounds[:, :2].T).tolist(), strict=True))
    assert len(places) > 1000 and len(client.answers[1]) == 500
    ordered = sorted(client.answers[1], key=client.ranks[1].get)
    assert [distance[key] for key in ordered] == pytest.approx(sorted(distance.values())[:500], abs=1e-6)
    assert [client.distances[1][key] for key in ordered] == pytest.approx([distance[k] for k in ordered], abs=2e-5)
