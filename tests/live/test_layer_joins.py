"""Recorded feeds joined with real layers, through the whole of Lookout: the pairs equal those of GeoPandas."""

from collections.abc import Callable
from dataclasses import dataclass

import geopandas
import pytest
import shapely

from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import AIS_CSV, BUSES
from tests.live.test_recordings import FLIGHTS_DECODER, as_it_is, flights
from tests.live.truth import decoded, newest

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

WGS84 = "EPSG:4326"


@dataclass(frozen=True)
class Pairing:
    """A recorded feed, a layer, and joins of the two by name.

    Parameters
    ----------
    stream : str
    path : function of the recordings' folder and a scratch folder
    decoder : dict
    layer : str
        The layer's file among the recordings.
    joins : dict of str to dict
        What `join` is in the plan, but for the layer's name.
    """

    stream: str
    path: Callable
    decoder: dict
    layer: str
    joins: dict[str, dict]


MEET = {"meet": {"predicate": "intersects"}, "within": {"predicate": "within"}}
PAIRINGS = [
    Pairing("joined_buses", as_it_is("buses/2015-03-07.csv.gz"), BUSES, "austin.geojson.gz", MEET),
    Pairing("joined_aircraft", flights, FLIGHTS_DECODER, "switzerland.geojson.gz", MEET),
    Pairing("joined_ships", as_it_is("ais/AISdata.csv.gz"), AIS_CSV, "ne_10m_land.json.gz", MEET),
    Pairing(
        "ships_at_ports",
        as_it_is("ais/AISdata.csv.gz"),
        AIS_CSV,
        "ne_10m_ports.json.gz",
        # No ship is within three metres of this distance of a port, so that every plane at hand gives the same pairs.
        {"near": {"predicate": "dwithin", "distance": 2_000}},
    ),
]

# How a feature stands to an element; asked in this direction, GeoPandas prepares each feature once.
FROM_THE_FEATURE = {"intersects": "intersects", "within": "contains"}


def pairs_of(objects, features, join):
    """Return the pairs (key, number of the feature) that GeoPandas finds."""
    keys = list(objects)
    points = shapely.points([objects[key]["bounds"][:2] for key in keys])
    elements = geopandas.GeoDataFrame({"element": keys}, geometry=points, crs=WGS84)
    features = features[["geometry"]].assign(feature=range(len(features)))
    if join["predicate"] != "dwithin":
        found = features.sjoin(elements, predicate=FROM_THE_FEATURE[join["predicate"]])
        return set(zip(found["element"], found["feature"], strict=True))
    pairs = set()
    for feature, port in zip(features["feature"], features.geometry, strict=True):
        near = elements[shapely.dwithin(points, port, 1.0)]
        if len(near):
            plane = f"+proj=aeqd +lon_0={port.x} +lat_0={port.y}"
            here = geopandas.GeoDataFrame(geometry=[port], crs=WGS84).to_crs(plane)
            found = near.to_crs(plane).sjoin(here, predicate="dwithin", distance=join["distance"])
            pairs |= {(element, feature) for element in found["element"]}
    return pairs


@pytest.mark.long
@pytest.mark.parametrize("pairing", PAIRINGS, ids=lambda pairing: pairing.stream)
async def test_pairs_equal_those_of_geopandas_at_the_end_of_a_recording(live, shared_data, tmp_path, pairing):
    path, layer = pairing.path(shared_data, tmp_path), shared_data / "layers" / pairing.layer
    objects = newest(decoded(pairing.decoder, pairing.stream, read_recording(path)))
    # The position in the file is a feature's number; the layer takes it for its key.
    features = geopandas.read_file(f"/vsigzip/{layer}").assign(number=lambda frame: range(len(frame)))
    numbered = tmp_path / f"{pairing.stream}.geojson"
    features[["number", "geometry"]].to_file(numbered, driver="GeoJSON")
    live.run("import_layer", str(numbered), pairing.stream, "number")
    live.add_stream(pairing.stream, {"kind": "file", "path": str(path), "speed": 0}, pairing.decoder, enabled=False)
    async with live.monitor("ann") as monitor:
        queries = {}
        for name, join in pairing.joins.items():
            plan = {"stream": pairing.stream, "kind": "join", "join": {"layer": pairing.stream, **join}}
            queries[await monitor.register(name, plan)] = pairs_of(objects, features, join)
        await monitor.running(*queries)
        live.enable_stream(pairing.stream)

        def wrong():
            held = {query: {(key, int(number)) for key, number in monitor.answers[query]} for query in queries}
            return {
                query: sorted(held[query] ^ expected)[:5]
                for query, expected in queries.items()
                if held[query] != expected
            }

        def ended():
            return live.health(pairing.stream).get("state") == "finished" and live.log.backlog() == 0 and not wrong()

        await monitor.until(ended, lambda: f"{live.health(pairing.stream)}, {wrong()}")
        print(pairing.stream, {query: len(expected) for query, expected in queries.items()}, "pairs, 0 differences")
        assert all(queries.values()) and monitor.faults == []
        for query in queries:
            await monitor.request("query.cancel", query=query)
    live.remove_stream(pairing.stream)
    live.run("drop_layer", pairing.stream)
