"""The replay on the page: what was known then is shown, unmistakably, and live is there at once."""

import re
import time
import urllib.parse

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.screen import box_of, expect_no_sideways, expect_room_for_a_finger
from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
OUTSIDE, INSIDE, NORTH, AWAY = (24.1, 59.5), (24.5, 59.7), (24.5, 59.9), (24.9, 59.5)
GATE = (24.3, 59.6, 24.7, 59.8)


def address(at_s, speed=1):
    """Return the address of the map at a time of a replay."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
    return f"#{ZOOM}/{MIDDLE[1]}/{MIDDLE[0]}&replay={at},{speed}"


def later(second):
    """Wait until the clock is two seconds further, so that the answers of both times differ."""
    return wait_for(lambda: (now := int(time.time())) >= second + 2 and now, "two seconds")


@pytest.fixture
def past(stored_feed, screen):
    """Let a ship pass a query's gate; return the seconds at which it was outside, inside and beyond."""
    screen.look(ZOOM, *MIDDLE)
    stored_feed.put(anna=OUTSIDE)
    assert screen.painted(OUTSIDE, "ship")
    screen.draw(*GATE)
    screen.field("stream").select_option(stored_feed.name)
    screen.save("Gate")
    screen.expect_query("Gate", "running", "0")
    seconds = [later(int(time.time()))]
    for place, count in ((INSIDE, "1"), (NORTH, "0")):
        stored_feed.put(anna=place)
        screen.expect_query("Gate", "running", count)
        seconds.append(later(int(time.time())))
    return seconds


def point_at_a_tick(page):
    """Move along the ticks of events, from the newest one, to one that says what it is; return what it says."""
    ticks, tip = box_of(page.locator("#replay-ticks")), page.locator("#replay-tip")

    def found():
        for x in range(int(ticks["width"]) - 1, 0, -2):
            page.mouse.move(ticks["x"] + x, ticks["y"] + 6)
            if tip.is_visible():
                return True
        return False

    wait_for(found, "a tick")
    return tip


def press_a_tick(screen):
    """Go to the time of a tick, and wait for the ship: it was inside then, or about to enter."""
    tip = point_at_a_tick(screen.page)
    expect(tip).to_contain_text("anna")
    expect(tip).to_contain_text("Gate")
    screen.page.mouse.down()
    screen.page.mouse.up()
    places = (OUTSIDE, "ship"), (INSIDE, "q0")
    wait_for(lambda: any(screen.painted(*place, patience_s=0.1) for place in places), "where it was then")


@pytest.mark.long
def test_a_replay_shows_the_past_with_answers_and_live_is_there_at_once(past, stored_feed, screen):
    page, badge = screen.page, screen.page.locator("#replay-badge")
    outside_s, inside_s, _ = past
    page.evaluate("(hash) => { location.hash = hash; }", address(inside_s - 1))
    expect(badge).to_contain_text("Paused")
    screen.expect_query("Gate", "running", "1")
    assert screen.painted(INSIDE, "q0") and screen.painted(NORTH, "ship", present=False)
    screen.expect_query("Gate", "running", "1")
    screen.tab("Events")
    expect(screen.events()).to_have_count(1)
    expect(screen.events().first).to_contain_text("MS Anna")
    screen.tab("Queries")
    assert wrong(page) == []

    # Live goes on, but is not drawn.
    stored_feed.put(anna=AWAY, berta=INSIDE)
    expect(page.locator("#connection")).to_be_hidden()
    assert screen.painted(INSIDE, "q0") and screen.painted(AWAY, "ship", present=False)

    # The slider, by keyboard and by its ticks.
    page.locator("#replay-slider").focus()
    page.keyboard.press("Home")
    expect(badge).to_contain_text("Paused")
    assert screen.painted(INSIDE, "q0", present=False)
    screen.expect_query("Gate", "running", "0")
    press_a_tick(screen)

    # Play and pause; then play on, ten times as fast, from before the ship came to after it left.
    play = page.locator("#replay-play")
    page.evaluate("(hash) => { location.hash = hash; }", address(outside_s))
    assert screen.painted(OUTSIDE, "ship")
    page.locator("body").press(" ")
    expect(play).to_have_attribute("aria-label", "Pause")
    play.click()
    expect(play).to_have_attribute("aria-label", "Play")
    page.evaluate("(hash) => { location.hash = hash; }", address(outside_s, 10))
    assert screen.painted(OUTSIDE, "ship")
    play.click()
    assert screen.painted(NORTH, "ship") and screen.painted(OUTSIDE, "ship", present=False)
    expect(page).to_have_url(re.compile("&replay=2.*%2C10"))

    page.get_by_role("button", name="Live", exact=True).click()
    expect(badge).to_be_hidden()
    assert screen.painted(AWAY, "ship") and screen.painted(INSIDE, "q0")
    screen.expect_query("Gate", "running", "1")
    assert "replay" not in urllib.parse.urlsplit(page.url).fragment


