"""Events on their way from the engine to the database."""

import re
import time
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from streaming.keys import LogNames
from streaming.logs import EVENTS_KEPT, RESULTS_KEPT, Log
from streaming.results import (
    ANSWER_NUMBERS,
    ENTERED,
    EXPIRED,
    HANDOFF,
    LEFT,
    MOVED,
    PLACED,
    REGISTERED,
    STAYED,
    VIEW_NUMBERS,
    events_of,
)
from streaming.results.netting import net
from streaming.spaces import EARTH
from tests.servers.harness import events_in
from tests.webapp.conftest import PLAN
from tests.webapp.test_hub import REGIONS, fragment
from webapp.models import Event, Incident, Query
from webapp.queries import query_warnings
from webapp.recording import recording

pytestmark = pytest.mark.django_db(transaction=True)
CLOCK = r"\d\d:\d\d:\d\d UTC"
EVENTS = LogNames("earth").events
WHYS = [(ENTERED, MOVED), (ENTERED, REGISTERED), (STAYED, MOVED), (LEFT, MOVED), (LEFT, EXPIRED), (LEFT, HANDOFF)]
rows = st.tuples(st.sampled_from([1, 2, VIEW_NUMBERS, VIEW_NUMBERS + 1]), st.sampled_from("abc"), st.sampled_from(WHYS))
regions = st.lists(st.lists(rows, max_size=6), min_size=REGIONS, max_size=REGIONS)


def made(user, plan=PLAN, **fields):
    """Return a query of the database alone."""
    return Query.objects.create(owner=user, name="q", plan=plan, stream="ships", **fields)


def publish(log, batch, first=(), second=(), epoch="e"):
    """Publish the fragments of a batch in the order of the log."""
    log.publish([fragment(batch, 0, first, epoch=epoch), fragment(batch, 1, second, epoch=epoch)])


def warnings(caplog):
    """Return what the recorder complained of."""
    return [record.getMessage() for record in caplog.records if record.name == "webapp.recording.recording"]


@pytest.fixture
def log(redis_client):
    """Return the logs."""
    return Log(redis_client, "earth", 2)


def test_events_are_net_and_recorded_once(log, redis_client, user):
    query = made(user).pk
    publish(log, 0, [(query, "a", ENTERED, MOVED), (query, "b", LEFT, HANDOFF)], [(query, "b", ENTERED, MOVED)])
    publish(log, 1, [(query, "a", LEFT, MOVED), (2**40 + 1, "view", ENTERED, MOVED), (query + 1, "x", ENTERED, MOVED)])
    assert recording.record_events(redis_client, EARTH) == 3
    publish(log, 1, [(query, "a", LEFT, MOVED)])
    assert recording.record_events(redis_client, EARTH) == 0
    events = Event.objects.order_by("pk").values_list("batch", "key", "sign", "reason", "lon", "lat")
    assert list(events) == [(0, "a", "+", "moved", 1.0, 2.0), (1, "a", "-", "moved", 1.0, 2.0)]


def failing(batch, *queries, error="the filter picky failed: KeyError: 'altitude'", **more):
    """Return the fragments of a batch in which a filter of queries and revisions failed."""
    failures = ({"error": error, "queries": [list(query) for query in queries]} | more,)
    return [fragment(batch, 0), replace(fragment(batch, 1), failures=failures)]


def test_the_newest_warning_of_each_kind_is_kept_with_the_number_of_all_and_when_it_was_last(
    log, redis_client, user, monkeypatch
):
    announced = []
    monkeypatch.setattr(
        query_warnings, "announce", lambda queries: announced.extend(q.document()["warnings"] for q in queries)
    )
    query, good = made(user, revision=3), made(user)
    log.publish(failing(0, (query.pk, 2), (VIEW_NUMBERS, 1), (good.pk + 7, 1)))
    recording.record_events(redis_client, EARTH)
    assert announced == []
    began = timezone.now()
    log.publish(failing(1, (query.pk, 3)) + failing(2, (query.pk, 3), error="another"))
    log.publish(failing(3, (query.pk, 3), error="reports were not believed", kind="doubted", reports=3))
    recording.record_events(redis_client, EARTH)
    log.publish(failing(4, (query.pk, 3), error="reports were not believed", kind="doubted", reports=2))
    recording.record_events(redis_client, EARTH)
    rule = "a part of the query failed, and the objects on which it fails count as not matching"
    assert [[(one["kind"], one["warning"], one["count"]) for one in told] for told in announced] == [
        [("doubted", "reports were not believed", 3), ("failed", f"{rule}; another", 2)],
        [("doubted", "reports were not believed", 5), ("failed", f"{rule}; another", 2)],
    ]
    first, last = (datetime.fromisoformat(told[0]["last"]) for told in announced)
    assert began - timedelta(milliseconds=1) < first < last <= timezone.now()
    counted = rf"\(5 reports, the last at {CLOCK}\); {rule}; another \(2 times, last at {CLOCK}\)"
    words = query_warnings.warning_words(Query.objects.get(pk=query.pk))
    assert re.fullmatch(f"reports were not believed {counted}", words)
    assert Query.objects.get(pk=good.pk).document()["warnings"] == []


