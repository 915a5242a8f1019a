"""Joins over event time of recorded feeds equal pandas and GeoPandas, however the feed is cut into batches."""

import geopandas
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import shapely

from streaming.elements import bounds_of
from streaming.results.netting import net
from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import BUSES
from tests.geodesy import points_m
from tests.live.truth import decoded
from tests.servers.harness import Engine

pytestmark = pytest.mark.recordings

SECOND_US = 1_000_000
# At least as long as a day: no report of a recording is late, so that all of them are in the truth.
LATENESS_S = 2 * 86_400
COLUMNS = ["key", "time_us", "partner", "partner_time_us"]
DEGREE_M = 110_000.0


def reports(elements):
    """The different reports of a feed, in the order of arrival."""
    lon, lat = bounds_of(elements["bounds"])[:, :2].T
    table = {"key": elements["key"].to_pylist(), "time_us": elements["time_us"].to_numpy(), "lon": lon, "lat": lat}
    return pandas.DataFrame(table).drop_duplicates(ignore_index=True)


def near(left, right, distance_m):
    """Pairs of rows that GeoPandas finds in a box, and that are as near as that by pyproj."""
    points = [geopandas.GeoDataFrame(side, geometry=shapely.points(side.lon, side.lat)) for side in (left, right)]
    wide = distance_m / DEGREE_M / np.cos(np.radians(max(left.lat.abs().max(), right.lat.abs().max())))
    # A box contains the circle, so that GeoPandas need not know of the ellipsoid.
    points[0].geometry = shapely.box(left.lon - wide, left.lat - wide, left.lon + wide, left.lat + wide)
    pairs = geopandas.sjoin(points[0], points[1], predicate="intersects", lsuffix="left", rsuffix="right")
    apart = points_m(pairs.lon_left, pairs.lat_left, pairs.lon_right, pairs.lat_right)
    return pairs[apart <= distance_m].rename(
        columns={
            "key_left": "key",
            "time_us_left": "time_us",
            "key_right": "partner",
            "time_us_right": "partner_time_us",
        }
    )


def play(folder, document, feeds, seed):
    """Run feeds through an engine in random batches; return what it told, as a data frame."""
    rng, engine, told = np.random.default_rng(seed), Engine(folder, 2, 4), []
    entry = {"op": "register", "query": 1, "revision": 1, "plan": document | {"lateness_s": LATENESS_S}}
    control, counted = [entry], {"late": 0}
    sizes = {stream: elements.num_rows for stream, elements in feeds.items()}
    done = dict.fromkeys(feeds, 0)
    while any(done[stream] < size for stream, size in sizes.items()):
        blocks = []
        for stream, elements in feeds.items():
            count = int(rng.integers(0, 6_000))
            blocks.append((stream, 0, elements.slice(done[stream], count)))
            done[stream] += count
        told.append(run(engine, blocks, control, counted))
        control = []
        if rng.random() < 0.2:
            engine.restart()
    # In the silence event time goes on, so that the last windows are told, in as many batches as it takes.
    told.append(run(engine, [], [{"op": "tick", "now_us": 2 * LATENESS_S * SECOND_US}], counted))
    while counted["unjoined"]:
        told.append(run(engine, [], [], counted))
    assert counted["late"] == 0
    return pa.concat_tables(told).to_pandas()


def run(engine, blocks, control, counted):
    fragments = engine.run(blocks, control)
    counted["unjoined"] = sum(fragment.counters.get("unjoined", 0) for fragment in fragments)
    counted["late"] += sum(fragment.counters.get("late", 0) for fragment in fragments)
    return net(fragments).select([*COLUMNS, "distance", "window_us"])


def same(told, expected, columns):
    """Both are the same pairs, each once, and there are some."""
    told, expected = (frame[columns].sort_values(columns, ignore_index=True) for frame in (told, expected))
    assert len(expected) > 1_000
    assert not told.duplicated().any()
    pandas.testing.assert_frame_equal(told, expected, check_dtype=False)


@pytest.mark.long
def test_ships_within_1000_m_of_each_other_in_windows_of_a_minute(tmp_path, shared_data):
    elements = decoded({"kind": "ais"}, "ships", read_recording(shared_data / "ais" / "ais-sample.txt.gz"))
    elements = elements.slice(0, elements.num_rows // 3)
    join = {"stream": "ships", "predicate": "dwithin", "distance": 1000}
    plan = {"stream": "ships", "kind": "window_join", "window_s": 60, "join": join, "mirrored": True}
    told = play(tmp_path, plan, {"ships": elements}, 1)
    known, expected = reports(elements), []
    for window, some in known.groupby(known.time_us // (60 * SECOND_US)):
        pairs = near(some, some, 1000)
        expected.append(pairs[pairs.key != pairs.partner].assign(window_us=window * 60 * SECOND_US))
    same(told, pandas.concat(expected), [*COLUMNS, "window_us"])


def test_buses_of_two_days_that_pass_the_same_place_within_five_minutes_of_the_time_of_day(tmp_path, shared_data):
    days = {}
    for stream, day in (("march", "2015-03-07"), ("september", "2015-09-06")):
        elements = decoded(BUSES, stream, read_recording(shared_data / "buses" / f"{day}.csv.gz"))
        elements = elements.sort_by("time_us").slice(10_000, 15_000)
        days[stream] = elements
    # The second day has the time base of the first one.
    first, second = (pc.min(elements["time_us"]).as_py() for elements in days.values())
    elements = days["september"]
    for name in ("time_us", "version"):
        shifted = pc.subtract(elements[name], pa.scalar(second - first)).cast(elements.schema.field(name).type)
        elements = elements.set_column(elements.schema.get_field_index(name), elements.schema.field(name), shifted)
    days["september"] = elements
    join = {"stream": "september", "predicate": "dwithin", "distance": 20}
    plan = {"stream": "march", "kind": "interval_join", "lower_s": -60, "upper_s": 240, "join": join, "bin_s": 60}
    told = play(tmp_path, plan, days, 2)
    pairs = near(*(reports(elements) for elements in days.values()), 20)
    later = pairs.partner_time_us - pairs.time_us
    same(told, pairs[(later >= -60 * SECOND_US) & (later <= 240 * SECOND_US)], COLUMNS)
