"""The replay over HTTP: pages of elements and events, who may ask, and what is refused."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streaming.elements import point_elements, stream_number
from streaming.history import HistoryWriter, Turn
from streaming.results import read_frame
from streaming.spaces import EARTH
from tests.history.test_tables import tracked
from tests.webapp.conftest import token_of
from webapp.models import Event, Query, Stream
from webapp.questions.replay import answers
from webapp.rights import guards

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = (Path(__file__).parents[2] / "docs" / "replay.md").read_text()
S = 1_000_000
BEGINNING = 1_795_219_200 * S  # 2026-11-21 00:00 UTC
# Ferry goes through the box 10, 0 to 14, 1; tug stays in it; wreck is elsewhere.
WAYS = {"ferry": [(0, 9.0), (40, 11.0), (80, 15.0)], "tug": [(0, 12.0), (60, 12.5)], "wreck": [(0, 50.0), (50, 50.0)]}
PAGE = {"bbox": "10,0,14,1", "from_us": str(BEGINNING + 10 * S), "to_us": str(BEGINNING + 100 * S)}
PLAN = {"stream": "ships", "compare": {"lo": [10, 0], "hi": [14, 1]}}


@pytest.fixture(autouse=True)
def fresh(monkeypatch, project, tmp_path):
    """Keep history and layers in folders of the test, and forget the tokens of other tests."""
    monkeypatch.setattr(guards, "_GUESSES", guards.Guesses())
    project.HISTORY_DIR, project.LAYERS_DIR = tmp_path / "history", tmp_path / "layers"


@pytest.fixture
def ships(streams, project):
    """A stream with the stored ways; its elements were heard when they happened."""
    rows = sorted((second, key, lon) for key, way in WAYS.items() for second, lon in way)
    seconds, keys, lons = zip(*rows, strict=True)
    times = BEGINNING + np.array(seconds) * S
    made = tracked(point_elements("ships", keys, times, np.column_stack([lons, np.full(len(lons), 0.5)]), [{}] * 7))
    place = made.schema.get_field_index("heard_us")
    made = made.set_column(place, made.schema.field(place), pa.array(times))
    HistoryWriter(project.HISTORY_DIR, EARTH).store(Turn("e", 0, 1, 0, 0), [made], {stream_number("buses"): "ships"})
    stream = Stream.objects.get(name="ships")
    stream.stored, stream.ttl_s = True, 1800
    stream.save()
    return stream


@pytest.fixture
def ask(client, user, ships):
    """Return a function that asks for something of the replay, and returns the response."""
    client.force_login(user)

    def asked(path, status=200, **given):
        response = client.get(f"/replay/{path}", given)
        assert response.status_code == status, response.content
        return response

    return asked


def test_a_page_is_a_frame_of_what_was_known_and_what_changed(ask):
    head, rows = read_frame(ask("elements/ships", **PAGE, scene="1").content)
    assert head == {
        "type": "replay.elements",
        "stream": "ships",
        "from_us": BEGINNING + 10 * S,
        "until_us": BEGINNING + 100 * S,
        "scene": 1,
        "life_us": 1800 * S,
    }
    told = zip(*(rows[name].to_pylist() for name in ("sign", "key", "at_us")), strict=True)
    assert [(sign, key, (at_us - BEGINNING) // S) for sign, key, at_us in told] == [
        (1, "tug", 0),
        (1, "ferry", 40),
        (0, "tug", 60),
        (-1, "ferry", 80),
    ]


def test_what_is_stored_is_listed_with_its_times(ask):
    (ships,) = ask("").json()["streams"]
    times = {"first_us": BEGINNING, "last_us": BEGINNING + 80 * S}
    assert ships == {"name": "ships", "life_s": 1800, **times}


def test_an_object_that_never_expires_is_shown_for_the_longest_life(ask, ships, project):
    ships.ttl_s = None
    ships.save()
    assert ask("").json()["streams"][0]["life_s"] == project.REPLAY_LIFE_S == 3600


@pytest.mark.parametrize(
    ("path", "change", "status", "words"),
    [
        ("elements/trains", {}, 404, "a replay must be of a stream whose elements are stored: ships; got 'trains'"),
        ("elements/ships", {"from_us": "soon"}, 400, "from_us must be a whole number of microseconds"),
        ("elements/ships", {"to_us": PAGE["from_us"]}, 400, "from_us must be before to_us; got"),
        ("elements/ships", {"bbox": "1,2,3"}, 400, "bbox must be west,south,east,north in degrees; got '1,2,3'"),
        (
            "elements/ships",
            {"colour": "red"},
            400,
            "the parameters are bbox, from_us, to_us, scene, step_us; got colour",
        ),
        ("events", {"to_us": str(10**20)}, 400, "to_us must be a whole number of microseconds"),
        ("answers", {"queries": "seven"}, 400, "queries must be numbers of queries with commas between them"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_the_rule_and_the_value(ask, path, change, status, words):
    given = PAGE | change
    if path != "elements/ships" and path != "elements/trains":
        given.pop("bbox")
    assert words in ask(path, status, **given).json()["error"]


def test_a_replay_is_for_those_who_log_in_and_for_programs_with_a_token(client, ask, user):
    client.logout()
    for path in ("", "elements/ships", "events", "answers"):
        response = ask(path, 401, **PAGE)
        assert response.headers["WWW-Authenticate"] == "Bearer"
    headers = {"Authorization": f"Bearer {token_of(user)}"}
    assert client.get("/replay/elements/ships", PAGE, headers=headers).status_code == 200
    assert client.post("/replay/elements/ships", headers=headers).status_code == 405


def test_the_events_of_a_span_are_those_of_queries_that_the_user_sees(ask, user, other, project):
    begin = datetime.fromtimestamp(BEGINNING / S, UTC)
    queries = {
        name: Query.objects.create(owner=owner, name=name, plan=PLAN, space_id="earth", stream="ships", shared=shared)
        for name, owner, shared in [("mine", user, False), ("shared", other, True), ("theirs", other, False)]
    }
    for name, query in queries.items():
        for second, sign in [(40, "+"), (80, "-"), (800, "+")]:
            time = begin + timedelta(seconds=second)
            Event.objects.create(query=query, batch=1, key=name, sign=sign, reason="moved", time=time, lon=12, lat=1)
    span = {"from_us": str(BEGINNING), "to_us": str(BEGINNING + 100 * S)}
    told = ask("events", **span).json()
    assert not told["truncated"]
    assert sorted((event["key"], event["sign"]) for event in told["events"]) == sorted(
        (name, sign) for name in ("mine", "shared") for sign in "+-"
    )
    assert told["events"][0]["time_us"] == BEGINNING + 40 * S
    project.REPLAY_EVENTS = 3
    told = ask("events", **span).json()
    assert (told["truncated"], [event["sign"] for event in told["events"]]) == (True, ["+", "-", "-"])


def test_queries_that_cannot_be_played_are_named_with_the_reason(ask, user):
    plans = {
        "of buses": {"stream": "buses", "compare": PLAN["compare"]},
        "of a sketch": {"stream": "ships", "kind": "sketch", "ask": [{"question": "count"}]},
        "of former times": {"stream": "ships", "kind": "join", "join": {"stored": "ships"}},
    }
    numbers = {
        name: Query.objects.create(owner=user, name=name, plan=plan, space_id="earth", stream=plan["stream"]).pk
        for name, plan in plans.items()
    }
    span = {name: PAGE[name] for name in ("from_us", "to_us")}
    head, rows = read_frame(ask("answers", queries=",".join(map(str, numbers.values())), **span).content)
    assert (head["queries"], rows.num_rows, head["until_us"]) == ([], 0, int(PAGE["to_us"]))
    assert head["refused"] == {
        str(numbers["of buses"]): "the elements of buses are not stored",
        str(numbers["of a sketch"]): "a question to a sketch is not about stored elements",
        str(
            numbers["of former times"]
        ): "partners of former times are not known, so a join with stored elements is not played",
    }


def test_answers_of_the_past_come_from_the_servers_of_the_engine(ask, user, other):
    query, theirs = (
        Query.objects.create(owner=owner, name="gate", plan=PLAN, space_id="earth", stream="ships")
        for owner in (user, other)
    )
    span = {"from_us": PAGE["from_us"], "end_us": PAGE["to_us"], "session": "one"}
    pages, from_us = [], int(PAGE["from_us"])
    for to_us in (BEGINNING + 50 * S, int(PAGE["to_us"])):
        given = span | {"queries": f"{query.pk},{theirs.pk}", "from_us": str(from_us), "to_us": str(to_us)}
        pages.append(read_frame(ask("answers", **given).content))
        from_us = pages[-1][0]["until_us"]
    assert [(head["begins"], head["queries"]) for head, _ in pages] == [(True, [query.pk]), (False, [query.pk])]
    told = [
        row for _, rows in pages for row in zip(*(rows[n].to_pylist() for n in ("sign", "key", "at_us")), strict=True)
    ]
    assert [(sign, key, (at_us - BEGINNING) / S) for sign, key, at_us in told] == [
        (1, "tug", 10),
        (1, "ferry", 41),
        (0, "tug", 61),
        (-1, "ferry", 81),
    ]
    answers.SESSIONS.end()


@pytest.mark.parametrize(
    ("path", "row"), [("elements/ships", "elements/<stream>"), ("answers", "answers"), ("events", "events")]
)
def test_the_parameters_of_each_page_are_documented(ask, path, row):
    (said,) = re.findall("the parameters are (.*); got colour", ask(path, 400, colour="red").json()["error"])
    (documented,) = re.findall(rf"^\| `/replay/{row}` \| ([^|]*) \|", DOCUMENT, re.M)
    assert re.findall("`([a-z_]+)`", documented) == said.split(", ")
