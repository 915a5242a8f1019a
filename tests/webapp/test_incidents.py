"""Incidents: opened and closed by events exactly once, acted on, told to connections, and shown in the admin."""

import os
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from channels.db import database_sync_to_async
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from bench.live import wait_for
from streaming.keys import LogNames
from streaming.logs import Log
from streaming.results import ANSWER_NUMBERS, ENTERED, EXPIRED, LEFT, MOVED, STAYED
from streaming.spaces import EARTH
from tests.webapp.conftest import INSIDE, OUTSIDE, PLAN, settled
from tests.webapp.test_hub import fragment
from tests.webapp.test_recording import of_aggregate, publish
from webapp.alarms import incidents
from webapp.models import Event, EventCursor, Incident, IncidentChange, Query
from webapp.queries import queries
from webapp.recording import incident_check, incident_recording, recording, strain
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)
IN, STAY, OUT = (ENTERED, MOVED), (STAYED, MOVED), (LEFT, MOVED)


@pytest.fixture
def log(redis_client):
    """Return the logs."""
    return Log(redis_client, "earth", 2)


def watching(owner, severity="critical", plan=PLAN, **fields):
    """Return a query of the database alone that opens incidents."""
    fields = {"status": Query.RUNNING, "severity": severity, "stream": "ships", "plan": plan} | fields
    return Query.objects.create(owner=owner, name="q", **fields)


def record(redis_client):
    """Record what is in the log."""
    return recording.record_events(redis_client, EARTH)


def told():
    """Return what happened to incidents, in order: the key, the change, the user and the text."""
    changes = IncidentChange.objects.select_related("incident", "user")
    return [(one.incident.key, one.what, one.user and one.user.get_username(), one.text) for one in changes]


def keys(**chosen):
    """Return the keys of incidents in order."""
    return list(Incident.objects.filter(**chosen).order_by("pk").values_list("key", flat=True))


def test_an_entry_opens_an_incident_and_the_exit_closes_it_and_updates_do_neither(log, redis_client, user):
    query, quiet = watching(user), watching(user, severity="")
    publish(log, 0, [(query.pk, "a", *IN), (query.pk, "b", *STAY), (quiet.pk, "a", *IN)])
    publish(log, 1, [(query.pk, "a", *STAY)], [(query.pk, "c", LEFT, EXPIRED)])
    record(redis_client)
    (incident,) = Incident.objects.all()
    assert (incident.query, incident.key, incident.severity, incident.closed) == (query, "a", "critical", None)
    assert (incident.lon, incident.lat) == (1.0, 2.0)
    publish(log, 2, [(query.pk, "a", LEFT, EXPIRED)])
    record(redis_client)
    incident.refresh_from_db()
    assert incident.closed is not None and incident.closed == incident.left and incident.closed_by is None
    assert told() == [("a", "opened", None, ""), ("a", "closed", None, "expired")]


def test_an_incident_is_opened_once_however_often_the_log_is_read(log, redis_client, user):
    query = watching(user).pk
    for _ in range(3):
        publish(log, 0, [(query, "a", *IN)])
        publish(log, 1, [(query, "a", *OUT), (query, "b", *IN)])
        record(redis_client)
    assert keys() == ["a", "b"] and len(told()) == 3


@pytest.mark.parametrize("place", ["changed", "save"])
def test_a_worker_that_dies_leaves_events_and_incidents_for_the_next_one(log, redis_client, user, monkeypatch, place):
    query = watching(user).pk
    publish(log, 0, [(query, "a", *IN)])
    record(redis_client)
    publish(log, 1, [(query, "a", *OUT), (query, "b", *IN)])
    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
        of = getattr(incident_recording, place)

        def dies(*arguments):
            of(*arguments)
            raise ZeroDivisionError

        broken.setattr(incident_recording, place, dies)
        record(redis_client)
    assert (keys(closed=None), len(told()), Event.objects.count()) == (["a"], 1, 1)
    record(redis_client)
    record(redis_client)
    assert (keys(closed=None), len(told()), Event.objects.count()) == (["b"], 3, 3)


