"""The workload of PLACE*, and the arithmetic of what is told of it."""

import numpy as np
import pyarrow as pa
import pytest

from bench.live import wait_for
from bench.load import Generator
from bench.place.load import make_blocks
from bench.place.measure import PlaceRow, between, fast_enough
from bench.place.meter import AgeSpan, PlaceMeter, Reckoning
from bench.place.report import BEGIN, END, PlaceReport
from bench.place.workload import AREAS, KS, PERIOD_S, REGIONS, SPACE, STEP, Workload, kind_of
from bench.report import PAGE
from streaming.elements import bounds_array, bounds_of, from_ipc
from streaming.keys import LogNames
from streaming.kinds.knn.plan import NearestPlan
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.logs import Log
from streaming.operators.region_map import RegionMap
from streaming.plans import parse_plan
from streaming.results import ENTERED, HANDOFF, LEFT, MOVED, PLACED, QUIET_HANDOFF, Fragment, result_schema

PAPER, TINY = Workload(), Workload(crowd=30, each=2)


def regions_of(places):
    return RegionMap.grid(SPACE, REGIONS).region_of(np.hstack([places, places]))


def test_the_workload_is_that_of_the_paper():
    assert (PAPER.objects, PAPER.queries) == (500_000, 9_000)
    assert PAPER.rate == pytest.approx(500_000 / PERIOD_S)
    assert np.bincount(PAPER.home + 1).tolist() == [50_000] * 10


def test_local_objects_stay_in_their_region_and_global_ones_go_everywhere():
    everyone = np.arange(PAPER.objects)
    local = PAPER.home >= 0
    before = PAPER.places(everyone, 0)
    for reports in (1, 40, 5_000):
        places = PAPER.places(everyone, reports)
        assert (regions_of(places)[local] == PAPER.home[local]).all()
        assert (np.bincount(regions_of(places[~local]), minlength=REGIONS) > 5_000).all()
        assert places.min() >= 0 and places.max() <= 1
        far = np.hypot(*(PAPER.places(everyone, reports + 1) - places).T)
        assert far.max() <= 2 * STEP and far.mean() == pytest.approx(STEP, rel=0.02)
    travelled = regions_of(PAPER.places(everyone, 1_000)) != regions_of(before)
    assert travelled[~local].mean() > 0.5


