"""Tracks of recorded ships equal brute force, however the feed is cut into batches."""

from collections import defaultdict

import numpy as np
import pandas
import pyarrow as pa
import pytest

from streaming.elements import bounds_of
from streaming.results.netting import net
from tests.decoders.feeds import read_recording
from tests.live.truth import decoded
from tests.servers.harness import Engine
from tests.servers.test_tracks import SECOND_US, Border, Oracle, track

pytestmark = pytest.mark.recordings


# Strips from south to north: in five minutes, a ship crosses borders of some of them.
WEST_EAST, SOUTH, NORTH, WIDE = (12.0, 15.6), 54.3, 55.6, 0.02
SHIPS, SAMPLES = 15, 300
STRIPS = {
    "type": "MultiPolygon",
    "coordinates": [
        [[[lon, SOUTH], [lon + WIDE, SOUTH], [lon + WIDE, NORTH], [lon, NORTH], [lon, SOUTH]]]
        for lon in np.arange(*WEST_EAST, 2 * WIDE).round(2).tolist()
    ],
}


@pytest.mark.long
def test_ships_that_go_over_strips_of_the_sea(tmp_path, shared_data):
    elements = decoded({"kind": "ais"}, "ships", read_recording(shared_data / "ais" / "ais-sample.txt.gz"))
    places = pandas.DataFrame(bounds_of(elements["bounds"])[:, :2], columns=["lon", "lat"])
    places["key"] = elements["key"].to_pylist()
    moved = places.groupby("key").lon.transform(lambda lon: lon.max() - lon.min()) > 0.01
    most = places.key[moved & places.lon.between(*WEST_EAST) & places.lat.between(SOUTH, NORTH)].value_counts()
    elements = elements.filter(pa.array(places.key.isin(most.index[:SHIPS]).to_numpy()))
    plan = track(STRIPS, accuracy=10, fastest_m_s=40, gap_s=600) | {"stream": "ships"}
    border = Border(STRIPS, step_deg=0.01)
    oracles = defaultdict(lambda: Oracle(border, plan, SAMPLES))
    reports = elements["key"].to_pylist(), elements["time_us"].to_pylist(), bounds_of(elements["bounds"])[:, :2]
    for key, time_us, place in zip(*reports, strict=True):
        oracles[key].report(time_us / SECOND_US, place, {})
    told, doubted = played(tmp_path, elements, plan)
    crossing = {key: oracle for key, oracle in oracles.items() if oracle.events}
    assert len(crossing) > 5 and any(event[2] for oracle in crossing.values() for event in oracle.events)
    assert doubted == sum(oracle.left_out for oracle in oracles.values())
    for key, oracle in oracles.items():
        mine = told[key]
        if oracle.sure:
            assert [event[0] for event in mine] == [event[0] for event in oracle.events], (mine, oracle.events)
            for (_, at, *_), (_, other, between) in zip(mine, oracle.events, strict=True):
                span = between[1] - between[0] if between else 0
                assert abs(at - other) <= 2 * span / SAMPLES + 0.002
    assert sum(not oracle.sure for oracle in crossing.values()) < len(crossing) / 2


def played(folder, elements, plan):
    """Run a feed through an engine in random batches; return what entered and left by key, and what was left out."""
    rng, engine, done, told = np.random.default_rng(3), Engine(folder, 2, 4), 0, defaultdict(list)
    doubted = 0
    control = [{"op": "register", "query": 1, "revision": 1, "plan": plan}]
    quiet = 0
    while quiet < 3:
        count = int(rng.integers(0, 800))
        fragments = engine.run([("ships", 0, elements.slice(done, count))], control)
        doubted += sum(fragment.counters.get("doubted", 0) for fragment in fragments)
        rows = net(fragments).select(["key", "sign", "time_us"]).to_pylist()
        for row in rows:
            if row["sign"]:
                told[row["key"]].append((row["sign"], row["time_us"] / SECOND_US))
        done, control = done + count, []
        quiet = quiet + 1 if done >= elements.num_rows and not rows else 0
        if rng.random() < 0.2:
            engine.restart()
    return told, doubted
