"""Streams that are stored, questions to tables over the websocket, the upkeep of the history, and its snapshots."""

import json
import time
from datetime import UTC, datetime

import pytest
import shapely
from channels.db import database_sync_to_async

from bench.live import PATIENCE_S
from streaming.history import StoredTables, snapshots, stored, upkeep
from streaming.history.files import parts_of
from streaming.layers import LayerStore, feature_table
from streaming.spaces import EARTH
from tests.entries import control_entries
from tests.webapp.conftest import BOX, INSIDE, OUTSIDE
from webapp import tasks
from webapp.history.upkeep import extent_in_words
from webapp.models import Layer, Stream

pytestmark = pytest.mark.django_db(transaction=True)

BUSES = {"stored": "buses"}
DAY_S = 86_400


@pytest.fixture(autouse=True)
def folders(project, engine):
    """Look for layers and history where the engine has them."""
    project.LAYERS_DIR, project.HISTORY_DIR = engine.engine.root / "layers", engine.engine.root / "history"
    return project.HISTORY_DIR


@pytest.fixture
def storing(streams):
    """Store the elements of buses."""
    stream = Stream.objects.get(name="buses")
    stream.stored, stream.retention_s = True, DAY_S
    stream.save()
    return stream


def wait_for(condition):
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def rows(engine):
    """Return what is stored of the buses."""
    return StoredTables(engine.engine.root, engine.engine.root / "history").query_by_box(stored("buses")).rows


def drive(engine, places, at_us=None):
    """Let buses be somewhere, one after the other, and wait until that is stored."""
    before = rows(engine).num_rows
    for place in places:
        engine.move({"bus 7": place}, "buses", at_us, {"line": 7})
    wait_for(lambda: rows(engine).num_rows == before + len(places))


def merge(engine, now_us=10**15):
    """Let the clock be far on, for a batch of each region's turn."""
    for turn in range(4):
        engine.log.send("tick", now_us=now_us + turn)
        wait_for(engine.caught_up)


def add_layer(project, user):
    """Make a layer with one square around INSIDE."""
    square = shapely.box(14, 54, 16, 56)
    table = feature_table("squares", ["s"], [square], [{"name": "Square"}])
    version = LayerStore(project.LAYERS_DIR).write("squares", table)
    Layer.objects.create(name="squares", space_id="earth", version=version, status=Layer.READY, owner=user)


async def test_what_is_stored_is_found_by_key_by_box_and_joined(engine, storing, user, connect, project):
    drive(engine, [INSIDE, OUTSIDE])
    await database_sync_to_async(add_layer)(project, user)
    async with connect(user) as socket:
        hello = await socket.hear("hello")
        told = {stream["name"]: (stream["stored"], stream["retention_s"]) for stream in hello["streams"]}
        assert told == {"buses": (True, DAY_S), "ships": (False, None)}
        await socket.tell("table.get", id=1, table=BUSES, key="bus 7")
        got = await socket.hear("table.rows", id=1)
        assert [row["lo"] for row in got["rows"]] == [[*INSIDE, None], [*OUTSIDE, None]]
        assert [set(row) for row in got["rows"]] == [{"key", "time", "lo", "hi", "geometry", "properties"}] * 2
        first = datetime.fromisoformat(got["rows"][0]["time"])
        assert abs((datetime.now(UTC) - first).total_seconds()) < 60 and not got["truncated"]
        await socket.tell("table.query", id=2, table=BUSES, box=BOX, span={"from": got["rows"][0]["time"]})
        (row,) = (await socket.hear("table.rows", id=2))["rows"]
        assert row == got["rows"][0] and row["properties"] == {"line": 7}
        await socket.tell("table.query", id=3, table=BUSES, span={"to": "2020-01-01"})
        assert (await socket.hear("table.rows", id=3))["rows"] == []
        await socket.tell("table.query", id=4, table=BUSES, limit=1)
        assert (await socket.hear("table.rows", id=4))["truncated"]
        await socket.tell("table.join", id=5, left=BUSES, right={"layer": "squares"})
        (pair,) = (await socket.hear("table.rows", id=5))["rows"]
        assert pair["lo"] == [*INSIDE, None] and pair["partner"]["properties"] == {"name": "Square"}
        assert pair["partner"]["geometry"]["type"] == "Polygon" and pair["partner"]["distance"] is None
        assert pair["partner"]["time"] is None
        await socket.tell("table.get", id=6, table={"layer": "squares"}, key="s")
        (feature,) = (await socket.hear("table.rows", id=6))["rows"]
        assert (feature["lo"], feature["hi"], feature["time"]) == ([14, 54, None], [16, 56, None], None)