@pytest.mark.long
def test_the_queries_are_those_of_the_paper_and_any_first_part_is_like_the_whole():
    plans = PAPER.plans()
    assert plans == Workload().plans()
    parsed = {number: parse_plan(plan, SPACE) for number, plan in plans.items()}
    for part in (90, PAPER.queries):
        ranges = [parsed[number] for number in range(1, 2 * part, 2)]
        near = [parsed[number] for number in range(2, 2 * part + 1, 2)]
        assert {type(plan) for plan in ranges} == {MovingRangePlan} and {type(plan) for plan in near} == {NearestPlan}
        assert {plan.emit for plan in ranges + near} == {"membership"} and {plan.alpha for plan in near} == {0.2}
        areas = [round(4 * plan.shape.half_widths[0] * plan.shape.half_widths[1], 9) for plan in ranges]
        assert {area: areas.count(area) for area in areas} == dict.fromkeys(AREAS, part // 10)
        assert {plan.k: [other.k for other in near].count(plan.k) for plan in near} == dict.fromkeys(KS, part // 10)
        for kind in (ranges, near):
            focal = np.array([int(plan.focus.key.split()[1]) for plan in kind])
            assert len(set(focal)) == part and (PAPER.home[focal] < 0).all()
            assert set(np.bincount(regions_of(PAPER.places(focal, 0)))) == {part // REGIONS}
    assert kind_of(np.array([1, 2, 17_999, 18_000])).tolist() == [0, 1, 0, 1]


def test_every_object_reports_once_in_each_round_and_goes_on(redis_client):
    log = Log(redis_client, SPACE.name, 2)
    blocks = make_blocks(TINY, 20, 2)
    generator = Generator(log, blocks, "")
    for _ in range(2):
        generator.write(len(blocks))
    places, times = {}, {}
    for partition in range(2):
        for _, fields, _ in log.event_log.read(log.names.ingest(partition)):
            table = from_ipc(fields[b"block"])
            boxes = bounds_of(table["bounds"])
            assert (boxes[:, :2] == boxes[:, 2:]).all()
            for key, place, time in zip(table["key"].to_pylist(), boxes, table["time_us"].to_pylist(), strict=True):
                places.setdefault(int(key.split()[1]), []).append(place[:2])
                times.setdefault(key, []).append(time)
    assert sorted(places) == list(range(TINY.objects))
    for reports in (1, 2):
        told = np.array([places[number][reports - 1] for number in sorted(places)])
        assert np.allclose(told, TINY.places(np.arange(TINY.objects), reports))
    assert all(earlier < later for earlier, later in times.values())


PLAIN = {"sign": ENTERED, "reason": MOVED, "key": "a", "time_us": 0, "bounds": [0.1, 0.1, 0.1, 0.1]}


def table(*rows):
    """Return result tuples; each has a query and what differs from `PLAIN`."""
    schema = result_schema(SPACE)
    rows = [PLAIN | {"partner_hash": 0} | row for row in rows]
    for row in rows:
        row["key_hash"] = hash(row["key"])
    columns = {name: [row.get(name) for row in rows] for name in schema.names if name != "bounds"}
    columns["bounds"] = bounds_array(np.array([row["bounds"] for row in rows]).reshape(len(rows), 4))
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def fragment(batch, region, *rows, newest_us=0, regions=2, **more):
    return Fragment("e", batch, region, regions, table(*rows), table(), newest_us=newest_us, **more)


def ages(parts):
    return np.concatenate([np.empty(0), *parts]).tolist()


SECOND_US = 1_000_000


def test_ages_are_taken_from_the_report_that_caused_the_tuple_until_its_batch_is_complete():
    reckoning = Reckoning()
    reckoning.take([fragment(1, 0, newest_us=5 * SECOND_US), fragment(1, 1)], 5_000, 10)
    reckoning.begin()
    fresh, old = 5_500_000, 2_000_000
    rows = [
        {"query": 1, "time_us": fresh},
        {"query": 1, "time_us": old, "key": "b"},  # the range moved over it
        {"query": 2, "time_us": fresh + 100_000, "sign": LEFT, "key": "c"},
        {"query": 2, "time_us": old, "key": "d"},
        {"query": 3, "time_us": fresh, "sign": PLACED, "key": "f"},
        {"query": 4, "time_us": fresh, "sign": PLACED, "key": "g"},
        {"query": 4, "time_us": old, "sign": PLACED, "key": "g"},  # the search region changed
    ]
    counters = {"elements": 7, "results": 6}
    parts = [fragment(2, 0, *rows, counters=counters, acks=({"query": 9, "error": "no"},)), fragment(2, 1, newest_us=6)]
    parts.append(fragment(2, 2, sent={2: (3, 4), 4: (0, 1)}, counters={"results": 1}))
    reckoning.take(parts, 6_000, 250)
    span = reckoning.span
    assert {kind: ages(told) for kind, told in span.answers.items()} == {"ranges": [500_000], "neighbours": [400_000]}
    assert {kind: ages(told) for kind, told in span.queries.items()} == {"ranges": [500_000], "neighbours": [500_000]}
    assert (span.batches, span.partial, span.tuples, span.bytes, span.seconds) == (1, 8, 4, 250, 1.0)
    assert span.counters == {"elements": 7, "results": 7}
    assert reckoning.first_ms == {1: 6_000, 2: 6_000} and reckoning.acked == {9: "no"}


@pytest.mark.parametrize("reason", [HANDOFF, QUIET_HANDOFF])
def test_handoffs_are_those_of_objects_in_answers_and_are_no_answer_updates_where_they_are_quiet(reason):
    reckoning = Reckoning()
    rows = [{"query": 1, "time_us": 500_000, "sign": LEFT, "reason": reason}], [{"query": 1, "time_us": 500_000}]
    reckoning.take([fragment(1, 0, *rows[0]), fragment(1, 1, *rows[1])], 1_000, 0)
    assert ages(reckoning.span.handoffs) == [500_000]
    assert not ages(reckoning.span.answers["ranges"]) and not reckoning.span.tuples


def test_a_focal_object_is_handed_over_when_it_is_told_in_another_region():
    reckoning = Reckoning()
    for batch, (x, time_us) in enumerate([(0.1, 1), (0.3, 2), (0.4, 3), (0.5, 4)], 1):
        row = {"query": 1, "sign": PLACED, "time_us": time_us * SECOND_US, "bounds": [x, 0.1, x, 0.1]}
        reckoning.take([fragment(batch, 0, row, newest_us=time_us * SECOND_US)], 1_000 * time_us + 100, 0)
    assert ages(reckoning.span.queries["ranges"]) == [100_000] * 4
    assert ages(reckoning.span.focal_handoffs) == [100_000]


def test_the_meter_takes_a_batch_once_all_of_its_fragments_are_there(redis_server, redis_client):
    log = Log(redis_client, SPACE.name, 2)
    row = {"query": 1, "time_us": 1}
    with PlaceMeter(redis_server) as meter:
        log.publish([fragment(1, 0, row), fragment(2, 0, row)])
        log.publish([fragment(2, 1, counters={"elements": 5})])
        wait_for(lambda: meter.reckoning.span.batches, "a batch")
        (newest,) = log.event_log.read_back(LogNames(SPACE.name).results, limit=1)
        span = meter.end()
    assert (span.batches, span.tuples, span.counters) == (1, 1, {"elements": 5})
    assert span.ended_ms == newest.appended_ms
    assert span.bytes > 0


def row(queries, answer_ms, **span):
    """Return a row whose answer updates take so long."""
    told = {"batches": 10, "began_ms": 1_000, "ended_ms": 6_000, "counters": {"elements": 20_000}} | span
    answers = {"ranges": [np.array([1_000.0])], "neighbours": [np.array([answer_ms * 1_000.0])]}
    first = {"ranges": np.array([300.0, 500.0]), "neighbours": np.array([400.0])}
    return PlaceRow(
        queries, AgeSpan(answers=answers, **told), first, {"engine": 0.8}, {"engine": 900.0, "redis": 50.0}, 3
    )


def test_a_row_reckons_by_the_second_and_by_the_report():
    one = row(90, 700, tuples=500)
    assert (one.elements_per_s, one.engine_us, one.batch_ms, one.per_s(500)) == (4_000, 200.0, 500.0, 100.0)
    assert one.inputs_per_s == 2 * REGIONS * 3
    assert one.answer_p99_ms == 700
    silent = PlaceRow(1, AgeSpan(), {}, {}, {}, 0)
    assert (silent.elements_per_s, silent.answer_p99_ms, silent.inputs_per_s) == (0.0, float("inf"), 0.0)


def test_the_largest_share_is_looked_for_below_the_first_that_is_too_slow():
    rows = [row(90, 400), row(300, 999), row(900, 1_001)]
    assert fast_enough(rows) == 300 and fast_enough(rows[2:]) == 0
    assert all(300 < count < 900 for count in between([90, 300, 900, 9_000], 300))
    assert not between([90, 300], 300)


def test_the_report_tells_the_share_beside_the_paper():
    report = PlaceReport("a machine", PAPER, Workload(areas=(0.0001,), ks=(10,)))
    report.rows, report.growth = [row(90, 400), row(300, 999), row(900, 2_000)], [row(1_000, 5_000)]
    text = report.markdown()
    assert "**1/30, 300 of each**" in text and "16,667 reports a second" in text
    beside = next(line for line in text.splitlines() if line.startswith("| answer update "))
    assert "999 ms, p99 999 ms" in beside and "under 1 s" in beside
    grown = next(line for line in text.splitlines() if line.startswith("| 1,000 "))
    assert "60,000" in grown  # 50 in each range, 10 neighbours
    assert PlaceReport("a machine", PAPER, PAPER).markdown() == "a machine\n"


def test_the_page_has_room_for_it():
    assert BEGIN in PAGE.read_text() and END in PAGE.read_text().partition(BEGIN)[2]
