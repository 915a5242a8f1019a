"""However the row of a query is deleted, the query ends in the engine and for its clients."""

import time

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from bench.live import PATIENCE_S
from tests.webapp.conftest import PLAN, Rig, reconciled, settled
from webapp import tasks
from webapp.models import DeletedQuery, Query
from webapp.queries import queries

pytestmark = pytest.mark.django_db(transaction=True)


def running(rig):
    """Return the queries that an engine runs."""
    return set(rig.engine.layout.store.registry(rig.engine.batch).ids.tolist())


def come_to(rig, expected):
    """Wait until an engine runs some queries and no others."""
    end = time.monotonic() + PATIENCE_S
    while running(rig) != expected:
        assert time.monotonic() < end, running(rig)
        time.sleep(0.01)


def by_the_admins_action(site, numbers, _):
    form = {"action": "delete_selected", "_selected_action": numbers, "post": "yes"}
    assert site.post(reverse("admin:webapp_query_changelist"), form).status_code == 302


def by_the_admins_page(site, numbers, _):
    for number in numbers:
        assert site.post(reverse("admin:webapp_query_delete", args=[number]), {"post": "yes"}).status_code == 302


def with_their_owner(site, _, user):
    assert site.post(reverse("admin:auth_user_delete", args=[user.pk]), {"post": "yes"}).status_code == 302


def with_owners_selected(site, _, user):
    form = {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
    assert site.post(reverse("admin:auth_user_changelist"), form).status_code == 302


def in_bulk(_, numbers, __):
    Query.objects.filter(pk__in=numbers).delete()


WAYS = (by_the_admins_action, by_the_admins_page, with_their_owner, with_owners_selected, in_bulk)


@pytest.mark.parametrize("delete", WAYS)
def test_deleted_queries_end_in_the_engine(engine, streams, user, other, staff, delete):
    numbers = [queries.register(user, name, PLAN).pk for name in "ab"]
    kept = queries.register(other, "kept", PLAN).pk
    come_to(engine, {*numbers, kept})
    site = Client()
    site.force_login(staff)
    delete(site, numbers, user)
    assert set(Query.objects.values_list("pk", flat=True)) == {kept}
    come_to(engine, {kept})
    reconciled()
    assert not DeletedQuery.objects.exists()


def test_a_row_that_changed_after_it_was_read_is_deleted_at_whichever_revision_it_has(engine, streams, user):
    read = Query.objects.get(pk=queries.register(user, "one", PLAN).pk)
    for name in ("two", "three"):
        queries.edit(user, read.pk, name=name)
    read.delete()
    come_to(engine, set())


def test_what_is_deleted_while_the_engine_is_away_ends_once_it_is_back(project, streams, user, redis_client, tmp_path):
    with Rig(redis_client, tmp_path / "engine") as rig:
        query = queries.register(user, "one", PLAN)
        settled(query)
        come_to(rig, {query.pk})
        # Redis forgets, so nobody will have heard of it.
        url, project.REDIS_URL = project.REDIS_URL, "redis://127.0.0.1:1/0"
        query.delete()
        project.REDIS_URL = url
        assert running(rig)
        reconciled()
        come_to(rig, set())
    assert not DeletedQuery.objects.exists()


def test_what_no_engine_acknowledges_is_told_again(streams, user, redis_client, tmp_path):
    Query.objects.create(owner=user, name="one", plan=PLAN, stream="ships").delete()
    tasks.reconcile()
    assert DeletedQuery.objects.exists()
    redis_client.flushall()
    with Rig(redis_client, tmp_path / "late"):
        assert reconciled() == 1
    assert not DeletedQuery.objects.exists()


async def test_clients_hear_that_a_query_was_deleted_with_its_owner(streams, user, other, connect):
    shared = await Query.objects.acreate(owner=user, name="one", plan=PLAN, stream="ships", shared=True)
    async with connect(other) as socket:
        await socket.hear("query.status", query=shared.pk)
        await sync_to_async(user.delete)()
        told = await socket.hear("query.status", query=shared.pk)
    assert (told["status"], told["owner"]) == ("cancelled", "ann")