@pytest.mark.parametrize(
    ("kind", "fields", "code", "words"),
    [
        ("table.get", {"table": {"stored": "ships"}, "key": "a"}, "table", "stored: buses; got 'ships'"),
        ("table.get", {"table": {"layer": "roads"}, "key": "a"}, "table", "name of a layer: (none yet); got 'roads'"),
        ("table.get", {"table": {"stream": "buses"}, "key": "a"}, "fields", "a table must be"),
        ("table.get", {"table": BUSES, "key": ""}, "fields", "key must be a text of 1 to"),
        ("table.query", {"table": BUSES, "limit": 10_001}, "fields", "limit must be a whole number from 1 to 10000"),
        ("table.query", {"table": BUSES, "box": {"lo": [20, 1], "hi": [10, 2]}}, "fields", "lo must not exceed hi"),
        ("table.query", {"table": BUSES, "span": {"from": "noon"}}, "fields", "a time must be ISO 8601"),
        ("table.query", {"table": BUSES, "span": {"from": 1e300}}, "fields", "a time must be ISO 8601"),
        ("table.query", {"table": BUSES, "span": {"from": 5, "to": 4}}, "fields", "from must not be after to"),
        ("table.query", {"table": BUSES, "span": {"since": 5}}, "fields", "span must be an object of the form"),
        ("table.join", {"left": BUSES, "right": BUSES, "predicate": "near"}, "fields", "predicate must be one of"),
        ("table.join", {"left": BUSES, "right": BUSES, "predicate": "dwithin"}, "table", "distance belongs to"),
        ("table.join", {"left": BUSES, "right": BUSES, "distance": -1}, "fields", "distance must be a finite"),
    ],
)
async def test_a_question_that_breaks_a_rule_is_told_which(storing, user, connect, kind, fields, code, words):
    async with connect(user) as socket:
        await socket.tell(kind, id=1, **fields)
        error = await socket.hear("error", id=1)
        assert error["code"] == code and words in error["message"], error


async def test_a_question_that_takes_too_long_or_too_many_rows_is_ended(engine, storing, user, connect, project):
    drive(engine, [INSIDE, OUTSIDE])
    async with connect(user) as socket:
        project.TABLE_ANSWER_S = 0.0
        await socket.tell("table.query", id=1, table=BUSES)
        assert "within 0 s" in (await socket.hear("error", id=1))["message"]
        project.TABLE_ANSWER_S, project.TABLE_JOIN_ROWS = 10.0, 1
        await socket.tell("table.join", id=2, left=BUSES, right=BUSES)
        assert "at most 1 rows of a table" in (await socket.hear("error", id=2))["message"]
        project.TABLE_QUESTIONS_AT_ONCE = 0
        await socket.tell("table.query", id=3, table=BUSES)
        assert (await socket.hear("error", id=3))["code"] == "rate"


async def test_an_answer_of_too_many_bytes_is_cut(engine, storing, user, connect, project):
    drive(engine, [INSIDE, OUTSIDE])
    project.TABLE_ANSWER_BYTES = 12
    async with connect(user) as socket:
        await socket.tell("table.query", id=1, table=BUSES)
        answer = await socket.hear("table.rows", id=1)
        assert len(answer["rows"]) == 1 and answer["truncated"]


def test_the_engine_and_the_gateway_are_told_what_is_stored(storing, redis_client):
    assert json.loads(redis_client.hget("lookout:streams", "buses"))["stored"] is True
    entries = control_entries(redis_client)
    assert [e["stored"] for e in entries if e["op"] == "stream" and e["stream"] == "buses"] == [False, True]


@pytest.mark.parametrize("retention", ["59", "-1", "1e300"])
def test_a_retention_that_is_none_is_refused(storing, retention):
    storing.retention_s = float(retention)
    with pytest.raises(Exception, match="Ensure this value is"):
        storing.full_clean()


