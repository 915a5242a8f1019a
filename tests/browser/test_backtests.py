"""A query and a rule tried on what is stored, before they are saved."""

import os
import re
import time

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
WEST, SOUTH, EAST, NORTH = 24.2, 59.6, 24.8, 59.8
INSIDE, OUTSIDE = (24.4, 59.7), (25.0, 59.7)


@pytest.mark.long
def test_a_query_and_a_rule_are_tried_on_the_past_before_they_are_saved(screen, stored_feed, request):
    page = screen.page
    stored_feed.put(anna=OUTSIDE, berta=OUTSIDE)
    screen.look(ZOOM, *MIDDLE)
    screen.draw(WEST, SOUTH, EAST, NORTH)
    expect(screen.field("stream")).to_have_value(stored_feed.name)
    screen.save("Roads")
    for place, count in ((OUTSIDE, "0"), (INSIDE, "1"), (OUTSIDE, "0")):
        stored_feed.put(anna=place)
        screen.expect_query("Roads", "running", count)
        second = int(time.time())
        wait_for(lambda: time.time() > second + 2, "the alarms of this second")  # noqa: B023
    screen.act("Roads", "Edit")
    form = page.locator("#form-try")
    form.get_by_label("On which time").select_option("the last day")
    form.get_by_role("button", name="Try").press("Enter")
    told = form.get_by_role("status")
    expect(told).to_have_text("In the last day, objects would have entered 1 time and left 1 time.")
    page.locator("#form-cancel").click()
    screen.act("Roads", "Alarm")
    dialog = page.locator("#rule-dialog")
    dialog.get_by_label("For at least, in minutes").fill("0")
    dialog.get_by_role("button", name="Try").click()
    expect(dialog.locator(".try-told")).to_have_text("Would have fired 1 time in the last hour.")
    assert wrong(page, "#rule-dialog") == []
    dialog.get_by_role("button", name="Show on the map").click()
    expect(dialog).to_be_hidden()
    panel = page.get_by_role("region", name="Roads, alarm")
    row = panel.get_by_role("listitem").get_by_role("button")
    expect(row).to_have_text(re.compile(r"^MS Anna \(anna\)20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, for \d+ s$"))
    row.press("Enter")
    expect(row).to_have_attribute("aria-current", "true")
    expect(page).to_have_url(re.compile(r"#\d+/59\.70\d*/24\.40\d*(\D|$)"))
    assert wrong(page, "#backtest") == []
    if folder := os.environ.get("BT_SHOTS"):
        page.screenshot(path=f"{folder}/backtest.png")
    panel.get_by_role("button", name="Back to the form").click()
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("For at least, in minutes")).to_have_value("0")
    expect(panel).to_be_hidden()


def test_a_stream_that_is_not_stored_says_what_to_do(screen, feed):
    feed.put(anna=INSIDE)
    screen.look(ZOOM, *MIDDLE)
    screen.draw(WEST, SOUTH, EAST, NORTH)
    expect(screen.field("stream")).to_have_value(feed.name)
    form = screen.page.locator("#form-try")
    form.get_by_role("button", name="Try").click()
    expect(form.get_by_role("status")).to_contain_text(f"the elements of {feed.name} are not stored")
    expect(form.get_by_role("status")).to_contain_text("An administrator can switch on “store elements”")
