"""A page that is one connection too many says why, and is let in once another page is closed."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import window
from tests.webapp.site import Site

pytestmark = pytest.mark.browser


@pytest.fixture
def site(tmp_path, redis_server, redis_client):
    """A web server that lets each user have one connection."""
    with Site(tmp_path / "site", redis_server, LOOKOUT_USER_CONNECTIONS="1") as running:
        yield running


@pytest.mark.long
def test_a_page_that_is_one_connection_too_many_says_why_and_is_let_in_later(chromium, site, engine):
    context = window(chromium)
    first = context.new_page()
    first.goto(site.login_link())
    expect(first.locator("#connection")).to_have_attribute("data-state", "live")
    second = context.new_page()
    second.clock.install()
    second.goto(site.place.address)
    second.clock.run_for(2000)
    expect(second.locator("#connection")).to_have_attribute("data-state", "full")
    expect(second.locator("#connection-text")).to_have_text("Too many connections")
    expect(second.locator("#offline")).to_contain_text(
        "a user may have at most 1 connections at once; got one more. Close other pages of Lookout"
    )
    first.close()
    second.clock.resume()
    expect(second.locator("#connection")).to_have_attribute("data-state", "live")
    expect(second.locator("#offline")).to_be_hidden()
    context.close()
