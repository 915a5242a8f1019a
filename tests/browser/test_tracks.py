"""A query about tracks, made on the page: a ship that crosses an area between two reports is told as two events."""

import os
import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
WEST, SOUTH, EAST, NORTH = 24.4, 59.6, 24.6, 59.8
AWAY, BEFORE, BEHIND = (24.2, 59.75), (24.2, 59.65), (24.8, 59.7)


def shot(page, name):
    """Keep a picture of the page, if somebody wants to look at it (the folder of LOOKOUT_SHOTS)."""
    if folder := os.environ.get("LOOKOUT_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


@pytest.mark.long
def test_a_ship_that_crosses_an_area_between_two_reports_is_two_events_that_say_interpolated(screen, feed):
    page = screen.page
    feed.put(anna=AWAY)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(AWAY, "ship")
    screen.draw(WEST, SOUTH, EAST, NORTH)
    expect(screen.field("stream")).to_have_value(feed.name)
    page.locator("#noise-fields summary").click()
    screen.field("accuracyM").fill("-1")
    screen.field("name").fill("Roads")
    page.locator("#form-save").click()
    expect(page.locator("#error-noise")).to_have_text("The accuracy must be 0 or more, and the speed above 0.")
    screen.field("accuracyM").fill("50")
    expect(page.locator("#aggregate-fields")).to_be_hidden()
    screen.field("crossings").check()
    shot(page, "noise-form")
    screen.save("Roads")
    screen.expect_query("Roads", "running", "0")
    about = screen.query("Roads").locator(".query-about")
    expect(about).to_contain_text("inside a rectangle, accurate to 50 m, with crossings between reports")
    feed.put(anna=BEFORE)
    assert screen.painted(BEFORE, "ship")
    feed.put(anna=BEHIND)
    screen.tab("Events")
    event = screen.events().first
    expect(event).to_contain_text("in and out once")
    event.click()
    singles = page.locator(".event-single")
    expect(singles).to_have_count(2)
    expect(singles.nth(0)).to_contain_text("moved out, interpolated")
    expect(singles.nth(1)).to_contain_text("moved in, interpolated")
    expect(singles.nth(1)).to_have_attribute("title", re.compile(r"between reports at .+ and .+"))
    shot(page, "noise-events")
    page.locator(".event-why").last.click()
    expect(page.locator(".why-tree").first).to_contain_text("its accuracy circle of 50 m")
    shot(page, "noise-why")
    screen.tab("Queries")
    screen.act("Roads", "Edit")
    expect(screen.field("accuracyM")).to_have_value("50")
    expect(screen.field("crossings")).to_be_checked()
