"""Queries on their way to the engine, views of the dead, definitions of streams."""

import json

import pytest
from celery.contrib.testing.worker import start_worker

from streaming.logs import LogNames
from tests.webapp.conftest import INSIDE, PLAN
from webapp import queries, recording, tasks
from webapp.celery import app as celery_app
from webapp.definitions import republish_streams
from webapp.liveness import WEBS_KEY, alive_key, retire_views, views_key
from webapp.models import Query

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = LogNames("earth")


def entries(client, op):
    """Return the control entries of an operation."""
    return [entry for _, fields in client.xrange(NAMES.control) if (entry := json.loads(fields[b"entry"]))["op"] == op]


def test_an_acknowledged_query_runs(engine, streams, user):
    query = queries.register(user, "one", PLAN)
    query.refresh_from_db()
    assert (query.status, query.acknowledged, query.error) == ("running", 1, "")


def test_without_an_engine_a_query_fails_with_the_reason_and_runs_once_there_is_one(
    project, streams, user, redis_client, tmp_path
):
    from tests.webapp.conftest import Rig

    project.ACK_TIMEOUT_S = 0.01
    celery_app.conf.task_eager_propagates = False  # an eager retry is raised after it was carried out
    query = queries.register(user, "one", PLAN)
    query.refresh_from_db()
    assert query.status == "failed"
    assert "no answer in 4 attempts" in query.error
    project.ACK_TIMEOUT_S = 5
    with Rig(redis_client, tmp_path / "late"):
        assert tasks.reconcile() == 1
    query.refresh_from_db()
    assert (query.status, query.error) == ("running", "")


def test_what_the_engine_refuses_fails_with_its_words(engine, streams, user):
    query = queries.register(user, "one", PLAN)
    Query.objects.filter(pk=query.pk).update(plan={"stream": "ships"}, revision=2, status="pending")
    tasks.register_query(query.pk)
    query.refresh_from_db()
    assert query.status == "failed"
    assert "needs an area or a compare box" in query.error
    assert tasks.reconcile() == 0


def test_reconciling_twice_registers_nothing_twice(engine, streams, user):
    engine.move({"near": INSIDE})
    query = queries.register(user, "one", PLAN)
    before = Query.objects.get(pk=query.pk)
    told = tasks.recording.record_events(engine.log.client, "earth")
    assert tasks.reconcile() == 1
    assert tasks.reconcile() == 1
    assert Query.objects.get(pk=query.pk).updated == before.updated
    assert recording.record_events(engine.log.client, "earth") == 0
    assert told == 1


def test_an_answer_to_an_older_revision_changes_nothing(engine, streams, user):
    query = queries.register(user, "one", PLAN)
    old = Query.objects.get(pk=query.pk)
    old.status, old.acknowledged = "pending", 0
    queries.edit(user, query.pk, paused=True)
    tasks.acknowledge(old, tasks.Acknowledgement(old.pk, old.revision, ""))
    assert Query.objects.get(pk=query.pk).status == "paused"


def test_paused_and_cancelled_queries_are_told_until_the_engine_knows(project, streams, user, redis_client, tmp_path):
    from tests.webapp.conftest import Rig

    project.ACK_TIMEOUT_S = 0.01
    celery_app.conf.task_eager_propagates = False  # an eager retry is raised after it was carried out
    query = queries.register(user, "one", PLAN)
    queries.cancel(user, query.pk)
    assert Query.objects.get(pk=query.pk).acknowledged == 0
    project.ACK_TIMEOUT_S = 5
    with Rig(redis_client, tmp_path / "late"):
        tasks.reconcile()
        assert Query.objects.get(pk=query.pk).acknowledged == 2
        assert tasks.reconcile() == 0
    assert Query.objects.get(pk=query.pk).status == "cancelled"


def test_a_deleted_query_ends_in_the_engine(engine, streams, user, redis_client):
    query = queries.register(user, "one", PLAN)
    number = query.pk
    query.delete()
    assert {"op": "cancel", "query": number, "revision": 2} in entries(redis_client, "cancel")


def test_a_worker_takes_a_query_to_the_engine(project, engine, streams, user, redis_server):
    celery_app.conf.task_always_eager = False
    with start_worker(celery_app, pool="solo", perform_ping_check=False, shutdown_timeout=20):
        query = queries.register(user, "one", PLAN)
        for _ in engine.log.client.xread({NAMES.acks: "0"}, block=10_000):
            pass
    query.refresh_from_db()
    assert query.status == "running"


def test_views_of_a_dead_web_process_are_cancelled_and_those_of_a_living_one_kept(redis_client):
    for web, view in (("dead", 2**40 + 1), ("alive", 2**40 + 2)):
        redis_client.sadd(WEBS_KEY, web)
        redis_client.sadd(views_key(web), view)
    redis_client.set(alive_key("alive"), "1")
    assert retire_views(redis_client, NAMES) == 1
    assert [entry["query"] for entry in entries(redis_client, "cancel")] == [2**40 + 1]
    assert retire_views(redis_client, NAMES) == 0
    assert redis_client.smembers(WEBS_KEY) == {b"alive"}


def test_saving_a_stream_publishes_its_definition(streams, redis_client):
    definition = json.loads(redis_client.hget("lookout:streams", "ships"))
    assert definition["transport"] == {"kind": "stdin"}
    assert definition["space"] == "earth"
    with redis_client.pubsub() as listener:
        listener.subscribe("lookout:streams:changed")
        listener.get_message(timeout=5)
        streams[0].enabled = False
        streams[0].save()
        assert listener.get_message(timeout=5)["data"] == b"ships"
        republish_streams()
        assert listener.get_message(timeout=0.05) is None
    streams[0].delete()
    assert redis_client.hkeys("lookout:streams") == [b"buses"]
    assert [entry["stream"] for entry in entries(redis_client, "drop_stream")] == ["ships"]


def test_redis_is_made_to_say_what_the_database_says(streams, redis_client):
    redis_client.flushall()
    redis_client.hset("lookout:streams", "gone", "{}")
    assert republish_streams() == 2
    assert sorted(redis_client.hkeys("lookout:streams")) == [b"buses", b"ships"]
