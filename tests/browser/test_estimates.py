"""A query for which there may be no room is asked about in plain words before it is added; one without room says so."""

import json
from base64 import b64encode

import numpy as np
import orjson
import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from streaming.elements import stream_number
from streaming.keys import LogNames
from streaming.operators.allowance import KNOWN, MOST
from streaming.operators.box_sample import BoxSample, packed
from streaming.operators.region_map import RegionMap
from streaming.spaces import EARTH
from tests.browser.conftest import window
from tests.browser.screen import Screen
from tests.browser.test_accessibility import wrong

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 780}
# For a thousand ships.
ROOM = MOST + KNOWN * 1_000
FAR = {"stream": "ships", "kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": 20_000_000}}
MAKE_STREAM = """
from webapp.models import Stream
Stream(name="ships", title="Ships", icon="ship", transport="stdin", decoder="ais").save()
"""
LEAVE_OUT = f"""
from datetime import timedelta
from django.utils import timezone
from django.contrib.auth import get_user_model
from webapp.models import Query
owner = get_user_model().objects.get(username="ann")
about = {{"stream": "ships", "plan": {FAR}, "status": "running", "acknowledged": 1}}
query = Query(owner=owner, name="All", **about)
query.leave_out("room", "it would compare too many pairs", timezone.now() + timedelta(hours=1))
query.save()
"""


@pytest.fixture
def screen(chromium, site, engine, redis_client):
    """A window of the user of a site whose engine has 1,000 ships."""
    site.manage("shell", "--no-imports", "-c", MAKE_STREAM)
    middle = np.random.default_rng(1).uniform(-60, 60, (256, 2))
    height = np.full((256, 1), np.inf)
    ships = BoxSample.drawn(np.hstack([middle, -height, middle, height]), 256, count=1_000)
    payload = b64encode(packed({stream_number("ships"): ships}, 256)).decode()
    told = {"map": RegionMap.grid(EARTH, 1).document(), "tasks": 1, "objects:0": payload}
    redis_client.hset(LogNames(EARTH.name).engine, mapping={name: orjson.dumps(value) for name, value in told.items()})
    context = window(chromium)
    assert context.request.get(site.login_link(), max_redirects=0).status == 302
    screen = Screen(context.new_page(), site.place.address)
    yield screen
    context.close()
    assert screen.faults == []


def fits(*parts):
    """Expect that parts of the page are within a phone's screen."""
    for part in parts:
        wait_for(lambda part=part: on_phone(part.bounding_box()), "a part within the screen")


def on_phone(box):
    right, bottom = box["x"] + box["width"], box["y"] + box["height"]
    return box["x"] >= 0 and right <= PHONE["width"] and bottom <= PHONE["height"]


@pytest.mark.long
def test_a_join_of_everything_is_asked_about_before_it_is_added(screen, site):
    page = screen.page
    screen.look(8, 24.5, 59.7)
    page.get_by_role("button", name="New query").click()
    page.locator("#plan-details summary").click()
    screen.field("plan").fill(json.dumps(FAR))
    screen.save("All")
    dialog = page.get_by_role("dialog", name="This query would compare about 1 million pairs of objects")
    smaller, anyway = (dialog.get_by_role("button", name=name) for name in ("Make it smaller", "Add anyway"))
    expect(dialog).to_contain_text(f"A batch has room for about {ROOM // 1_000} thousand")
    expect(smaller).to_be_focused()
    assert wrong(page, "#confirm") == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#query-form")).to_contain_text(f"must be confirmed: a batch has room for {ROOM:,} pairs")
    expect(page.locator("#query-form :focus")).to_have_count(1)

    page.set_viewport_size(PHONE)
    page.locator("#form-save").click()
    fits(dialog, smaller, anyway)
    anyway.click()
    expect(dialog).to_be_hidden()
    page.set_viewport_size({"width": 1200, "height": 800})
    screen.expect_query("All", "pending")


@pytest.mark.long
def test_the_card_of_a_query_that_is_left_out_says_so_and_when_it_is_tried_again(screen, site):
    site.manage("shell", "--no-imports", "-c", LEAVE_OUT)
    screen.look(8, 24.5, 59.7)
    screen.expect_query("All", "left out")
    card = screen.query("All")
    expect(card.locator(".query-warning")).to_contain_text(
        "Left out, because it would compare too many pairs. It is tried"
    )
    expect(card.locator(".query-note")).to_be_hidden()
    assert wrong(screen.page, "#pane-queries") == []
