"""Explanations over the websocket: of an object now, of an event, and of an incident with its deliveries."""

import json
import re
import time

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from streaming.spaces import EARTH
from tests.webapp.conftest import INSIDE, OUTSIDE, PLAN, settled
from webapp.models import Channel, Delivery, DeliveryAttempt, Event, Incident, Subscription
from webapp.queries import queries
from webapp.recording.recording import record_events

FAST = PLAN | {"where": "speed_mps > 5"}


def saved(user, plan, **options):
    query = queries.register(user, "watched", plan, **options)
    return settled(query)[0]


async def registered(user, plan=PLAN, **options):
    return await database_sync_to_async(saved)(user, plan, **options)


async def asked(socket, kind, **fields):
    await socket.tell(kind, id="w", **fields)
    while (message := await socket.hear_any())["type"] not in ("why.told", "error"):
        pass
    assert message["id"] == "w"
    return message


def deciding(term):
    """Return what the terms say that decide."""
    own = [(term["asks"], term["found"])] if term.get("decides") else []
    return own + [one for part in term.get("parts", ()) for one in deciding(part)]


async def recorded(redis_client, **about):
    """Record until there is an event."""
    deadline_s = time.monotonic() + 10
    while True:
        await database_sync_to_async(record_events)(redis_client, EARTH)
        found = await database_sync_to_async(Event.objects.filter(**about).first)()
        if found:
            return found
        assert time.monotonic() < deadline_s


async def test_an_object_is_told_why_it_is_not_in_an_answer(streams, user, engine, connect):
    query = await registered(user, FAST)
    engine.move({"a": OUTSIDE}, properties={"speed_mps": 3.2})
    async with connect(user) as socket:
        told = await asked(socket, "why.object", query=query.pk, stream="ships", key="a")
        assert told["why"]["holds"] is False
        assert deciding(told["why"]) == [
            ("in longitude 10 to 20, latitude 50 to 60", "638 km outside"),
            ("speed_mps > 5", "speed_mps is 3.2"),
        ]
        border = told["why"]["parts"][0]["border"]
        assert border["element"] == [30.0, 55.0] and border["place"][0] == 20.0
        assert told["fix"]["source"] == "engine" and told["fix"]["properties"] == {"speed_mps": 3.2}
        engine.move({"a": INSIDE}, properties={"speed_mps": 6})
        told = await asked(socket, "why.object", query=query.pk, stream="ships", key="a")
        assert told["why"]["holds"] is True and deciding(told["why"]) == []


async def test_a_rule_is_explained_by_the_clock_that_the_engine_has(streams, user, engine, connect):
    inside = await registered(user)
    plan = {"stream": "ships", "kind": "rule", "when": {"query": inside.pk}, "for_s": 300}
    rule = await registered(user, plan)
    now_s = time.time()
    engine.log.send("tick", now_us=int((now_s - 130) * 1e6))
    engine.move({"a": INSIDE}, at_us=int((now_s - 130) * 1e6))
    async with connect(user) as socket:
        told = await asked(socket, "why.object", query=rule.pk, stream="ships", key="a")
        engine.log.send("tick", now_us=int(now_s * 1e6))
        told = await asked(socket, "why.object", query=rule.pk, stream="ships", key="a")
        ((asks, found),) = deciding(told["why"])
        assert asks == "for 5 min without a break"
        assert re.fullmatch(r"holds for 2 min (9|10|11) s, since .*; 2 min (49|50|51) s to go", found)
        (named, _) = told["why"]["parts"]
        assert named["asks"] == "in \u201cwatched\u201d" and named["parts"][0]["found"].endswith("inside")


async def test_a_query_that_is_paused_and_an_object_that_is_gone_are_told_so(streams, user, engine, connect):
    query = await registered(user)
    await database_sync_to_async(queries.edit)(user, query.pk, paused=True)
    async with connect(user) as socket:
        told = await asked(socket, "why.object", query=query.pk, stream="ships", key="nobody")
        assert deciding(told["why"]) == [
            ("the query runs", "it is paused"),
            ("ships has reported the object lately", "nothing is known of it"),
        ]
        assert told["fix"] is None
        event = Event(query=query, batch=1, key="b", sign="-", reason="expired", time=timezone.now(), properties={})
        event.bounds = [*OUTSIDE, None, *OUTSIDE, None]
        await database_sync_to_async(event.save)()
        told = await asked(socket, "why.object", query=query.pk, stream="ships", key="b")
        gone, outside = (found for _, found in deciding(told["why"])[1:])
        assert gone.startswith("last heard ") and outside == "638 km outside" and told["fix"]["source"] == "event"


