"""What Lookout says of its own health."""

import re
import shutil
import time

import orjson
import pytest
from django.db import OperationalError

from streaming.keys import BEAT_KEY, WORKER_KEY
from streaming.logs import Log
from tests.full_redis import full
from webapp.models import Space
from webapp.operations.health import FULL_AFTER_S, STUCK_AFTER_S, Health

pytestmark = pytest.mark.django_db(transaction=True)
US = 1_000_000


@pytest.fixture
def names(redis_client):
    """Have all programs say that they are well; return the names under which engine and gateway do."""
    log = Log(redis_client, "earth", 2)
    for key in (log.names.gateway, WORKER_KEY, BEAT_KEY):
        redis_client.hset(key, "at_us", time.time_ns() // 1000)
    redis_client.hset(log.names.engine, mapping={"at_us": time.time_ns() // 1000, "batch": 7})
    return log.names


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Ask anew in each test."""
    monkeypatch.setattr("webapp.pages.views.HEALTH", Health())


def unhealthy(client):
    """Return the reasons that a stranger is told."""
    answer = client.get("/healthz")
    document = answer.json()
    assert (answer.status_code, document["status"]) == ((503, "down") if document["reasons"] else (200, "ok"))
    return document["reasons"]


def test_all_is_well(client, names):
    assert unhealthy(client) == {}


@pytest.mark.parametrize("program", ["engine", "gateway", "worker", "beat"])
def test_a_program_that_is_silent_or_has_never_spoken_is_down(program, client, names, redis_client, monkeypatch):
    key = {"worker": WORKER_KEY, "beat": BEAT_KEY}.get(program) or getattr(names, program)
    redis_client.hset(key, "at_us", time.time_ns() // 1000 - 20 * US)
    assert unhealthy(client) == {program: "has been silent for 20 s"}
    monkeypatch.setattr("webapp.pages.views.HEALTH", Health())
    redis_client.delete(key)
    assert unhealthy(client) == {program: "has not started yet"}


def test_an_engine_that_lives_but_evaluates_nothing_is_down(client, names, redis_client, monkeypatch):
    now_s = 0.0
    monkeypatch.setattr("webapp.pages.views.HEALTH", Health(clock=lambda: now_s))
    assert unhealthy(client) == {}
    now_s = STUCK_AFTER_S + 2
    assert unhealthy(client) == {"engine": f"has evaluated no batch for {now_s:.0f} s"}
    now_s += 2
    redis_client.hset(names.engine, "batch", 8)
    assert unhealthy(client) == {}


def test_who_asks_for_the_first_time_is_told_of_a_batch_that_has_not_ended_for_long(client, names, redis_client):
    for region, ago_s in enumerate((45, 40)):
        load = [1, 5, 0.1, 5, 0.0, 0.0, time.time_ns() // 1000 - ago_s * US]
        redis_client.hset(names.engine, mapping={f"load:{region}": orjson.dumps(load), "tasks": 2})
    assert re.fullmatch(r"has evaluated no batch for 4\d s", unhealthy(client)["engine"])


def test_an_engine_without_a_clock_is_not_stuck_nor_is_it_as_soon_as_the_clock_goes_on(
    client, names, redis_client, monkeypatch
):
    now_s = 0.0
    monkeypatch.setattr("webapp.pages.views.HEALTH", Health(clock=lambda: now_s))
    redis_client.hset(names.engine, "load:0", orjson.dumps([1, 5, 0.1, 5, 0.0, 0.0, time.time_ns() // 1000 - 90 * US]))
    redis_client.hset(names.gateway, "at_us", time.time_ns() // 1000 - 90 * US)
    assert unhealthy(client) == {"gateway": "has been silent for 90 s"}
    redis_client.hset(names.gateway, "at_us", time.time_ns() // 1000)
    now_s = 2.0
    assert unhealthy(client) == {}
    now_s += STUCK_AFTER_S
    assert list(unhealthy(client)) == ["engine"]


def test_a_worker_that_lives_but_lets_tasks_wait_is_down(client, names, redis_client, monkeypatch):
    redis_client.hset(WORKER_KEY, "untaken_s", int(STUCK_AFTER_S))
    assert unhealthy(client) == {}
    monkeypatch.setattr("webapp.pages.views.HEALTH", Health())
    redis_client.hset(WORKER_KEY, "untaken_s", int(STUCK_AFTER_S) + 1)
    assert unhealthy(client) == {"worker": "has taken no task for 21 s, although tasks wait"}


def test_a_redis_that_stays_too_full_for_feeds_is_told(client, names, redis_client, monkeypatch):
    now_s = 0.0
    monkeypatch.setattr("webapp.pages.views.HEALTH", Health(clock=lambda: now_s))
    assert unhealthy(client) == {}
    with full(redis_client):
        now_s = 2.0
        assert unhealthy(client) == {}
        now_s += FULL_AFTER_S
        assert re.fullmatch(r"is \d+% full, so the engines and all feeds wait", unhealthy(client)["redis"])
    now_s += 2
    assert unhealthy(client) == {}


def test_the_engine_of_an_added_space_counts(client, names):
    Space.objects.create(name="prices", definition={"dimensions": [{"name": "price", "lo": 0, "hi": 9}]})
    assert unhealthy(client) == {"engine-prices": "has not started yet"}


def test_what_does_not_answer_is_named_without_its_address(client, names, project, monkeypatch):
    project.REDIS_URL = "redis://:secret@127.0.0.1:1/0"
    assert unhealthy(client) == {"redis": "does not answer"}
    project.MIN_DISK_BYTES = shutil.disk_usage(project.HOME).total * 2
    monkeypatch.setattr("webapp.pages.views.HEALTH", Health())
    assert list(unhealthy(client)) == ["redis", "disk"]


def test_a_database_without_its_tables_is_down(client, names, monkeypatch, settings):
    def broken(*_, **__):
        raise OperationalError("no such table")

    monkeypatch.setattr(Space.objects, "values_list", broken)
    assert unhealthy(client) == {"database": "does not answer"}


def test_who_asks_often_costs_little(client, names, monkeypatch):
    looks = []
    monkeypatch.setattr(Health, "_look", lambda self: looks.append(1) or {})
    for _ in range(20):
        unhealthy(client)
    assert len(looks) < 5


def test_the_process_alone_says_that_it_lives_whatever_is_down(client, project):
    project.REDIS_URL = "redis://127.0.0.1:1/0"
    assert client.get("/livez").json() == {"status": "ok"}
