"""Areas of any shape: drawn by mouse and keys, edited, counted before they are saved, and answered by the engine."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
INSIDE, BESIDE, OUTSIDE = (24.4, 59.7), (24.75, 59.62), (25.0, 59.75)
TRIANGLE = (24.1, 59.55), (24.3, 59.9), (24.7, 59.8)


@pytest.fixture
def looking(screen, feed):
    """A window with three ships."""
    feed.put(anna=INSIDE, berta=BESIDE, carla=OUTSIDE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(OUTSIDE, "ship")
    return screen


def begin(screen, form):
    screen.page.get_by_role("button", name="New query").click()
    screen.page.locator("#box-fields").get_by_text(form, exact=True).click()


def click(screen, *places):
    for place in places:
        screen.page.mouse.move(*screen.pixel(*place))
        screen.page.mouse.click(*screen.pixel(*place))


def test_a_polygon_is_drawn_with_a_corner_taken_back_and_found_by_the_engine(looking, feed):
    begin(looking, "Polygon")
    bar = looking.page.locator("#shape-bar")
    click(looking, TRIANGLE[0], TRIANGLE[1], OUTSIDE)
    expect(bar).to_contain_text("km²")
    looking.page.keyboard.press("Backspace")
    click(looking, TRIANGLE[2])
    looking.page.keyboard.press("Enter")
    expect(bar).to_be_hidden()
    expect(looking.page.locator("#area-size")).to_have_text(re.compile("^3 corners, .* around$"))
    expect(looking.page.locator("#area-count")).to_have_text("1 object of the map there now")
    corner = looking.page.locator(".vertex:not(.middle)").first
    drawn = looking.plan()
    corner.focus()
    corner.press("ArrowLeft")
    assert looking.plan() != drawn
    corner.press("Control+z")
    assert looking.plan() == drawn
    ring = looking.plan()["area"]["coordinates"][0]
    assert ring[0] == pytest.approx(TRIANGLE[0], abs=0.01) and ring[0] == ring[3] and len(ring) == 4
    looking.field("stream").select_option(feed.name)
    looking.save("Triangle")
    looking.expect_query("Triangle", "running", "1")
    expect(looking.query("Triangle").locator(".query-about")).to_contain_text("in a polygon")


@pytest.mark.long
def test_an_edit_says_what_would_change_and_then_changes_it(looking, feed):
    begin(looking, "Circle")
    looking.drag(INSIDE, (24.5, 59.7))
    expect(looking.page.locator("#area-size")).to_contain_text("Radius 5.6")
    looking.field("stream").select_option(feed.name)
    looking.save("Circle")
    looking.expect_query("Circle", "running", "1")
    looking.act("Circle", "Edit")
    expect(looking.page.locator("#area-count")).to_have_text("+0 −0: 1 object of the map there now")
    looking.field("areaRadius").fill("30")
    expect(looking.page.locator("#area-count")).to_contain_text("zoom out to count all")
    looking.turn(ZOOM, *MIDDLE)
    expect(looking.page.locator("#area-count")).to_have_text("+1 −0: 2 objects of the map there now")
    looking.save()
    looking.expect_query("Circle", "running", "2")
    expect(looking.query("Circle").locator(".query-about")).to_contain_text("in a circle of 30 km")


def test_a_corridor_is_drawn_and_its_width_changed_with_the_arrow_keys(looking, feed):
    begin(looking, "Corridor")
    click(looking, (24.2, 59.7), (24.6, 59.7))
    looking.page.mouse.dblclick(*looking.pixel(25.0, 59.7))
    expect(looking.page.locator("#area-size")).to_contain_text("1 km wide")
    width = looking.page.get_by_role("slider", name="Width of the corridor")
    width.focus()
    for _ in range(5):
        width.press("ArrowUp")
    expect(looking.field("areaWidth")).to_have_value("1.5")
    looking.field("areaWidth").fill("12")
    expect(looking.page.locator("#area-count")).to_contain_text("2 objects")
    assert looking.plan()["area"]["corridor"]["width_m"] == 12_000
    looking.field("stream").select_option(feed.name)
    looking.save("Lane")
    looking.expect_query("Lane", "running", "2")


def test_escape_cancels_the_drawing_first_and_an_outline_that_crosses_itself_is_refused(looking):
    begin(looking, "Polygon")
    click(looking, *TRIANGLE[:2])
    looking.page.keyboard.press("Escape")
    expect(looking.page.locator("#shape-bar")).to_be_hidden()
    expect(looking.page.locator("#query-form")).to_be_visible()
    looking.page.get_by_role("button", name="Draw again").click()
    click(looking, (24.2, 59.8), (24.8, 59.6), (24.8, 59.8), (24.2, 59.6))
    looking.page.keyboard.press("Enter")
    error = looking.page.locator("#error-box")
    expect(error).to_have_text("The outline of the polygon crosses itself. Move a corner.")
    looking.page.locator("#corners-field summary").click()
    looking.field("corners").fill("24.2, 59.6\n24.8, 59.6\n24.5, 59.8")
    looking.field("corners").blur()
    expect(error).to_be_hidden()
    assert looking.plan()["area"]["coordinates"][0][1] == [24.8, 59.6]
    looking.page.get_by_text("Outside", exact=True).click()
    expect(looking.page.get_by_text("are found for a rectangle only")).to_be_visible()
    looking.page.keyboard.press("Escape")
    expect(looking.page.locator("#query-form")).to_be_hidden()