REGISTER = """async (plans) => {
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws/monitor/`);
  await new Promise((open) => (socket.onopen = open));
  for (const [id, [name, plan]] of Object.entries(plans).entries())
    socket.send(JSON.stringify({type: "query.register", id, name, plan}));
}"""


@pytest.fixture
def fourteen(past, stored_feed, screen):
    """Add twelve more gates, and a query of encounters; return when the ship was inside."""
    gate = {"stream": stored_feed.name, "compare": {"lo": GATE[:2], "hi": GATE[2:]}}
    near = {"stream": stored_feed.name, "predicate": "dwithin", "distance": 1000}
    meetings = {"stream": stored_feed.name, "kind": "encounter", "for_s": 2, "join": near}
    screen.page.evaluate(REGISTER, {f"Gate {n}": gate for n in range(2, 14)} | {"Meetings": meetings})
    screen.expect_query("Meetings", "running", "0")
    return past[1]


@pytest.mark.long
def test_of_fourteen_queries_the_past_is_shown_while_the_rest_is_computed(fourteen, screen):
    page, badge, computing = screen.page, screen.page.locator("#replay-badge"), screen.page.locator("#replay-computing")
    held, released = [], []
    page.route(
        re.compile("/replay/answers"),
        lambda route: route.continue_() if released or "scene_us" in route.request.url else held.append(route),
    )
    page.evaluate("(hash) => { location.hash = hash; }", address(fourteen - 1))
    for name in ("Gate", "Gate 13"):
        screen.expect_query(name, "running", "1")
    screen.expect_query("Meetings", "running", "…")
    assert screen.painted(INSIDE, "q4")  # of the last one
    expect(badge).to_contain_text("Loading")
    expect(computing).to_contain_text("Answers shown: 13 of 14.")
    assert wrong(page, "#replay") == []
    wait_for(lambda: page.title() and held, "the request for what comes before")
    released.append(True)
    for route in held:
        route.continue_()
    expect(computing).to_be_hidden()
    expect(badge).to_contain_text("Paused")
    screen.expect_query("Meetings", "running", "0")
    page.locator("#replay-play").click()
    expect(page.locator("#replay-badge-state")).to_have_text("1×")
    page.locator("#replay-live").click()
    expect(badge).to_be_hidden()


def test_a_replay_is_driven_by_touch_on_a_phone(stored_feed, screen_of, user):
    screen = screen_of(user, viewport={"width": 390, "height": 844}, has_touch=True)
    screen.look(ZOOM, *MIDDLE)
    stored_feed.put(anna=INSIDE)
    assert screen.painted(INSIDE, "ship")
    screen.page.locator("#open-replay").tap()
    expect(screen.page.locator("#replay-badge")).to_be_visible()
    for name in ("play", "speed", "live"):
        expect_room_for_a_finger(screen.page.locator(f"#replay-{name}"))
    expect_no_sideways(screen.page)
    assert wrong(screen.page, "#replay") == []
    screen.page.get_by_label("Speed").select_option("600")
    expect(screen.page.locator("#replay-speed")).to_have_value("600")
    screen.page.locator("#replay-live").tap()
    expect(screen.page.locator("#replay-badge")).to_be_hidden()


def test_nothing_stored_is_said(feed, screen):
    screen.look(ZOOM, *MIDDLE)
    feed.put(anna=INSIDE)
    assert screen.painted(INSIDE, "ship")
    screen.page.keyboard.press("r")
    expect(screen.page.get_by_text("No stream stores its elements")).to_be_visible()
    expect(screen.page.locator("#replay-badge")).to_be_hidden()
