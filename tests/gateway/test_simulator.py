import gzip
import json

import numpy as np
import orjson
import pytest
import shapely
import shapely.geometry

from streaming.decoders import make_decoder
from streaming.errors import InvalidOptions
from streaming.gateway.clock import SECOND_US
from streaming.gateway.presets import DEMO_STREAMS
from streaming.gateway.transports.simulator import Simulator
from streaming.simulator import FLEETS, feature_lines, make_fleet
from streaming.simulator.lanes import PORTS
from streaming.simulator.ships import shortest_path
from streaming.simulator.sphere import distance_m

TIME_S = 1_700_000_000.0
FASTEST_MPS = 12.0
# Canals are land on a map of coastlines.
CANALS = shapely.union_all([shapely.box(32.1, 29.8, 32.7, 31.35), shapely.box(-80.1, 8.7, -79.4, 9.5)])


@pytest.mark.parametrize("name", sorted(FLEETS))
def test_the_same_seed_gives_the_same_fleet_and_another_seed_another(name):
    time_us = round(TIME_S * SECOND_US)
    lines = [feature_lines(make_fleet(name, 20, seed), time_us) for seed in (1, 1, 2)]
    assert lines[0] == lines[1] != lines[2]


@pytest.mark.parametrize("name", sorted(FLEETS))
def test_objects_move_as_fast_as_they_say(name):
    fleet = make_fleet(name, 60, 3)
    for time_s in TIME_S + np.arange(0, 40_000, 997.0):
        before, after = fleet.step(time_s), fleet.step(time_s + 1)
        moved_m = distance_m(before.lon_deg, before.lat_deg, after.lon_deg, after.lat_deg)
        assert moved_m.max() <= FASTEST_MPS
        steady = (before.speed_mps == after.speed_mps) & (before.course_deg == after.course_deg)
        assert np.abs(moved_m - before.speed_mps)[steady].max() < 0.1
        assert ((before.course_deg >= 0) & (before.course_deg < 360)).all()
        assert ((before.lon_deg >= -180) & (before.lon_deg < 180)).all()


@pytest.mark.parametrize("name", sorted(FLEETS))
def test_a_pace_moves_objects_faster_and_leaves_times_and_speeds_true(name):
    fleet = make_fleet(name, 20, 3)
    time_us = 1_700_000_000 * SECOND_US
    slow, fast = (
        [orjson.loads(line) for line in feature_lines(fleet, at_us, pace).splitlines()]
        for at_us, pace in ((30 * time_us, 1.0), (time_us, 30.0))
    )
    assert [feature["geometry"] for feature in fast] == [feature["geometry"] for feature in slow]
    assert {feature["properties"]["time"] for feature in fast} == {1_700_000_000}
    for before, after in zip(slow, fast, strict=True):
        assert before["properties"] | {"time": 1_700_000_000} == after["properties"]


@pytest.mark.parametrize("pace", [0, -1, 1001])
def test_a_pace_out_of_bounds_is_refused(pace):
    with pytest.raises(InvalidOptions, match="pace must lie in"):
        Simulator({"kind": "simulator", "fleet": "ships", "pace": pace})


def test_most_buses_move_and_some_wait_at_stops():
    speed_mps = make_fleet("buses", 200, 1).step(TIME_S).speed_mps
    assert 0.05 < (speed_mps == 0).mean() < 0.5


def test_lanes_lead_from_every_port_to_every_other():
    assert all(shortest_path("helsinki", port)[-1] == port for port in PORTS)


@pytest.mark.recordings
def test_ships_never_sail_on_land(shared_data):
    with gzip.open(shared_data / "layers" / "ne_10m_land.json.gz") as file:
        land = [shapely.geometry.shape(part["geometry"]) for part in json.load(file)["features"]]
    shapely.prepare(land)
    fleet = make_fleet("ships", 400, 1)
    steps = [fleet.step(TIME_S + 3_600 * hour) for hour in range(0, 240, 24)]
    lon, lat = (np.concatenate([getattr(step, name) for step in steps]) for name in ("lon_deg", "lat_deg"))
    ashore = np.any([shapely.contains_xy(part, lon, lat) for part in land], axis=0)
    ashore &= ~shapely.contains_xy(CANALS, lon, lat)
    assert ashore.mean() < 0.001, np.column_stack([lon, lat])[ashore]


@pytest.mark.parametrize("stream", [stream for stream in DEMO_STREAMS if stream["transport"]["kind"] == "simulator"])
def test_the_demonstration_decodes_what_is_simulated(stream):
    options = stream["transport"]
    fleet = make_fleet(options["fleet"], options["count"], options["seed"])
    time_us = round(TIME_S * SECOND_US) + 123_456
    decoded = make_decoder(stream["decoder"], stream["name"]).feed(feature_lines(fleet, time_us, options["pace"]), 0)
    assert decoded.malformed == ()
    assert decoded.elements["key"].to_pylist() == list(fleet.ids)
    assert set(decoded.elements["time_us"].to_pylist()) == {time_us}
    properties = orjson.loads(decoded.elements["properties"][0].as_py())
    assert {"name", "speed_mps", "course_deg", "destination"} <= set(properties)
