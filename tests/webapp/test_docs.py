"""docs/websocket-api.md says what the websocket does: its examples are messages, and all of them are there."""

import json
import re
import time
from pathlib import Path

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from streaming.logs import Log
from streaming.operators.region_map import RegionMap
from streaming.results import REASONS
from streaming.spaces import EARTH
from tests.webapp.conftest import INSIDE, NO_QUERY, OUTSIDE, PLAN
from webapp.bus import groups
from webapp.bus.notify import LAYERS_GROUP
from webapp.consumers.messages import FIELDS, read_document, read_fields
from webapp.consumers.viewports import view_plans
from webapp.layers import announce
from webapp.models import Incident, Layer, Membership, Stream, Team
from webapp.queries import queries
from webapp.queries.queries import viewed_streams

DOCUMENT = (Path(__file__).parents[2] / "docs" / "websocket-api.md").read_text()
EXAMPLES = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", DOCUMENT, re.M | re.S)]
REQUESTS = {example["type"]: example for example in EXAMPLES if example["type"] in FIELDS}
REPLIES = {example["type"]: example for example in EXAMPLES if example["type"] not in FIELDS}
SERVER_TYPES = set(
    re.findall(r"^\| `([a-z.]+)` \|", DOCUMENT.split("## From the server")[1].split("## Errors")[0], re.M)
)


def test_every_type_of_message_has_one_example():
    assert sorted(example["type"] for example in EXAMPLES) == sorted(SERVER_TYPES | set(FIELDS))


@pytest.mark.parametrize("kind", FIELDS)
def test_an_example_of_a_request_is_accepted_and_its_fields_are_documented(kind):
    _, fields = read_fields(read_document(json.dumps(REQUESTS[kind])))
    assert set(fields) <= set(FIELDS[kind])
    row = next(line for line in DOCUMENT.splitlines() if line.startswith(f"| `{kind}` |"))
    assert all(f"`{name}`" in row for name in FIELDS[kind])


def test_every_reason_is_documented_and_known_to_the_page():
    told = [reason for reason in REASONS if reason != "handoff"]
    assert set(re.findall(r"`([a-z_]+)`(?=.* \|)", DOCUMENT.split("## Reasons")[1])) >= set(told)
    frames = (Path(__file__).parents[2] / "static" / "js" / "store" / "frames.js").read_text()
    known = re.search(r"REASONS = \[(.*?)\]", frames, re.S).group(1)
    assert re.findall(r'"([a-z_]+)"', known) == list(REASONS)


