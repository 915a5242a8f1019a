"""The events that are kept of a query, for who missed them."""

import pytest
from django.utils import timezone

from tests.webapp.conftest import PLAN, token_of
from webapp.models import Event, Query

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_events_that_are_kept_of_a_query_come_in_pages_to_those_who_see_it(user, other, client, streams):
    query = Query.objects.create(owner=user, name="harbour", plan=PLAN, stream="ships")
    Event.objects.bulk_create(
        Event(query=query, batch=1, key=str(number), sign="+", reason="moved", time=timezone.now())
        for number in range(450)
    )
    path, keys, before = f"/replay/events/{query.pk}", [], ""
    mine = {"HTTP_AUTHORIZATION": f"Bearer {token_of(user)}"}
    while before is not None:
        page = client.get(path + (before and f"?before={before}"), **mine).json()
        assert page["kept"] == 450 and len(page["events"]) <= 200
        keys += [event["key"] for event in page["events"]]
        before = page["next"]
    assert keys == [str(number) for number in reversed(range(450))]
    assert client.get(path, HTTP_AUTHORIZATION=f"Bearer {token_of(other)}").status_code == 404
    assert client.get(path + "?before=x", **mine).status_code == 400
