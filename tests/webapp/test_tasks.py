"""Queries on their way to the engine, views of the dead, definitions of streams."""

import json

import pytest
from celery.contrib.testing.worker import start_worker

from bench.live import PATIENCE_S
from streaming.eventlog import FIRST, RedisEventLog
from streaming.keys import WEBS_KEY, LogNames, alive_key, views_key
from streaming.spaces import EARTH
from tests.entries import control_entries
from tests.webapp.conftest import INSIDE, PLAN, Rig, reconciled, settled
from tests.webapp.test_recording import made
from webapp import tasks
from webapp.bus import sending
from webapp.bus.control import entry_of, tell_engine
from webapp.bus.definitions import republish
from webapp.bus.liveness import retire_views
from webapp.celery import app as celery_app
from webapp.models import Query, Team
from webapp.queries import queries
from webapp.recording import recording
from webapp.recording.settling import settle_acknowledged

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = LogNames("earth")


def entries(client, op):
    """Return the control entries of an operation."""
    return [entry for entry in control_entries(client) if entry["op"] == op]


def test_an_acknowledged_query_runs(engine, streams, user):
    (query,) = settled(queries.register(user, "one", PLAN))
    assert (query.status, query.acknowledged, query.error) == ("running", 1, "")


def test_a_task_appends_and_waits_for_nobody(streams, user, redis_client):
    query = queries.register(user, "one", PLAN)  # there is no engine
    assert [entry["query"] for entry in entries(redis_client, "register")] == [query.pk]
    assert Query.objects.get(pk=query.pk).status == "pending"


def test_the_engine_is_told_whether_a_query_counts_for_its_owner_or_for_a_team(streams, user, redis_client):
    query = queries.register(user, "one", PLAN)
    query.team = Team.objects.create(name="port")
    told = [json.loads(one["entry"])["owner"] for one in (entry_of(query), entry_of(Query(pk=9, plan=PLAN)))]
    assert [entry["owner"] for entry in entries(redis_client, "register")] == [user.pk]
    assert told == [-query.team.pk, 0]


def test_a_task_that_comes_again_or_late_sends_nothing_that_is_acknowledged(engine, streams, user, redis_client):
    (query,) = settled(queries.register(user, "one", PLAN))
    sending.send_query(query.pk)
    sending.send_query(10**6)
    assert len(entries(redis_client, "register")) == 1


def test_what_the_engine_has_acknowledged_is_not_told_again(engine, streams, user, redis_client):
    (before,) = settled(queries.register(user, "one", PLAN))
    assert before.epoch == engine.engine.layout.store.epoch()
    assert tasks.reconcile() == 0
    assert len(entries(redis_client, "register")) == 1
    assert Query.objects.get(pk=before.pk).updated == before.updated


def test_a_query_that_is_told_again_is_neither_registered_nor_written_again(streams, user, redis_client, tmp_path):
    with Rig(redis_client, tmp_path / "engine") as rig:
        rig.move({"near": INSIDE})
        (before,) = settled(queries.register(user, "one", PLAN))
        assert recording.record_events(redis_client, EARTH) == 1
        tell_engine(redis_client, "earth", [before])
        while rig.log.event_log.poll({NAMES.acks: FIRST}, 1, PATIENCE_S) == {}:
            pass
        assert settle_acknowledged(redis_client, ["earth"], 1) == 0
        assert Query.objects.get(pk=before.pk).updated == before.updated
        assert recording.record_events(redis_client, EARTH) == 0


