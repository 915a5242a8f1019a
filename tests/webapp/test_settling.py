"""What the engines acknowledge reaches the database once, through the death of whoever saves it."""

import json
import threading
import time
from collections import Counter
from datetime import timedelta

import orjson
import pytest
from django.utils import timezone

from bench.live import PATIENCE_S
from streaming.eventlog import BoundedEntry, RedisEventLog, Stamp
from streaming.keys import GROUPS_CHANNEL, LogNames
from streaming.logs import ACKS_KEPT
from streaming.results import VIEW_NUMBERS
from tests.webapp.conftest import INSIDE, PLAN, Rig, reconciled, settled
from tests.webapp.test_recording import made
from webapp import tasks
from webapp.bus import sending
from webapp.bus.control import Acknowledgement
from webapp.bus.notify import SHARED_GROUP, user_group
from webapp.models import DeletedQuery, Query
from webapp.queries import queries
from webapp.recording import settling
from webapp.recording.settling import Settler, fail_overdue, settle, settle_acknowledged

pytestmark = pytest.mark.django_db(transaction=True)
ACKS = LogNames("earth").acks


def answer(query, error="", epoch="e"):
    """Return an acknowledgement of a query's present revision."""
    return Acknowledgement(query.pk, query.revision, error, epoch)


@pytest.fixture
def acknowledge(redis_client):
    """Return a function that appends acknowledgements, of queries by revision, as the engine does."""
    batches = iter(range(10**6))

    def append(*told, epoch="e", space="earth", error=None):
        acks = [{"query": query, "revision": revision, "op": "register", "error": error} for query, revision in told]
        number = next(batches)
        fields = {"acks": json.dumps(acks), "batch": number, "epoch": epoch}
        entry = BoundedEntry(LogNames(space).acks, fields, ACKS_KEPT)
        assert RedisEventLog(redis_client).append_once(Stamp("0", epoch, number), [entry])

    return append


def test_what_is_settled_is_removed_from_the_log(user, redis_client, acknowledge):
    one, other = made(user), made(user)
    acknowledge((one.pk, 1), (VIEW_NUMBERS + 7, 1))
    acknowledge((other.pk, 1), error="no such area")
    assert settle_acknowledged(redis_client, ["earth"], 0.001) == 2
    assert RedisEventLog(redis_client).length(ACKS) == 0
    assert settle_acknowledged(redis_client, ["earth"], 0.001) == 0
    assert list(Query.objects.order_by("pk").values_list("status", "error", "acknowledged", "epoch")) == [
        ("running", "", 1, "e"),
        ("failed", "no such area", 1, "e"),
    ]


def test_what_a_dying_worker_has_not_saved_is_settled_by_the_next(user, redis_client, acknowledge, monkeypatch):
    query = made(user)
    acknowledge((query.pk, 1))
    with monkeypatch.context() as dying, pytest.raises(ZeroDivisionError):
        dying.setattr(settling, "_save", lambda queries: 1 / 0)
        settle_acknowledged(redis_client, ["earth"], 0.001)
    with monkeypatch.context() as dying, pytest.raises(ZeroDivisionError):  # it is saved, but not removed
        dying.setattr(RedisEventLog, "trim", lambda *_: 1 / 0)
        settle_acknowledged(redis_client, ["earth"], 0.001)
    updated = Query.objects.get().updated
    assert Query.objects.get().status == "running"
    assert settle_acknowledged(redis_client, ["earth"], 0.001) == 0
    assert Query.objects.get().updated == updated
    assert RedisEventLog(redis_client).length(ACKS) == 0


def test_a_late_acknowledgement_of_an_older_revision_hides_no_newer_one(user, redis_client, acknowledge):
    query = made(user, revision=2)
    acknowledge((query.pk, 2))
    acknowledge((query.pk, 1))
    assert settle_acknowledged(redis_client, ["earth"], 0.001) == 1
    assert Query.objects.get().acknowledged == 2


def test_the_state_that_acknowledged_last_counts(user, redis_client, acknowledge):
    query = made(user)
    acknowledge((query.pk, 1), epoch="first")
    acknowledge((query.pk, 1), epoch="second")
    settle_acknowledged(redis_client, ["earth"], 0.001)
    assert Query.objects.get().epoch == "second"


def test_many_acknowledgements_are_settled_some_at_a_time(user, redis_client, acknowledge, monkeypatch):
    monkeypatch.setattr(settling, "CHUNK", 3)
    monkeypatch.setattr(settling, "ENTRIES_PER_READ", 2)
    told = [made(user).pk for _ in range(20)]
    for query in told:
        acknowledge((query, 1))
    rounds = 0
    while settle_acknowledged(redis_client, ["earth"], 0.001):
        rounds += 1
    assert rounds == 10
    assert Counter(Query.objects.values_list("status", flat=True)) == {"running": 20}


def test_the_logs_of_all_spaces_are_waited_for_together(user, redis_client, acknowledge):
    query, done = made(user), []
    spaces = ["earth", "prices"]
    waiting = threading.Thread(target=lambda: done.append(settle_acknowledged(redis_client, spaces, PATIENCE_S)))
    waiting.start()
    while not redis_client.info("clients")["blocked_clients"]:
        assert waiting.is_alive()
    acknowledge((query.pk, 1), space="prices")
    waiting.join(PATIENCE_S)
    assert done == [1]


