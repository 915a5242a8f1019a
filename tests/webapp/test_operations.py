"""The metrics and the page for operators: what programs report is shown, to staff only, and at a bounded price."""

import asyncio
import re
import time
from pathlib import Path

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from prometheus_client.parser import text_string_to_metric_families

from bench.live import PATIENCE_S
from streaming.elements import point_elements
from streaming.keys import FIGURES_KEY, HEALTH_KEY, WEBS_KEY, figures_key
from streaming.logs import Log
from streaming.operators.region_map import RegionMap
from streaming.spaces import EARTH
from tests.webapp.conftest import BOX, PLAN
from webapp import tasks
from webapp.consumers.outbox import Outbox
from webapp.models import ApiToken, Query
from webapp.operations import past
from webapp.operations.figures import TOP_QUERIES, collected
from webapp.operations.health import Health
from webapp.operations.metrics import METRICS
from webapp.rights import guards

pytestmark = pytest.mark.django_db(transaction=True)
US = 1_000_000
DOCUMENT = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
TASK = {
    "batches": 7,
    "elements": 900,
    "seconds": {"home": 0.5, "region": 1.25},
    "longest_s": 0.4,
    "lag_s": 0.7,
    "late": 3,
    "unjoined": 40,
    "written_bytes": 4096,
    "queries": [[5, 2.5, 10], [0, 0.0, 3]],
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Ask for health anew, and forget the tokens of other tests."""
    monkeypatch.setattr("webapp.operations.figures.HEALTH", Health())
    monkeypatch.setattr(guards, "_GUESSES", guards.Guesses())


@pytest.fixture
def staff(django_user_model):
    """Return a staff user."""
    return django_user_model.objects.create_user("ops", password="x", is_staff=True)


@pytest.fixture
def reports(redis_client):
    """Report what an engine with two tasks, a gateway with a stream and two hubs would; return the logs of earth."""
    log, now_us = Log(redis_client, "earth", 2), time.time_ns() // 1000
    log.send("tick", now_us=1)
    for name in (log.names.engine, log.names.gateway):
        redis_client.hset(name, "at_us", now_us)
    region_map = RegionMap.grid(EARTH, 2)
    log.report_regions({0: [0, 600, 1.5, 40]}, **{"task:0": TASK, "map": region_map.document()})
    log.report_regions({1: [0, 300, 0.5, 20]}, **{"task:1": TASK | {"lag_s": 0.9}})
    log.report_state_bytes(12345)
    redis_client.hset(log.names.engine, "batch", 7)
    stream = {"space": "earth", "state": "running", "elements": 1000, "merged": 3, "stale": 2, "lost": 1, "bytes": 9}
    told = stream | {"malformed": {"checksum": 4, "field": 1}, "last_us": now_us - 2 * US, "error": None, "hint": None}
    redis_client.hset(HEALTH_KEY, "ships", orjson.dumps(told))
    for web, clients, lag_s in (("earth:a", 2, 0.5), ("earth:b", 1, 0.25)):
        redis_client.sadd(WEBS_KEY, web)
        redis_client.set(figures_key(web), orjson.dumps({"clients": clients, "waiting_bytes": 10, "lag_s": lag_s}))
    redis_client.hset(log.names.sent, mapping={"frames": 50, "bytes": 5000})
    return log


def scraped(client, **headers):
    """Return the samples of a scrape: value by name and labels."""
    response = client.get("/metrics", headers=headers)
    assert response.status_code == 200, response.content
    families = text_string_to_metric_families(response.content.decode())
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def test_metrics_are_what_the_programs_report(client, staff, reports):
    client.force_login(staff)
    found = scraped(client)

    def value(name, **labels):
        return found[(name, *sorted((key, str(label)) for key, label in labels.items()))]

    assert value("lookout_engine_elements_total", space="earth", task=1) == 900
    assert value("lookout_engine_stage_seconds_total", space="earth", task=0, stage="region") == 1.25
    assert value("lookout_engine_lag_seconds", space="earth") == 0.9
    assert value("lookout_engine_state_bytes", space="earth") == 12345
    assert value("lookout_region_cpu_seconds_total", space="earth", region=0, task=0) == 1.5
    assert value("lookout_region_objects", space="earth", region=1, task=1) == 20
    assert value("lookout_query_seconds_total", space="earth", query=5) == 5.0
    assert value("lookout_query_tuples_total", space="earth", query=0) == 6
    assert value("lookout_stream_malformed_total", stream="ships", space="earth") == 5
    assert 1.9 < value("lookout_stream_silent_seconds", stream="ships", space="earth") < 20
    assert value("lookout_clients", space="earth") == 3
    assert value("lookout_client_lag_seconds", space="earth") == 0.5
    assert value("lookout_sent_frames_total", space="earth") == 50
    assert value("lookout_up", part="engine") == 1
    assert {name for name, *_ in found} == {metric.name for metric in METRICS}


def test_blocks_that_no_task_reads_are_told_with_their_age_although_the_engine_is_dead(client, staff, reports):
    client.force_login(staff)
    key = ("space", "earth")
    assert scraped(client)["lookout_engine_oldest_waiting_seconds", key] == 0
    now_us = time.time_ns() // 1000
    for heard_us in (now_us - 30 * US, now_us):
        elements = point_elements("ships", ["a"], [now_us], [(1.0, 2.0)], [None], EARTH)
        reports.ingest(elements, "ships", heard_us)
    found = scraped(client)
    assert found["lookout_engine_waiting_blocks", key] == 2
    assert 30 <= found["lookout_engine_oldest_waiting_seconds", key] < 60


def test_a_dead_engine_and_a_dead_redis_are_told_by_the_same_endpoint(client, staff, reports, project, redis_client):
    client.force_login(staff)
    redis_client.hset(reports.names.engine, "at_us", time.time_ns() // 1000 - 60 * US)
    assert scraped(client)["lookout_up", ("part", "engine")] == 0
    project.REDIS_URL = "redis://127.0.0.1:1/0"
    found = scraped(client)
    assert found["lookout_up", ("part", "redis")] == 0
    assert not [name for name, *_ in found if name.startswith("lookout_engine")]


def test_metrics_are_for_staff_by_session_or_token_and_nobody_else(client, staff, reports):
    tokens = {}
    for user in (staff, get_user_model().objects.create_user("guest", password="x")):
        token = ApiToken(user=user, name="prometheus")
        tokens[user.username] = token.draw()
        token.save()
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/metrics", headers={"Authorization": f"Bearer {tokens['guest']}"}).status_code == 403
    for scheme in ("Bearer", "Token"):
        assert scraped(client, Authorization=f"{scheme} {tokens['ops']}")
    client.force_login(get_user_model().objects.get(username="guest"))
    assert client.get("/metrics").status_code == 403
    assert client.get("/operations/figures").status_code == 403
    assert client.get("/operations/").status_code == 403
    client.logout()
    assert client.get("/operations/").url == "/login/?next=/operations/"


def test_an_address_that_guesses_tokens_is_stopped(client, staff, reports):
    statuses = [client.get("/metrics", headers={"Authorization": f"Bearer {n}"}).status_code for n in range(22)]
    assert statuses == [401] * 20 + [429] * 2


def test_the_number_of_series_is_bounded_however_many_queries_there_are(client, staff, reports):
    queries = [[number, float(number), 1] for number in range(1, 500)]
    reports.report_regions({}, **{"task:0": TASK | {"queries": queries}})
    client.force_login(staff)
    told = [labels for name, *labels in scraped(client) if name == "lookout_query_seconds_total"]
    assert len(told) == TOP_QUERIES
    assert [("query", "499"), ("space", "earth")] in told


def test_the_past_is_bounded_and_survives_whoever_asks_for_it(client, staff, reports, redis_client, monkeypatch):
    monkeypatch.setattr(past, "KEPT", 3)
    for _ in range(5):
        tasks.note_figures()
    assert redis_client.llen(FIGURES_KEY) == 3
    client.force_login(staff)
    told = client.get("/operations/figures").json()
    assert [entry["spaces"]["earth"]["elements"] for entry in told["past"]] == [1800] * 3
    later = client.get("/operations/figures", {"since_us": told["past"][-2]["at_us"]}).json()
    assert later["past"] == told["past"][-1:]
    assert client.get("/operations/figures", {"since_us": "-1"}).status_code == 400


def test_an_entry_of_the_past_is_small(reports, redis_client):
    document = redis_client.hget(HEALTH_KEY, "ships")
    for number in range(200):
        redis_client.hset(HEALTH_KEY, f"stream {number}", document)
    tasks.note_figures()
    assert len(redis_client.lindex(FIGURES_KEY, 0)) < 4000


def test_troubles_name_their_place_and_their_words(client, staff, reports, redis_client):
    told = orjson.loads(redis_client.hget(HEALTH_KEY, "ships")) | {"state": "retrying", "error": "refused"}
    redis_client.hset(HEALTH_KEY, "ships", orjson.dumps(told))
    client.force_login(staff)
    found = client.get("/operations/figures").json()["troubles"]
    assert {"level": "warn", "where": "stream ships", "words": "refused"} in found


def test_the_page_for_operators_names_only_queries_that_they_see(client, staff, user, reports):
    Query.objects.create(owner=user, name="secret", stream="ships", plan=PLAN, error="failed", status=Query.FAILED)
    client.force_login(staff)
    assert "secret" not in client.get("/operations/figures").content.decode()
    staff.user_permissions.add(Permission.objects.get(codename="view_query"))
    assert "secret" in client.get("/operations/figures").content.decode()


def test_a_scrape_reads_a_bounded_number_of_keys(reports, redis_client):
    def commands():
        return redis_client.info("stats")["total_commands_processed"]

    collected()
    before = commands()
    collected()
    assert commands() - before < 30


def test_every_metric_is_in_the_docs_and_no_other():
    told = set(re.findall(r"^\| `(lookout_[a-z_]+)`", DOCUMENT, re.M))
    assert told == {metric.name for metric in METRICS}


async def test_connections_frames_and_what_a_client_has_not_taken_are_counted(engine, streams, user, connect):
    async with connect(user) as socket:
        await socket.tell("view.subscribe", streams=["ships"], area=BOX)
        view = (await socket.hear("view.status"))["views"]["ships"]
        await socket.hear("answer.snapshot", query=view)
        found = await until(lambda clients: clients["clients"] == 1 and clients["frames"])
        assert found["bytes"] > 0
    await until(lambda clients: clients["clients"] == 0)


async def until(true):
    """Wait until the figures of the clients of earth are as a function wants them; return them."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not true(clients := (await sync_to_async(collected)())["spaces"]["earth"]["clients"]):
        assert time.monotonic() < deadline_s, clients
        await asyncio.sleep(0.1)
    return clients


async def test_the_oldest_frame_that_a_client_does_not_take_has_its_age():
    taken = asyncio.Event()

    async def send(frame):
        await taken.wait()

    outbox = Outbox(send, None, None, None, max_bytes=100)
    assert outbox.waits_s() == 0
    outbox.reply("a")
    outbox.reply("b")
    running = asyncio.create_task(outbox.run())
    await asyncio.sleep(0.05)
    assert 0.04 < outbox.waits_s() < PATIENCE_S
    taken.set()
    while outbox.waits_s():
        await asyncio.sleep(0)
    running.cancel()
