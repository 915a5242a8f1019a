"""What the web tests need: the project on a private Redis and database, a running engine, users, and clients."""

import asyncio
import json
import threading
import time
from contextlib import ExitStack, asynccontextmanager
from types import SimpleNamespace

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth import get_user_model
from django.core.management.color import no_style
from django.db import connection
from django.test import Client, TransactionTestCase

from bench.live import PATIENCE_S
from streaming.elements import from_ipc, point_elements
from streaming.eventlog import FIRST
from streaming.gateway.access import FeedAccess
from streaming.keys import LogNames
from streaming.logs import Log
from streaming.results import read_frame
from streaming.spaces import EARTH, space_document
from tests.layers.forked import ForkedImport
from tests.servers.harness import Engine
from webapp import tasks
from webapp.bus.redis import event_log, waiting_client
from webapp.bus.telling import TELLER
from webapp.celery import app as celery_app
from webapp.consumers.monitor import Monitor
from webapp.hub import Hub
from webapp.models import ApiToken, Query, Space, Stream
from webapp.models.spaces import spaces_by_name
from webapp.recording.settling import Settler, settle_acknowledged

BOX = {"lo": [10, 50], "hi": [20, 60]}
INSIDE, OUTSIDE = (15.0, 55.0), (30.0, 55.0)
PLAN = {"stream": "ships", "compare": BOX}
# No query has this number: numbers go on over the tests of a run, so a small one may be somebody's.
NO_QUERY = 10**9
ORIGIN, HOST = (b"origin", b"http://localhost:8000"), (b"host", b"localhost:8000")
# The engine of a test reads this many entries of a log at a time.
MOST_ENTRIES = 10_000
PASSWORD = "a long pass phrase"


@pytest.fixture(autouse=True)
def project(settings, redis_server, redis_client):
    """Point the project at the private Redis; tasks run where they are sent from."""
    settings.REDIS_URL = redis_server
    settings.DELIVERY_ACCESS = FeedAccess(hosts=("127.0.0.1",), setting=settings.DELIVERY_HOSTS)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    celery_app.conf.update(broker_url=redis_server, task_always_eager=True, task_eager_propagates=True)
    yield settings
    # What a test without Redis left untold must not be told during the next.
    settings.REDIS_URL = redis_server
    until_told()


