"""Two requests of a user at one moment do not pass a limit together, whatever is counted."""

import contextlib
import json
import threading

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models import QuerySet
from django.test import Client

from tests.webapp.conftest import PLAN
from tests.webapp.test_layers import folder, squares  # noqa: F401
from webapp.layers import waiting_files
from webapp.layers.imports import ImportOptions, Label, begin_import, begin_upload, import_layer
from webapp.models import Channel, Layer, Query, SavedView, ShareLink
from webapp.pages import alarms
from webapp.queries import queries
from webapp.teams import links, views
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)
MEET_S = 0.5
KEYS = {
    "p256dh": "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM",
    "auth": "tBHItJI5svbpez7KI4CCXg",
}


def _query(user, name):
    queries.register(user, name, PLAN)


def _upload(user, name):
    file = SimpleUploadedFile("squares.geojson", squares())
    begin_upload(user, file, Label(name, name, ""), ImportOptions())


def _link(user, name):
    links.make(user, name, [Query.objects.get().pk], 1)


def _browser(user, name):
    client = Client()
    client.force_login(user)
    document = {
        "subscription": {"endpoint": f"https://fcm.googleapis.com/fcm/send/{name}", "keys": KEYS},
        "severity": "info",
    }
    answer = client.post("/alarms/browser", json.dumps(document), content_type="application/json")
    if answer.status_code != 200:
        raise Refused("alarms", answer.content.decode())


# For each thing that is counted: its model, where its limit is, and what makes one more.
LIMITS = {
    "queries": (Query, (settings, "MAX_QUERIES_PER_USER"), _query),
    "layers": (Layer, (settings, "MAX_LAYERS_PER_USER"), lambda user, name: begin_import(user, Label(name, name, ""))),
    "waiting files of a user": (Layer, (settings, "LAYER_WAITING_BYTES"), _upload),
    "waiting files of all": (Layer, (settings, "LAYERS_WAITING_BYTES"), _upload),
    "saved views": (SavedView, (views, "MOST_OF_A_USER"), lambda user, name: views.add(user, name, None, address="#")),
    "share links": (ShareLink, (links, "MOST_OF_A_USER"), _link),
    "browsers": (Channel, (alarms, "MOST_BROWSERS"), _browser),
}


@pytest.fixture
def limited(project, monkeypatch, meeting):
    """Return a function that sets a limit, of the project or of a module. Imports wait for ever."""
    monkeypatch.setattr(import_layer, "apply_async", lambda *_, **__: None)

    def limit(where, name, most):
        if where is settings:
            setattr(project, name, most)
        else:
            monkeypatch.setattr(where, name, most)

    return limit


@pytest.fixture
def meeting(monkeypatch):
    """Let two threads that count at one moment wait for each other before they go on: the worst that can happen."""
    barrier = threading.Barrier(2)

    def meets(count):
        def counted(*arguments, **options):
            found = count(*arguments, **options)
            if threading.current_thread() is not threading.main_thread():
                with contextlib.suppress(threading.BrokenBarrierError):
                    barrier.wait(MEET_S)
            return found

        return counted

    monkeypatch.setattr(QuerySet, "count", meets(QuerySet.count))
    monkeypatch.setattr(waiting_files, "size_of", meets(waiting_files.size_of))


def at_one_moment(make, user):
    """Make two things at one moment; return the refusals."""
    refused = []

    def ask(name):
        try:
            make(user, name)
        except Refused as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=[name]) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return refused


@pytest.mark.parametrize("what", LIMITS)
def test_two_requests_at_one_moment_do_not_pass_a_limit_together(what, user, streams, folder, limited):  # noqa: F811
    model, (where, name), make = LIMITS[what]
    if what == "share links":
        queries.register(user, "Shown", PLAN)
    limited(where, name, len(squares()) if name.endswith("BYTES") else 1)
    refused = at_one_moment(make, user)
    assert model.objects.count() == len(refused) == 1, refused
