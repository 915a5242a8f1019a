"""The page tells a silent server from a silent engine, and finds its way back."""

import re

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from streaming.keys import LogNames
from tests.browser.proxy import Proxy
from tests.browser.screen import Screen

pytestmark = pytest.mark.browser
PLACE = (24.5, 59.7)
PLAN = {"stream": "ships", "compare": {"lo": [24, 59], "hi": [25, 60]}}
MAKE_QUERY = f"""
from django.contrib.auth import get_user_model
from webapp.models import Query, Stream
Stream(name="ships", title="Ships", icon="ship", transport="stdin", decoder="ais").save()
owner = get_user_model().objects.get(username="ann")
print(Query.objects.create(owner=owner, name="Here", plan={PLAN}, stream="ships", status="running", acknowledged=1).pk)
"""
# Tell every state of the badge.
STATES = """() => new MutationObserver(() => said(document.querySelector("#connection").dataset.state))
  .observe(document.querySelector("#connection"), {attributeFilter: ["data-state"]})"""


@pytest.fixture
def proxy(site):
    """The network between the browser and the server."""
    with Proxy(site.place.port) as between:
        yield between


@pytest.fixture
def page(chromium, site, proxy):
    """A page that comes through the proxy; what the browser says of lost connections is no fault."""
    context = chromium.new_context(viewport={"width": 1200, "height": 800})
    assert context.request.get(site.login_link(), max_redirects=0).status == 302
    yield context.new_page()
    context.close()


@pytest.mark.long
def test_packets_that_are_dropped_are_a_lost_connection_not_a_silent_engine(page, proxy, site, engine, redis_client):
    query = int(site.manage("shell", "--no-imports", "-c", MAKE_QUERY))
    engine.log.send("register", query=query, revision=1, plan=PLAN)
    engine.move({"anna": PLACE})
    page.clock.install()
    screen = Screen(page, f"http://127.0.0.1:{proxy.port}")
    screen.look(8, *PLACE)
    card, badge, said = page.locator(".query-card"), page.locator("#connection"), []
    expect(card.locator(".query-main .query-count")).to_have_text("1")
    page.expose_function("said", lambda state: said.append(state))
    page.evaluate(STATES)

    proxy.freeze()
    page.clock.run_for(12_000)
    expect(badge).to_have_attribute("data-state", "reconnecting")
    expect(page.locator("#connection-text")).to_have_text("Connection lost")
    expect(card).to_contain_text(re.compile("not up to date.*As of ", re.DOTALL))
    # A connection that does not come about is given up as well.
    before = proxy.connections
    page.clock.run_for(40_000)
    wait_for(lambda: proxy.connections > before + 1, "more attempts")
    expect(badge).to_have_attribute("data-state", "reconnecting")

    engine.move({"berta": PLACE})
    proxy.thaw()
    page.clock.resume()
    screen.live()
    expect(card.locator(".query-main .query-count")).to_have_text("2")
    expect(card.locator(".query-note")).to_be_hidden()
    assert "down" not in said

    # The server answers, and has nothing to say of the engine.
    redis_client.hset(LogNames("earth").engine, "at_us", 1)
    expect(badge).to_have_attribute("data-state", "down")
    expect(page.locator("#connection-text")).to_have_text("Engine down")