def test_what_is_written_with_changes_is_written_if_and_only_if_they_are(log, redis_client, user, monkeypatch):
    def deliver(changes):
        heard.append([(change.pk is not None, change.incident.key, change.what) for change in changes])
        if len(heard) == 1:
            raise ZeroDivisionError

    heard = []
    publish(log, 0, [(watching(user).pk, "a", *IN)])
    monkeypatch.setattr(incidents, "enqueue", deliver)
    with pytest.raises(ZeroDivisionError):
        record(redis_client)
    assert not Incident.objects.exists() and not Event.objects.exists()
    record(redis_client)
    assert heard == [[(True, "a", "opened")]] * 2


RECORDING = """
import django
django.setup()
from streaming.spaces import EARTH
from webapp.recording.recording import record_events
from webapp.bus.redis import waiting_client
while True:
    record_events(waiting_client(), EARTH)
"""


@pytest.mark.long
def test_workers_that_are_killed_at_any_moment_record_each_incident_once(log, redis_client, redis_server, user):
    query, draw, batches, left = watching(user).pk, random.Random(7), [], []
    places = {"LOOKOUT_REDIS_URL": redis_server, "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}"}
    environment = os.environ | places | {"DJANGO_SETTINGS_MODULE": "webapp.settings"}
    for _ in range(2):
        for _ in range(130):
            keys_of_batch = draw.sample("abcdefgh", 4)
            batches.append([(key, *draw.choice([IN, STAY, OUT])) for key in keys_of_batch])
            publish(log, len(batches) - 1, [(query, *row) for row in batches[-1]])
        before = IncidentChange.objects.count()
        with subprocess.Popen([sys.executable, "-c", RECORDING], env=environment) as worker:
            wait_for(lambda before=before: IncidentChange.objects.count() > before, "the worker's first step")
            worker.kill()
        left.append(log.event_log.length(LogNames("earth").events))
    assert any(left), "a worker was killed while there was something to record"
    record(redis_client)
    found = {}
    for incident in Incident.objects.order_by("pk"):
        found.setdefault(incident.key, []).append(incident.closed is not None)
    assert found == brute_force(batches)
    assert len(told()) == sum(1 + closed for mine in found.values() for closed in mine)


def brute_force(batches):
    """Return for each key whether each of its incidents is closed, given the rows of batches."""
    found = {}
    for key, sign, _ in (row for batch in batches for row in batch):
        mine = found.setdefault(key, [])
        if sign == ENTERED and (not mine or mine[-1]):
            mine.append(False)
        elif sign == LEFT and mine:
            mine[-1] = True
    return {key: mine for key, mine in found.items() if mine}


@pytest.mark.separate_seeds(*range(8))
def test_incidents_are_those_of_brute_force_wherever_the_log_is_cut(log, redis_client, user, seed):
    draw = random.Random(seed)
    query = watching(user).pk
    batches = [
        [(key, *draw.choice([IN, STAY, OUT])) for key in draw.sample("abcd", draw.randint(0, 4))] for _ in range(12)
    ]
    for number, rows in enumerate(batches):
        publish(log, number, [(query, *row) for row in rows])
        if draw.random() < 0.3:
            record(redis_client)
    record(redis_client)
    found = {}
    for incident in Incident.objects.order_by("pk"):
        found.setdefault(incident.key, []).append(incident.closed is not None)
    assert found == brute_force(batches)
    assert len(told()) == sum(1 + closed for mine in found.values() for closed in mine)


def test_the_number_of_statements_does_not_grow_with_the_events(log, redis_client, user):
    query, counted = watching(user).pk, []
    for batch, number in enumerate((3, 300)):
        publish(log, 2 * batch, [(query, f"{batch} {n}", *IN) for n in range(number)])
        record(redis_client)
        publish(log, 2 * batch + 1, [(query, f"{batch} {n}", *OUT) for n in range(number)])
        with CaptureQueriesContext(
            connection,
        ) as statements:
            record(redis_client)
        counted.append(len(statements))
    assert Incident.objects.exclude(closed=None).count() == 303
    assert counted[1] <= counted[0] + 8, "SQLite limits the parameters of a statement"


def test_incidents_are_opened_also_by_events_that_are_too_many_to_be_stored(log, redis_client, user, monkeypatch):
    monkeypatch.setattr(recording, "EVENTS_PER_STEP", 5)
    query, quiet = watching(user).pk, watching(user, severity="").pk
    publish(log, 0, [(query, f"k{n}", *IN) for n in range(20)], [(quiet, f"k{n}", *IN) for n in range(20)])
    assert record(redis_client) == 5
    assert len(keys()) == 20