async def test_the_nearest_partner_of_a_join_with_a_stream_is_told_with_its_distance(streams, user, engine, connect):
    join = {"stream": "buses", "predicate": "dwithin", "distance": 1_000}
    query = await registered(user, {"stream": "ships", "kind": "join", "join": join})
    engine.move({"bus 1": (15.0, 55.1)}, stream="buses")
    engine.move({"a": INSIDE})
    async with connect(user) as socket:
        told = await asked(socket, "why.object", query=query.pk, stream="ships", key="a")
        assert deciding(told["why"]) == [("within 1.00 km of an object of buses", "the nearest is bus 1, 11 km away")]


async def test_the_rank_and_the_value_of_an_aggregate_are_those_of_the_answer(streams, user, engine, connect):
    nearest = {"stream": "ships", "kind": "knn", "k": 2, "around": {"at": [15, 55]}}
    count = PLAN | {"aggregate": {"function": "count", "thresholds": [{"above": 5}]}}
    knn, aggregate = await registered(user, nearest), await registered(user, count)
    engine.move({"a": (15.0, 55.1), "b": (15.0, 55.2), "c": (15.0, 55.3)})
    async with connect(user) as socket:
        told = await asked(socket, "why.object", query=knn.pk, stream="ships", key="c")
        assert deciding(told["why"]) == [
            ("among the 2 nearest of 15, 55", "33 km away; the last of the 2 is b at 22 km")
        ]
        told = await asked(socket, "why.object", query=aggregate.pk, stream="ships", key="c")
        assert deciding(told["why"]) == [("above 5", "it is 3")]


async def test_an_event_is_explained_by_its_own_fix_with_the_times_on_its_way(
    streams, user, engine, connect, redis_client
):
    query = await registered(user, FAST)
    engine.move({"a": INSIDE}, properties={"speed_mps": 6})
    event = await recorded(redis_client, query=query, key="a", sign="+")
    engine.move({"a": OUTSIDE}, properties={"speed_mps": 7})
    left = await recorded(redis_client, query=query, key="a", sign="-")
    async with connect(user) as socket:
        at_us = round(event.time.timestamp() * 1e6)
        told = await asked(socket, "why.event", query=query.pk, key="a", sign="+", time_us=at_us)
        assert told["why"]["holds"] is True and told["fix"]["properties"] == {"speed_mps": 6}
        assert told["event"]["reason"] == event.reason
        whats = [step["what"] for step in told["lag"]]
        assert whats == ["reported", "heard", "told", "recorded"]
        times = [step["at"] for step in told["lag"]]
        assert sorted(times[1:]) == times[1:]
        told = await asked(socket, "why.event", query=query.pk, key="a", sign="-", time_us=at_us)
        assert deciding(told["why"]) == [("in longitude 10 to 20, latitude 50 to 60", "638 km outside")]
        assert told["fix"]["lon"] == left.lon == 30.0
        told = await asked(socket, "why.event", query=query.pk, key="b", sign="-", time_us=at_us)
        assert told["code"] == "event"


