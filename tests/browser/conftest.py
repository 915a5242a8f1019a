"""Fixtures of the browser's tests."""

import time
from itertools import count

import pytest
from playwright.sync_api import expect, sync_playwright

from bench.chromium import found, launch
from bench.live import PATIENCE_S
from bench.ports import free_port
from streaming.keys import LogNames
from tests.browser.feed import Feed
from tests.browser.screen import Screen
from tests.webapp.conftest import Rig
from tests.webapp.site import Site

WINDOW = {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light", "reduced_motion": "reduce"}
_numbers = count(1)


@pytest.fixture(scope="package")
def chromium():
    """Run Debian's Chromium without a window; skip the test where there is none."""
    if found() is None:
        pytest.skip("no Chromium on the PATH (Debian: apt install chromium)")
    expect.set_options(timeout=1000 * PATIENCE_S)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


def window(chromium, **options):
    """Return a new window, as a context of the browser: its cookies and what it has in store are its own."""
    context = chromium.new_context(**(WINDOW | options))
    context.set_default_timeout(1000 * PATIENCE_S)
    return context


@pytest.fixture
def engine(redis_client, tmp_path):
    """An engine without Spark that says for an hour that it lives."""
    with Rig(redis_client, tmp_path / "engine") as rig:
        redis_client.hset(
            LogNames("earth").engine, mapping={"at_us": time.time_ns() // 1000 + 3_600_000_000, "batch": 1}
        )
        yield rig


@pytest.fixture
def site(tmp_path, redis_server, redis_client):
    """A web server as `make live` starts it."""
    with Site(tmp_path / "site", redis_server) as running:
        yield running


def _feed(live, **fields):
    feed = Feed(live, f"hand{next(_numbers)}", free_port(), **fields)
    yield feed
    feed.end()


@pytest.fixture
def feed(live):
    """A stream that the test feeds; its name is new in each test."""
    yield from _feed(live)


@pytest.fixture
def stored_feed(live):
    """A stream whose elements are stored."""
    yield from _feed(live, stored=True)


@pytest.fixture
def brief_feed(live):
    """A stream whose objects are lost after some seconds of silence."""
    yield from _feed(live, ttl_s=6)


@pytest.fixture
def second_feed(live):
    """Another one."""
    yield from _feed(live)


@pytest.fixture
def screen_of(chromium, live):
    """Return a function that opens a window, logged in as a user; at the end nothing may have gone wrong in it."""
    screens = []

    def open_window(user: str, staff: bool = False, **options) -> Screen:
        live.token(user, staff)
        context = window(chromium, **options)
        assert context.request.get(live.login_link(user), max_redirects=0).status == 302
        screen = Screen(context.new_page(), live.base_url)
        screens.append(screen)
        return screen

    yield open_window
    faults = [fault for screen in screens for fault in screen.faults]
    for screen in screens:
        screen.page.context.close()
    assert faults == []


@pytest.fixture
def user():
    """The name of a user who has no queries."""
    return f"user{next(_numbers)}"


@pytest.fixture
def screen(screen_of, user):
    """A window of a new user."""
    return screen_of(user)
