"""While Redis does not answer every request gets its reply; what was saved is told, and answers go on, once it does."""

import asyncio
import contextlib
import json
import logging
import threading
import time

import pytest
import redis
from channels.db import database_sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile

from bench.live import PATIENCE_S
from streaming.keys import STREAMS_KEY, LogNames
from streaming.results import VIEW_NUMBERS
from tests.full_redis import full
from tests.stopwatch import Stopwatch
from tests.webapp.conftest import BOX, INSIDE, OUTSIDE, PLAN, settled, until_told
from tests.webapp.mortal import MortalRedis
from tests.webapp.test_tasks import entries
from webapp.bus import groups, sending
from webapp.bus import redis as clients
from webapp.bus.liveness import WEBS_KEY, retire_views
from webapp.bus.redis import async_client, waiting_client
from webapp.bus.telling import TELLER, Teller
from webapp.celery import app as celery_app
from webapp.hub.hub import READ_WAIT_S
from webapp.layers import announce
from webapp.models import Layer, Query, Stream
from webapp.queries import queries
from webapp.recording.settling import WAIT_S

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = LogNames("earth")
SOON_S = 3.0
QUEUE = "celery"


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """Run a Redis that may be killed."""
    server = MortalRedis(tmp_path_factory.mktemp("redis"))
    yield server
    server.client.close()
    server.die()


@pytest.fixture
def redis_server(mortal):
    """Return the address of that Redis, in place of the one that always answers."""
    return mortal.url


@pytest.fixture
def redis_client(mortal, caplog):
    """Return its client, which waits for it; the log of the embedded Redis is not what is tested."""
    mortal.client.flushall()
    caplog.set_level(logging.CRITICAL, "webapp.hub")
    return mortal.client


@pytest.fixture
def workers(project):
    """Leave tasks in the queue, where workers would take them."""
    options = celery_app.conf.broker_transport_options
    celery_app.conf.update(task_always_eager=False, broker_transport_options={**options, "socket_timeout": 0.5})
    forget_connections()
    yield
    celery_app.conf.broker_transport_options = options
    forget_connections()


def forget_connections():
    """Have Celery connect to the Redis of its present settings."""
    celery_app.amqp._producer_pool = celery_app._pool = None


@contextlib.contextmanager
def away(mortal):
    """Have no Redis for a while."""
    mortal.die()
    try:
        yield
    finally:
        mortal.live()


async def until(condition, timeout_s=PATIENCE_S):
    """Wait until something holds."""
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


def sent_tasks(client):
    """Return the names and arguments of the tasks in the queue."""
    messages = [json.loads(message) for message in client.lrange(QUEUE, 0, -1)]
    return {(message["headers"]["task"].rpartition(".")[2], message["headers"]["argsrepr"]) for message in messages}


async def test_every_request_is_answered_at_once_and_what_it_changed_is_told_afterwards(
    mortal, workers, streams, user, connect
):
    async with connect(user) as socket, connect(user) as elsewhere:
        await socket.tell("query.register", id=1, name="before", plan=PLAN)
        before = (await socket.hear("query.status", id=1))["query"]
        await elsewhere.hear("query.status", query=before)
        mortal.client.delete(QUEUE)
        with away(mortal):
            watch = Stopwatch()
            await socket.tell("query.register", id=2, name="meanwhile", plan=PLAN)
            made = (await socket.hear("query.status", id=2))["query"]
            await socket.tell("query.edit", id=3, query=made, name="later", shared=True)
            assert (await socket.hear("query.status", id=3))["name"] == "later"
            await socket.tell("query.cancel", id=4, query=before)
            await socket.hear("query.status", id=4, status="cancelled")
            await socket.tell("view.subscribe", id=5, streams=["ships"], area=BOX)
            views = (await socket.hear("view.status", id=5))["views"]
            await socket.tell("query.subscribe", query=made)
            await socket.tell("query.snapshot", query=made)
            await socket.tell("examples.show", id=6, shown=False)
            await socket.hear("examples.shown", id=6)
            await socket.hear("engine.status", alive=None)
            assert watch.seconds() < SOON_S
            assert TELLER.waiting
        standing = {}
        while standing.get(made, {}).get("name") != "later" or standing.get(before, {}).get("status") != "cancelled":
            message = await elsewhere.hear("query.status")
            standing[message["query"]] = message
        await until(lambda: not TELLER.waiting)
        assert sent_tasks(mortal.client) == {("send_query", f"({made},)"), ("send_query", f"({before},)")}
        await until(lambda: {entry["query"] for entry in entries(mortal.client, "snapshot")} >= {made, views["ships"]})
        assert [entry["query"] for entry in entries(mortal.client, "register")] == [views["ships"]]
        assert views["ships"] >= VIEW_NUMBERS