def test_all_that_ran_runs_in_a_new_state_of_the_engine(streams, user, redis_client, tmp_path):
    with Rig(redis_client, tmp_path / "first"):
        running = [query.pk for query in settled(*(queries.register(user, name, PLAN) for name in "ab"))]
        (third,) = settled(queries.register(user, "c", PLAN))
        (paused,) = settled(queries.edit(user, third.pk, paused=True))
        assert tasks.reconcile() == 0
    redis_client.delete(NAMES.control)
    with Rig(redis_client, tmp_path / "second") as rig:
        assert reconciled() == 2
        registry = rig.engine.layout.store.registry(rig.engine.batch)
        assert registry.ids.tolist() == running
        assert tasks.reconcile() == 0
    assert set(Query.objects.values_list("status", "epoch")) == {
        ("running", rig.engine.layout.store.epoch()),
        ("paused", Query.objects.get(pk=paused.pk).epoch),
    }


def test_an_engine_that_is_away_is_sent_each_query_a_few_times_at_most(user, redis_client, monkeypatch):
    for _ in range(5):
        made(user)
    monkeypatch.setattr(tasks, "CHUNK", 2)
    monkeypatch.setattr(tasks, "CONTROL_ENTRIES_WAITING", 12)
    redis_client.hset(NAMES.engine, "epoch", "e")
    sent = [tasks.reconcile() for _ in range(20)]
    assert sent[:4] == [5, 5, 5, 0]
    assert sum(sent) == 15 == len(entries(redis_client, "register"))
    log = RedisEventLog(redis_client)
    log.trim({NAMES.control: log.newest(NAMES.control)})  # the engine is back, and has read them
    assert tasks.reconcile() == 5


def test_paused_and_cancelled_queries_are_told_until_the_engine_knows(streams, user, redis_client, tmp_path):
    query = queries.register(user, "one", PLAN)
    queries.cancel(user, query.pk)
    assert Query.objects.get(pk=query.pk).acknowledged == 0
    redis_client.flushall()  # nobody has read what was sent
    with Rig(redis_client, tmp_path / "late"):
        assert reconciled() == 1
        assert Query.objects.get(pk=query.pk).acknowledged == 2
        assert tasks.reconcile() == 0
    assert Query.objects.get(pk=query.pk).status == "cancelled"


def test_a_worker_takes_a_query_to_the_engine(project, engine, streams, user, redis_server):
    celery_app.conf.task_always_eager = False
    with start_worker(celery_app, pool="solo", perform_ping_check=False, shutdown_timeout=PATIENCE_S):
        (query,) = settled(queries.register(user, "one", PLAN))
    assert query.status == "running"


def test_views_of_a_dead_web_process_are_cancelled_and_those_of_a_living_one_kept(redis_client):
    for web, view in (("dead", 2**40 + 1), ("alive", 2**40 + 2)):
        redis_client.sadd(WEBS_KEY, web)
        redis_client.sadd(views_key(web), view)
    redis_client.set(alive_key("alive"), "1")
    assert retire_views(redis_client) == 1
    assert [entry["query"] for entry in entries(redis_client, "cancel")] == [2**40 + 1]
    assert retire_views(redis_client) == 0
    assert redis_client.smembers(WEBS_KEY) == {b"alive"}


def test_saving_a_stream_publishes_its_definition(streams, redis_client):
    definition = json.loads(redis_client.hget("lookout:streams", "ships"))
    assert definition["transport"] == {"kind": "stdin"}
    assert definition["space"] == "earth"
    republish()
    with redis_client.pubsub() as listener:
        listener.subscribe("lookout:streams:changed")
        listener.get_message(timeout=PATIENCE_S)
        streams[0].enabled = False
        streams[0].save()
        assert listener.get_message(timeout=PATIENCE_S)["data"] == b"ships"
        republish()
        assert listener.get_message(timeout=0.05) is None
    streams[0].delete()
    assert redis_client.hkeys("lookout:streams") == [b"buses"]
    assert [entry["stream"] for entry in entries(redis_client, "drop_stream")] == ["ships"]


def test_redis_is_made_to_say_what_the_database_says(streams, redis_client):
    redis_client.flushall()
    redis_client.hset("lookout:streams", "gone", "{}")
    assert republish() == 2
    assert sorted(redis_client.hkeys("lookout:streams")) == [b"buses", b"ships"]
