"""Reports equal brute force over any tracks, however the elements are divided among files."""

import itertools
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.elements import box_elements, point_elements, stream_number
from streaming.history import History, HistoryWriter, Turn, upkeep, writer
from streaming.reports import (
    Fixes,
    InvalidReport,
    Report,
    ReportLimits,
    ReportTerms,
    box_area,
    in_order,
    polygon_area,
    read_fixes,
)
from streaming.reports.days import days_of
from streaming.spaces import EARTH
from tests.draws import examples
from tests.history.test_tables import NUMBER, STREAM, tracked
from tests.reports import oracle

MINUTE = 60_000_000
BEGINNING = 1_795_219_200_000_000  # 2026-11-21 00:00 UTC
UTC_ZONE = ZoneInfo("UTC")
BOX = (170.0, -10.0, 190.0, 10.0)
AREAS = {
    "a box across the antimeridian": (box_area(*BOX), shapely.box(*BOX)),
    "everywhere": (None, None),
    "a polygon with a hole": (
        polygon_area(
            b'{"type": "Polygon", "coordinates": [[[171, -9], [189, -7], [188, 9], [172, 8], [171, -9]],'
            b" [[176, -3], [184, -3], [184, 3], [176, 3], [176, -3]]]}"
        ),
        shapely.Polygon([(171, -9), (189, -7), (188, 9), (172, 8)], [[(176, -3), (184, -3), (184, 3), (176, 3)]]),
    ),
}

degrees = st.sampled_from([0.0, 1e-5, 0.0005, 0.002, 0.4, 3.1, 7.3])
# Keys, minutes and places that come again, so that there are stops, gaps, jumps, repetitions, and ways in and out.
elements = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 90),
        st.builds(lambda base, more: base + more, st.sampled_from([165.0, 172.5, 179.9, -175.3, -160.0]), degrees),
        st.builds(lambda base, more: base + more, st.sampled_from([-12.0, -6.0, 0.0, 4.5]), degrees),
    ),
    min_size=0,
    max_size=60,
)
terms = st.fixed_dictionaries(
    {
        "gap_us": st.sampled_from([1, 2, 5, 30, 200]).map(lambda minutes: minutes * MINUTE),
        "fastest_mps": st.sampled_from([1.0, 300.0, 5000.0]),
        "stop_radius_m": st.sampled_from([1.0, 60.0, 500.0]),
        "stop_us": st.sampled_from([1, 3, 10]).map(lambda minutes: minutes * MINUTE),
    }
)


def at(rows):
    return [(key, BEGINNING + minute * MINUTE, lon, lat) for key, minute, lon, lat in rows]


def frame_of(rows):
    """Return elements, which were received at the same moment, as they come from the history."""
    keys, times, lons, lats = zip(*rows, strict=True) if rows else ([], [], [], [])
    frame = pl.DataFrame(
        {"key": keys, "time": times, "heard": np.zeros(len(keys), dtype=np.int64), "lo_0": lons, "lo_1": lats},
        schema={"key": pl.String, "time": pl.Int64, "heard": pl.Int64, "lo_0": pl.Float64, "lo_1": pl.Float64},
    )
    instants = pl.col("time", "heard").cast(pl.Datetime("us", "UTC"))
    return frame.with_columns(instants, hi_0="lo_0", hi_1="lo_1")


def report_of(rows, area=None, span=None, zone=UTC_ZONE, **more):
    span = span or (BEGINNING, BEGINNING + 100 * MINUTE)
    given = {"gap_us": 5 * MINUTE} | more
    return Report(in_order(frame_of(rows)), ReportTerms(span, area, zone, **given))


