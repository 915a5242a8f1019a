"""Queries on their way to the engine, views of the dead, definitions of streams."""

import json
from collections import Counter

import orjson
import pytest
from celery.contrib.testing.worker import start_worker

from bench.live import PATIENCE_S
from streaming.logs import GROUPS_CHANNEL, LogNames
from streaming.spaces import EARTH
from tests.entries import control_entries
from tests.webapp.conftest import INSIDE, PLAN, Rig
from tests.webapp.test_recording import made
from webapp import queries, recording, tasks
from webapp.celery import app as celery_app
from webapp.control import Acknowledgement, tell_engine
from webapp.definitions import republish
from webapp.liveness import WEBS_KEY, alive_key, retire_views, views_key
from webapp.models import Query
from webapp.notify import SHARED_GROUP, user_group

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = LogNames("earth")


def entries(client, op):
    """Return the control entries of an operation."""
    return [entry for entry in control_entries(client) if entry["op"] == op]


def test_an_acknowledged_query_runs(engine, streams, user):
    query = queries.register(user, "one", PLAN)
    query.refresh_from_db()
    assert (query.status, query.acknowledged, query.error) == ("running", 1, "")


def test_without_an_engine_a_query_fails_with_the_reason_and_runs_once_there_is_one(
    project, streams, user, redis_client, tmp_path
):
    project.ACK_TIMEOUT_S = 0.01
    celery_app.conf.task_eager_propagates = False  # an eager retry is raised after it was carried out
    query = queries.register(user, "one", PLAN)
    query.refresh_from_db()
    assert query.status == "failed"
    assert "no answer in 4 attempts" in query.error
    project.ACK_TIMEOUT_S = PATIENCE_S
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


def test_what_the_engine_has_acknowledged_is_not_told_again(engine, streams, user, redis_client):
    query = queries.register(user, "one", PLAN)
    before = Query.objects.get(pk=query.pk)
    assert before.epoch == engine.engine.layout.store.epoch()
    assert tasks.reconcile() == 0
    assert len(entries(redis_client, "register")) == 1
    assert Query.objects.get(pk=query.pk).updated == before.updated


def test_a_query_that_is_told_again_is_neither_registered_nor_written_again(engine, streams, user):
    engine.move({"near": INSIDE})
    query = queries.register(user, "one", PLAN)
    before = Query.objects.get(pk=query.pk)
    assert recording.record_events(engine.log.client, EARTH) == 1
    answers = tell_engine(engine.log.client, NAMES, [query], 5)
    assert tasks.settle(answers) == 0
    assert Query.objects.get(pk=query.pk).updated == before.updated
    assert recording.record_events(engine.log.client, EARTH) == 0


def test_all_that_ran_runs_in_a_new_state_of_the_engine(streams, user, redis_client, tmp_path):
    with Rig(redis_client, tmp_path / "first"):
        running = [queries.register(user, name, PLAN).pk for name in "ab"]
        paused = queries.edit(user, queries.register(user, "c", PLAN).pk, paused=True)
        assert tasks.reconcile() == 0
    redis_client.delete(NAMES.control)
    with Rig(redis_client, tmp_path / "second") as rig:
        assert tasks.reconcile() == 2
        registry = rig.engine.layout.store.registry(rig.engine.batch)
        assert registry.ids.tolist() == running
        assert tasks.reconcile() == 0
    assert set(Query.objects.values_list("status", "epoch")) == {
        ("running", rig.engine.layout.store.epoch()),
        ("paused", Query.objects.get(pk=paused.pk).epoch),
    }


class Scripted:
    """Stands for `tell_engine`: answers the calls that it is told to, and remembers all."""

    def __init__(self, *answers):
        self.answers, self.told = list(answers), []

    def __call__(self, client, names, told, timeout_s):
        self.told.append([query.pk for query in told])
        return {query.pk: answer(query) for query in told} if self.answers.pop(0) else {}


def answer(query, error="", epoch="e"):
    """Return an acknowledgement of a query's present revision."""
    return Acknowledgement(query.pk, query.revision, error, epoch)


def test_a_reconciliation_that_meets_silence_is_carried_on_by_the_next(user, redis_client, monkeypatch):
    a, b, c, d, e = (made(user).pk for _ in range(5))
    engine = Scripted(True, False, True, True)
    redis_client.hset(NAMES.engine, "epoch", "e")
    monkeypatch.setattr(tasks, "CHUNK", 2)
    monkeypatch.setattr(tasks, "tell_engine", engine)
    assert tasks.reconcile() == 2
    assert tasks.reconcile() == 3
    assert engine.told == [[a, b], [c, d], [c, d], [e]]