def test_an_end_that_is_acknowledged_is_sent_no_more(user, redis_client, acknowledge):
    query = made(user)
    query.delete()
    deleted = DeletedQuery.objects.get()
    acknowledge((deleted.pk, 1))  # of the registration, not of the end
    settle_acknowledged(redis_client, ["earth"], 0.001)
    assert tasks.reconcile() == 1
    acknowledge((deleted.pk, deleted.revision))
    settle_acknowledged(redis_client, ["earth"], 0.001)
    assert tasks.reconcile() == 0
    assert not DeletedQuery.objects.exists()


def test_without_an_engine_a_query_fails_with_the_reason_and_runs_once_there_is_one(
    project, streams, user, redis_client, tmp_path
):
    project.ACK_TIMEOUT_S = 3600
    query = queries.register(user, "one", PLAN)
    assert fail_overdue() == 0
    Query.objects.update(updated=timezone.now() - timedelta(seconds=3601))
    assert fail_overdue() == 1
    query.refresh_from_db()
    assert (query.status, query.error) == (
        "failed",
        "the engine must acknowledge a query within 3600 s; got no answer",
    )
    assert fail_overdue() == 0
    redis_client.flushall()  # and what was sent is gone, too
    with Rig(redis_client, tmp_path / "late"):
        assert reconciled() == 1
    query.refresh_from_db()
    assert (query.status, query.error) == ("running", "")


def test_an_answer_that_comes_after_its_query_failed_makes_it_run(project, streams, user, redis_client, tmp_path):
    project.ACK_TIMEOUT_S = 0.0
    query = queries.register(user, "one", PLAN)
    assert fail_overdue() == 1
    with Rig(redis_client, tmp_path / "late"):
        (query,) = settled(query)
    assert (query.status, query.error) == ("running", "")


def test_only_pending_queries_fail_by_silence(project, user):
    project.ACK_TIMEOUT_S = 0.0
    acknowledged = made(user, status=Query.RUNNING, acknowledged=1)
    for status in (Query.PAUSED, Query.CANCELLED, Query.WAITING, Query.RUNNING):
        made(user, status=status)
    pending = made(user)
    assert fail_overdue() == 1
    assert Query.objects.get(status=Query.FAILED).pk == pending.pk
    assert Query.objects.get(pk=acknowledged.pk).status == "running"


def test_what_the_engine_refuses_fails_with_its_words(engine, streams, user):
    (query,) = settled(queries.register(user, "one", PLAN))
    Query.objects.filter(pk=query.pk).update(plan={"stream": "ships"}, revision=2, status="pending")
    sending.send_query(query.pk)
    (query,) = settled(query)
    assert query.status == "failed"
    assert "needs an area or a compare box" in query.error
    assert tasks.reconcile() == 0


def test_many_answers_are_written_at_once_and_each_group_is_told_in_one_message(
    user, other, redis_client, django_assert_max_num_queries
):
    told = [made(owner, shared=shared) for owner in (user, other) for shared in (False, True) for _ in range(25)]
    answers = {query.pk: answer(query) for query in told} | {told[0].pk: answer(told[0], "no such area")}
    with redis_client.pubsub() as listener:
        listener.subscribe(GROUPS_CHANNEL)
        listener.get_message(timeout=PATIENCE_S)
        with django_assert_max_num_queries(5):  # begin, select, an update for each outcome, commit
            assert settle(answers) == 100
        told = [orjson.loads(listener.get_message(timeout=PATIENCE_S)["data"])[0] for _ in range(3)]
        assert listener.get_message(timeout=0.05) is None
    assert sorted(told) == sorted((user_group(user.pk), user_group(other.pk), SHARED_GROUP))
    standing = Query.objects.values_list("status", "error", "acknowledged", "epoch")
    assert Counter(standing) == {("running", "", 1, "e"): 99, ("failed", "no such area", 1, "e"): 1}


def test_an_answer_to_an_older_revision_changes_nothing(engine, streams, user):
    (old,) = settled(queries.register(user, "one", PLAN))
    queries.edit(user, old.pk, paused=True)
    assert settle({old.pk: answer(old)}) == 0
    assert Query.objects.get(pk=old.pk).status == "paused"


def test_a_settler_goes_on_after_a_failure(user, redis_client, acknowledge, monkeypatch):
    query, failures = made(user), iter([ZeroDivisionError()])
    works = settling.settle_acknowledged

    def once_failing(*arguments):
        for failure in failures:
            raise failure
        return works(*arguments)

    monkeypatch.setattr(settling, "RETRY_S", 0.01)
    monkeypatch.setattr(settling, "settle_acknowledged", once_failing)
    settler = Settler(wait_s=0.05)
    settler.start()
    acknowledge((query.pk, 1))
    deadline_s = time.monotonic() + PATIENCE_S
    while Query.objects.get().status != "running":
        assert time.monotonic() < deadline_s
    settler.stop()


async def test_a_client_sees_its_query_run_as_soon_as_the_engine_has_it(engine, streams, user, connect):
    engine.move({"near": INSIDE})
    async with connect(user) as socket:
        for number in range(3):
            await socket.tell("query.register", id=number, name="one", plan=PLAN)
            made_here = (await socket.hear("query.status", id=number))["query"]
            began_s = time.monotonic()
            await socket.hear_or_heard("query.status", query=made_here, status="running")
            assert time.monotonic() - began_s < PATIENCE_S / 4
