"""User-defined filters are used once they are installed and enabled."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from bench.live import PATIENCE_S
from streaming import entry_points
from streaming.plans.schema import plan_schema
from streaming.spaces import EARTH
from streaming.udf import BUILT_IN
from tests.webapp.conftest import PLAN
from tests.webapp.test_answers import INSIDE
from webapp.models import EnabledFilter, Query
from webapp.queries import queries
from webapp.recording import recording

pytestmark = pytest.mark.django_db(transaction=True)


def plan_with(udf, argument=""):
    """Return a plan with a filter of elements."""
    return PLAN | {"filters": [{"udf": udf, "argument": argument}]}


def joined_with(**filters):
    """Return a join with filters."""
    return {"stream": "ships", "kind": "join", "join": {"stream": "buses", **filters}}


def refusal(plan):
    """Return why a plan is refused."""
    with pytest.raises(queries.Refused) as refused:
        queries.checked_plan(plan)
    assert refused.value.code == "plan"
    return refused.value.message


def test_the_built_in_filters_are_enabled(streams):
    assert EnabledFilter.names() == list(BUILT_IN)
    assert queries.checked_plan(plan_with("key_equals", "a"))["filters"] == [{"udf": "key_equals", "argument": "a"}]


def test_a_filter_that_is_not_installed_is_refused_with_the_ones_there_are(streams):
    EnabledFilter(name="nearest", enabled=True).save()
    assert "one of key_equals, property_equals" in refusal(plan_with("nearest"))


def test_a_filter_of_another_package_waits_for_the_administrator(acme, streams):
    assert "enabled in the admin" in refusal(plan_with("good"))
    EnabledFilter(name="good", enabled=True).save()
    assert queries.checked_plan(plan_with("good"))["filters"] == [{"udf": "good"}]


def test_a_built_in_filter_can_be_switched_off(streams):
    EnabledFilter(name="key_equals", enabled=False).save()
    assert "got 'key_equals'" in refusal(plan_with("key_equals", "a"))


@pytest.mark.parametrize("place", ["filters", "pair_filters"])
def test_the_filters_of_partners_and_pairs_are_checked_too(place, streams):
    assert "got 'nearest'" in refusal(joined_with(**{place: [{"udf": "nearest"}]}))
    assert "of the form key:value" in refusal(joined_with(**{place: [{"udf": "property_equals", "argument": "x"}]}))


def test_one_argument_may_be_right_for_pairs_and_wrong_for_elements(streams):
    spatial = [{"udf": "geojson_spatial", "argument": "name:x"}]
    assert queries.checked_plan(joined_with(pair_filters=spatial))
    assert "GeoJSON geometry" in refusal(joined_with(filters=spatial))
    assert "GeoJSON geometry" in refusal(joined_with(filters=spatial, pair_filters=spatial))


def test_the_admin_lists_what_is_installed_and_switches_it(acme, client, staff):
    client.force_login(staff)
    address = reverse("admin:webapp_enabledfilter_changelist")
    page = client.get(address).content.decode()
    assert "tests.udf.wrong:Good" in page
    assert set(EnabledFilter.names()) == set(BUILT_IN)
    rows = list(EnabledFilter.objects.all())
    form = {"form-TOTAL_FORMS": len(rows), "form-INITIAL_FORMS": len(rows), "_save": "Save"}
    for number, row in enumerate(rows):
        form[f"form-{number}-id"] = row.pk
        if row.name in ("good", "geojson_spatial"):
            form[f"form-{number}-enabled"] = "on"
    assert client.post(address, form).status_code == 302
    assert set(EnabledFilter.names()) == {"good", "geojson_spatial"}
    assert client.get(reverse("admin:webapp_enabledfilter_add")).status_code == 403


def test_a_switch_stays_when_its_package_goes(acme, client, staff, monkeypatch):
    client.force_login(staff)
    EnabledFilter(name="good", enabled=True).save()
    monkeypatch.setattr(entry_points, "_offered", lambda group: {})
    assert EnabledFilter.names() == list(BUILT_IN)
    assert "not installed" in client.get(reverse("admin:webapp_enabledfilter_changelist")).content.decode()


async def test_whoever_watches_a_query_is_told_that_its_filter_fails(
    acme, engine, redis_client, streams, user, staff, connect, async_client
):
    await EnabledFilter(name="picky", enabled=True).asave()
    record = sync_to_async(recording.record_events)
    async with connect(user) as socket:
        await socket.tell("query.register", id=1, name="Picked", plan=plan_with("picky"))
        number = (await socket.hear("query.status", status="running"))["query"]
        engine.move({"anna": INSIDE})
        async with asyncio.timeout(PATIENCE_S):
            while not (await Query.objects.aget(pk=number)).warnings:
                await record(redis_client, EARTH)
        status = await socket.hear("query.status")
        words = "fails count as not matching; the filter picky failed: KeyError: 'altitude'"
        assert (status["status"], status["error"]) == ("running", None)
        (warned,) = status["warnings"]
        assert warned["kind"] == "failed" and warned["warning"].endswith(words)
        await async_client.aforce_login(staff)
        page = await async_client.get(reverse("admin:webapp_query_changelist"))
        assert "the filter picky failed" in page.content.decode()
        await socket.tell("query.edit", id=2, query=number, plan=PLAN)
        assert (await socket.hear("query.status", id=2))["warnings"] == []


def test_the_schema_of_plans_is_served(client):
    answer = client.get("/plans/schema.json")
    assert answer["Content-Type"] == "application/schema+json"
    assert json.loads(answer.content) == plan_schema()