def test_of_a_shared_answer_the_queries_with_a_severity_open_incidents(log, redis_client, user):
    info, none, critical = watching(user, "info").pk, watching(user, "").pk, watching(user).pk
    answer = ANSWER_NUMBERS + 7
    shared = replace(fragment(0, 0, [(answer, "a", *IN)]), shared={answer: (info, none, critical)})
    log.publish([shared, fragment(0, 1)])
    record(redis_client)
    assert set(Incident.objects.values_list("query", "severity")) == {(info, "info"), (critical, "critical")}


def test_an_incident_closed_by_hand_stays_closed_until_the_object_leaves_and_enters_again(log, redis_client, user):
    query = watching(user).pk
    publish(log, 0, [(query, "a", *IN)])
    record(redis_client)
    incidents.close(user, Incident.objects.get().pk)
    publish(log, 1, [(query, "a", *IN)])  # as an engine with a new state reports it again
    record(redis_client)
    assert (len(keys()), keys(closed=None)) == (1, [])
    publish(log, 2, [(query, "a", *OUT)])
    publish(log, 3, [(query, "a", *IN)])
    record(redis_client)
    assert (len(keys()), keys(closed=None)) == (2, ["a"])
    assert told()[1] == ("a", "closed", "ann", "by hand")
    assert [what for _, what, _, _ in told()] == ["opened", "closed", "opened"]


ENDS = {
    "paused": (lambda user, query: queries.edit(user, query, paused=True), "ann paused the query"),
    "changed": (
        lambda user, query: queries.edit(user, query, plan={**PLAN, "where": "a > 1"}),
        "ann changed what the query asks for",
    ),
    "quiet": (lambda user, query: queries.edit(user, query, severity=""), "ann made the query open no incidents"),
    "cancelled": (queries.cancel, "ann deleted the query"),
}


@pytest.mark.parametrize(("end", "why"), ENDS.values(), ids=ENDS)
def test_incidents_close_when_their_query_ends_or_changes_and_say_why(log, redis_client, user, streams, end, why):
    query = queries.register(user, "q", PLAN, severity="warning").pk
    publish(log, 0, [(query, "a", *IN), (query, "b", *IN)])
    record(redis_client)
    incidents.close(user, Incident.objects.get(key="b").pk)
    end(user, query)
    assert told()[-1] == ("a", "closed", None, why) and len(told()) == 4
    assert not Incident.objects.filter(left=None).exists()


def test_incidents_stay_open_when_their_query_is_renamed_or_saved_as_it_was(log, redis_client, user, streams):
    query = queries.register(user, "q", PLAN, severity="warning")
    publish(log, 0, [(query.pk, "a", *IN)])
    record(redis_client)
    queries.edit(user, query.pk, name="other", shared=True, plan=query.plan, severity="critical", paused=False)
    assert keys(closed=None, severity="warning") == ["a"]


def test_events_from_before_a_query_was_paused_open_nothing_after_it(log, redis_client, user, streams):
    query = queries.register(user, "q", PLAN, severity="warning").pk
    publish(log, 0, [(query, "a", *IN)])
    queries.edit(user, query, paused=True)
    assert record(redis_client) == 1
    assert keys() == []


def test_a_first_severity_opens_incidents_from_the_next_entries_on_and_a_resumed_query_for_its_whole_answer(
    engine, redis_client, user, streams
):
    (query,) = settled(queries.register(user, "q", PLAN))
    engine.move({"before": INSIDE})
    wait_for(lambda: record(redis_client), "the entry")
    settled(queries.edit(user, query.pk, severity="info"))
    engine.move({"after": INSIDE})
    wait_for(lambda: record(redis_client), "the next entry")
    assert keys() == ["after"]
    settled(queries.edit(user, query.pk, paused=True))
    settled(queries.edit(user, query.pk, paused=False))
    wait_for(lambda: record(redis_client) is not None and len(keys(closed=None)) == 2, "the whole answer")
    assert set(keys(closed=None)) == {"before", "after"} and len(keys()) == 3


def test_a_query_that_is_too_expensive_closes_its_incidents(log, redis_client, user):
    query = watching(user)
    publish(log, 0, [(query.pk, "a", *IN)])
    record(redis_client)
    cost = strain.Cost(query.pk, query.revision, 5_000)
    strain._pause(cost, strain.Dear((cost,), 5_000, 6_000))
    assert told()[-1][1:] == ("closed", None, "the query was paused, because it took too much of the engine's time")


