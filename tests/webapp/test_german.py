"""What a German user reads of the engine, of the workers and in mails."""

import re
from pathlib import Path

import pytest
from channels.db import database_sync_to_async
from django.test import Client
from django.utils import translation

from bench.live import PATIENCE_S
from streaming.errors import InvalidPlan, LookoutError
from streaming.gateway.access import FeedAccess
from streaming.plans import parse_plan
from streaming.spaces import EARTH
from tests.webapp.alarms import changed, query_of, subscribed
from tests.webapp.conftest import INSIDE, PLAN, Socket, token_of
from tests.webapp.mail_server import Mailbox
from webapp.asgi import application
from webapp.delivery import outbox
from webapp.delivery.sending import deliver_due
from webapp.models import Channel, Query, Team
from webapp.models.languages import language_of_user
from webapp.pages import languages
from webapp.queries.queries import register
from webapp.words.plans import plan_in_words
from webapp.words.stored_words import retold, retold_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mailbox(settings, monkeypatch):
    monkeypatch.setattr(outbox, "_wake", lambda: None)
    with Mailbox() as made:
        settings.MAIL_URL, settings.DELIVERY_ACCESS = f"smtp://127.0.0.1:{made.port}", FeedAccess()
        yield made


def mailed(mailbox, receiver):
    """Send a mail about an incident to a user or a team; return its subject and its text."""
    channel = Channel.objects.create(
        name=f"mail {Channel.objects.count()}", kind="email", options={"to": ["ann@a.example"]}
    )
    subscribed(receiver, channel)
    owner = receiver if hasattr(receiver, "username") else None
    changed(query_of(owner, shared=owner is None, team=None if owner else receiver))
    deliver_due()
    _, letter = mailbox.letters[-1]
    return letter["Subject"], letter.get_content()


def test_a_mail_is_in_the_language_that_its_receiver_chose_last(user, mailbox):
    client = Client()
    client.force_login(user)
    assert language_of_user(user.pk) == "en"
    client.post("/language/", {"language": "de"})
    subject, text = mailed(mailbox, user)
    assert subject == "[kritisch] Harbour: ship-0 geöffnet"
    assert "Stufe: kritisch" in text and "Hinein: 2026-01-05 12:00:00 UTC" in text
    client.post("/language/", {"language": "en"})
    assert mailed(mailbox, user)[0] == "[critical] Harbour: ship-0 opened"


def test_a_mail_to_a_team_is_in_the_language_of_the_site(user, mailbox, settings):
    team = Team.objects.create(name="Harbour masters")
    assert mailed(mailbox, team)[0].startswith("[critical]")
    settings.LANGUAGE_CODE = "de"
    assert language_of_user(None) == "de"


def test_a_language_that_was_chosen_before_the_login_is_kept_at_the_login(user):
    user.set_password("a long pass phrase")
    user.save()
    client = Client()
    client.post("/language/", {"language": "de"})
    client.post("/login/", {"username": user.username, "password": "a long pass phrase"})
    assert language_of_user(user.pk) == "de"
    client.post("/language/", {"language": "xx"})
    assert language_of_user(user.pk) == "de"


def test_a_user_who_never_chose_a_language_is_told_in_that_of_the_browser_of_the_first_login(user):
    user.set_password("a long pass phrase")
    user.save()
    for browser in ("de-AT,en;q=0.5", "en"):
        client = Client(headers={"accept-language": browser})
        client.post("/login/", {"username": user.username, "password": "a long pass phrase"})
        assert language_of_user(user.pk) == "de"


def test_an_error_of_a_plan_is_shown_in_the_language_of_whoever_reads_it():
    with pytest.raises(InvalidPlan) as refused:
        parse_plan({"kind": "knn", "stream": "ships", "k": 0, "around": {"at": [24.9, 60.1]}}, EARTH)
    assert str(refused.value) == "k must be a whole number of 1 to 1,000; got 0"
    with translation.override("de"):
        assert str(refused.value) == "k muss eine ganze Zahl von 1 bis 1.000 sein; erhalten: 0"
        assert refused.value.english == "k must be a whole number of 1 to 1,000; got 0"
        assert str(LookoutError.of_document(refused.value.document())) == str(refused.value)


