"""Log-ins and tokens: who guesses waits, nobody else does, and no secret comes into a log."""

import asyncio
import logging
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from itertools import count
from threading import BoundedSemaphore

import aiohttp
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, get_hasher
from django.test import Client

from bench.live import PATIENCE_S
from tests.webapp.conftest import PASSWORD
from tests.webapp.site import Site
from webapp import settings as project_settings
from webapp.machine import passwords
from webapp.machine.logs import hide_secrets
from webapp.machine.passwords import NICENESS

pytestmark = pytest.mark.django_db(transaction=True)
one_site = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory, redis_server):
    """Run a web server with the hashing of passwords that users get."""
    with Site(tmp_path_factory.mktemp("site"), redis_server) as running:
        yield running


@pytest.fixture
def log():
    """Return what a program that logs has printed."""
    hide_secrets()
    printed = StringIO()
    handler = logging.StreamHandler(printed)
    logger = logging.getLogger("tests.secrets")
    logger.addHandler(handler)
    yield logger, printed
    logger.removeHandler(handler)


@pytest.mark.long
@one_site
async def test_tokens_come_into_no_log(site):
    socket = f"{site.place.address}/ws/monitor/"
    async with aiohttp.ClientSession() as browser:
        for query in (f"?token={site.token}", f"?%74oken={site.token}", f"?a=b&token={site.token}"):
            async with browser.ws_connect(socket + query) as connection:
                assert (await connection.receive_json())["type"] == "hello"
        async with browser.get(f"{site.place.address}/login/once/{site.token}/") as page:
            assert page.status == 410
    words = site.log.read_text()
    assert words.count("/ws/monitor/") >= 3
    assert site.token not in words


def test_a_secret_in_an_exception_is_hidden(log):
    logger, printed = log
    try:
        raise ValueError("no answer from redis://:hunter2@127.0.0.1:5000/0 to /ws/monitor/?token=hunter3")
    except ValueError as error:
        logger.exception("failed: %s", error)
    assert "no answer from redis" in printed.getvalue()
    assert "hunter" not in printed.getvalue()


async def wrong_login(browser, address, name):
    """Give a wrong password."""
    async with browser.get(f"{address}/login/") as page:
        token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', await page.text())[1]
    form = {"csrfmiddlewaretoken": token, "username": name, "password": "wrong"}
    async with browser.post(f"{address}/login/", data=form) as page:
        return page.status


async def most_during_a_reply(connection, guesses):
    """Ask over and over until all guesses are answered; return the most that were answered during one reply."""
    most = 0
    for number in count():
        if all(guess.done() for guess in guesses):
            return most
        before = sum(guess.done() for guess in guesses)
        await connection.send_json({"type": "query.cancel", "id": number, "query": 1})
        while (await connection.receive_json(timeout=PATIENCE_S)).get("id") != number:
            pass
        most = max(most, sum(guess.done() for guess in guesses) - before)
        await asyncio.sleep(0.05)


@pytest.mark.long
@one_site
async def test_wrong_log_ins_do_not_hold_up_the_websocket(site):
    jar = aiohttp.CookieJar(unsafe=True)  # the site has a number for a name
    async with aiohttp.ClientSession(cookie_jar=jar) as browser:
        address = f"{site.place.address}/ws/monitor/?token={site.token}"
        async with browser.ws_connect(address) as connection:
            guesses = [asyncio.create_task(wrong_login(browser, site.place.address, f"u{n}")) for n in range(20)]
            most = await most_during_a_reply(connection, guesses)
        assert [await guess for guess in guesses] == [200] * 20
        assert most < 10, "of 20, were hashed one after another while a reply waited"


def test_one_thread_of_low_priority_hashes_all_passwords(monkeypatch, settings):
    settings.PASSWORD_HASHERS = project_settings.PASSWORD_HASHERS
    hashed_by = []

    def encode(*_):
        hashed_by.append((threading.get_ident(), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
        return "hash"

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", encode)
    with ThreadPoolExecutor(10) as requests:
        assert list(requests.map(lambda _: get_hasher().encode("a", "salt"), range(20))) == ["hash"] * 20
    assert len(set(hashed_by)) == 1
    assert hashed_by[0][1] == max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))


def test_more_log_ins_at_once_than_can_be_checked_are_told_so(client, settings, user, monkeypatch):
    settings.PASSWORD_HASHERS = ["webapp.machine.passwords.PatientHasher"]
    monkeypatch.setattr("webapp.machine.passwords._waiting", BoundedSemaphore(1))
    with passwords._waiting:
        page = client.post("/login/", {"username": "ann", "password": PASSWORD})
    assert (page.status_code, b"Too many log-ins at once" in page.content) == (503, True)
    assert client.post("/login/", {"username": "nobody", "password": PASSWORD}).status_code == 200


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
def test_who_guesses_a_password_must_wait_and_is_told_so(path, client, user):
    wrong = [client.post(path, {"username": "ann", "password": "wrong"}).status_code for _ in range(6)]
    assert wrong == [200] * 4 + [429] * 2
    page = client.post(path, {"username": "ann", "password": PASSWORD})
    assert page.status_code == 429
    assert "5 wrong passwords were given for this user name from your address. Wait 5 minutes" in page.content.decode()
    elsewhere = Client(REMOTE_ADDR="10.0.0.9")
    assert elsewhere.post("/login/", {"username": "ann", "password": PASSWORD}).url == "/"


def test_cookies_that_were_set_over_tls_travel_over_tls_alone(user):
    form = {"username": "ann", "password": PASSWORD}
    for secure in (False, True):
        answer = Client().post("/login/", form, secure=secure)
        assert {bool(cookie["secure"]) for cookie in answer.cookies.values()} == {secure}
        assert ("Strict-Transport-Security" in answer.headers) is secure


@pytest.mark.long
@one_site
async def test_a_proxy_is_believed_where_it_is_declared(site, redis_server):
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "10.0.0.9"}
    with Site(site.place.home, redis_server, LOOKOUT_TRUSTED_PROXIES="127.0.0.1") as declared:
        for server, believed in ((site, False), (declared, True)):
            async with (
                aiohttp.ClientSession(headers=forwarded) as browser,
                browser.get(f"{server.place.address}/login/") as page,
            ):
                assert ("Strict-Transport-Security" in page.headers) is believed
                assert all(bool(cookie["secure"]) is believed for cookie in page.cookies.values())