def test_a_query_of_a_sketch_cannot_have_a_severity(user, streams, monkeypatch):
    monkeypatch.setattr(queries, "checked_plan", lambda plan, *_: plan)
    monkeypatch.setattr(queries, "weigh", lambda *_: None)
    with pytest.raises(Refused, match="a query of a sketch opens no incidents"):
        queries.register(user, "q", {"stream": "ships", "kind": "sketch"}, severity="info")


def test_thresholds_of_an_aggregate_open_incidents(log, redis_client, user):
    query = watching(user, plan=PLAN | {"aggregate": {"function": "count"}})
    figures = [("", ENTERED, None, 23), ("cargo", ENTERED, None, 3)]
    log.publish(of_aggregate(0, query.pk, *figures, ("", ENTERED, "above 20", 23), ("cargo", ENTERED, "above 2", 3)))
    record(redis_client)
    log.publish(of_aggregate(1, query.pk, ("", LEFT, "above 20", 20)))
    record(redis_client)
    stand = Incident.objects.order_by("key").values_list("key", "partner", "properties__value", "closed")
    assert [(*row[:3], row[3] is None) for row in stand] == [("", "above 20", 23, False), ("cargo", "above 2", 3, True)]


def test_encounters_open_incidents_with_their_times(log, redis_client, user):
    query = watching(user).pk
    for batch, (sign, until_us) in enumerate([(ENTERED, None), (STAYED, None), (LEFT, 90_000_000)]):
        part = fragment(batch, 1, [(query, "a", sign, MOVED)])
        columns = {"partner": "b", "partner_time_us": 70_000_000, "since_us": 60_000_000, "until_us": until_us}
        changes = part.changes
        for name, value in (columns | {"partner_bounds": [1.0] * 6, "distance": 5.5}).items():
            about = changes.schema.field(name)
            changes = changes.set_column(changes.schema.get_field_index(name), about, pa.array([value], about.type))
        log.publish([fragment(batch, 0), replace(part, changes=changes)])
    record(redis_client)
    (incident,) = Incident.objects.all()
    assert (incident.key, incident.partner) == ("a", "b")
    assert [time.timestamp() for time in (incident.opened, incident.closed)] == [60, 90]


def test_where_no_answer_is_kept_a_report_opens_the_next_incident_once_the_last_is_closed(log, redis_client, user):
    query = watching(user, plan=PLAN | {"emit": "all"})
    for batch in range(2):
        publish(log, batch, [(query.pk, "a", *IN)])
    record(redis_client)
    assert keys() == ["a"]
    incidents.close(user, Incident.objects.get().pk)
    publish(log, 2, [(query.pk, "a", *IN)])
    record(redis_client)
    assert (keys(), keys(closed=None)) == (["a", "a"], ["a"])


# What happens after events were lost.


def lose_events(log):
    """Remove what the recorder has not read."""
    events = LogNames("earth").events
    log.event_log.trim({events: log.event_log.newest(events)})


def unread(log):
    """Return whether the log has entries with rows that the recorder has not read."""
    return any(entry.fields[b"changes"] for entry in log.event_log.read(LogNames("earth").events))


def test_after_a_gap_incidents_are_those_of_the_answer(engine, redis_client, user, streams):
    settled(queries.register(user, "q", PLAN, severity="critical"))
    engine.move({"stays": INSIDE, "leaves": INSIDE, "closed": INSIDE})
    wait_for(lambda: record(redis_client) and len(keys()) == 3, "three incidents")
    incidents.close(user, Incident.objects.get(key="closed").pk)
    engine.move({"leaves": OUTSIDE, "enters": INSIDE})
    wait_for(lambda: unread(engine.log), "the batch that is lost")
    lose_events(engine.log)
    engine.move({"other": OUTSIDE})
    wait_for(lambda: record(redis_client) is not None and EventCursor.objects.get().check_at, "a gap")
    assert keys(closed=None) == ["stays", "leaves"]
    assert incident_check.check(redis_client, EARTH)
    assert keys(closed=None) == ["stays", "enters"]
    assert ("leaves", "closed", None, incident_check.LOST) in told()
    assert ("enters", "opened", None, "its entry was lost") in told()
    assert EventCursor.objects.get().check_at is None
    assert not incident_check.check(redis_client, EARTH), "once"
    record(redis_client)
    engine.move({"enters": OUTSIDE})
    wait_for(lambda: record(redis_client) and keys(closed=None) == ["stays"], "the exit")


