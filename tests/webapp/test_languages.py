"""The user's language: how it is chosen, and what comes in it."""

import re
from pathlib import Path

import django
import orjson
import pytest
from channels.db import database_sync_to_async

from bench.live import PATIENCE_S
from tests.webapp.conftest import Socket, token_of
from webapp.asgi import application
from webapp.pages import languages

pytestmark = pytest.mark.django_db(transaction=True)
GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de-DE,de;q=0.9"}
SCRIPT = re.compile(r'<script src="(/texts/[^"]+)"')


@pytest.fixture
def german_texts(monkeypatch, tmp_path, settings):
    """Compiled texts for the page's JavaScript in German."""
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "djangojs.mo").write_bytes(Path(django.__path__[0], "conf/locale/de/LC_MESSAGES/django.mo").read_bytes())
    settings.LOCALE_PATHS = [tmp_path]
    languages.version.cache_clear()
    yield folder / "djangojs.mo"
    languages.version.cache_clear()


def test_a_page_has_the_language_of_the_browser_until_the_user_chooses_another(client):
    assert '<html lang="en">' in client.get("/login/").content.decode()
    page = client.get("/login/?next=/teams/", **GERMAN).content.decode()
    assert '<html lang="de">' in page and 'name="next" value="/login/?next=/teams/"' in page
    chosen = client.post("/language/", {"language": "en", "next": "/login/?next=/teams/"}, **GERMAN)
    assert chosen.url == "/login/?next=/teams/"
    assert client.cookies["lookout_language"]["max-age"] > 300 * 24 * 3600
    assert '<html lang="en">' in client.get("/login/", **GERMAN).content.decode()


def test_a_choice_of_language_leads_to_this_site_only(client):
    assert client.post("/language/", {"language": "de", "next": "https://elsewhere.example/"}).url == "/"


def test_the_texts_of_the_script_come_before_it_and_are_kept_for_ever_but_not_in_english(client, german_texts):
    assert not SCRIPT.search(client.get("/login/").content.decode())
    address = SCRIPT.search(client.get("/login/", **GERMAN).content.decode()).group(1)
    response = client.get(address)  # whatever language this browser asks for
    assert "immutable" in response["Cache-Control"] and response["Content-Type"].startswith("text/javascript")
    german_texts.write_bytes(german_texts.read_bytes() + b" ")
    languages.version.cache_clear()
    assert SCRIPT.search(client.get("/login/", **GERMAN).content.decode()).group(1) != address
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/login/", ["<h1>Anmelden</h1>", "Benutzername", 'aria-label="Sprache"']),
        ("/", ["Abfragen", 'aria-label="Wiedergabe"', 'placeholder="Hafeneinfahrt"', "Abmelden"]),
        ("/alarms/", ["<title>Alarme · Lookout</title>", "In diesem Browser", "Warnung"]),
        ("/teams/", ["Ihre Teams", "Noch in keinem Team."]),
        ("/admin/", ["Datenströme", "Freigabelinks", "Benutzer", "Betrieb"]),
        ("/admin/webapp/stream/add/", ["Lebensdauer [s]:", "Steht nach dem Speichern fest."]),
    ],
)
def test_pages_come_in_german(address, words, client, staff):
    if address != "/login/":
        client.force_login(staff)
    page = client.get(address, **GERMAN)
    assert page.status_code == 200 and page["Content-Language"] == "de"
    assert [word for word in words if word not in page.content.decode()] == []


def test_a_form_that_is_made_once_speaks_the_language_of_each_request(client, staff):
    client.force_login(staff)
    english, german = (client.get("/admin/webapp/stream/add/", **more).content.decode() for more in ({}, GERMAN))
    assert "Features by whose values the sketch" in english
    assert "Features by whose values the sketch" not in german


async def test_a_websocket_refuses_in_the_language_of_its_browser(streams, user):
    for language, words in (("de", "braucht entweder plan"), ("en", "needs either plan")):
        headers = [(b"authorization", b"Token " + (await database_sync_to_async(token_of)(user)).encode())]
        socket = Socket(application, "/ws/monitor/", [*headers, (b"accept-language", language.encode())])
        assert (await socket.connect(timeout=PATIENCE_S))[0]
        await socket.tell("sketch.ask", id=1)
        assert words in (await socket.hear("error", id=1))["message"]
        await socket.disconnect(timeout=PATIENCE_S)


async def test_the_error_of_a_stream_comes_in_the_language_of_the_browser(streams, user, redis_client):
    redis_client.hset("lookout:health", "ships", orjson.dumps({"state": "failed", "error": "position out of range"}))
    for language, words in (("de", "Position außerhalb des Bereichs"), ("en", "position out of range")):
        headers = [(b"authorization", b"Token " + (await database_sync_to_async(token_of)(user)).encode())]
        socket = Socket(application, "/ws/monitor/", [*headers, (b"accept-language", language.encode())])
        assert (await socket.connect(timeout=PATIENCE_S))[0]
        assert (await socket.hear("stream.status"))["streams"]["ships"]["error"] == words
        await socket.disconnect(timeout=PATIENCE_S)