def test_what_cannot_be_recorded_of_one_query_is_its_warning_and_the_others_are_recorded(
    log, redis_client, user, monkeypatch
):
    bad, *good = (made(user).pk for _ in range(4))
    made_of = recording.event_of

    def event(query, *more):
        if query == bad:
            raise ValueError("what is this")
        return made_of(query, *more)

    monkeypatch.setattr(recording, "event_of", event)
    twins = {ANSWER_NUMBERS + 7: (bad, good[0])}
    told = [(query, "a", ENTERED, MOVED) for query in (*good[1:], ANSWER_NUMBERS + 7)]
    log.publish([replace(fragment(0, 0, told), shared=twins), fragment(0, 1)])
    assert recording.record_events(redis_client, EARTH) == 3
    assert set(Event.objects.values_list("query", flat=True)) == set(good)
    warning = "the events of batch 0 could not be recorded: what is this"
    told = {query.pk: [one["warning"] for one in query.warned()] for query in Query.objects.all()}
    assert told == {query: [] for query in good} | {bad: [warning]}


def test_a_query_that_the_engine_refuses_by_now_has_failed_with_the_reason(log, redis_client, user, monkeypatch):
    announced = []
    monkeypatch.setattr(query_warnings, "announce", lambda queries: announced.extend(q.document() for q in queries))
    running, edited = made(user, status=Query.RUNNING), made(user, status=Query.RUNNING, revision=2)
    paused = made(user, status=Query.PAUSED, paused=True)
    refused = failing(0, *((query.pk, 1) for query in (running, edited, paused)), error="this release refuses the plan")
    for part in refused:
        log.publish([replace(part, failures=tuple(failure | {"refused": True} for failure in part.failures))])
    recording.record_events(redis_client, EARTH)
    stand = [*Query.objects.order_by("pk").values_list("status", "error", "warning")]
    assert stand == [("failed", "this release refuses the plan", ""), ("running", "", ""), ("paused", "", "")]
    assert [(told["status"], told["error"]) for told in announced] == [stand[0][:2]]


def test_a_batch_that_is_there_in_part_is_recorded_once_it_is_whole(log, redis_client, user):
    query = made(user).pk
    log.publish([fragment(0, 0, [(query, "a", ENTERED, MOVED)])])
    assert recording.record_events(redis_client, EARTH) == 0
    log.publish([fragment(0, 1)])
    assert recording.record_events(redis_client, EARTH) == 1


def test_of_many_events_the_newest_are_kept(log, redis_client, user, monkeypatch, caplog):
    monkeypatch.setattr(recording, "EVENTS_KEPT", 3)
    monkeypatch.setattr(recording, "EVENTS_PER_STEP", 5)
    query = made(user).pk
    for batch in range(8):
        publish(log, batch, [(query, f"k{batch}", ENTERED, MOVED)])
    assert recording.record_events(redis_client, EARTH) == 5
    assert "3 were left out" in caplog.text
    assert sorted(Event.objects.values_list("key", flat=True)) == ["k5", "k6", "k7"]


