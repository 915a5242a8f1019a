"""A query for ships that will come close to each other, made on the page."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.feed import feature
from tests.browser.test_accessibility import wrong

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


@pytest.mark.long
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
    expect(page.locator("#error-closeM")).to_contain_text("The distance must be 1 m to 100 km")
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


@pytest.mark.long
def test_an_area_a_filter_and_both_ways_are_chosen_in_the_form_and_a_rule_is_made_by_the_bell(screen, feed):
    page = screen.page
    feed.send(heading("anna", WEST, 90) + heading("bert", EAST, 270))
    screen.look(ZOOM, *MIDDLE)
    page.get_by_role("button", name="New query").click()
    form = page.locator("#query-form")
    form.get_by_text("Passing", exact=True).click()
    screen.field("stream").select_option(feed.name)
    form.get_by_text("In an area", exact=True).click()
    expect(page.locator("#box-fields")).to_be_visible()
    for side, degrees in zip(("west", "south", "east", "north"), (24.4, 59.6, 24.6, 59.8), strict=True):
        screen.field(side).fill(str(degrees))
    screen.field("partnerWhere").fill("speed_mps > 20")
    screen.save("Passing")
    screen.expect_query("Passing", "running", "0")
    screen.act("Passing", "Edit")
    expect(screen.field("partnerWhere")).to_have_value("speed_mps > 20")
    expect(screen.field("east")).to_have_value("24.6")
    screen.field("partnerWhere").fill("speed_mps > 5")
    page.locator("#form-save").click()
    screen.expect_query("Passing", "running", "1")  # only Anna is in the area
    screen.act("Passing", "Edit")
    form.get_by_text("Everywhere", exact=True).click()
    expect(page.locator("#box-fields")).to_be_hidden()
    form.get_by_text("Tell each pair both ways", exact=False).click()
    page.locator("#form-save").click()
    screen.expect_query("Passing", "running", "2")

    screen.act("Passing", "Alarm")
    dialog = page.locator("#rule-dialog")
    dialog.get_by_label("For at least, in minutes").fill("0")
    expect(dialog.locator("#rule-sentence")).to_contain_text("An alarm begins as soon as an object is in Passing.")
    dialog.get_by_role("button", name="Save rule").click()
    screen.expect_query("Passing, alarm", "running", "2")  # both ships have one

    search = page.get_by_role("combobox", name="Find an object")
    search.fill("ms anna")  # no town has this name
    expect(page.get_by_role("option")).to_have_count(1)
    search.press("Enter")
    expect(page.locator("#object-title")).to_have_text("MS Anna")
    page.locator("#object-why").select_option(label="Passing")
    panel = page.locator("#why-panel")
    expect(panel.locator("#why-verdict")).to_have_text("\u2713In the answer")
    expect(panel.locator("#why-tree")).to_contain_text("223 m")
    feed.send(heading("anna", WEST, 270))
    expect(panel.locator("#why-verdict")).to_have_text("\u2717Not in the answer")
    assert wrong(page) == []
