"""How the page comes to a browser: all of it at once, compressed, and never twice."""

import re
import time

import pytest

from tests.browser.conftest import window

pytestmark = [pytest.mark.browser, pytest.mark.spark]
HASHED = re.compile(r"/static/.+\.[0-9a-f]{12}\.\w+$")
# The map is drawn, and the server has greeted.
USABLE = """() => document.querySelector("#map .leaflet-tile-loaded")
  && document.querySelector("#connection").dataset.state !== "reconnecting" """


@pytest.fixture
def browser(chromium, live):
    """A window without anything in its cache, logged in."""
    context = window(chromium)
    live.token("ann")
    assert context.request.get(live.login_link("ann"), max_redirects=0).status == 302
    yield context.new_page()
    context.close()


def opened(page, address):
    """Open the map; return the answers to what was asked for, and how long it took until it is usable [s]."""
    answers = []
    page.on("response", lambda answer: answers.append(answer))
    began_s = time.monotonic()
    page.goto(address, wait_until="commit")
    page.wait_for_function(USABLE)
    return [answer for answer in answers if "/static/" in answer.url], time.monotonic() - began_s


def test_every_file_of_the_page_is_hashed_compressed_and_kept_for_ever(browser, live):
    answers, took_s = opened(browser, live.base_url)
    print(f"usable after {took_s:.2f} s, with {len(answers)} files")
    assert len(answers) < 20
    assert [answer.url for answer in answers if not HASHED.search(answer.url)] == []
    assert all("immutable" in answer.headers["cache-control"] for answer in answers)
    texts = [answer for answer in answers if answer.headers.get("content-length", "0") > "1000"]
    assert {answer.headers.get("content-encoding") for answer in texts} == {"br"}


def test_the_modules_come_in_one_file_which_is_preloaded(browser, live):
    answers, _ = opened(browser, live.base_url)
    asked = {answer.url for answer in answers if re.search(r"/static/(js|bundle)/.*\.js$", answer.url)}
    asked = {address for address in asked if "theme-boot" not in address}
    preloaded = browser.eval_on_selector_all("link[rel=modulepreload]", "links => links.map(link => link.href)")
    assert len(asked) == 1 and asked == set(preloaded)


def test_a_second_visit_loads_the_page_alone(browser, live):
    opened(browser, live.base_url)
    _, took_s = opened(browser, live.base_url)
    print(f"usable again after {took_s:.2f} s")
    transferred = browser.evaluate("performance.getEntriesByType('resource').map(r => [r.name, r.transferSize])")
    assert [name for name, size in transferred if "/static/" in name and size > 0] == []
