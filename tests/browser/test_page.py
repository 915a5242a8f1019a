"""The rest of the page: keys, themes, the phone, the address, the admin."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from bench.ports import free_port
from tests.browser.feed import Feed
from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
HERE = (24.5, 59.7)
PLACES_OF_STREAMS = ("#field-stream", "#field-partner", "#field-focus-stream", "#history-form [name=table]")
# Of what has to fit: a phone's browser would widen the window itself rather than scroll.
WIDTH = """Math.max(innerWidth, document.documentElement.scrollWidth,
  ...[...document.querySelectorAll("header, aside, main, button")].map((part) => part.getBoundingClientRect().right))"""
# Of the search, beyond what its placeholder needs.
ROOM = """() => {
  const input = document.getElementById("search"), style = getComputedStyle(input);
  const paint = document.createElement("canvas").getContext("2d");
  paint.font = style.font;
  const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
  return input.clientWidth - padding - paint.measureText(input.placeholder).width;
}"""


def test_a_login_link_logs_in_once(screen_of, live, user):
    screen, link = screen_of(user), live.login_link(user)
    screen.page.context.clear_cookies()
    screen.page.goto(link)
    screen.live()
    expect(screen.page.locator(".user")).to_contain_text(user)
    screen.page.context.clear_cookies()
    screen.page.goto(link)
    expect(screen.page.locator("#map")).to_have_count(0)
    screen.faults.clear()


def test_the_scale_has_room_for_its_text(screen):
    screen.look(2, 10, 30)
    line = screen.page.locator(".leaflet-control-scale-line")
    for zoom in (2, 3, 5, 12):
        screen.turn(zoom, 10, 30)
        expect(line).to_have_text(re.compile(r"^\d+ k?m$"))
        wait_for(lambda: line.evaluate("(line) => line.scrollWidth <= line.clientWidth"), "room for the text")


def test_keys_open_the_help_and_the_panels(screen):
    screen.look(8, *HERE)
    page = screen.page
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    expect(page.locator("#shortcut-list")).to_contain_text("New query")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("e")
    expect(page.locator("#pane-events")).to_be_visible()
    page.keyboard.press("l")
    expect(page.locator("#pane-layers")).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator("#query-form")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#query-form")).to_be_hidden()


def test_the_dark_theme_is_kept(screen):
    screen.look(8, *HERE)
    background = "getComputedStyle(document.body).backgroundColor"
    light = screen.page.evaluate(background)
    screen.page.get_by_role("button", name="Dark theme").click()
    expect(screen.page.locator("html")).to_have_attribute("data-theme", "dark")
    assert brightness(light) > 200
    wait_for(lambda: brightness(screen.page.evaluate(background)) < 60, "a dark page")
    dark = screen.page.evaluate(background)
    screen.page.reload()
    screen.live()
    wait_for(lambda: screen.page.evaluate(background) == dark, "the same dark page")


def expect_width(page, width):
    """Wait until no part of the page reaches farther to the right."""
    wait_for(lambda: page.evaluate(WIDTH) == width, lambda: f"{width} px, got {page.evaluate(WIDTH)}")


def brightness(colour):
    """Return the mean of red, green and blue."""
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3


def test_a_phone_reaches_the_list_and_never_scrolls_sideways(screen_of, user, feed):
    feed.put(anna=HERE)
    screen = screen_of(user, **PHONE)
    screen.look(9, *HERE)
    page = screen.page
    assert screen.painted(HERE, "ship")
    for tab in ("Events", "Layers", "Queries"):
        screen.tab(tab)
        expect(page.locator(f"#pane-{tab.lower()}")).to_be_in_viewport()
        expect_width(page, 390)
    page.get_by_role("button", name="New query").tap()
    for side, degrees in {"west": 24, "south": 59, "east": 25, "north": 60}.items():
        screen.field(side).fill(str(degrees))
    screen.save("Here")
    expect(screen.query("Here")).to_be_in_viewport()
    screen.expect_query("Here", "running", "1")
    expect_width(page, 390)
    page.locator("#search").fill("ms anna")
    page.get_by_role("option").tap()
    figures, button = page.locator("#object-properties"), page.locator("#object-follow")
    wait_for(lambda: figures.bounding_box()["y"] < button.bounding_box()["y"], "the figures above the buttons")
    expect(button).to_be_in_viewport(ratio=1)


def test_a_stream_that_comes_changes_and_goes_does_so_on_the_open_page(screen, feed, live):
    screen.look(9, *HERE)
    page = screen.page
    page.get_by_role("button", name="New query").click()
    page.get_by_text("Joined", exact=True).click()
    screen.field("name").fill("Kept")
    screen.field("stream").select_option(feed.name)
    came = "came"
    choices = [page.locator(f"{select} option[value$='{came}']") for select in PLACES_OF_STREAMS]
    listed = page.locator("#stream-list li", has_text="Boats that came")
    for choice in (*choices, listed):
        expect(choice).to_have_count(0)
    late = Feed(live, came, free_port(), title="Boats that came", stored=True)
    for choice in (*choices, listed):
        expect(choice).not_to_have_count(0)
    late.put(dora=HERE)
    assert screen.painted(HERE, "ship")
    live.enable_stream(came, False)
    expect(page.locator(f"#field-stream option[value='{came}']")).to_have_count(0)
    expect(listed).to_contain_text("switched off in the admin")
    late.end()
    for choice in (*choices, listed):
        expect(choice).to_have_count(0)
    expect(screen.field("stream")).to_have_value(feed.name)
    expect(screen.field("name")).to_have_value("Kept")
    assert screen.painted(HERE, "ship", present=False)


def test_the_page_says_that_no_stream_is_switched_on_while_none_is(screen, live):
    screen.look(9, *HERE)
    note = screen.page.locator("#pane-queries .no-stream")
    expect(note).to_contain_text("Ask an administrator to add one")
    screen.page.mouse.click(*screen.pixel(*HERE), button="right")
    expect(screen.page.locator("#toasts")).to_contain_text("No stream is switched on")
    only = Feed(live, "only", free_port())
    expect(note).to_be_hidden()
    live.enable_stream("only", False)
    expect(note).to_be_visible()
    only.end()


def test_the_address_brings_the_view_back(screen_of, user, feed):
    feed.put(anna=HERE)
    first, second = screen_of(user), screen_of(user)
    first.look(7, 20, 57)
    before = first.page.url
    first.page.keyboard.press("+")
    expect(first.page).to_have_url(re.compile(r"#8/5[67]\.\d+/(19|20)\.\d+$"))
    second.page.goto("about:blank")
    second.page.goto(first.page.url)
    second.zoom = 8
    second.lat, second.lon = (float(degrees) for degrees in first.page.url.split("/")[-2:])
    second.live()
    assert second.page.url == first.page.url != before
    first.page.goto(first.page.url.split("#")[0])  # and without one, it begins where the last visit ended
    expect(first.page).to_have_url(second.page.url)
    feed.put(berta=(20.3, 57.1))
    assert second.painted((20.3, 57.1), "ship")


def test_the_admin_shows_counters_and_the_last_malformed_bytes(screen_of, user, feed, live):
    feed.put(anna=HERE)
    feed.send(b"\xff{no feature}\n")
    wait_for(lambda: live.health(feed.name).get("malformed"), "the count of what is malformed")
    page = screen_of(user, staff=True).page
    page.goto(f"{live.base_url}/admin/")
    page.get_by_role("link", name="Streams", exact=True).first.click()
    row = page.locator("#result_list tr", has_text=feed.name)
    expect(row.locator(".field-state")).to_have_text("running")
    expect(row.locator(".field-malformed")).to_have_text("1")
    row.get_by_role("link", name=feed.name).click()
    counters = page.locator(".field-counters")
    expect(counters.locator("tr", has_text="elements").first.locator("td")).to_have_text("1")
    malformed = page.locator(".field-malformed_input")
    expect(malformed).to_contain_text("not JSON")
    expect(malformed.locator("code")).to_contain_text("{no feature}")


@pytest.mark.long
def test_a_stream_is_tested_and_added_from_the_page(screen_of, user, live, tmp_path):
    recording = tmp_path / "rows.csv"
    recording.write_text("id,x,y,knots\nanna,24.5,60.1,10\n")
    page = screen_of(user, staff=True).page
    page.goto(live.base_url)
    page.get_by_role("tab", name="Layers").click()
    page.get_by_role("link", name="Add a stream", exact=True).click()
    page.get_by_label("Name:").fill("tried")
    page.get_by_label("Title:").fill("Tried")
    expect(page.locator("[name=transport__tcp_client__host]")).to_be_hidden()
    page.get_by_label("Transport:").select_option("file")
    page.get_by_label("Decoder:").select_option("csv")
    expect(page.locator("[name=transport__tcp_client__host]")).to_be_hidden()
    page.locator("[name=transport__file__path]").fill(str(recording))
    page.locator("[name=decoder__csv__columns]").fill("key = id\nlon = x\nlat = lat")
    page.get_by_role("button", name="Test", exact=True).click()
    answer = page.locator("#trial-answer")
    expect(answer).to_contain_text("it lacks lat")
    answer.get_by_role("button", name="Use these options", exact=True).click()
    expect(answer.locator("td").first).to_have_text("anna")
    expect(page.locator("[name=decoder__csv__columns]")).to_have_value("key = id\nlon = x\nlat = y")
    expect(page.locator("[name=decoder__csv__properties]")).to_have_value("knots = speed_mps [knots]")
    page.get_by_role("button", name="Save", exact=True).click()
    wait_for(lambda: live.health("tried").get("elements") == 1, "the element of the stream that was added")
    live.remove_stream("tried")


def test_the_search_is_a_combobox_that_keeps_its_keys(screen, feed):
    feed.put(anna=HERE, annabel=(24.6, 59.7), berta=(24.7, 59.7))
    screen.look(9, *HERE)
    page, keys = screen.page, screen.page.keyboard
    assert screen.painted((24.7, 59.7), "ship")
    search, options = page.get_by_role("combobox", name="Find an object"), page.get_by_role("option")
    keys.press("/")
    keys.type("ms ann")
    expect(options).to_have_count(2)
    expect(options.first).to_have_attribute("aria-selected", "true")
    assert wrong(page) == []
    for key, chosen in (("ArrowDown", 1), ("ArrowDown", 0), ("ArrowUp", 1)):
        keys.press(key)
        expect(options.nth(chosen)).to_have_attribute("aria-selected", "true")
        number = wait_for(partial(options.nth(chosen).get_attribute, "id"), "the number of the object")
        expect(search).to_have_attribute("aria-activedescendant", number)
        expect(search).to_be_focused()
    keys.press("Escape")
    expect(options).to_have_count(0)
    expect(search).to_have_attribute("aria-expanded", "false")
    expect(search).to_have_value("ms ann")
    keys.type("abel")
    keys.press("Enter")  # before the options come
    expect(page.locator("#object-title")).to_have_text("MS Annabel")
    expect(page.locator("#query-form")).to_be_hidden()  # `n` was a letter
    expect(page.locator("#map")).to_be_focused()
    keys.press("l")
    expect(page.locator("#pane-layers")).to_be_visible()
    expect(search).to_have_value("")


def test_the_search_finds_coordinates_and_towns_and_says_when_there_is_nothing(screen):
    page = screen.page
    screen.look(9, *HERE)
    search, options = page.locator("#search"), page.get_by_role("option")
    search.fill("36.1, -5.4")
    expect(options).to_have_text(re.compile("36.1000° N, 5.4000° W"))
    search.press("Enter")
    expect(page).to_have_url(re.compile(r"#11/36\.1\d*/-5\.4"))
    search.fill("gibral")
    expect(options).to_have_text(re.compile("Gibraltar"))
    search.fill("zzzzzz")
    expect(page.locator("#search-none")).to_contain_text("Nothing was found")
    expect(options).to_have_count(0)


def test_the_search_fits_a_phone(screen_of, user, feed):
    feed.put(**{"anna" * 20: HERE})
    screen = screen_of(user, **PHONE)
    screen.look(9, *HERE)
    page = screen.page
    assert screen.painted(HERE, "ship")
    wait_for(lambda: page.evaluate(ROOM) >= 0, "room for the placeholder")
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_have_attribute("data-state", "offline")
    wait_for(lambda: page.evaluate(ROOM) >= 0, "room for the placeholder")
    expect_width(page, 390)
    page.context.set_offline(False)
    page.locator("#search").fill("anna" * 3)
    expect(page.get_by_role("option")).to_have_count(1)
    box = page.locator("#search-box")
    wait_for(lambda: box.evaluate("(box) => box.scrollWidth == box.clientWidth"), "a box as wide as what is in it")
    expect_width(page, 390)
