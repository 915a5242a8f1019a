"""Reports over real recordings equal pandas and GeoPandas: a day of buses in a city area, ships in a strait."""

import gzip
import json
import zlib
from zoneinfo import ZoneInfo

import geopandas
import numpy as np
import pandas
import polars as pl
import pytest
import shapely
from pyproj import Geod

from streaming.elements import bounds_of, stream_number
from streaming.history import History, HistoryWriter, Turn
from streaming.reports import Report, ReportTerms, read_fixes, shape_area
from streaming.spaces import EARTH
from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import BUSES
from tests.history.test_tables import STREAM, tracked
from tests.live.truth import decoded

pytestmark = pytest.mark.recordings
GEOD = Geod(ellps="WGS84")
SECOND_US = 1_000_000


def stored(root, elements):
    """Store the elements of a feed as they arrived, in ten batches and two regions."""
    kept = HistoryWriter(root, EARTH)
    regions = np.array([zlib.crc32(key.encode()) % 2 for key in elements["key"].to_pylist()])
    for batch, rows in enumerate(np.array_split(np.arange(elements.num_rows), 10)):
        for region in range(2):
            mine = tracked(elements.take(rows[regions[rows] == region]))
            turn = Turn("e", region, 2, batch, batch * 30 * SECOND_US)
            kept.store(turn, [mine], {stream_number(STREAM): STREAM})
    return History(root, EARTH)


def fixes_of(elements, area):
    """Return the fixes of elements as a GeoDataFrame, and whether each lies in an area."""
    bounds = bounds_of(elements["bounds"])
    known = pandas.DataFrame({"key": elements["key"].to_pylist(), "time": elements["time_us"].to_numpy()})
    known = known.assign(lon=bounds[:, 0], lat=bounds[:, 1]).sort_values(["key", "time", "lon", "lat"])
    known = known.drop_duplicates(["key", "time"], keep="last")
    placed = geopandas.GeoDataFrame(known, geometry=geopandas.points_from_xy(known.lon, known.lat), crs="EPSG:4326")
    return placed.assign(inside=placed.intersects(area)).reset_index(drop=True)


def expected(fixes, area, gap_s, fastest_mps):
    """Return the visits, with the columns of `Report.visits`, by grouping and shifting."""
    of = fixes.groupby("key")
    seconds = of.time.diff() / SECOND_US
    linked = seconds <= gap_s
    known_before = of.inside.shift().eq(True)
    starts = fixes.inside & ~(linked & known_before)
    before = of[["time", "lon", "lat"]].shift()
    fixes = fixes.assign(linked=linked, visit=np.where(fixes.inside, starts.cumsum(), -1))
    around = fixes.assign(**{f"{name}_0": before[name] for name in before})
    length = GEOD.inv(*(around[name].to_numpy() for name in ("lon_0", "lat_0", "lon", "lat")))[2]
    # What of each leg lies in the visits at its ends: all, the part behind the way in, the part before the way out.
    was, now = known_before & linked, fixes.inside & linked
    share = pandas.Series(np.where(was & now, 1.0, 0.0), index=fixes.index)
    for row in np.flatnonzero(was ^ now):
        ends = [tuple(around.loc[row, names]) for names in (["lon_0", "lat_0"], ["lon", "lat"])]
        line, inside = shapely.LineString(ends), shapely.Point(ends[1 if now[row] else 0])
        pieces = shapely.get_parts(line.intersection(area))
        share[row] = sum(piece.length for piece in pieces if piece.distance(inside) < 1e-12) / line.length
    visit_of_leg = np.where(now, fixes.visit, np.where(was, fixes.groupby("key").visit.shift(), -1)).astype(int)
    fast = length > fastest_mps * seconds
    legs = pandas.DataFrame(
        {"visit": visit_of_leg, "m": np.where(fast, 0, length) * share, "jump": fast, "s": seconds * share}
    )
    sums = legs[visit_of_leg >= 0].groupby("visit")[["m", "jump", "s"]].sum()
    visits = fixes[fixes.inside].groupby("visit").agg(key=("key", "first"), fixes=("time", "size"))
    return visits.join(sums).fillna(0)


def check(history, elements, area, gap_s, fastest_mps):
    span = (int(elements["time_us"].to_numpy().min()), int(elements["time_us"].to_numpy().max()))
    terms = ReportTerms(
        span, shape_area(area), ZoneInfo("America/Chicago"), int(gap_s * SECOND_US), fastest_mps, 50, 120_000_000
    )
    report = Report(read_fixes(history, STREAM, span, terms.area), terms)
    fixes = fixes_of(elements, area)
    visits = expected(fixes, area, gap_s, fastest_mps)
    found = report.visits.with_columns(pl.col("key").cast(pl.String)).sort("key", "begin").to_pandas()
    assert found.key.tolist() == visits.key.tolist() and found.fixes.tolist() == visits.fixes.tolist()
    assert found.jumps.tolist() == visits.jump.astype(int).tolist()
    np.testing.assert_allclose((found.end - found.begin) / SECOND_US, visits.s, atol=2e-5)
    np.testing.assert_allclose(found.distance_m, visits.m, rtol=1e-6, atol=0.01)
    objects = report.objects
    assert objects["visits"].sum() == len(visits) and objects.height == visits.key.nunique()
    assert report.totals["distance_m"].sum() == pytest.approx(visits.m.sum())
    assert report.totals["dwell_us"].sum() / SECOND_US == pytest.approx(visits.s.sum(), abs=1e-3)
    return report


@pytest.mark.long
def test_a_day_of_buses_in_every_area_of_a_city(shared_data, tmp_path):
    elements = decoded(BUSES, STREAM, read_recording(shared_data / "buses" / "2015-03-07.csv.gz"))
    history = stored(tmp_path, elements)
    with gzip.open(shared_data / "layers" / "austin.geojson.gz") as file:
        areas = {f["properties"]["name"]: f["geometry"] for f in json.load(file)["features"]}
    reports = {
        name: check(history, elements, shapely.from_geojson(json.dumps(areas[name])), 300, 40)
        for name in ("Downtown", "Hyde Park", "University of Texas")
        if name in areas
    }
    assert len(reports) >= 2
    assert all(report.objects.height > 20 for report in reports.values())
    assert sum(report.stops.height for report in reports.values()) > 20


@pytest.mark.parametrize(
    ("box", "ships"),
    [((12.4, 55.5, 13.1, 56.2), 20), ((11.66, 57.64, 11.98, 57.73), 10)],
    ids=["the Sound", "Gothenburg"],
)
def test_ships_in_a_strait_and_in_a_port(shared_data, tmp_path, box, ships):
    elements = decoded({"kind": "ais"}, STREAM, read_recording(shared_data / "ais" / "ais-sample.txt.gz"))
    report = check(stored(tmp_path, elements), elements, shapely.box(*box), 180, 50)
    assert report.objects.height > ships
