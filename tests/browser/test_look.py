"""How the map shows objects: colours, a filter, measuring, lines ahead, hulls, the kiosk view; all in the address."""

import json
import re

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.feed import feature
from tests.browser.screen import box_of, expect_room_for_a_finger
from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
SLOW, FAST, SILENT = (24.3, 59.75), (24.6, 59.6), (24.8, 59.75)
# Give the colour of a row of the legend a name, such as `painted` takes.
NAME_COLOUR = """([text, name]) => {
  const row = [...document.querySelectorAll("#colour-legend-rows li")].find((row) => row.textContent === text);
  const colour = getComputedStyle(row.querySelector(".class-swatch")).backgroundColor;
  document.documentElement.style.setProperty(`--${name}`, colour);
}"""


def report(feed, **ships):
    """Report ships: a place and further properties by key."""
    found = [feature(key, place) for key, (place, _) in ships.items()]
    for ship, (_, more) in zip(found, ships.values(), strict=True):
        ship["properties"] = {name: v for name, v in (ship["properties"] | more).items() if v is not None}
    feed.send("".join(f"{json.dumps(ship)}\n" for ship in found).encode())


@pytest.fixture
def seen(screen, feed):
    """A window that shows a slow ship, a fast one, and one that does not say how fast it is."""
    ships = {
        "slow": (SLOW, {"speed_mps": 1, "type": "tug"}),
        "fast": (FAST, {"speed_mps": 12, "type": "ferry"}),
        "silent": (SILENT, {"speed_mps": None}),
    }
    report(feed, **ships)
    screen.look(ZOOM, *MIDDLE)
    for place in (SLOW, FAST, SILENT):
        assert screen.painted(place, "ship")
    return screen


def choose(screen, **fields):
    """Choose in the tab Layers: `by`, `trail`, `vector`."""
    screen.tab("Layers")
    names = {"by": "#colour-by", "trail": "#trail-length", "vector": "#vector-length"}
    for name, value in fields.items():
        screen.page.locator(names[name]).focus()
        screen.page.locator(names[name]).select_option(value)


@pytest.mark.long
def test_objects_are_coloured_by_a_property_with_a_legend(seen):
    page = seen.page
    choose(seen, by="speed")
    expect(page.locator("#colour-legend-title")).to_have_text("Speed, m/s")
    rows = page.locator("#colour-legend-rows li")
    expect(rows.first).to_have_text(re.compile("^below "))
    for row, name in ((rows.first, "slowest"), (rows.nth(-2), "fastest")):
        page.evaluate(NAME_COLOUR, [wait_for(row.text_content, "a step of the legend"), name])
    assert seen.painted(SLOW, "slowest") and seen.painted(FAST, "fastest")
    assert seen.painted(SLOW, "fastest", present=False) and seen.painted(SILENT, "ship", present=False)
    expect(page).to_have_url(re.compile("&colour=speed"))

    choose(seen, by="property:type")
    expect(rows).to_have_text(["ferry", "tug", "unknown"])
    page.evaluate(NAME_COLOUR, ["tug", "tug"])
    assert seen.painted(SLOW, "tug") and seen.painted(FAST, "tug", present=False)

    # The browser remembers it; an address without it leaves it as it is.
    seen.look(ZOOM, *MIDDLE)
    expect(rows).to_have_text(["ferry", "tug", "unknown"])
    page.get_by_role("button", name="Stop colouring the objects").click()
    assert seen.painted(SLOW, "ship")
    expect(page.locator("#colour-legend")).to_be_hidden()


@pytest.mark.long
def test_trails_have_the_colour_of_each_place(seen, feed):
    page = seen.page
    choose(seen, by="speed", trail="1")
    page.mouse.click(*seen.pixel(*FAST))  # the trail of the selected object is wider
    expect(page.locator("#object-title")).to_have_text("MS Fast")
    rows = page.locator("#colour-legend-rows li")
    for row, name in ((rows.first, "slowest"), (rows.nth(-2), "fastest")):
        page.evaluate(NAME_COLOUR, [wait_for(row.text_content, "a step of the legend"), name])
    for step in range(1, 5):
        place = (FAST[0] + 0.04 * step, FAST[1])
        report(feed, fast=(place, {"speed_mps": 12 if step < 3 else 1}))
        assert seen.painted(place, "fastest" if step < 3 else "slowest", radius=4)
        page.wait_for_timeout(600)  # a trail of a minute keeps two places a second
    early, late = (FAST[0] + 0.02, FAST[1]), (FAST[0] + 0.14, FAST[1])
    assert seen.painted(early, "fastest", radius=2)
    assert seen.painted(late, "slowest", radius=2)
    choose(seen, trail="0")
    assert seen.painted(early, "fastest", present=False, radius=2)
    expect(page.locator("#object-trails")).to_have_attribute("aria-pressed", "false")
    page.locator("#map").focus()
    page.keyboard.press("t")
    assert seen.painted(early, "fastest", radius=2)


