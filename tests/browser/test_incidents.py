"""Incidents on the page: a ship enters a critical area, somebody takes care of it, and it leaves."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]

MIDDLE, INSIDE, OUTSIDE = (24.5, 59.7), (24.4, 59.7), (25.3, 59.7)
AREA = (24.2, 59.5, 24.8, 59.9)


def begin(screen, feed, name="Harbour", severity="critical"):
    """Draw a query that opens incidents."""
    screen.look(9, *MIDDLE)
    screen.draw(*AREA)
    screen.field("stream").select_option(feed.name)
    screen.field("severity").select_option(severity)
    screen.save(name)
    screen.expect_query(name, "running", "0")


@pytest.mark.long
def test_the_link_of_an_alarm_opens_its_incident_with_its_object(screen, feed, live, user):
    page, rows = screen.page, screen.page.locator("#incident-list > li")
    feed.put(anna=OUTSIDE, berta=OUTSIDE)
    begin(screen, feed)
    feed.put(anna=INSIDE, berta=INSIDE)
    screen.expect_query("Harbour", "running", "2")
    screen.tab("Incidents")
    page.get_by_role("button", name="Acknowledge all 2 that are shown").click()
    expect(rows.filter(has_text="seen by")).to_have_count(2)
    expect(page.locator("#incident-acknowledge-all")).to_be_hidden()
    rows.filter(has_text="MS Anna").locator(".event").click()
    expect(page).to_have_url(re.compile("&incident=[0-9]+"))
    number = re.search("incident=([0-9]+)", page.url)[1]
    rows.filter(has_text="MS Anna").get_by_role("button", name="Close").click()
    expect(page.locator("#incident-total")).to_contain_text("1 open")

    page.goto("about:blank")
    page.goto(f"{live.base_url}/#12/59.7000/24.4000&tab=incidents&incident={number}")
    opened = rows.filter(has=page.locator("[aria-expanded=true]"))
    expect(opened).to_have_count(1)
    expect(opened).to_contain_text("MS Anna")
    expect(opened.locator(".incident-log li").first).to_contain_text("Lookout opened it")
    expect(page.locator("#object-title")).to_have_text("MS Anna")
    opened.locator(".event").click()
    expect(page).not_to_have_url(re.compile("incident="))
    page.goto("about:blank")
    page.goto(f"{live.base_url}/#&tab=incidents&incident=999999999")
    expect(page.locator(".toast")).to_contain_text("incident")


@pytest.mark.long
def test_the_story_of_an_incident(screen, stored_feed, user):
    feed, page = stored_feed, screen.page
    feed.put(anna=OUTSIDE)
    begin(screen, feed)
    expect(screen.query("Harbour")).to_contain_text("critical incidents")
    tab = page.get_by_role("tab", name=re.compile("^Incidents"))
    expect(tab).to_have_text("Incidents")
    expect(page).to_have_title("Lookout")

    feed.put(anna=INSIDE)
    expect(page).to_have_title("(1) Lookout")
    expect(tab.locator(".badge")).to_have_text("1")
    page.keyboard.press("i")
    expect(page.locator("#incident-total")).to_have_text("1 open: 1 critical")
    row = page.locator("#incident-list > li")
    expect(row).to_have_attribute("data-state", "new")
    expect(row.locator(".event-name")).to_have_text("MS Anna")

    # By keyboard: open it, which flies to the ship and lights it, and acknowledge it.
    row.locator(".event").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#object-title")).to_have_text("MS Anna")
    log = row.locator(".incident-log li")
    expect(log).to_have_count(1)
    expect(log).to_contain_text("Lookout opened it")
    assert wrong(page) == []
    row.get_by_role("button", name="Acknowledge").focus()
    page.keyboard.press("Enter")
    expect(row).to_have_attribute("data-state", "seen")
    expect(log).to_have_count(2)
    expect(row.locator(".event")).to_be_focused()

    row.get_by_label("Comment").fill("The pilot has been called.")
    page.keyboard.press("Enter")
    expect(log.last).to_contain_text(f"{user}: The pilot has been called.")
    expect(row.get_by_label("Comment")).to_have_value("")
    row.get_by_label("Assign to").select_option(user)
    expect(row.locator(".event-about")).to_contain_text(f"for {user}")
    row.get_by_label("Comment").focus()
    row.get_by_label("Snooze for").select_option("60")
    expect(row).to_have_attribute("data-state", "snoozed")
    assert wrong(page) == []
    row.get_by_role("button", name="Wake").click()
    expect(row).to_have_attribute("data-state", "seen")
    row.get_by_role("button", name=re.compile("^Way")).click()
    expect(row.get_by_role("status")).to_contain_text("reports are on the map")

    feed.put(anna=OUTSIDE)
    expect(page).to_have_title("Lookout")
    expect(row).to_have_attribute("data-state", "closed")
    expect(log.last).to_contain_text("Lookout closed it: moved")
    expect(row.get_by_role("button", name="Acknowledge")).to_be_hidden()
    expect(tab.locator(".badge")).to_have_text("")

    # A new page knows it all, and has the same incident open.
    page.reload()
    screen.live()
    screen.tab("Incidents")
    expect(row).to_have_attribute("data-state", "closed")
    expect(log).to_have_count(7)
    page.get_by_label("State").select_option("open")
    expect(page.locator("#incidents-empty-title")).to_have_text("No incident passes the filters")


@pytest.mark.long
def test_others_see_the_incidents_of_shared_queries_and_act_on_them(screen, screen_of, feed, user):
    feed.put(anna=INSIDE, berta=INSIDE)
    screen.look(9, *MIDDLE)
    screen.draw(*AREA)
    screen.field("stream").select_option(feed.name)
    screen.field("severity").select_option("warning")
    screen.field("shared").check()
    screen.save("Shared")
    screen.expect_query("Shared", "running", "2")
    other = screen_of(f"{user}-mate")
    other.look(9, *MIDDLE)
    other.tab("Incidents")
    rows = other.page.locator("#incident-list > li", has_text="Shared")
    expect(rows).to_have_count(2)
    anna = rows.filter(has_text="MS Anna")
    anna.locator(".event").click()
    anna.get_by_role("button", name="Close", exact=True).click()
    expect(anna).to_have_attribute("data-state", "closed")
    screen.tab("Incidents")
    mine = screen.page.locator("#incident-list > li", has_text="MS Anna")
    expect(mine.locator(".event-about")).to_contain_text(f"closed by {user}-mate")
    screen.tab("Queries")
    screen.act("Shared", "Stop sharing")
    expect(rows).to_have_count(0)


@pytest.mark.long
def test_a_sound_tells_of_what_opens_unless_it_is_muted(screen, feed):
    feed.put(anna=OUTSIDE)
    screen.listen()
    begin(screen, feed)
    page = screen.page
    feed.put(anna=INSIDE)
    expect(page).to_have_title("(1) Lookout")
    screen.expect_critical_sound()
    screen.tab("Incidents")
    page.get_by_role("button", name="Mute").click()
    feed.put(berta=INSIDE)
    expect(page).to_have_title("(2) Lookout")
    screen.expect_critical_sound()  # still the first one alone
    page.reload()
    screen.live()
    screen.tab("Incidents")
    expect(page.get_by_role("button", name="Mute")).to_have_attribute("aria-pressed", "true")
