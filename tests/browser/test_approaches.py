"""A query for what will soon be in an area, made on the page."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.feed import feature

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
WEST, SOUTH, EAST, NORTH = 24.4, 59.6, 24.8, 59.8
# 11 km east of the area, and half of the way: a ship does it at 20 m/s within ten minutes. Its name is on its right.
FAR, HALFWAY = (25.0, 59.7), (24.9, 59.7)


def heading(place, course_deg):
    ship = feature("anna", place)
    ship["properties"] |= {"course_deg": course_deg, "speed_mps": 20.0}
    return f"{json.dumps(ship)}\n".encode()


def test_a_ship_that_heads_for_an_area_is_found_before_it_is_there(screen, feed):
    page = screen.page
    feed.send(heading(FAR, 271))
    screen.look(ZOOM, *MIDDLE)
    screen.draw(WEST, SOUTH, EAST, NORTH)
    expect(screen.field("stream")).to_have_value(feed.name)
    page.get_by_text("Soon", exact=True).click()
    expect(page.locator("#approach-fields")).to_be_visible()
    expect(page.locator("#aggregate-fields")).to_be_hidden()
    screen.field("withinMin").fill("0")
    screen.field("name").fill("Roads")
    page.locator("#form-save").click()
    expect(page.locator("#error-withinMin")).to_have_text("Minutes must be more than 0, and 60 at most.")
    screen.field("withinMin").fill("10")
    screen.save("Roads")
    screen.expect_query("Roads", "running", "1")
    assert screen.painted(HALFWAY, "q0", radius=4)  # the dashed line
    feed.send(heading(FAR, 90))
    screen.expect_query("Roads", "running", "0")
    assert screen.painted(HALFWAY, "q0", radius=4, present=False)
    screen.act("Roads", "Edit")
    expect(screen.field("withinMin")).to_have_value("10")