@examples(150)
@given(rows=elements, given_terms=terms, name=st.sampled_from(list(AREAS)))
def test_visits_ways_and_stops_are_those_of_brute_force(rows, given_terms, name):
    area, polygon = AREAS[name]
    report = report_of(at(rows), area, **given_terms)
    expected = [
        (key, visit)
        for key, track in oracle.tracks_of(at(rows)).items()
        for visit in oracle.visits(track, polygon, given_terms["gap_us"])
    ]
    found = report.visits.sort(pl.col("key").cast(pl.String), "begin").to_dicts()
    assert [(row["key"], row["began"], row["ended"], row["fixes"]) for row in found] == [
        (key, visit["began"], visit["ended"], len(visit["inside"])) for key, visit in expected
    ]
    for row, (_, visit) in zip(found, expected, strict=True):
        assert row["begin"] == pytest.approx(visit["begin"], abs=2) and row["end"] == pytest.approx(visit["end"], abs=2)
        length, jumps = oracle.way(visit, given_terms["fastest_mps"])
        assert row["jumps"] == jumps and row["distance_m"] == pytest.approx(length, abs=0.01, rel=1e-6)
    stops = [
        (key, stop[0][0], stop[-1][0], len(stop))
        for key, visit in expected
        for stop in oracle.stops(visit, given_terms["stop_radius_m"], given_terms["stop_us"])
    ]
    rows_of_stops = report.stops.select(pl.col("key").cast(pl.String), "begin", "end", "fixes").sort("key", "begin")
    assert rows_of_stops.rows() == stops
    by_key = {key: [visit for other, visit in expected if other == key] for key, _ in expected}
    assert {row["key"]: (row["visits"], row["entries"], row["exits"]) for row in report.objects.to_dicts()} == {
        key: (len(of), sum(v["began"] == "entry" for v in of), sum(v["ended"] == "exit" for v in of))
        for key, of in by_key.items()
    }
    dwells = report.objects["dwell_us"].to_list()
    assert dwells == sorted(dwells, reverse=True)
    assert sum(dwells) == pytest.approx(sum(v["end"] - v["begin"] for _, v in expected), abs=2 * len(expected) + 1)


def keep(root, rows, cuts, regions):
    """Store elements in batches that end at the cuts, each row in a region of its key; the last batches are pending."""
    kept = HistoryWriter(root, EARTH)
    for batch, (start, stop) in enumerate(itertools.pairwise([0, *sorted(cuts), len(rows)])):
        for region in range(regions):
            mine = [row for row in rows[start:stop] if ord(row[0]) % regions == region]
            keys, times, *places = zip(*mine, strict=True) if mine else ([], [], [], [])
            coordinates = np.array(places).T.reshape(-1, 2)
            made = tracked(point_elements(STREAM, keys, times, coordinates, [{}] * len(mine)))
            second = batch // 2 * writer.MERGE_AFTER_S
            kept.store(Turn("e", region, regions, batch, second * 1_000_000), [made], {NUMBER: STREAM})


@examples(25)
@given(
    rows=elements,
    cuts=st.lists(st.integers(0, 60), max_size=6),
    regions=st.integers(1, 3),
    merged=st.booleans(),
    order=st.randoms(use_true_random=False),
    name=st.sampled_from(list(AREAS)),
)
def test_the_files_in_which_elements_are_stored_change_nothing(
    tmp_path_factory, rows, cuts, regions, merged, order, name
):
    root, area = tmp_path_factory.mktemp("history"), AREAS[name][0]
    rows = [(key, time + (lon > 0) * 1440 * MINUTE, lon, lat) for key, time, lon, lat in at(rows)]  # two days
    shuffled = order.sample(rows, len(rows))
    keep(root, shuffled, [min(cut, len(rows)) for cut in cuts], regions)
    if merged:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(upkeep, "MERGED_AT_ONCE", 2)
            upkeep.compact(root / EARTH.name / STREAM, EARTH)
    span = (BEGINNING, BEGINNING + 2880 * MINUTE)
    terms = ReportTerms(span, area, ZoneInfo("Asia/Kolkata"), 5 * MINUTE, stop_us=3 * MINUTE)
    found = Report(read_fixes(History(root, EARTH), STREAM, span, area), terms)
    expected = Report(in_order(frame_of(rows)), terms)
    for table in ("objects", "objects_by_day", "totals"):
        assert same(getattr(found, table)).equals(same(getattr(expected, table))), table
    assert same(found.visits.sort("begin")).equals(same(expected.visits.sort("begin")))


def same(frame):
    """Return a frame in an order of its own, with lengths to the millimetre."""
    columns = {"key": pl.col("key").cast(pl.String)} if "key" in frame.columns else {}
    rounded = [pl.col(name).round(3) for name, kind in frame.schema.items() if kind == pl.Float64]
    return frame.with_columns(*rounded, **columns).sort(pl.all())


@pytest.mark.parametrize("name", list(AREAS))
def test_only_objects_that_came_near_the_area_are_read_and_all_of_their_fixes(tmp_path, name):
    rows = at([("a", 0, 20.0, 40.0), ("a", 1, 180.0, 5.0), ("a", 2, 20.0, 40.0), ("b", 0, 20.0, 40.0)])
    keep(tmp_path, rows, [2], 2)
    area = AREAS[name][0]
    found = read_fixes(History(tmp_path, EARTH), STREAM, (None, None), area).frame
    assert sorted(found["key"].cast(pl.String)) == ["a", "a", "a"] + ["b"] * (area is None)
    assert read_fixes(History(tmp_path, EARTH), STREAM, (None, BEGINNING), area).frame.height == 2 * (area is None)
    assert read_fixes(History(tmp_path, EARTH), STREAM, (None, None), key="b").frame.height == 1
    assert read_fixes(History(tmp_path, EARTH), "nothing", (None, None), area).frame.height == 0