def test_of_a_shared_answer_every_saved_query_has_its_events_and_the_newest_are_kept(
    log, redis_client, user, monkeypatch, caplog
):
    monkeypatch.setattr(recording, "EVENTS_PER_STEP", 5)
    queries, answer = tuple(made(user).pk for _ in range(3)), ANSWER_NUMBERS + 7
    members = {answer: (*queries, VIEW_NUMBERS + 1)}
    told = [replace(fragment(0, 0, [(answer, key, ENTERED, MOVED) for key in "abc"]), shared=members)]
    log.publish([*told, fragment(0, 1)])
    assert recording.record_events(redis_client, EARTH) == 5
    assert "4 were left out" in caplog.text
    events = list(Event.objects.values_list("query_id", "key"))
    assert len(set(events)) == 5 and {query for query, _ in events} == set(queries)


def saved(table):
    """Return what enters and leaves saved queries' answers, in any order."""
    return [row for row in events_in(table, ()) if row[0] < VIEW_NUMBERS]


@given(regions)
def test_the_log_of_events_nets_to_what_the_result_log_nets_to(said):
    whole = [fragment(7, n, [(query, key, *why) for query, key, why in part]) for n, part in enumerate(said)]
    parts = [events_of(part) for part in whole]
    assert saved(net(parts)) == saved(net(whole))
    told = pa.concat_tables([part.changes for part in parts])
    assert len(saved(told)) == told.num_rows
    assert [(p.epoch, p.batch, p.region, p.regions) for p in parts] == [("e", 7, n, REGIONS) for n in range(REGIONS)]


def test_a_batch_without_events_is_an_entry_without_rows(log, redis_client):
    query = [(1, "a", STAYED, MOVED), (VIEW_NUMBERS, "a", ENTERED, MOVED)]
    log.publish([fragment(0, region, query, query, [1]) for region in range(REGIONS)])
    entries = [entry.fields for entry in log.event_log.read(EVENTS)]
    assert [(e[b"changes"], e[b"snapshots"]) for e in entries] == [(b"", b"")] * REGIONS
    assert all(sum(map(len, e.values())) < 150 for e in entries)


def test_what_is_recorded_is_trimmed_and_what_is_not_is_kept(log, redis_client, user):
    query = made(user).pk
    for batch in range(50):
        publish(log, batch, [(query, "a", ENTERED, MOVED)])
    log.publish([fragment(50, 0, [(query, "b", ENTERED, MOVED)])])
    assert recording.record_events(redis_client, EARTH) == 50
    assert log.event_log.length(EVENTS) == 1
    log.publish([fragment(50, 1)])
    assert recording.record_events(redis_client, EARTH) == 1


def test_events_whose_transaction_fails_are_not_trimmed(log, redis_client, user, monkeypatch):
    publish(log, 0, [(made(user).pk, "a", ENTERED, MOVED)])
    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
        broken.setattr(recording, "_trim", lambda queries: 1 / 0)
        recording.record_events(redis_client, EARTH)
    assert (Event.objects.count(), log.event_log.length(EVENTS)) == (0, REGIONS)
    assert recording.record_events(redis_client, EARTH) == 1


def test_a_worker_that_was_away_for_minutes_records_all(log, redis_client, user, monkeypatch, caplog):
    queries = [made(user).pk for _ in range(5)]
    publish(log, 0)
    assert recording.record_events(redis_client, EARTH) == 0
    for batch in range(1, 240):
        publish(log, batch, [(query, f"k{n}", ENTERED, MOVED) for query in queries for n in range(4)])
    monkeypatch.setattr("streaming.logs.RESULTS_KEPT", replace(RESULTS_KEPT, most_ms=0))  # as if minutes had passed
    time.sleep(0.002)
    publish(log, 240)
    assert log.event_log.length(log.names.results) < 240, "readers of results have lost these"
    assert recording.record_events(redis_client, EARTH) == 239 * 20
    assert Event.objects.count() == 239 * 20
    assert warnings(caplog) == []


def test_a_recorder_loses_nothing_by_a_silence_of_the_engine(log, redis_client, user, monkeypatch, caplog):
    query = made(user).pk
    publish(log, 0, [(query, "a", ENTERED, MOVED)])
    assert recording.record_events(redis_client, EARTH) == 1
    log.event_log.trim({EVENTS: log.event_log.newest(EVENTS)})
    publish(log, 0, [(query, "a", ENTERED, MOVED)])  # as an engine does that starts again
    publish(log, 1, [(query, "a", LEFT, MOVED)])
    assert recording.record_events(redis_client, EARTH) == 1
    assert warnings(caplog) == []