@pytest.mark.django_db(transaction=True)
def test_the_plans_of_the_examples_are_plans(streams):
    assert queries.checked_plan(REQUESTS["query.register"]["plan"]) == REPLIES["query.status"]["plan"]
    view = REQUESTS["view.subscribe"]
    plans = view_plans(viewed_streams(view["streams"]), view["streams"], view["area"])
    assert set(plans) == set(REPLIES["view.status"]["views"])


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
async def test_the_server_says_what_the_examples_say(engine, streams, user, connect, redis_client):
    redis_client.hset("lookout:health", "ships", json.dumps(REPLIES["stream.status"]["streams"]["ships"]))
    heard = {}
    async with connect(user) as socket, connect(user, "queries=asked") as lister:
        await socket.tell("query.register", id=1, name="Harbour", plan=PLAN)
        heard["hello"] = await socket.hear("hello")
        heard["query.status"] = await socket.hear("query.status", id=1)
        heard["queries.changed"] = await lister.hear("queries.changed")
        await lister.tell("query.list", id=10)
        heard["query.listed"] = await lister.hear("query.listed", id=10)
        await socket.tell("view.subscribe", id="view", streams=["ships"], area=PLAN["compare"])
        heard["view.status"] = await socket.hear("view.status")
        heard["answer.snapshot"] = await socket.hear("answer.snapshot")
        engine.move({"near": INSIDE})
        heard["answer.change"] = await socket.hear("answer.change")
        await socket.tell("view.subscribe", streams=["ships"], area=PLAN["compare"], joined=True)
        await socket.hear("answer.snapshot")
        engine.move({"near": OUTSIDE})
        heard["answer.changes"] = await socket.hear("answer.changes")
        view, epoch, batch = (heard["answer.change"][name] for name in ("query", "epoch", "batch"))
        query = heard["query.status"]["query"]
        await socket.tell("query.subscribe", query=query)
        assert (await socket.hear("answer.snapshot"))["query"] == query != view
        await socket.tell("query.subscribe", query=query, held={"epoch": epoch, "batch": batch})
        heard["answer.resumed"] = await socket.hear("answer.resumed")
        await socket.tell("query.register", id=30, name="Reports", plan=PLAN | {"emit": "all"})
        reports = (await socket.hear("query.status", id=30))["query"]
        await socket.tell("query.subscribe", query=reports, held={"epoch": "gone", "batch": batch})
        heard["answer.missed"] = await socket.hear("answer.missed")
        incident = await database_sync_to_async(Incident.objects.create)(
            query_id=query, key="near", severity="info", opened=timezone.now()
        )
        await socket.tell("incident.acknowledge", incident=incident.pk)
        heard["incident.status"] = await socket.hear("incident.status")
        await socket.tell("incident.list", id=12)
        heard["incident.listed"] = await socket.hear("incident.listed", id=12)
        await socket.tell("incident.get", id=13, incident=incident.pk)
        heard["incident.detail"] = await socket.hear("incident.detail", id=13)
        await socket.tell("why.incident", id=20, incident=incident.pk)
        heard["why.told"] = await socket.hear("why.told", id=20)
        await socket.tell("saved.add", id=21, name="Harbour", address="#9/60/25")
        heard["saved.listed"] = await socket.hear("saved.listed", id=21)
        heard["saved.changed"] = await lister.hear("saved.changed")
        await socket.tell("link.add", id=25, name="Office", queries=[query], hours=24)
        heard["link.added"] = await socket.hear("link.added", id=25)
        await socket.tell("link.list", id=24)
        heard["link.listed"] = await socket.hear("link.listed", id=24)
        team = await Team.objects.acreate(name="Harbour")
        await Membership.objects.acreate(team=team, user=user, role="analyst")
        heard["team.list"] = await socket.hear("team.list")
        await socket.tell("roles.subscribe", query=query)
        heard["query.roles"] = await socket.hear("query.roles")
        Log(redis_client, "earth", 2).report_regions({}, map=RegionMap.grid(EARTH, 2).document())
        await socket.tell("regions.subscribe", space="earth")
        heard["regions"] = await socket.hear("regions")
        # It is told some time after an answer, so perhaps before all that was waited for since.
        heard["answer.held"] = await socket.hear_or_heard("answer.held")
        await socket.tell("query.cancel", id=4, query=NO_QUERY)
        heard["error"] = await socket.hear("error")
        heard["engine.status"] = await socket.hear("engine.status")
        heard["stream.status"] = await socket.hear("stream.status")
        await streams[0].asave()
        heard["stream.list"] = await socket.hear("stream.list")
        await database_sync_to_async(announce)(Layer(name="squares", space_id="earth"))
        heard["layer.status"] = await socket.hear("layer.status")
        await database_sync_to_async(groups.send)(LAYERS_GROUP, groups.MISSED)
        heard["changes.missed"] = await socket.hear("changes.missed")
        await database_sync_to_async(Stream.objects.filter(name="ships").update)(stored=True)
        await socket.tell("examples.show", id=8, shown=False)
        heard["examples.shown"] = await socket.hear("examples.shown", id=8)
        await socket.tell("filter.check", id=9, where="a = 1", names=["b"], objects=[])
        heard["filter.checked"] = await socket.hear("filter.checked", id=9)
        await socket.tell("table.query", id=5, table={"stored": "ships"})
        heard["table.rows"] = await socket.hear("table.rows", id=5)
        await socket.tell("backtest.start", id=14, plan=PLAN | {"stream": "ships"}, span={"from": time.time() - 60})
        heard["backtest.progress"] = await socket.hear("backtest.progress", id=14)
        heard["backtest.result"] = await socket.hear("backtest.result", id=14)
        await socket.tell("backtest.cancel", id=15)
        heard["backtest.cancelled"] = await socket.hear("backtest.cancelled", id=15)
        await database_sync_to_async(Stream.objects.filter(name="ships").update)(sketch={"features": ["speed_mps"]})
        engine.engine.may_fail = True  # it does not know of the sketch
        await socket.tell("sketch.ask", id=11, plan=REQUESTS["sketch.ask"]["plan"])
        heard["sketch.asked"] = await socket.hear("sketch.asked", id=11)
    assert set(heard) == set(REPLIES)
    assert {**heard["sketch.asked"], "query": 0} == {**REPLIES["sketch.asked"], "query": 0}
    for kind, message in heard.items():
        assert set(message) == set(REPLIES[kind]), kind
    assert set(heard["incident.status"]["incidents"][0]) == set(REPLIES["incident.status"]["incidents"][0])
    assert set(heard["incident.detail"]["changes"][0]) == set(REPLIES["incident.detail"]["changes"][0])
    (row,) = heard["answer.change"]["rows"]
    assert set(row) == set(REPLIES["answer.change"]["rows"][0])
    (region,) = heard["query.roles"]["regions"]
    assert set(region) == set(REPLIES["query.roles"]["regions"][0])
    assert heard["team.list"]["teams"] == [{"team": team.pk, "name": "Harbour", "role": "analyst"}]
    assert set(heard["saved.listed"]["views"][0]) == set(REPLIES["saved.listed"]["views"][0])
    assert set(heard["link.listed"]["links"][0]) == set(REPLIES["link.listed"]["links"][0])
    assert set(heard["link.added"]["link"]) == set(REPLIES["link.added"]["link"])
    assert set(heard["layer.status"]["layer"]) == set(REPLIES["layer.status"]["layer"])
    for kind in ("hello", "stream.list"):
        assert set(heard[kind]["streams"][0]) == set(REPLIES[kind]["streams"][0])
        assert set(heard[kind]["spaces"][0]) == set(REPLIES[kind]["spaces"][0])
    assert heard["hello"]["dimensions"] == REPLIES["hello"]["dimensions"]