@pytest.mark.long
def test_a_filter_hides_objects_without_a_query(seen, feed):
    page = seen.page
    page.keyboard.press("x")
    field = page.get_by_label("Show only objects for which")
    expect(field).to_be_focused()
    field.press_sequentially("spee")
    expect(
        page.get_by_role("listbox", name="Names and values for the map's filter").get_by_role("option")
    ).to_have_text([re.compile("^speed_mps")])
    field.fill("speed_mps >")
    field.press("Enter")
    expect(page.locator("#display-filter-error")).to_contain_text("A value is missing at the end")
    field.fill("speed_mps > 5")
    expect(page.locator("#display-filter-check")).to_have_text("Matches 1 of 3 in view now.")
    field.press("Enter")
    expect(page.locator("#display-filter")).to_be_hidden()
    expect(page.locator("#display-filter-count")).to_have_text("1 of 3 shown")
    assert seen.painted(SLOW, "ship", present=False) and seen.painted(SILENT, "ship", present=False)
    assert seen.painted(FAST, "ship")
    report(feed, slow=(SLOW, {"speed_mps": 6}))
    assert seen.painted(SLOW, "ship")
    expect(page.locator("#display-filter-count")).to_have_text("2 of 3 shown")

    page.reload()
    expect(page.locator("#display-filter-count")).to_have_text("2 of 3 shown")
    page.get_by_role("button", name="Remove the filter, show all objects").click()
    assert seen.painted(SILENT, "ship")
    expect(page).not_to_have_url(re.compile("filter="))
    page.go_back()
    expect(page.locator("#display-filter-count")).to_have_text("2 of 3 shown")


def test_lengths_bearings_and_areas_are_measured(seen):
    page = seen.page
    text, labels = page.locator("#measure-text"), page.locator(".measure-label")
    page.get_by_role("button", name="Measure").click()
    for place in ((24.3, 59.6), (24.3, 59.7), (24.5, 59.7)):
        page.mouse.click(*seen.pixel(*place))
    page.mouse.move(*seen.pixel(24.5, 59.7))
    expect(labels).to_have_count(2)
    expect(text).to_contain_text("2 parts, 22.4 km")
    expect(page.locator("#object-panel")).to_be_hidden()
    page.keyboard.press("Backspace")
    expect(labels.first).to_contain_text("11.1 km")
    page.mouse.click(*seen.pixel(24.5, 59.7))
    page.get_by_role("button", name="Area").click()
    expect(text).to_contain_text(re.compile(r"3 parts, .* area 62"))
    page.mouse.click(*seen.pixel(24.8, 59.5))  # it has ended
    expect(text).to_contain_text("3 parts")
    page.locator("#map").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#measure-bar")).to_be_hidden()
    expect(labels).to_have_count(0)

    # By the keyboard: the middle of the map is the place. A double click ends, too.
    page.keyboard.press("m")
    page.keyboard.press(" ")
    seen.page.mouse.dblclick(*seen.pixel(24.5, 59.8))
    expect(text).to_contain_text(re.compile(r"^11\.\d km"))  # a pixel is 150 m
    expect(page.locator("#measure-end")).to_be_hidden()


@pytest.mark.long
def test_back_and_forward_step_through_views(seen):
    page = seen.page
    seen.tab("Layers")
    choose(seen, by="speed")
    page.mouse.click(*seen.pixel(*FAST))
    expect(page.locator("#object-title")).to_have_text("MS Fast")
    expect(page).to_have_url(re.compile(r"select=\w+%2Ffast"))
    page.keyboard.press("f")
    expect(page).to_have_url(re.compile("follow=1"))
    page.go_back()
    expect(page.locator("#object-follow")).to_have_attribute("aria-pressed", "false")
    page.go_back()
    expect(page.locator("#object-panel")).to_be_hidden()
    page.go_back()
    expect(page.locator("#colour-legend")).to_be_hidden()
    expect(page.get_by_role("tab", name="Layers")).to_have_attribute("aria-selected", "true")
    page.go_back()
    expect(page.get_by_role("tab", name=re.compile("^Queries"))).to_have_attribute("aria-selected", "true")
    for _ in range(3):
        page.go_forward()
    expect(page.locator("#object-title")).to_have_text("MS Fast")
    expect(page.locator("#colour-legend")).to_be_visible()
    page.reload()
    expect(page.locator("#object-title")).to_have_text("MS Fast")


@pytest.mark.long
def test_an_address_opens_what_it_holds_and_tells_what_is_wrong(screen, feed, user):
    report(feed, fast=(FAST, {}))
    screen.look(ZOOM, *MIDDLE)
    screen.draw(24.5, 59.5, 24.7, 59.7)
    screen.save("Strait")
    screen.expect_query("Strait", "running", "1")
    page = screen.page
    screen.query("Strait").locator(".query-main").click()
    expect(page).to_have_url(re.compile(r"&query=\d+"))
    number = re.search(r"query=(\d+)", page.url)[1]
    page.goto("about:blank")
    page.goto(
        f"{screen.base_url}/#{ZOOM}/59.7/24.5&tab=queries&query={number}&theme=dark&trail=99&filter=a+%3E&nonsense=1"
    )
    expect(screen.query("Strait").locator(".query-main")).to_have_attribute("aria-expanded", "true")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator(".toast.error")).to_have_text(
        [
            re.compile("The filter of the address is ignored. A value is missing"),
            re.compile("ignores: trail=99, nonsense=1"),
        ]
    )
    page.goto("about:blank")
    page.goto(f"{screen.base_url}/#{ZOOM}/59.7/24.5")
    expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")  # the link's theme is not remembered