async def test_a_crossed_threshold_and_an_alarm_of_a_rule_are_explained(streams, user, engine, connect, redis_client):
    count = PLAN | {"aggregate": {"function": "count", "thresholds": [{"above": 0}]}}
    aggregate, inside = await registered(user, count), await registered(user)
    plan = {"stream": "ships", "kind": "rule", "when": {"query": inside.pk}}
    rule = await registered(user, plan)
    engine.log.send("tick", now_us=time.time_ns() // 1000 - 1_000_000)
    engine.move({"a": INSIDE})
    crossing = await recorded(redis_client, query=aggregate, sign="+")
    engine.log.send("tick", now_us=time.time_ns() // 1000)
    alarm = await recorded(redis_client, query=rule, sign="+")
    async with connect(user) as socket:
        about = {"key": crossing.key, "sign": "+", "time_us": 0, "partner": crossing.partner}
        told = await asked(socket, "why.event", query=aggregate.pk, **about)
        assert told["why"]["holds"] and told["why"]["parts"][0]["found"] == "it is 1"
        told = await asked(socket, "why.event", query=rule.pk, key="a", sign="+", time_us=0)
        assert told["why"]["holds"], told["why"]
        assert told["why"]["parts"][0]["parts"][0]["found"].startswith("entered at ")
        # A report came with the time at which it began only if a slow engine read both in one batch.
        assert alarm.told and (alarm.heard is None or alarm.heard < alarm.told)


def delivered(incident, user):
    """Make the log of a delivery that failed once."""
    channel = Channel.objects.create(name="hook", kind="webhook", owner=user)
    subscription = Subscription.objects.create(user=user, channel=channel)
    change = incident.changes.first()
    delivery = Delivery.objects.create(change=change, subscription=subscription, channel=channel, document={})
    DeliveryAttempt.objects.create(delivery=delivery, outcome="failed", status=503, took_ms=12, error="busy")
    DeliveryAttempt.objects.create(delivery=delivery, outcome="sent", status=200, took_ms=9)
    Delivery.objects.filter(pk=delivery.pk).update(state="sent", attempts=2)


async def test_an_incident_is_explained_with_its_deliveries_which_others_do_not_see(
    streams, user, other, engine, connect, redis_client
):
    query = await registered(user, shared=True, severity="warning")
    engine.move({"a": INSIDE})
    await recorded(redis_client, query=query, key="a")
    incident = await database_sync_to_async(Incident.objects.get)()
    await database_sync_to_async(delivered)(incident, user)
    async with connect(user) as socket:
        told = await asked(socket, "why.incident", incident=incident.pk)
        assert told["why"]["holds"] is True
        (delivery,) = told["deliveries"]
        assert [(one["outcome"], one["status"]) for one in delivery["attempts"]] == [("failed", 503), ("sent", 200)]
        assert (delivery["channel"], delivery["to"], delivery["state"]) == ("hook", "ann", "sent")
        assert [step["what"] for step in told["lag"]][-2:] == ["recorded", "opened"]
        await database_sync_to_async(Event.objects.all().delete)()
        told = await asked(socket, "why.incident", incident=incident.pk)
        assert told["why"]["holds"] is True and told["notes"]
    async with connect(other) as socket:
        assert (await asked(socket, "why.incident", incident=incident.pk))["deliveries"] == []


async def test_nobody_is_told_about_queries_of_others(streams, user, other, engine, connect):
    query = await registered(user)
    async with connect(other) as socket:
        for kind, fields in (
            ("why.object", {"stream": "ships", "key": "a"}),
            ("why.event", {"key": "a", "sign": "+", "time_us": 0}),
        ):
            assert (await asked(socket, kind, query=query.pk, **fields))["code"] == "query"
        told = await asked(socket, "why.object", query=query.pk, stream="none", key="a")
        assert told["code"] == "query"


async def test_a_rule_that_names_a_query_of_somebody_else_does_not_tell_how_it_is_made(
    streams, user, other, engine, connect
):
    secret = await registered(user, FAST)
    rule = await registered(user, {"stream": "ships", "kind": "rule", "when": {"query": secret.pk}}, shared=True)
    engine.move({"a": OUTSIDE}, properties={"speed_mps": 1})
    async with connect(other) as socket:
        told = await asked(socket, "why.object", query=rule.pk, stream="ships", key="a")
        assert "speed" not in json.dumps(told["why"]) and "watched" not in json.dumps(told["why"])
        assert deciding(told["why"]) == [
            (f"in \u201cquery {secret.pk}\u201d", "the engine does not have it in the answer")
        ]


@pytest.mark.parametrize("field", [{"sign": "~"}, {"time_us": "now"}, {"key": 7}])
async def test_wrong_fields_are_refused(streams, user, connect, field):
    async with connect(user) as socket:
        about = {"query": 1, "key": "a", "sign": "+", "time_us": 0} | field
        assert (await asked(socket, "why.event", **about))["code"] == "fields"