def test_a_recorder_says_which_batches_were_gone(log, redis_client, user, caplog):
    query = made(user).pk
    publish(log, 0)
    recording.record_events(redis_client, EARTH)
    for batch in range(1, 10):
        publish(log, batch, [(query, f"k{batch}", ENTERED, MOVED)])
    *_, oldest = log.event_log.read_back(EVENTS, limit=8)
    log.event_log.trim({EVENTS: oldest.position})
    assert recording.record_events(redis_client, EARTH) == 3
    assert warnings(caplog) == ["events: batches 1 to 6 were gone unread and are not recorded"]


def test_a_recorder_says_that_the_engine_began_anew(log, redis_client, user, caplog):
    query = made(user).pk
    publish(log, 7, [(query, "a", ENTERED, MOVED)])
    assert recording.record_events(redis_client, EARTH) == 1
    publish(log, 0, [(query, "a", ENTERED, MOVED)], epoch="f")
    publish(log, 1, epoch="f")
    assert recording.record_events(redis_client, EARTH) == 1
    assert warnings(caplog) == ["events: the engine began anew; what it told after batch 7 unread is not recorded"]


def test_events_that_nobody_records_take_bounded_room(log, redis_client, user, monkeypatch, caplog):
    monkeypatch.setattr("streaming.logs.EVENTS_KEPT", replace(EVENTS_KEPT, most_bytes=40_000))
    query = made(user).pk
    publish(log, 0)
    recording.record_events(redis_client, EARTH)
    for batch in range(1, 100):
        publish(log, batch, [(query, f"k{batch} {n}", ENTERED, MOVED) for n in range(100)])
        assert redis_client.memory_usage(EVENTS, samples=0) <= 55_000
    stored = recording.record_events(redis_client, EARTH)
    oldest = Event.objects.order_by("pk").first().batch
    assert 0 < stored < 9_900
    assert f"events: batches 1 to {oldest - 1} were gone unread and are not recorded" in warnings(caplog)


def test_of_two_workers_one_records(log, redis_client, user, monkeypatch):
    publish(log, 0, [(made(user).pk, "a", ENTERED, MOVED)])
    collect = recording._collect

    def overtaken(*arguments):
        step = collect(*arguments)
        with monkeypatch.context() as alone:
            alone.setattr(recording, "_collect", collect)
            assert recording.record_events(redis_client, EARTH) == 1
        return step

    monkeypatch.setattr(recording, "_collect", overtaken)
    assert recording.record_events(redis_client, EARTH) == 0
    assert Event.objects.count() == 1


def of_aggregate(batch, query, *rows):
    """Return the fragments of a batch with rows (key, sign, threshold or None, value) of an aggregate."""
    told = fragment(batch, REGIONS - 1, [(query, key, sign, MOVED) for key, sign, *_ in rows])
    values = [f'{{"value":{value}}}' for *_, value in rows]
    changes = told.changes
    for name, texts in (
        ("properties", [None if row[2] else text for row, text in zip(rows, values, strict=True)]),
        ("partner", [row[2] for row in rows]),
        ("partner_properties", [text if row[2] else None for row, text in zip(rows, values, strict=True)]),
    ):
        column = changes.schema.get_field_index(name)
        changes = changes.set_column(column, changes.schema.field(column), pa.array(texts, pa.string()))
    rest = [fragment(batch, region) for region in range(REGIONS - 1)]
    return [*rest, replace(told, changes=changes, aggregates=(query,))]


def test_of_an_aggregate_thresholds_are_events_and_its_figures_are_not(log, redis_client, user):
    query = made(user, PLAN | {"aggregate": {"function": "count"}})
    figures = [("", ENTERED, None, 23), ("cargo", ENTERED, None, 3), ("tanker", LEFT, None, "null")]
    crossings = [("", ENTERED, "above 20", 23), ("tanker", LEFT, "below 1 for 300 s", "null")]
    log.publish(of_aggregate(0, query.pk, *figures, *crossings))
    assert recording.record_events(redis_client, EARTH) == 2
    texts = {event.text for event in Event.objects.select_related("query")}
    assert texts == {"q: above 20 (now 23)", "q, tanker: no longer below 1 for 300 s"}
    assert set(Event.objects.values_list("key", "sign", "partner")) == {
        ("", "+", "above 20"),
        ("tanker", "-", "below 1 for 300 s"),
    }