@pytest.fixture(autouse=True, scope="session")
def emptied():
    """Empty after a test the tables that tests write to; Django would make all permissions again each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty())
        yield


def empty():
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    written = [table for table in tables if table not in ("django_content_type", "auth_permission")]
    connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), written, allow_cascade=False))


@pytest.fixture(autouse=True)
def forked_imports(monkeypatch):
    """Fork the processes of imports; tests/layers starts them as the project does."""
    monkeypatch.setattr("streaming.layers.child.subprocess", SimpleNamespace(Popen=ForkedImport, PIPE=None))


@pytest.fixture(autouse=True)
def earth(project, request):
    """Make the built-in space again: what the migrations made is gone once a test has committed."""
    if uses_database(request):
        request.getfixturevalue("transactional_db")
        definition = {name: value for name, value in space_document(EARTH).items() if name != "name"}
        Space.objects.get_or_create(name=EARTH.name, defaults={"title": "Earth", "definition": definition})


def uses_database(request):
    """Return whether a test has a database."""
    return bool(request.node.get_closest_marker("django_db") or "transactional_db" in request.fixturenames)


def until_told():
    """Wait until nothing waits to be told."""
    deadline_s = time.monotonic() + PATIENCE_S
    while TELLER.waiting and time.monotonic() < deadline_s:
        time.sleep(0.01)


class Rig:
    """The engine's home and region tasks in a thread, on the real logs; Spark would run the same tasks.

    Parameters
    ----------
    client : redis.Redis
    root : pathlib.Path
        For the engine's state files.
    space : Space
    """

    def __init__(self, client, root, space=EARTH):
        self.log, self.space = Log(client, space.name, 2), space
        # The web application stores layers there in the tests that import some.
        self.engine = Engine(root, space=space, layers=root.parent / "layers", rescaled=0.0)
        self.batches = 0
        self._names = (self.log.names.definitions, self.log.names.control, *map(self.log.names.ingest, range(2)))
        self._read = dict.fromkeys(self._names, FIRST)
        self._done = dict(self._read)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.log.client.hset(self.log.names.engine, "epoch", self.engine.layout.store.epoch())
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _run(self):
        while not self._ended.is_set():
            arrived = self.log.event_log.poll(self._read, MOST_ENTRIES, 0.05)
            if arrived:
                self._turn(arrived)

    def _turn(self, arrived):
        for name, entries in arrived.items():
            self._read[name] = entries[-1].position
        told = [entry for name in self._names[:2] for entry in arrived.pop(name, ())]
        control = [json.loads(entry.fields[b"entry"]) for entry in told]
        blocks = [entry.fields for entries in arrived.values() for entry in entries]
        elements = [(b[b"stream"].decode(), int(b[b"heard_us"]), from_ipc(b[b"block"])) for b in blocks]
        self.log.publish(self.engine.run(elements, control))
        self.batches, self._done = self.batches + 1, dict(self._read)

    def caught_up(self):
        """Tell whether batches that have ended have read all that the logs hold; the next one may read a part."""
        return all(self.log.event_log.newest(name) == position for name, position in self._done.items())

    def move(self, positions, stream="ships", at_us=None, properties=None):
        """Tell where objects are: coordinates by key."""
        now_us = time.time_ns() // 1000
        keys = list(positions)
        times = [at_us or now_us] * len(keys)
        coordinates = [positions[key] for key in keys]
        table = point_elements(stream, keys, times, coordinates, [properties] * len(keys), self.space)
        self.log.ingest(table, stream, at_us or now_us)


@pytest.fixture
def engine(redis_client, tmp_path, request):
    """Run an engine; with a database, settle what it acknowledges, as a worker does."""
    with Rig(redis_client, tmp_path / "engine") as rig, ExitStack() as stack:
        if uses_database(request):
            settler = Settler(wait_s=0.05)
            settler.start()
            stack.callback(settler.stop)
        yield rig


def settled(*queries):
    """Settle what the engines acknowledge until they have acknowledged queries as the database has them; return those.

    They are in the order of their numbers. All clients that are connected have been sent how the queries stand.
    """
    found, began_s = Query.objects.filter(pk__in=[query.pk for query in queries]).order_by("pk"), time.monotonic()
    client, spaces = waiting_client(), spaces_by_name()
    logs = dict.fromkeys((LogNames(space).acks for space in spaces), FIRST)

    def unsettled():
        return [query.pk for query in found.all() if query.acknowledged < query.revision]

    def untold():
        """Whoever settles an acknowledgement, another thread perhaps, takes it from its log once clients are told."""
        return event_log(client).poll(logs, 1, 0.0)

    while (late := unsettled()) or untold():
        settle_acknowledged(client, spaces, 0.05)
        assert time.monotonic() < began_s + PATIENCE_S, late
    return list(found.all())


def reconciled():
    """Reconcile, and settle what the engines acknowledge, until nothing is left to send; return what was sent first."""
    sent, deadline_s = tasks.reconcile(), time.monotonic() + PATIENCE_S
    while settle_acknowledged(waiting_client(), spaces_by_name(), 0.2) or tasks.reconcile():
        assert time.monotonic() < deadline_s
    return sent


@pytest.fixture
def streams(transactional_db):
    """Make two streams."""
    made = [
        Stream(name=name, title=name.title(), icon=name[:-1], transport="stdin", decoder="ais")
        for name in ("ships", "buses")
    ]
    for stream in made:
        stream.save()
    return made


@pytest.fixture
def user(transactional_db):
    """Make a user."""
    return get_user_model().objects.create_user("ann", password=PASSWORD)


@pytest.fixture
def other(transactional_db):
    """Make another user."""
    return get_user_model().objects.create_user("bob", password=PASSWORD)


@pytest.fixture
def staff(transactional_db):
    """Make a user with all rights."""
    return get_user_model().objects.create_superuser("root", password=PASSWORD)


def token_of(user):
    """Return a new token of a user."""
    token = ApiToken(user=user, name="test")
    secret = token.draw()
    token.save()
    return secret


def cookie_of(user):
    """Return the headers of a browser in which a user has logged in."""
    client = Client()
    client.force_login(user)
    cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    return [(b"cookie", cookie.encode()), ORIGIN, HOST]


class Socket(WebsocketCommunicator):
    """A client of ``/ws/monitor/``; `skipped` has the messages that came while it waited for others."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.skipped = []

    async def tell(self, kind, **fields):
        """Send a message."""
        await self.send_json_to({"type": kind, **fields})

    async def hear(self, kind, timeout=PATIENCE_S, **expected):
        """Return the next message of a type, and with the expected fields; skip what comes before."""
        async with asyncio.timeout(timeout):
            while True:
                message = await self.hear_any(timeout)
                if _is(message, kind, expected):
                    return message
                self.skipped.append(message)

    async def hear_or_heard(self, kind, **expected):
        """Return the message of a type with the expected fields, which may have come already."""
        found = [message for message in self.skipped if _is(message, kind, expected)]
        return found[-1] if found else await self.hear(kind, **expected)

    async def hear_any(self, timeout=PATIENCE_S):
        """Return the next message, text or binary."""
        response = await self.receive_output(timeout)
        assert response["type"] == "websocket.send", response
        if "bytes" in response:
            head, rows = read_frame(response["bytes"])
            return {**head, "table": rows}
        return json.loads(response["text"])

    async def silence(self, kind, seconds=0.3):
        """Assert that no message of a type comes for a while."""
        with pytest.raises(TimeoutError):
            await self.hear(kind, timeout=seconds)

    async def closed(self, timeout=PATIENCE_S):
        """Return the code with which the server closes the connection; skip what comes before."""
        async with asyncio.timeout(timeout):
            while (response := await self.receive_output(timeout))["type"] != "websocket.close":
                pass
        return response["code"]