def test_too_much_is_refused_with_the_limit_and_never_cut_off(tmp_path):
    keep(tmp_path, at([("a", minute, 180.0, 0.0) for minute in range(30)]), [], 1)
    history, span = History(tmp_path, EARTH), (BEGINNING, BEGINNING + 9 * MINUTE)
    assert read_fixes(history, STREAM, span, limits=ReportLimits(30, 10)).frame.height == 10
    with pytest.raises(InvalidReport, match="at most 9 elements: choose a shorter time or a smaller area; got more"):
        read_fixes(history, STREAM, span, limits=ReportLimits(30, 9))
    with pytest.raises(InvalidReport, match="at most 29 elements: choose fewer days; got 30 in the files"):
        read_fixes(history, STREAM, span, limits=ReportLimits(29, 30))


def test_a_file_that_is_merged_while_it_is_to_be_read_is_read_in_its_new_place(tmp_path, monkeypatch):
    keep(tmp_path, at([("a", minute, 180.0, 0.0) for minute in range(30)]), [10, 11, 20, 21], 1)
    history, scans = History(tmp_path, EARTH), []

    def scan(*arguments):
        found = History.scan(history, *arguments)
        if not scans:
            monkeypatch.setattr(upkeep, "MERGED_AT_ONCE", 2)
            assert upkeep.compact(history.folder / STREAM, EARTH) > 0
        scans.append(found)
        return found

    monkeypatch.setattr(history, "scan", scan)
    assert read_fixes(history, STREAM, (None, None)).frame.height == 30
    assert len(scans) == 2


def test_elements_that_are_no_points_count_at_their_middle_and_those_without_a_place_are_counted(tmp_path):
    bounds = np.array([[10, 20, 0, 12, 22, 0], [-np.inf, 20, 0, np.inf, 22, 0], [179, 0, 0, 183, 2, 0]], dtype=float)
    boxes = box_elements(STREAM, ["a", "b", "c"], [BEGINNING] * 3, bounds, [{}] * 3)
    kept = HistoryWriter(tmp_path, EARTH)
    kept.store(Turn("e", 0, 1, 0, 0), [tracked(boxes)], {stream_number(STREAM): STREAM})
    found = read_fixes(History(tmp_path, EARTH), STREAM, (None, None))
    assert found.unplaced == 1 and found.frame.sort("lon")["lon"].to_list() == [-179.0, 11.0]


def test_of_elements_with_one_time_the_one_that_was_received_last_counts():
    frame = frame_of(at([("a", 0, 1.0, 1.0), ("a", 0, 2.0, 2.0), ("a", 1, 3.0, 3.0)]))
    heard = pl.Series([5, 4, 1]).cast(pl.Datetime("us", "UTC"))
    found = in_order(frame.with_columns(heard=heard))
    assert isinstance(found, Fixes) and found.repeated == 1 and found.frame["lon"].to_list() == [1.0, 3.0]


def test_an_entry_is_where_the_straight_line_crosses_the_border():
    rows = at([("a", 0, 9.0, 0.5), ("a", 4, 11.0, 0.5), ("a", 8, 15.0, 0.5)])
    (visit,) = report_of(rows, box_area(10, 0, 14, 1), fastest_mps=5000).visits.to_dicts()
    assert (visit["begin"], visit["end"]) == (BEGINNING + 2 * MINUTE, BEGINNING + 7 * MINUTE)
    length = oracle.metres((0, 10, 0.5), (0, 14, 0.5))
    assert visit["distance_m"] == pytest.approx(length, rel=1e-4)  # a parallel is not quite a geodesic
    (jumped,) = report_of(rows, box_area(10, 0, 14, 1), fastest_mps=900).visits.to_dicts()
    assert (jumped["distance_m"], jumped["jumps"], jumped["begin"]) == (0, 2, visit["begin"])
    through = report_of(at([("a", 0, 9.0, 0.5), ("a", 4, 15.0, 0.5)]), box_area(10, 0, 14, 1))
    assert through.visits.is_empty()  # no fix lies inside