def test_after_a_new_epoch_incidents_are_compared_once_all_objects_had_time_to_report(log, redis_client, user, streams):
    streams[0].ttl_s = 600
    streams[0].save()
    query = watching(user).pk
    publish(log, 7, [(query, "a", *IN), (query, "b", *IN)])
    record(redis_client)
    publish(log, 0, epoch="f")
    publish(log, 1, [(query, "a", *IN)], epoch="f")
    record(redis_client)
    assert keys(closed=None) == ["a", "b"], "what is reported again opens no second incident"
    due = EventCursor.objects.get().check_at - timezone.now()
    assert timedelta(seconds=590) < due <= timedelta(seconds=600)
    assert not incident_check.check(redis_client, EARTH)


def test_answers_that_do_not_come_are_asked_for_again(log, redis_client, user, monkeypatch, caplog):
    monkeypatch.setattr(incident_check, "PATIENCE_S", 0.01)
    query = watching(user).pk
    publish(log, 0, [(query, "a", *IN)])
    record(redis_client)
    EventCursor.objects.update(check_at=timezone.now())
    assert not incident_check.check(redis_client, EARTH)
    assert EventCursor.objects.get().check_at > timezone.now() and keys(closed=None) == ["a"]
    assert f"the answers of [{query}] did not come" in caplog.text


def test_an_answer_that_is_older_than_what_is_recorded_counts_for_nothing(log, redis_client, user):
    query = watching(user).pk
    for batch, row in enumerate([(query, "a", *IN), (query, "b", *IN)]):
        publish(log, batch, [row])
    record(redis_client)
    assert not incident_check._compare(query, incident_check._Answer("e", 0, []), EARTH)
    assert keys(closed=None) == ["a", "b"]
    assert incident_check._compare(query, incident_check._Answer("e", 1, []), EARTH)
    assert keys(closed=None) == []


# Actions.


@pytest.fixture
def incident(user):
    """Return an open incident of a query that is not shared."""
    return Incident.objects.create(query=watching(user), key="a", severity="critical", opened=timezone.now())


def test_each_action_is_a_change_with_its_user_and_time(incident, user, staff):
    began, until = timezone.now(), datetime(2099, 1, 2, 3, 4, tzinfo=UTC)
    incidents.acknowledge(user, incident.pk)
    incidents.acknowledge(staff, incident.pk)
    incidents.assign(user, incident.pk, "root")
    incidents.comment(staff, incident.pk, "on my way")
    incidents.snooze(staff, incident.pk, until)
    incidents.wake(staff, incident.pk)
    incidents.assign(staff, incident.pk, None)
    incidents.close(staff, incident.pk)
    incidents.close(user, incident.pk)
    incidents.comment(user, incident.pk, "well done")
    assert [row[1:] for row in told()] == [
        ("acknowledged", "ann", ""),
        ("assigned", "ann", "to root"),
        ("commented", "root", "on my way"),
        ("snoozed", "root", "until 2099-01-02 03:04 UTC"),
        ("woken", "root", ""),
        ("assigned", "root", "to nobody"),
        ("closed", "root", "by hand"),
        ("commented", "ann", "well done"),
    ]
    assert all(began <= at <= timezone.now() for at in IncidentChange.objects.values_list("at", flat=True))
    incident.refresh_from_db()
    assert (incident.acknowledged_by, incident.closed_by, incident.assigned_to) == (user, staff, None)


ACTIONS = {
    "acknowledge": lambda user, number: incidents.acknowledge(user, number),
    "assign": lambda user, number: incidents.assign(user, number, user.get_username()),
    "comment": lambda user, number: incidents.comment(user, number, "x"),
    "snooze": lambda user, number: incidents.snooze(user, number, timezone.now() + timedelta(hours=1)),
    "wake": lambda user, number: incidents.wake(user, number),
    "close": lambda user, number: incidents.close(user, number),
    "look": lambda user, number: incidents.detail(user, number),
}