def test_a_reconciliation_begins_nothing_more_once_the_next_is_due(user, redis_client, monkeypatch):
    a, b, c = (made(user).pk for _ in range(3))
    engine = Scripted(True, True)
    redis_client.hset(NAMES.engine, "epoch", "e")
    monkeypatch.setattr(tasks, "CHUNK", 2)
    monkeypatch.setattr(tasks, "RECONCILE_S", -1)
    monkeypatch.setattr(tasks, "tell_engine", engine)
    assert [tasks.reconcile(), tasks.reconcile(), tasks.reconcile()] == [2, 1, 0]
    assert engine.told == [[a, b], [c]]


def test_an_answer_that_comes_after_its_query_failed_makes_it_run(project, streams, user, redis_client, tmp_path):
    project.ACK_TIMEOUT_S = 0.01
    celery_app.conf.task_eager_propagates = False  # an eager retry is raised after it was carried out
    query = queries.register(user, "one", PLAN)
    assert tasks.settle_late() == 0
    assert Query.objects.get(pk=query.pk).status == "failed"
    with Rig(redis_client, tmp_path / "late"):
        redis_client.xread({NAMES.acks: "0"}, block=10_000)
        assert tasks.settle_late() == 1
        assert tasks.settle_late() == 0
    query.refresh_from_db()
    assert (query.status, query.error) == ("running", "")


def test_a_task_that_gives_up_leaves_alone_what_was_acknowledged_meanwhile(user, monkeypatch):
    query = made(user)

    def unheard(*_):
        tasks.settle({query.pk: answer(query)})
        return {}

    monkeypatch.setattr(tasks, "tell_engine", unheard)
    tasks.register_query.apply((query.pk,), retries=tasks.RETRIES)
    assert Query.objects.get(pk=query.pk).status == "running"


def test_many_answers_are_written_at_once_and_each_group_is_told_in_one_message(
    user, other, redis_client, django_assert_max_num_queries
):
    told = [made(owner, shared=shared) for owner in (user, other) for shared in (False, True) for _ in range(25)]
    answers = {query.pk: answer(query) for query in told} | {told[0].pk: answer(told[0], "no such area")}
    with redis_client.pubsub() as listener:
        listener.subscribe(GROUPS_CHANNEL)
        listener.get_message(timeout=PATIENCE_S)
        with django_assert_max_num_queries(5):  # begin, select, an update for each outcome, commit
            assert tasks.settle(answers) == 100
        told = [orjson.loads(listener.get_message(timeout=PATIENCE_S)["data"])[0] for _ in range(3)]
        assert listener.get_message(timeout=0.05) is None
    assert sorted(told) == sorted((user_group(user.pk), user_group(other.pk), SHARED_GROUP))
    standing = Query.objects.values_list("status", "error", "acknowledged", "epoch")
    assert Counter(standing) == {("running", "", 1, "e"): 99, ("failed", "no such area", 1, "e"): 1}


def test_an_answer_to_an_older_revision_changes_nothing(engine, streams, user):
    query = queries.register(user, "one", PLAN)
    old = Query.objects.get(pk=query.pk)
    queries.edit(user, query.pk, paused=True)
    assert tasks.settle({old.pk: answer(old)}) == 0
    assert Query.objects.get(pk=query.pk).status == "paused"


def test_paused_and_cancelled_queries_are_told_until_the_engine_knows(project, streams, user, redis_client, tmp_path):
    project.ACK_TIMEOUT_S = 0.01
    celery_app.conf.task_eager_propagates = False  # an eager retry is raised after it was carried out
    query = queries.register(user, "one", PLAN)
    queries.cancel(user, query.pk)
    assert Query.objects.get(pk=query.pk).acknowledged == 0
    project.ACK_TIMEOUT_S = PATIENCE_S
    with Rig(redis_client, tmp_path / "late"):
        tasks.reconcile()
        assert Query.objects.get(pk=query.pk).acknowledged == 2
        assert tasks.reconcile() == 0
    assert Query.objects.get(pk=query.pk).status == "cancelled"


def test_a_worker_takes_a_query_to_the_engine(project, engine, streams, user, redis_server):
    celery_app.conf.task_always_eager = False
    with start_worker(celery_app, pool="solo", perform_ping_check=False, shutdown_timeout=PATIENCE_S):
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