def _is(message, kind, expected):
    return message["type"] == kind and all(message.get(field) == value for field, value in expected.items())


@asynccontextmanager
async def connected(user, query=""):
    """Open the websocket with a token."""
    from channels.db import database_sync_to_async

    from webapp.asgi import application

    headers = [(b"authorization", b"Token " + (await database_sync_to_async(token_of)(user)).encode())]
    socket = Socket(application, f"/ws/monitor/?{query}", headers)
    accepted, _ = await socket.connect(timeout=PATIENCE_S)
    assert accepted
    try:
        yield socket
    finally:
        await socket.disconnect(timeout=PATIENCE_S)


@asynccontextmanager
async def connected_guest(secret, headers=(ORIGIN, HOST)):
    """Open the websocket of a share link."""
    from webapp.asgi import application

    socket = Socket(application, f"/ws/shared/{secret}/", list(headers))
    accepted, _ = await socket.connect(timeout=PATIENCE_S)
    assert accepted
    try:
        yield socket
    finally:
        await socket.disconnect(timeout=PATIENCE_S)


@pytest.fixture
def connect_guest():
    """Return `connected_guest`."""
    return connected_guest


@pytest.fixture
def connect():
    """Return `connected`."""
    return connected


@pytest.fixture
async def hubs(project):
    """Return two hubs of the space, as two web processes have them; whoever is left is detached at the end."""
    made = [Hub(EARTH), Hub(EARTH)]
    yield made
    for hub in made:
        for subscriber in list(hub.subscribers):
            await hub.detach(subscriber)


@pytest.fixture
def log(redis_client, engine):
    """Return the logs of a space whose engine is played by the test."""
    engine.__exit__()
    return engine.log


@pytest.fixture
def gate(monkeypatch):
    """Return the event without which sends of slow clients block, as they do where a socket is full."""
    gate, transmit = asyncio.Event(), Monitor._transmit
    gate.set()

    async def slow_for_one(self, frame):
        if b"slow" in self.scope["query_string"]:
            await gate.wait()
        await transmit(self, frame)

    monkeypatch.setattr(Monitor, "_transmit", slow_for_one)
    return gate
