"""A rule made on the page, its alarm, and what the form says."""

import re

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.admin_page import admin_form
from tests.browser.test_accessibility import wrong
from tests.webapp.receiver import Receiver

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
WEST, SOUTH, EAST, NORTH = 24.2, 59.6, 24.8, 59.8
INSIDE, OUTSIDE = (24.4, 59.7), (25.0, 59.7)


def rule_over_roads(screen, feed, count):
    """Draw the query Roads, which has so many objects, and begin a rule over it."""
    screen.look(ZOOM, *MIDDLE)
    screen.draw(WEST, SOUTH, EAST, NORTH)
    expect(screen.field("stream")).to_have_value(feed.name)
    screen.save("Roads")
    screen.expect_query("Roads", "running", count)
    screen.act("Roads", "Alarm")


@pytest.mark.long
def test_a_ship_that_stays_has_an_alarm_until_it_leaves(screen, feed):
    feed.put(anna=INSIDE, berta=OUTSIDE)
    rule_over_roads(screen, feed, "1")
    dialog = screen.page.locator("#rule-dialog")
    expect(dialog.locator("#rule-sentence")).to_contain_text("has been in Roads for 5 min without a break")
    dialog.get_by_label("For at least, in minutes").fill("-1")
    expect(dialog.locator("#rule-sentence")).to_have_text("For must be 0 or more minutes.")
    dialog.get_by_label("For at least, in minutes").fill("0.02")
    dialog.get_by_label("Not again for, in minutes").fill("0")
    dialog.get_by_label("Open incidents").select_option("")
    dialog.get_by_role("button", name="Save rule").click()
    expect(dialog).to_be_hidden()
    screen.expect_query("Roads, alarm", "running", "1")
    expect(screen.query("Roads, alarm")).to_contain_text("alarm if in Roads for 1.2 s")
    feed.put(anna=OUTSIDE)
    screen.expect_query("Roads, alarm", "running", "0")
    screen.act("Roads, alarm", "Edit")
    expect(dialog.get_by_label("For at least, in minutes")).to_have_value("0.02")
    dialog.get_by_text("Often", exact=True).click()
    expect(dialog.locator("#rule-sentence")).to_contain_text(re.compile("more than 5 times within 10 min"))
    screen.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


@pytest.mark.long
def test_an_alarm_opens_an_incident_and_reaches_a_webhook(screen_of, user, feed):
    """From a report of a ship to the request that somebody else's program gets."""
    screen = screen_of(user, staff=True)
    page = screen.page
    with Receiver() as receiver:
        base = f"{screen.base_url}/admin/webapp"
        channel = {"name": f"hook of {user}", "kind": "webhook", "channel__webhook__url": receiver.url}
        admin_form(page, f"{base}/channel/add/", **channel)
        admin_form(page, f"{base}/subscription/add/", user=user, channel=f"hook of {user}")
        feed.put(anna=OUTSIDE)
        rule_over_roads(screen, feed, "0")
        dialog = page.locator("#rule-dialog")
        assert wrong(page) == []
        dialog.get_by_label("Name").fill("Too long in the roads")
        dialog.get_by_label("For at least, in minutes").fill("0.02")
        dialog.get_by_label("Open incidents").select_option("critical")
        dialog.get_by_role("button", name="Save rule").click()
        screen.expect_query("Too long in the roads", "running", "0")
        feed.put(anna=INSIDE)
        expect(page).to_have_title("(1) Lookout")
        wait_for(lambda: receiver.taken, lambda: f"{receiver.requests}")
        (document,) = receiver.taken.values()
        assert document["change"]["what"] == "opened"
        assert document["query"]["name"] == "Too long in the roads"
        screen.tab("Incidents")
        row = page.locator("#incident-list > li")
        row.locator(".event").click()
        row.get_by_role("button", name="Acknowledge").click()
        expect(row).to_have_attribute("data-state", "seen")
        feed.put(anna=OUTSIDE)
        expect(page).to_have_title("Lookout")
        assert len(receiver.taken) == 1  # nobody asked for the end


@pytest.mark.long
def test_nobody_here_opens_an_incident_that_closes_when_somebody_comes(screen, feed):
    feed.put(anna=INSIDE)
    rule_over_roads(screen, feed, "1")
    dialog = screen.page.locator("#rule-dialog")
    dialog.get_by_text("The whole answer").click()
    dialog.get_by_label("Name").fill("Nobody here")
    dialog.get_by_label("For at least, in minutes").fill("0.03")
    expect(dialog.locator("#rule-sentence")).to_contain_text("there has been nothing in Roads for 1.8 s")
    dialog.get_by_label("Open incidents").select_option("critical")
    dialog.get_by_role("button", name="Save rule").click()
    screen.expect_query("Nobody here", "running", "0")
    feed.put(anna=OUTSIDE)
    expect(screen.page).to_have_title("(1) Lookout")
    screen.tab("Incidents")
    expect(screen.page.locator("#incident-list > li")).to_contain_text("Nobody here")
    feed.put(anna=INSIDE)
    expect(screen.page).to_have_title("Lookout")