async def test_while_redis_is_full_every_request_is_answered_and_what_it_changed_is_told_once_there_is_room(
    mortal, workers, streams, user, connect
):
    async with connect(user) as socket:
        await socket.hear("engine.status")
        with full(mortal.client):
            watch = Stopwatch()
            await socket.tell("query.register", id=1, name="meanwhile", plan=PLAN)
            made = (await socket.hear("query.status", id=1))["query"]
            await socket.tell("view.subscribe", id=2, streams=["ships"], area=BOX)
            views = (await socket.hear("view.status", id=2))["views"]
            await socket.tell("query.subscribe", query=made)
            await socket.hear("engine.status")
            assert watch.seconds() < SOON_S
            await until(lambda: TELLER.waiting)
            assert not sent_tasks(mortal.client) and not entries(mortal.client, "register")
        await until(lambda: not TELLER.waiting)
        assert sent_tasks(mortal.client) == {("send_query", f"({made},)")}
        await until(lambda: {entry["query"] for entry in entries(mortal.client, "snapshot")} >= {made, views["ships"]})
        assert [entry["query"] for entry in entries(mortal.client, "register")] == [views["ships"]]


async def test_a_redis_that_hangs_holds_a_request_up_but_not_the_others(
    project, mortal, workers, streams, user, connect
):
    project.REDIS_TIMEOUT_S = 0.4
    clients._client.cache_clear()
    async with connect(user) as socket:
        mortal.freeze()
        try:
            for number in range(5):
                watch = Stopwatch()
                await socket.tell("query.register", id=number, name=f"query {number}", plan=PLAN)
                await socket.hear("query.status", id=number)
            assert watch.seconds() < 0.4
        finally:
            mortal.thaw()
        await until(lambda: not TELLER.waiting)
        assert len(sent_tasks(mortal.client)) == 5
    clients._client.cache_clear()


async def test_a_connection_is_made_without_redis_and_gets_its_answers_once_there_is_one(
    mortal, streams, user, engine, connect
):
    engine.move({"near": INSIDE})
    query = await database_sync_to_async(queries.register)(user, "mine", PLAN)
    with away(mortal):
        connection = connect(user)
        socket = await connection.__aenter__()
        await socket.hear("hello")
        await socket.hear("query.status", query=query.pk)
        held = {"epoch": engine.engine.layout.store.epoch(), "batch": 1}
        await socket.tell("query.subscribe", query=query.pk, held=held)
        await socket.tell("view.subscribe", streams=["ships"], area=BOX)
        (view,) = (await socket.hear("view.status"))["views"].values()
    for number in (query.pk, view):
        snapshot = await socket.hear("answer.snapshot", query=number)
        assert [row["key"] for row in snapshot["rows"]] == ["near"]
    await connection.__aexit__(None, None, None)


async def test_what_changes_unheard_is_told_once_redis_is_back(mortal, workers, streams, user, connect):
    """As by a worker or another web process, whose words nobody hears."""
    first, second = [await database_sync_to_async(queries.register)(user, name, PLAN) for name in ("a", "b")]
    async with connect(user) as socket:
        await socket.hear("query.status", query=second.pk)
        with away(mortal):
            await Query.objects.filter(pk=first.pk).aupdate(status="running")
            await Query.objects.filter(pk=second.pk).aupdate(status="cancelled")
            await Stream.objects.filter(name="buses").aupdate(title="Coaches")
        await socket.hear("query.status", query=first.pk, status="running")
        await socket.hear_or_heard("query.status", query=second.pk, status="cancelled")
        assert "Coaches" in [stream["title"] for stream in (await socket.hear("stream.list"))["streams"]]
        await socket.hear("changes.missed")
        # From now on it hears again.
        await database_sync_to_async(announce)(Layer(name="squares", title="Squares", space_id="earth"))
        assert (await socket.hear("layer.status"))["layer"]["title"] == "Squares"


async def test_answers_go_on_without_a_gap(mortal, streams, user, engine, connect):
    query = await database_sync_to_async(queries.register)(user, "mine", PLAN)
    async with connect(user) as socket:
        await socket.tell("query.subscribe", query=query.pk)
        await socket.hear("answer.snapshot", query=query.pk)
        engine.move({"near": INSIDE})
        await socket.hear("answer.change", query=query.pk)
        with away(mortal):
            moving = threading.Thread(target=engine.move, args=({"near": OUTSIDE, "far": INSIDE},))
            moving.start()
        message = await socket.hear_any()
        while not message["type"].startswith("answer.") or message["type"] == "answer.held":
            message = await socket.hear_any()
        moving.join()
        assert message["type"] == "answer.change"
        assert sorted((row["sign"], row["key"]) for row in message["rows"]) == [("+", "far"), ("-", "near")]