def test_hulls_are_to_scale_and_lines_ahead_are_as_long_as_the_way(screen, feed):
    here = (24.5, 59.7)
    report(feed, anna=(here, {"length_m": 300, "width_m": 60, "heading_deg": 90, "course_deg": 0, "speed_mps": 10}))
    screen.look(15, *here)
    degrees_m = 56_200  # a degree of longitude at this latitude
    bow, beyond = ((here[0] + metres / degrees_m, here[1]) for metres in (135, 175))
    assert screen.painted(bow, "ship", radius=8)
    assert screen.painted(beyond, "ship", present=False, radius=8)
    ahead = (here[0], here[1] + 400 / 111_400)
    assert screen.painted(ahead, "text", present=False, radius=3)
    choose(screen, vector="1")
    assert screen.painted(ahead, "text", radius=3)  # 600 m to the north in a minute
    assert screen.painted((here[0], here[1] + 650 / 111_400), "text", present=False, radius=3)
    x, y = screen.pixel(here[0] + 120 / degrees_m, here[1])
    screen.page.mouse.click(x, y)
    expect(screen.page.locator("#object-title")).to_have_text("MS Anna")


@pytest.mark.long
def test_the_kiosk_view_has_the_map_a_clock_and_counts(seen, feed):
    page = seen.page
    page.goto("about:blank")
    page.goto(f"{seen.base_url}/?kiosk=1#{ZOOM}/59.7/24.5")
    expect(page.locator("#kiosk-clock")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    expect(page.locator("#kiosk-counts dd").first).to_have_text("3")
    expect(page.locator("header.bar")).to_be_hidden()
    expect(page.locator("#panel")).to_be_hidden()
    map_part = page.locator("#map")
    wait_for(lambda: box_of(map_part)["width"] == page.viewport_size["width"], "a map as wide as the window")
    found = {"kiosk": wrong(page)}
    page.get_by_role("button", name="Leave").focus()
    page.keyboard.press("Enter")
    expect(page.locator("header.bar")).to_be_visible()
    expect(page).not_to_have_url(re.compile("kiosk"))
    page.keyboard.press("k")
    expect(page.locator("#panel")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"\?kiosk=1#"))
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_visible()
    assert not any(found.values()), found


@pytest.mark.long
def test_axe_finds_nothing_wrong_with_the_tools(seen):
    page, found = seen.page, {}
    choose(seen, by="speed", vector="5")
    found["legend"] = wrong(page)
    page.keyboard.press("Escape")
    page.locator("#map").focus()
    page.keyboard.press("x")
    page.get_by_label("Show only objects for which").fill("speed_mps > ")
    page.keyboard.press("Enter")
    expect(page.locator("#display-filter-error")).to_be_visible()
    found["a wrong filter"] = wrong(page)
    page.get_by_label("Show only objects for which").fill("speed_mps > 5")
    page.keyboard.press("Enter")
    expect(page.locator("#display-filter-note")).to_be_visible()
    page.get_by_role("button", name="Measure").click()
    for place in ((24.3, 59.6), (24.3, 59.7), (24.5, 59.7)):
        page.mouse.click(*seen.pixel(*place))
    expect(page.locator(".measure-label")).not_to_have_count(0)
    found["filtered and measuring"] = wrong(page)
    assert not any(found.values()), found


def test_the_tools_work_by_touch(screen_of, user, feed):
    report(feed, fast=(FAST, {"speed_mps": 12}), slow=(SLOW, {"speed_mps": 1}))
    screen = screen_of(user, viewport={"width": 390, "height": 780}, has_touch=True)
    screen.look(8, *MIDDLE)
    page = screen.page
    assert screen.painted(FAST, "ship")
    page.get_by_role("button", name="Measure").tap()
    for place in ((24.3, 59.6), (24.6, 59.6)):
        page.touchscreen.tap(*screen.pixel(*place))
        page.wait_for_timeout(350)  # two taps in quick succession are a double tap, which ends
    expect(page.locator("#measure-text")).to_contain_text(re.compile(r"^1[67][. ]"))
    page.get_by_role("button", name="Finish").tap()
    page.get_by_role("button", name="Remove the measurement").tap()
    page.get_by_role("button", name="Filter").tap()
    page.get_by_label("Show only objects for which").fill("speed_mps > 5")
    page.get_by_role("button", name="Show", exact=True).tap()
    expect(page.locator("#display-filter-count")).to_have_text("1 of 2 shown")
    for name in ("Filter", "Measure", "Remove the filter, show all objects"):
        expect_room_for_a_finger(page.get_by_role("button", name=name, exact=True), "width", "height")