@pytest.mark.parametrize("act", ACTIONS.values(), ids=ACTIONS)
def test_whoever_may_see_the_query_may_act_and_nobody_else(act, incident, user, other, staff):
    with pytest.raises(Refused) as refused:
        act(other, incident.pk)
    assert refused.value.code == "incident" and told() == []
    act(staff, incident.pk)
    Query.objects.update(shared=True)
    act(other, incident.pk)
    Query.objects.update(status=Query.CANCELLED)
    with pytest.raises(Refused):
        act(user, incident.pk)


def test_an_incident_can_only_be_assigned_to_who_may_act_on_it(incident, user, other, staff):
    for name in ("bob", "nobody"):
        with pytest.raises(Refused, match=f"to must be a user who may act on the incidents of the query; got '{name}'"):
            incidents.assign(user, incident.pk, name)
    assert incidents.detail(user, incident.pk)[2] == ["ann", "root"]
    Query.objects.update(shared=True)
    assert incidents.assign(user, incident.pk, "bob").assigned_to == other
    assert incidents.detail(user, incident.pk)[2] == ["ann", "bob", "root"]


def test_a_closed_incident_takes_comments_only_and_nobody_snoozes_into_the_past(incident, user):
    with pytest.raises(Refused, match="until must be in the future"):
        incidents.snooze(user, incident.pk, timezone.now())
    incidents.close(user, incident.pk)
    for act in (incidents.acknowledge, incidents.wake):
        with pytest.raises(Refused, match="the incident must be open"):
            act(user, incident.pk)


def test_a_page_has_the_newest_incidents_that_a_user_may_see(user, other, staff):
    mine, theirs, shared = watching(user), watching(other), watching(other, "info", shared=True)
    for number, query in enumerate((mine, theirs, shared, mine)):
        fields = {"key": str(number), "severity": query.severity, "opened": timezone.now()}
        Incident.objects.create(query=query, closed=timezone.now() if number == 3 else None, **fields)
    Incident.objects.filter(key="2").update(assigned_to=user)

    def found(**wanted):
        page, more, counted = incidents.page_of(user, incidents.IncidentFilter(**wanted))
        assert counted == {"info": 1, "warning": 0, "critical": 1}
        return [incident.key for incident in page], more

    assert found() == (["3", "2", "0"], False)
    assert found(state="open") == (["2", "0"], False)
    assert found(state="closed") == (["3"], False)
    assert found(severity="info") == found(mine=True) == (["2"], False)
    assert found(query=mine.pk) == (["3", "0"], False)
    assert found(limit=2) == (["3", "2"], True)
    assert found(limit=2, after=Incident.objects.get(key="2").pk) == (["0"], False)


def test_incidents_are_forgotten_some_days_after_they_were_closed(user):
    query, long_ago = watching(user), timezone.now() - timedelta(days=40)
    for key, closed, left, at in (
        ("open", None, None, long_ago),
        ("inside", long_ago, None, long_ago),
        ("old", long_ago, long_ago, long_ago),
        ("new", long_ago, long_ago, timezone.now()),
    ):
        about = {"query": query, "key": key, "severity": "info", "opened": long_ago, "closed": closed, "left": left}
        change = IncidentChange.objects.create(incident=Incident.objects.create(**about), what="opened")
        IncidentChange.objects.filter(pk=change.pk).update(at=at)
    assert (incidents.forget(41), incidents.forget(39)) == (0, 1)
    assert keys() == ["open", "inside", "new"]


# The websocket and the admin.