async def test_views_that_were_retired_during_a_long_silence_begin_anew(project, mortal, streams, user, connect):
    project.WEB_PROCESS_TTL_S = 1
    async with connect(user) as socket:
        await socket.tell("view.subscribe", streams=["ships"], area=BOX)
        (view,) = (await socket.hear("view.status"))["views"].values()
        await until(lambda: len(entries(mortal.client, "register")) == 1)
        (web,) = mortal.client.smembers(WEBS_KEY)
        mortal.client.delete(f"lookout:web:{web.decode()}")
        assert retire_views(mortal.client) == 1
        await until(lambda: len(entries(mortal.client, "register")) == 2)
        begun, cancelled = entries(mortal.client, "register")[-1], entries(mortal.client, "cancel")[-1]
        assert begun["query"] == cancelled["query"] == view
        assert begun["revision"] > cancelled["revision"]


def test_a_stream_that_is_saved_and_a_query_that_is_deleted_are_told_afterwards(mortal, workers, streams, user):
    query = queries.register(user, "mine", PLAN)
    number = query.pk
    with away(mortal):
        Stream(name="trains", title="Trains", icon="train", transport="stdin", decoder="ais").save()
        Stream.objects.get(name="buses").delete()
        query.delete()
        assert TELLER.waiting
    until_told()
    assert set(mortal.client.hkeys(STREAMS_KEY)) == {b"ships", b"trains"}
    assert [entry["query"] for entry in entries(mortal.client, "cancel")] == [number]
    assert "buses" in [entry["stream"] for entry in entries(mortal.client, "drop_stream")]


def test_a_file_is_uploaded_and_its_import_begins_afterwards(project, mortal, workers, user, tmp_path, client):
    project.LAYERS_DIR = tmp_path
    client.force_login(user)
    point = b'{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2]}}'
    with away(mortal):
        watch = Stopwatch()
        file = SimpleUploadedFile("points.geojson", point)
        answer = client.post("/layers/", {"file": file, "name": "points", "title": "Points"})
        assert answer.status_code == 202, answer.content
        assert watch.seconds() < SOON_S
    until_told()
    assert [name for name, _ in sent_tasks(mortal.client)] == ["import_layer"]


def test_a_task_waits_for_redis(mortal, workers, streams, user, engine):
    query = queries.register(user, "mine", PLAN)
    with away(mortal):
        task = threading.Thread(target=sending.send_query, args=(query.pk,))
        task.start()
    task.join(PATIENCE_S)
    assert [query.status for query in settled(query)] == ["running"]


def test_no_blocking_read_is_longer_than_its_client_waits_for_a_reply():
    """One that was given up in the midst would be tried again, for ever."""
    waits_s = [made.connection_pool.make_connection().socket_timeout for made in (waiting_client(), async_client())]
    assert waits_s[0] > WAIT_S
    assert waits_s[1] > READ_WAIT_S


def test_words_are_told_in_order_the_last_about_each_thing_and_one_that_is_wrong_holds_up_none(caplog):
    teller, told, there = Teller(), [], threading.Event()

    def word(text):
        def tell():
            if not there.is_set():
                raise redis.ConnectionError("nobody there")
            told.append(text)

        return tell

    def wrong():
        raise ValueError("an error of ours")

    caplog.set_level(logging.CRITICAL, "webapp.bus.telling")
    teller.tell("a", word("a 1"))
    teller.tell("wrong", wrong)
    teller.tell("b", word("b 1"))
    teller.tell("a", word("a 2"))
    assert teller.waiting == 3
    there.set()
    while teller.waiting:
        time.sleep(0.01)
    assert told == ["b 1", "a 2"]
    teller.tell("c", word("c 1"))
    assert told[-1] == "c 1"


async def test_a_connection_that_lets_too_much_wait_hears_that_it_missed_something(mortal, monkeypatch):
    monkeypatch.setattr(groups, "CAPACITY", 3)
    layer = groups.RedisGroups()
    channel = await layer.new_channel()
    await layer.group_add("some", channel)
    for number in range(4):
        groups.send("some", {"type": "news", "number": number})
    groups.send("others", {"type": "news", "number": 5})
    await until(lambda: layer._ear.queues[channel].qsize() == 1)
    assert await layer.receive(channel) == groups.MISSED
    groups.send("some", {"type": "news", "number": 6})
    assert (await layer.receive(channel))["number"] == 6
    layer.drop_channel(channel)
    assert not layer._ear.queues and not layer._ear.groups