@pytest.mark.long
def test_a_value_that_is_too_large_for_a_while_opens_an_incident_in_the_middle_of_the_area(screen, feed):
    """The bell on the card of an aggregate opens the form of a rule over its value."""
    page = screen.page
    feed.put(anna=INSIDE, berta=OUTSIDE)
    screen.look(ZOOM, *MIDDLE)
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.field("function").select_option("max")
    screen.field("of").select_option("longitude")
    screen.save("Easternmost")
    screen.expect_query("Easternmost", "running", "24.4")
    screen.act("Easternmost", "Alarm")
    dialog = page.locator("#rule-dialog")
    expect(dialog.locator("#rule-sentence")).to_have_text("Type the value that must be passed.")
    expect(dialog.get_by_text("Each object")).to_be_hidden()
    dialog.get_by_label("When it is").select_option("above")
    dialog.get_by_label("Value", exact=True).fill("24.5")
    dialog.get_by_label("It ends only at").fill("24.6")
    expect(dialog.locator("#rule-sentence")).to_contain_text("not above the first one")
    dialog.get_by_label("It ends only at").fill("24.45")
    dialog.get_by_label("Name").fill("Too far east")
    dialog.get_by_label("For at least, in minutes").fill("0.02")
    dialog.get_by_label("Not again for, in minutes").fill("0")
    dialog.get_by_label("Open incidents").select_option("critical")
    sentence = (
        "for 1.2 s without a break: Easternmost above 24.5. It ends when this holds no more: Easternmost above 24.45."
    )
    expect(dialog.locator("#rule-sentence")).to_contain_text(sentence)
    assert wrong(page) == []
    dialog.get_by_role("button", name="Save rule").click()
    expect(dialog).to_be_hidden()
    screen.expect_query("Too far east", "running", "0")
    expect(screen.query("Too far east")).to_contain_text("alarm if Easternmost above 24.5 for 1.2 s")
    feed.put(anna=(24.7, 59.7))
    expect(page).to_have_title("(1) Lookout")
    screen.expect_query("Too far east", "running", "1")
    screen.tab("Incidents")
    row = page.locator("#incident-list > li")
    expect(row).to_contain_text("Easternmost: 24.7, above 24.5 for 1.2 s")
    screen.turn(ZOOM, 25.4, 60.0)
    row.locator(".event").click()
    expect(page).to_have_url(re.compile(r"#9/59\.(70|69)\d*/24\.(50|49)\d*(\D|$)"))
    expect(page.locator("#object-title")).to_be_hidden()
    screen.tab("Events")
    expect(screen.events().first).to_contain_text("Easternmost: 24.7, above 24.5 for 1.2 s")
    screen.tab("Queries")
    screen.act("Too far east", "Edit")
    expect(dialog.get_by_label("It ends only at")).to_have_value("24.45")
    page.keyboard.press("Escape")
    feed.put(anna=(24.48, 59.7))
    screen.expect_query("Easternmost", "running", "24.48")
    screen.expect_query("Too far east", "running", "1")
    screen.act("Easternmost", "Pause")
    expect(screen.query("Easternmost").locator(".pill")).to_have_text("paused")
    screen.expect_query("Too far east", "running", "0")
    expect(page).to_have_title("Lookout")


@pytest.mark.long
def test_a_rule_about_silence_is_made_on_the_page_and_edited_there(screen, feed):
    feed.put(anna=INSIDE, berta=INSIDE)
    rule_over_roads(screen, feed, "2")
    page, dialog = screen.page, screen.page.locator("#rule-dialog")
    dialog.get_by_text("Silence", exact=True).click()
    dialog.get_by_label("Without a report for, in minutes").fill("0.05")
    dialog.get_by_label("Also these, by their keys").fill("ghost")
    expect(dialog.locator("#rule-sentence")).to_contain_text(
        "has not reported for 3 s. It also begins for these, even if they were never heard: ghost."
    )
    expect(dialog.get_by_text("Often", exact=True)).to_be_hidden()
    assert wrong(page) == []
    dialog.get_by_label("Not again for, in minutes").fill("0")
    dialog.get_by_role("button", name="Save rule").click()
    expect(dialog).to_be_hidden()
    screen.act("Roads, alarm", "Edit")
    expect(dialog.get_by_label("Also these, by their keys")).to_have_value("ghost")