def test_what_is_older_than_the_retention_goes_and_the_rest_stays(engine, storing, folders):
    now_us = time.time_ns() // 1000
    drive(engine, [INSIDE], now_us - 3 * DAY_S * 1_000_000)
    drive(engine, [INSIDE], now_us - (DAY_S + 100) * 1_000_000)
    drive(engine, [OUTSIDE], now_us)
    merge(engine)
    wait_for(lambda: len(parts_of(folders / "earth" / "buses")) == 3)
    tasks.keep_history()
    (kept,) = rows(engine).to_pylist()
    assert kept["time_us"] == now_us
    storing.retention_s = None
    storing.save()
    assert extent_in_words(storing).endswith(f"files, {datetime.now(UTC):%Y-%m-%d} to {datetime.now(UTC):%Y-%m-%d}")


def test_the_history_of_streams_and_spaces_that_are_no_more_goes_and_the_admin_says_so(
    engine, storing, folders, client, staff
):
    drive(engine, [INSIDE])
    merge(engine)
    wait_for(lambda: parts_of(folders / "earth" / "buses"))
    (folders / "mars" / "rovers").mkdir(parents=True)
    client.force_login(staff)
    page = client.get(f"/admin/webapp/stream/{storing.pk}/delete/").content.decode()
    assert "The history of buses: 0.0 MB in 1 files" in page
    assert "0.0 MB in 1 files" in client.get(f"/admin/webapp/stream/{storing.pk}/change/").content.decode()
    storing.delete()
    wait_for(lambda: not (folders / "earth" / "buses").exists())
    (folders / "earth" / "orphans").mkdir()
    tasks.keep_history()
    assert [path.name for path in folders.iterdir()] == ["earth"]
    assert [path.name for path in (folders / "earth").iterdir() if not path.name.startswith(".")] == []


def test_small_parts_become_one_and_nothing_changes_for_who_reads(engine, storing, folders, monkeypatch):
    for number in range(5):
        drive(engine, [INSIDE, OUTSIDE])
        merge(engine, 10**15 + number * 10**9)
        wait_for(lambda: len(parts_of(folders / "earth" / "buses")) == number + 1)  # noqa: B023
    before = rows(engine)
    monkeypatch.setattr(upkeep, "MERGED_AT_ONCE", 5)
    tasks.keep_history()
    (part,) = parts_of(folders / "earth" / "buses")
    assert rows(engine).equals(before) and before.num_rows == 10
    upkeep.remove([part])
    assert rows(engine).num_rows == 0


async def test_a_stream_is_joined_with_what_was_stored_when_the_last_snapshot_was_taken(
    engine, storing, user, connect, project
):
    plan = {"stream": "ships", "kind": "join", "join": {"stored": "buses", "predicate": "dwithin", "distance": 5_000}}
    drive(engine, [INSIDE], 1_000_000)
    engine.move({"near": INSIDE, "far": OUTSIDE})
    async with connect(user) as socket:
        await socket.tell("query.register", id=1, name="met", plan=plan)
        number = (await socket.hear("query.status", id=1))["query"]
        await socket.hear_or_heard("query.status", query=number, status="running")
        await socket.tell("query.subscribe", query=number)
        pairs = set()
        while not pairs:
            answer = await socket.hear_any()
            pairs |= {(row["key"], row["partner"]["key"]) for row in answer.get("rows", ())}
        assert pairs == {("near", "bus 7@1970-01-01T00:00:01.000000Z")}
        drive(engine, [OUTSIDE], 2_000_000)
        await database_sync_to_async(tasks.take_snapshots)()
        assert {row["key"] for row in (await socket.hear("answer.change"))["rows"]} == {"far"}
        store = snapshots.snapshots(project.HISTORY_DIR, EARTH)
        assert store.versions("buses") == [1, 2]
        await database_sync_to_async(tasks.take_snapshots)()
        assert store.versions("buses") == [1, 2]
        await socket.tell("query.cancel", id=2, query=number)
        await socket.hear("query.status", id=2)
        await database_sync_to_async(tasks.take_snapshots)()
        assert store.versions("buses") == []


async def test_a_join_with_a_stream_that_is_not_stored_is_refused(storing, user, connect):
    async with connect(user) as socket:
        plan = {"stream": "buses", "kind": "join", "join": {"stored": "ships"}}
        await socket.tell("query.register", id=1, name="none", plan=plan)
        error = await socket.hear("error", id=1)
        assert error["code"] == "stored" and "stored must be one of buses; got 'ships'" in error["message"]
