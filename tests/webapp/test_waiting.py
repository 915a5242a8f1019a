"""Joins with layers that are not there wait, say so, and start when the layer comes."""

import json

import pytest
import shapely

from tests.webapp.conftest import INSIDE, PLAN, settled
from tests.webapp.test_layers import changed, folder, site, upload  # noqa: F401
from webapp import tasks
from webapp.models import Layer, Query
from webapp.queries import queries

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.filterwarnings("ignore::RuntimeWarning")]
JOIN = {"stream": "ships", "kind": "join", "join": {"layer": "squares"}}


def state(query):
    (query,) = settled(query)
    return query.status, query.warning, query.revision


def import_squares(client):
    return upload(client, json.dumps(changed("s", shapely.box(14, 54, 16, 56))).encode())


WAITS = "waits for the layer 'squares', which is not there; it starts once the layer is imported"


def test_a_join_with_a_layer_that_never_was_waits_and_starts_when_it_comes(engine, streams, user, site):  # noqa: F811
    query = queries.register(user, "one", JOIN)
    assert state(query) == ("waiting", WAITS, 1)
    assert not query.should_run
    import_squares(site)
    assert state(query) == ("running", "", 2)


def test_encounters_away_from_a_layer_wait_for_it(engine, streams, user, site):  # noqa: F811
    away = {"layer": "squares", "distance": 10}
    plan = {"stream": "ships", "kind": "encounter", "for_s": 60, "join": {"stream": "ships"}, "away_from": away}
    query = queries.register(user, "one", plan)
    assert state(query) == ("waiting", WAITS, 1)
    import_squares(site)
    assert state(query) == ("running", "", 2)
    assert site.delete("/layers/squares").status_code == 204
    assert state(query) == ("waiting", WAITS, 3)


def test_a_refused_import_starts_nothing(engine, streams, user, site):  # noqa: F811
    query = queries.register(user, "one", JOIN)
    upload(site, b"hello")
    assert state(query) == ("waiting", WAITS, 1)


def test_a_join_waits_again_when_its_layer_is_deleted(engine, streams, user, site):  # noqa: F811
    import_squares(site)
    query = queries.register(user, "one", JOIN)
    other = queries.register(user, "two", PLAN)
    assert state(query) == ("running", "", 1)
    engine.move({"near": INSIDE})
    assert site.delete("/layers/squares").status_code == 204
    assert state(query) == ("waiting", WAITS, 2)
    assert state(other) == ("running", "", 1)
    import_squares(site)
    assert state(query) == ("running", "", 3)


def test_an_edit_of_the_layer_leaves_its_joins_as_they_are(engine, streams, user, site):  # noqa: F811
    import_squares(site)
    query = queries.register(user, "one", JOIN)
    import_squares(site)
    assert Layer.objects.get().version == 2
    assert state(query) == ("running", "", 1)


def test_a_paused_join_begins_to_wait_when_it_is_resumed(engine, streams, user, site):  # noqa: F811
    query = queries.register(user, "one", JOIN)
    queries.edit(user, query.pk, paused=True)
    assert state(query) == ("paused", "", 2)
    queries.edit(user, query.pk, paused=False)
    assert state(query) == ("waiting", WAITS, 3)
    queries.edit(user, query.pk, plan=PLAN)
    assert state(query) == ("running", "", 4)


def test_a_reconciliation_lets_follow_what_did_not(engine, streams, user, site):  # noqa: F811
    import_squares(site)
    query = queries.register(user, "one", JOIN)
    Layer.objects.update(version=None)  # as if a process had ended before it told
    tasks.reconcile()
    assert state(query) == ("waiting", WAITS, 2)
    assert tasks.reconcile() == 0
    Layer.objects.update(version=1)
    tasks.reconcile()
    assert state(query) == ("running", "", 3)


def test_what_waits_is_not_told_to_a_new_state_of_the_engine(streams, user, redis_client):
    query = Query.objects.create(owner=user, name="q", plan=JOIN, stream="ships", status=Query.WAITING, acknowledged=1)
    assert query.pk not in Query.objects.unsettled("another").values_list("pk", flat=True)
