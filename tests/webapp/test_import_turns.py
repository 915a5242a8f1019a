"""Users take turns with imports, however many one of them has, and however long they take."""

import time

import pytest
from celery.exceptions import Retry
from django.utils import timezone

from streaming.keys import IMPORTS_ASKED_KEY
from tests.webapp.test_layers import site, upload  # noqa: F401
from webapp.layers.imports import import_layer
from webapp.layers.turns import place_in_line
from webapp.models import Layer, RefusedImport

pytestmark = pytest.mark.django_db(transaction=True)


def test_users_take_turns_with_imports_however_many_one_of_them_has(site, user, other, project, monkeypatch):  # noqa: F811
    project.LAYER_IMPORTS_AT_ONCE = 1
    sent = []
    monkeypatch.setattr(import_layer, "apply_async", lambda arguments, **_: sent.append(arguments))
    for name in ("first", "second", "third"):
        upload(site, name=name)
    site.force_login(other)
    upload(site, name="theirs")

    def wait(**_):
        raise Retry

    monkeypatch.setattr(import_layer, "retry", wait)
    import_layer(*sent[0])
    Layer.objects.filter(name="third").update(heartbeat=timezone.now())  # it runs; all others ask meanwhile
    for task in (sent[1], sent[3]):
        with pytest.raises(Retry):
            import_layer(*task)
    Layer.objects.filter(name="third").update(heartbeat=None)
    with pytest.raises(Retry):
        import_layer(*sent[1])  # it asked earlier, but its user has had a turn
    import_layer(*sent[3])
    import_layer(*sent[1])
    assert {layer.name for layer in Layer.objects.filter(status="ready")} == {"first", "theirs", "second"}


def test_of_the_imports_of_a_user_the_next_one_asks_every_second_and_the_others_less_often(site, user, monkeypatch):  # noqa: F811
    monkeypatch.setattr(import_layer, "apply_async", lambda *_, **__: None)
    for name in ("first", "second", "third"):
        upload(site, name=name)
    assert [place_in_line(layer) for layer in Layer.objects.order_by("pk")] == [1, 2, 3]
    Layer.objects.filter(name="first").update(heartbeat=timezone.now())
    assert [place_in_line(layer) for layer in Layer.objects.order_by("pk")[1:]] == [1, 2]


def test_an_import_that_takes_long_ends_when_others_wait_and_goes_on_otherwise(site, user, project, redis_client):  # noqa: F811
    project.LAYER_SHARED_S = 0.0
    upload(site)
    assert Layer.objects.get().status == "ready"
    redis_client.zadd(IMPORTS_ASKED_KEY, {str(user.pk): time.time(), "0": time.time() + 60})
    upload(site, name="second")
    (refused,) = RefusedImport.objects.all()
    assert "at most while others wait" in refused.reason