async def test_connections_that_see_the_query_hear_of_its_incidents(
    engine, redis_client, streams, user, other, staff, connect
):
    recorded = database_sync_to_async(record)
    async with connect(user) as mine, connect(other) as theirs:
        await mine.tell("query.register", id=1, name="Harbour", plan=PLAN, severity="critical")
        status = await mine.hear("query.status", id=1)
        assert status["severity"] == "critical"
        await mine.hear("query.status", query=status["query"], status="running")
        engine.move({"near": INSIDE})
        while not await recorded(redis_client):
            pass
        (opened,) = (await mine.hear("incident.status"))["incidents"]
        assert (opened["key"], opened["severity"], opened["name"], opened["closed"]) == (
            "near",
            "critical",
            "Harbour",
            None,
        )
        number = opened["incident"]
        await theirs.silence("incident.status")
        await theirs.tell("incident.get", id=2, incident=number)
        await theirs.hear("error", id=2, code="incident")
        await mine.tell("query.edit", query=status["query"], shared=True)
        await theirs.hear("query.status", query=status["query"])
        await theirs.tell("incident.list", id=3, state="open")
        listed = await theirs.hear("incident.listed", id=3)
        assert [one["incident"] for one in listed["incidents"]] == [number]
        assert (listed["open"], listed["next"]) == ({"info": 0, "warning": 0, "critical": 1}, None)
        await theirs.tell("incident.acknowledge", id=4, incident=number)
        (reply,) = (await theirs.hear("incident.status", id=4))["incidents"]
        assert reply["acknowledged_by"] == "bob"
        assert (await mine.hear("incident.status"))["incidents"] == [reply]
        await mine.tell("incident.comment", id=5, incident=number, text=" seen ")
        await mine.hear("incident.status", id=5)
        await mine.tell("incident.snooze", id=6, incident=number, until="2099-01-01T00:00:00+00:00")
        assert (await mine.hear("incident.status", id=6))["incidents"][0]["snoozed_until"]
        await mine.tell("incident.wake", id=7, incident=number)
        await mine.hear("incident.status", id=7)
        await mine.tell("incident.assign", id=8, incident=number, to="bob")
        assert (await mine.hear("incident.status", id=8))["incidents"][0]["assigned_to"] == "bob"
        engine.move({"near": OUTSIDE})
        while not await recorded(redis_client):
            pass
        await mine.tell("incident.get", id=9, incident=number)
        detail = await mine.hear("incident.detail", id=9)
        assert detail["people"] == ["ann", "bob", "root"]
        assert [(one["what"], one["user"], one["text"]) for one in detail["changes"]] == [
            ("opened", None, ""),
            ("acknowledged", "bob", ""),
            ("commented", "ann", "seen"),
            ("snoozed", "ann", "until 2099-01-01 00:00 UTC"),
            ("woken", "ann", ""),
            ("assigned", "ann", "to bob"),
            ("closed", None, "moved"),
        ]
        await mine.tell("incident.snooze", id=10, incident=number, until="tomorrow")
        await mine.hear("error", id=10, code="fields")


def test_the_admin_lists_incidents_and_nobody_changes_the_audit_log(incident, user, staff):
    client = Client()
    client.force_login(staff)
    page = client.get("/admin/webapp/incident/?state=open&severity__exact=critical")
    assert page.status_code == 200 and f"/{incident.pk}/change/" in page.content.decode()
    assert f"/{incident.pk}/change/" not in client.get("/admin/webapp/incident/?state=closed").content.decode()
    chosen = {"_selected_action": [incident.pk]}
    client.post("/admin/webapp/incident/", {"action": "acknowledge", **chosen})
    client.post("/admin/webapp/incident/", {"action": "close", **chosen})
    assert told() == [("a", "acknowledged", "root", ""), ("a", "closed", "root", "by hand")]
    shown = client.get(f"/admin/webapp/incident/{incident.pk}/change/").content.decode()
    assert "by hand" in shown and 'name="_save"' not in shown
    change = IncidentChange.objects.first()
    assert "by hand" in client.get("/admin/webapp/incidentchange/").content.decode()
    for kind, number in (("incident", incident.pk), ("incidentchange", change.pk)):
        assert client.post(f"/admin/webapp/{kind}/{number}/delete/", {"post": "yes"}).status_code == 403
        assert client.get(f"/admin/webapp/{kind}/add/").status_code == 403
        assert client.post(f"/admin/webapp/{kind}/{number}/change/", {"text": "other"}).status_code == 403
        assert "delete_selected" not in client.get(f"/admin/webapp/{kind}/").content.decode()
    assert len(told()) == 2


def test_a_query_that_the_admin_deletes_tells_of_its_incidents_and_takes_them_along(incident, user, staff, monkeypatch):
    heard, client = [], Client()
    client.force_login(staff)

    def deliver(changes):
        heard.extend((change.what, change.text) for change in changes)

    monkeypatch.setattr(incidents, "enqueue", deliver)
    client.post(f"/admin/webapp/query/{incident.query_id}/delete/", {"post": "yes"})
    assert heard == [("closed", "root deleted the query")]
    assert not Query.objects.exists() and not Incident.objects.exists()