ZONES = {
    "Europe/Helsinki": datetime(2026, 3, 28, 12, tzinfo=UTC),  # 23 hours
    "America/New_York": datetime(2026, 10, 31, 12, tzinfo=UTC),  # 25 hours
    "America/Sao_Paulo": datetime(2018, 11, 3, 12, tzinfo=UTC),  # there is no midnight
    "America/Havana": datetime(2025, 11, 1, 12, tzinfo=UTC),  # midnight comes twice
    "Pacific/Apia": datetime(2011, 12, 29, 3, tzinfo=UTC),  # a date is left out
    "Australia/Lord_Howe": datetime(2026, 4, 4, 3, tzinfo=UTC),  # clocks change by half an hour
    "UTC": datetime(2026, 11, 21, tzinfo=UTC),
}


@examples(60)
@given(
    name=st.sampled_from(list(ZONES)),
    minutes=st.lists(st.integers(0, 3 * 1440), min_size=2, max_size=12, unique=True).map(sorted),
)
@example(name="Europe/Helsinki", minutes=[0, 3000])
@example(name="America/New_York", minutes=[0, 3000])
@example(name="Pacific/Apia", minutes=[0, 3000])
@example(name="America/Sao_Paulo", minutes=[0, 3000])
@example(name="America/Havana", minutes=[0, 3000])
def test_what_lies_on_each_day_is_what_a_walk_minute_by_minute_finds(name, minutes):
    zone, start = ZoneInfo(name), int(ZONES[name].timestamp()) * 1_000_000
    times = [start + minute * MINUTE for minute in minutes]
    rows = [("a", time, 0.01 * number, 0.0) for number, time in enumerate(times)]
    span = (start, start + 3 * 1440 * MINUTE)
    report = report_of(rows, None, span, zone, gap_us=10_000 * MINUTE)
    walked = oracle.minutes_by_day(times[0], times[-1], zone)
    expected = {day: count * MINUTE for day, count in walked.items()}
    found = {row["day"]: row for row in report.objects_by_day.to_dicts()}
    assert {day: row["dwell_us"] for day, row in found.items() if row["dwell_us"]} == expected
    length = sum(oracle.metres(("", 0.01 * n, 0.0), ("", 0.01 * (n + 1), 0.0)) for n in range(len(rows) - 1))
    assert sum(row["distance_m"] for row in found.values()) == pytest.approx(length)
    totals = report.totals
    assert totals["visits"].sum() == 1 and totals.filter(pl.col("visits") == 1)["day"][0] == oracle.date(times[0], zone)
    assert totals["day"].to_list()[0] == oracle.date(span[0], zone)
    assert totals["day"].to_list()[-1] == oracle.date(span[1], zone)


def test_days_whose_clocks_change_have_other_lengths():
    def hours(name, days):
        start = int(ZONES[name].timestamp()) * 1_000_000
        found = days_of(start, start + days * 1440 * MINUTE, ZoneInfo(name))
        return dict(zip(found.names, (np.diff(found.starts_us) / (60 * MINUTE)).tolist(), strict=True))

    assert hours("Europe/Helsinki", 1)["2026-03-29"] == 23
    assert hours("America/New_York", 1)["2026-11-01"] == 25
    assert hours("America/Sao_Paulo", 1)["2018-11-04"] == 23
    assert hours("America/Havana", 1)["2025-11-02"] == 25
    assert hours("Pacific/Apia", 3)["2011-12-30"] == 0
    assert hours("Australia/Lord_Howe", 1)["2026-04-05"] == 24.5


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        (b"{", "polygon must be GeoJSON"),
        (b'{"type": "Point", "coordinates": [1, 2]}', "Polygon or MultiPolygon; got 'Point'"),
        (b'{"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}', "Self-intersection"),
        (b'{"type": "Polygon", "coordinates": [[[0, 0], [1, 95], [1, 0], [0, 0]]]}', "latitudes within -90 and 90"),
        (b'{"type": "Polygon", "coordinates": []}', "got an empty Polygon"),
        (b'{"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}', "polygon must be GeoJSON"),
        (b"[]", "got None"),
    ],
)
def test_an_area_that_is_none_is_refused_with_rule_and_value(document, rule):
    with pytest.raises(InvalidReport, match=rule):
        polygon_area(document)


@pytest.mark.parametrize("box", [(-181, 0, 0, 1), (0, 2, 1, 1), (0, 0, 361, 1), (np.nan, 0, 1, 1), (0, -91, 1, 0)])
def test_a_box_that_is_none_is_refused(box):
    with pytest.raises(InvalidReport, match="a box must be west,south,east,north"):
        box_area(*box)