def test_where_a_query_is_that_moves_is_no_event(log, redis_client, user):
    query = made(user).pk
    publish(log, 0, [(query, "focus", PLACED, REGISTERED), (query, "a", ENTERED, REGISTERED)])
    publish(log, 1, [(query, "focus", PLACED, EXPIRED), (query, "a", LEFT, EXPIRED)])
    assert recording.record_events(redis_client, EARTH) == 2
    assert set(Event.objects.values_list("key", flat=True)) == {"a"}


def test_of_an_encounter_beginning_and_end_are_events_with_their_times(log, redis_client, user):
    query = made(user).pk
    for batch, (sign, until_us) in enumerate([(ENTERED, None), (STAYED, None), (LEFT, 90_000_000)]):
        told = fragment(batch, 1, [(query, "a", sign, MOVED)])
        columns = {"partner": "b", "partner_time_us": 70_000_000, "since_us": 60_000_000, "until_us": until_us}
        columns |= {"partner_bounds": [1.0] * 6, "distance": 5.5}
        changes = told.changes
        for name, value in columns.items():
            field = changes.schema.field(name)
            changes = changes.set_column(changes.schema.get_field_index(name), field, pa.array([value], field.type))
        log.publish([fragment(batch, 0), replace(told, changes=changes)])
    assert recording.record_events(redis_client, EARTH) == 2
    begun, ended = Event.objects.order_by("pk")
    assert [(one.sign, one.key, one.partner, one.time.timestamp()) for one in (begun, ended)] == [
        ("+", "a", "b", 60),
        ("-", "a", "b", 90),
    ]
    times = {"since": "1970-01-01T00:01:00+00:00", "until": "1970-01-01T00:01:30+00:00"}
    assert (begun.properties, ended.properties) == (times | {"until": None, "distance": 5.5}, times | {"distance": 5.5})


def test_an_event_of_an_encounter_or_a_pair_keeps_the_names_of_both():
    partner = {"key": "b", "distance": 5.5, "properties": {"callsign": "BAW1"}}
    row = {"key": "a", "sign": "+", "reason": MOVED, "time_us": 1, "lon": 1.0, "lat": 2.0, "bounds": [1.0] * 6}
    row |= {"properties": {"name": "MS Anna", "speed_mps": 5}, "partner": partner}
    names = {"name": "MS Anna", "partner_name": "BAW1"}
    assert recording.event_of(1, 0, row, False).properties == names | {"speed_mps": 5}
    assert recording.event_of(1, 0, row | {"since_us": 1}, False).properties.items() >= names.items()
    assert recording.event_of(1, 0, row, True).properties == {"callsign": "BAW1"}


def test_an_entry_between_two_reports_says_so_and_between_which(log, redis_client, user):
    query = made(user).pk
    told = fragment(0, 1, [(query, "a", ENTERED, MOVED)])
    changes = told.changes
    for name, value in {"from_us": 60_000_000, "to_us": 90_000_000}.items():
        at = changes.schema.get_field_index(name)
        changes = changes.set_column(at, changes.schema.field(name), pa.array([value]))
    log.publish([fragment(0, 0), replace(told, changes=changes)])
    assert recording.record_events(redis_client, EARTH) == 1
    properties = Event.objects.get().properties
    assert properties["interpolated"] is True
    assert properties["interpolated_from"] == "1970-01-01T00:01:00+00:00"
    assert properties["interpolated_to"] == "1970-01-01T00:01:30+00:00"


def test_a_step_ends_once_it_has_many_crossings_which_all_open_incidents(log, redis_client, user, monkeypatch):
    monkeypatch.setattr(recording, "CROSSINGS_PER_STEP", 10)
    query, store, steps = made(user, severity="critical", status=Query.RUNNING).pk, recording._store, []

    def counted(step, events, crossings, cursor):
        steps.append(len(crossings))
        return store(step, events, crossings, cursor)

    monkeypatch.setattr(recording, "_store", counted)
    for batch in range(4):
        publish(log, batch, [(query, f"{batch} {n}", ENTERED, MOVED) for n in range(6)])
    recording.record_events(redis_client, EARTH)
    assert max(steps) == 12 and Incident.objects.count() == 24
