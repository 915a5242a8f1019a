"""Why? Asked of an object that is not in an answer, of an event and of an incident, on a real engine."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]

MIDDLE, INSIDE, OUTSIDE = (24.5, 59.7), (24.4, 59.7), (25.0, 59.7)
AREA = (24.2, 59.5, 24.8, 59.9)


def begin(screen, feed, severity=""):
    """Draw a query, and select a ship that is outside."""
    feed.put(anna=OUTSIDE)
    screen.look(9, *MIDDLE)
    screen.draw(*AREA)
    screen.field("stream").select_option(feed.name)
    screen.field("severity").select_option(severity)
    screen.save("Roads")
    screen.expect_query("Roads", "running", "0")
    assert screen.painted(OUTSIDE, "ship")
    screen.page.mouse.click(*screen.pixel(*OUTSIDE))
    expect(screen.page.locator("#object-title")).to_have_text("MS Anna")


@pytest.mark.long
def test_an_object_is_told_why_it_is_not_in_an_answer_and_when_an_alarm_comes(screen, feed):
    page = screen.page
    begin(screen, feed)
    page.locator("#object-why").select_option(label="Roads")
    panel = page.locator("#why-panel")
    expect(panel.locator("#why-verdict")).to_have_text("\u2717Not in the answer")
    expect(panel.locator("#why-deciding b")).to_have_text("11 km outside")
    expect(page.locator(".why-distance")).to_have_text(re.compile(r"11\.\d+ km outside"))
    expect(page.locator("path.why-line")).to_have_count(2)
    expect(panel.locator("#why-title")).to_be_focused()
    assert wrong(page) == []

    # The answer follows the ship.
    feed.put(anna=INSIDE)
    expect(panel.locator("#why-verdict")).to_have_text("\u2713In the answer")
    expect(panel.locator("#why-deciding")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("path.why-line")).to_have_count(0)
    expect(page.locator("#object-why")).to_be_focused()

    screen.act("Roads", "Alarm")
    dialog = page.locator("#rule-dialog")
    dialog.get_by_label("For at least, in minutes").fill("30")
    dialog.get_by_role("button", name="Save rule").click()
    screen.expect_query("Roads, alarm", "running", "0")
    page.locator("#object-why").select_option(label="Roads, alarm")
    expect(panel.locator("#why-deciding b")).to_have_text(re.compile(r"^holds for \d+.*; (29|30) min.* to go$"))
    panel.locator(".why-tree summary").click()
    expect(panel.locator(".why-tree details")).to_contain_text("inside")
    assert wrong(page) == []


@pytest.mark.long
def test_an_event_and_its_incident_are_explained(screen, feed):
    page = screen.page
    begin(screen, feed, "warning")
    feed.put(anna=INSIDE)
    screen.tab("Events")
    row = page.locator(".event-row")
    expect(row).to_have_count(1)
    row.get_by_role("button", name=re.compile("^Why[?] MS Anna, entered")).click()
    panel = page.locator("#why-panel")
    expect(panel.locator("#why-verdict")).to_have_text("\u2713Why it entered")
    expect(panel.locator("#why-tree")).to_contain_text(re.compile(r"\d+ km inside"))
    steps = panel.locator("#why-lag-steps li")
    expect(steps).to_have_count(4)
    expect(steps.last).to_contain_text("Stored")
    assert wrong(page) == []
    panel.get_by_role("button", name="Close the explanation").click()

    screen.tab("Incidents")
    incident = page.locator("#incident-list > li")
    incident.locator(".event").click()
    incident.get_by_role("button", name="Why?").click()
    expect(panel.locator("#why-verdict")).to_have_text("\u2713Why the incident was opened")
    expect(steps).to_have_count(5)
    expect(panel.locator("#why-deliveries")).to_contain_text("Nothing was sent to you")
    page.emulate_media(color_scheme="dark")
    assert wrong(page) == []
