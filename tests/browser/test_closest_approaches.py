"""A query for ships that will come close to each other, made on the page."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.feed import feature

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 11, (24.6, 59.7)
# They approach each other at 20 m/s, 11.2 km apart, and pass each other in about 9 minutes.
WEST, EAST = (24.5, 59.7), (24.7, 59.702)
# On the ways, beside the middle, where the names of the ships are not.
ON_THE_WAY = (24.57, 59.7)


def heading(key, place, course_deg):
    ship = feature(key, place)
    ship["properties"] |= {"course_deg": course_deg, "speed_mps": 10.0}
    return f"{json.dumps(ship)}\n".encode()


def test_ships_that_will_pass_each_other_are_a_pair_with_a_place_a_distance_and_a_time(screen, feed):
    page = screen.page
    feed.send(heading("anna", WEST, 90) + heading("bert", EAST, 270))
    screen.look(ZOOM, *MIDDLE)
    page.get_by_role("button", name="New query").click()
    page.locator("#query-form").get_by_text("Passing", exact=True).click()
    expect(page.locator("#close-fields")).to_be_visible()
    expect(page.locator("#box-fields")).to_be_hidden()
    expect(page.locator("#aggregate-fields")).to_be_hidden()
    screen.field("stream").select_option(feed.name)
    screen.field("closeM").fill("0")
    screen.field("name").fill("Passing")
    page.locator("#form-save").click()
    expect(page.locator("#error-closeM")).to_contain_text("Metres must be 1 to 100,000")
    screen.field("closeM").fill("500")
    screen.save("Passing")
    screen.expect_query("Passing", "running", "1")
    expect(screen.query("Passing").locator(".query-about")).to_contain_text("will come within 500 m of")
    assert screen.painted(ON_THE_WAY, "q0", radius=4)  # the dashed line
    page.get_by_role("tab", name="Events").click()
    newest = page.locator("#event-list li").first
    feed.send(heading("anna", WEST, 270))
    expect(newest).to_contain_text("no longer comes close to")
    assert screen.painted(ON_THE_WAY, "q0", radius=4, present=False)
    feed.send(heading("anna", WEST, 90))
    # 11.2 km at 20 m/s, and the ways are 223 m apart.
    expect(page.locator("#event-list")).to_contain_text("will come close to")
    expect(page.locator("#event-list")).to_contain_text("223 m in 9 min")