def test_words_of_plans_write_numbers_as_the_language_does():
    around = {"at": [24.5, 60.25]}
    document = {"kind": "knn", "k": 3, "around": around, "max_distance": 5000.5}
    assert plan_in_words(document) == "the 3 nearest to 24.5, 60.25, at most 5,000.5 m away"
    with translation.override("de"):
        assert plan_in_words(document) == "die 3 nächsten von 24,5; 60,25, höchstens 5.000,5 m entfernt"


STORED = {
    "waits for the layer 'ports', which is not there; it starts once the layer is imported": (
        "wartet auf die Ebene 'ports', die es nicht gibt; sie startet, sobald die Ebene importiert ist"
    ),
    # A text within a text.
    "a part of the query failed, and the objects on which it fails count as not matching; "
    "the filter a.b failed: udf must be one of x, y; got 'z'": (
        "ein Teil der Abfrage ist gescheitert, und die betroffenen Objekte gelten als nicht zutreffend; "
        "der Filter a.b ist gescheitert: udf muss eines von x, y sein; erhalten: 'z'"
    ),
    "reports were not believed: faster than 50 m/s since the last believed report": (
        "Meldungen wurden nicht geglaubt: schneller als 50 m/s seit der letzten glaubhaften Meldung"
    ),
    "position out of range": "Position außerhalb des Bereichs",
    # What is no text of Lookout's, such as the name of a layer, stays.
    "something that nobody has translated": "something that nobody has translated",
    "": "",
}


@pytest.mark.parametrize(("stored", "german"), STORED.items())
def test_what_is_stored_in_english_is_shown_in_german(stored, german):
    assert retold(stored) == stored
    with translation.override("de"):
        assert retold(stored) == german
        assert retold_in({"queries": [{"name": stored, "warning": stored}], "error": stored}) == {
            "queries": [{"name": stored, "warning": german}],
            "error": german,
        }


async def test_a_websocket_tells_in_german_and_programs_find_the_english(streams, user):
    headers = [(b"authorization", b"Token " + (await database_sync_to_async(token_of)(user)).encode())]
    socket = Socket(application, "/ws/monitor/", [*headers, (b"accept-language", b"de")])
    assert (await socket.connect(timeout=PATIENCE_S))[0]
    await socket.tell("query.register", id=1, name="a", plan=PLAN | {"where": "speed_mps >"})
    error = await socket.hear("error", id=1)
    assert error["message"].startswith("where: am Ende, bei Zeichen 12, fehlt ein Wert")
    assert error["code"] == "plan" and error["english"].startswith("where: a value is missing at the end, character 12")
    warned = await database_sync_to_async(Query.objects.create)(
        owner=user, name="b", stream="ships", plan=PLAN, status=Query.RUNNING, warning="position out of range"
    )
    await socket.tell("query.list", id=2)
    told = await socket.hear("query.listed", id=2)
    assert [one["warning"] for one in told["queries"] if one["query"] == warned.pk] == [
        "Position außerhalb des Bereichs"
    ]
    await socket.disconnect(timeout=PATIENCE_S)


async def test_what_a_thread_finds_out_is_said_in_the_language_of_the_connection(engine, streams, user):
    query = await database_sync_to_async(register)(user, "a", PLAN)
    headers = [(b"authorization", b"Token " + (await database_sync_to_async(token_of)(user)).encode())]
    socket = Socket(application, "/ws/monitor/", [*headers, (b"accept-language", b"de")])
    assert (await socket.connect(timeout=PATIENCE_S))[0]
    await socket.tell("filter.check", id=1, where="speed_mps >", names=[], objects=[])
    assert (await socket.hear("filter.checked", id=1))["error"].startswith("where: am Ende, bei Zeichen 12")
    await socket.tell("query.subscribe", query=query.pk)
    await socket.hear("answer.snapshot", query=query.pk)
    engine.move({"a": INSIDE})
    await socket.hear("answer.change", query=query.pk)
    await socket.tell("why.object", id=2, query=query.pk, stream="ships", key="a")
    (area,) = (await socket.hear("why.told", id=2))["why"]["parts"]
    assert area["asks"] == "in Länge 10 bis 20, Breite 50 bis 60"
    await socket.disconnect(timeout=PATIENCE_S)


@pytest.mark.parametrize("folder", ["consumers", "why"])
def test_no_thread_loses_the_language_of_a_connection(folder):
    """`asgiref.sync.sync_to_async` hands it over; what asyncio starts in a thread speaks the site's language."""
    for path in (Path(languages.__file__).parent / folder).glob("*.py"):
        assert not re.search(r"to_thread|run_in_executor", path.read_text()), path
