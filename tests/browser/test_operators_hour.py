"""An operator's hour, as one story: from a polygon on the map to a report about what happened in it.

Set ``STORY_IMAGES`` to a folder to look at its pages.
"""

import csv
import os
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.admin_page import admin_form
from tests.browser.test_accessibility import wrong
from tests.webapp.mail_server import Mailbox
from tests.webapp.receiver import Receiver

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
ROADS = (24.2, 59.6), (24.8, 59.6), (24.8, 59.8), (24.2, 59.8)
INSIDE, OUTSIDE = (24.4, 59.7), (25.1, 59.7)
DWELL_MIN = "0.05"  # 3 s


class Story:
    """What is looked at on the way: axe-core's findings, and images if somebody wants them."""

    def __init__(self, page):
        self.page, self.found = page, {}
        self.folder = os.environ.get("STORY_IMAGES")

    def look(self, chapter):
        self.found[chapter] = wrong(self.page)
        if self.folder:
            self.page.screenshot(path=Path(self.folder) / f"{len(self.found):02} {chapter}.png")


def seconds_pass(seconds):
    """Wait until the clock is so many whole seconds further: rules are evaluated by the second."""
    until = int(time.time()) + seconds + 1
    wait_for(lambda: time.time() >= until, f"{seconds} s")


def stayed(feed, screen, name):
    """Let the ship stay inside for longer than the dwell, and leave."""
    feed.put(anna=INSIDE)
    screen.expect_query(name, "running", "1")
    seconds_pass(5)
    feed.put(anna=OUTSIDE)
    screen.expect_query(name, "running", "0")
    seconds_pass(2)


@pytest.mark.long
def test_an_operators_hour(screen_of, user, stored_feed, tmp_path):
    screen = screen_of(user, staff=True)
    page, feed, story = screen.page, stored_feed, Story(screen.page)
    with Receiver() as receiver, Mailbox() as mailbox:
        base = f"{screen.base_url}/admin/webapp"
        hook = {"name": f"hook of {user}", "kind": "webhook", "channel__webhook__url": receiver.url}
        mail = {"name": f"mail of {user}", "kind": "email", "channel__email__to": "ann@example.org"}
        mail |= {"channel__email__host": "127.0.0.1", "channel__email__port": str(mailbox.port)}
        mail |= {"channel__email__security": "none"}
        for channel in (hook, mail):
            admin_form(page, f"{base}/channel/add/", **channel)
            admin_form(page, f"{base}/subscription/add/", user=user, channel=channel["name"])

        # A polygon, and a ship that passes it before there is a rule.
        feed.put(anna=OUTSIDE)
        screen.listen()
        screen.look(ZOOM, *MIDDLE)
        assert screen.painted(OUTSIDE, "ship")
        page.get_by_role("button", name="New query").click()
        page.locator("#box-fields").get_by_text("Polygon", exact=True).click()
        for corner in ROADS:
            page.mouse.move(*screen.pixel(*corner))
            page.mouse.click(*screen.pixel(*corner))
        page.keyboard.press("Enter")
        expect(page.locator("#area-size")).to_contain_text("4 corners")
        screen.field("stream").select_option(feed.name)
        story.look("a polygon is drawn")
        screen.save("Roads")
        screen.expect_query("Roads", "running", "0")
        stayed(feed, screen, "Roads")

        # The rule is tried on the past, and switched on.
        screen.act("Roads", "Alarm")
        dialog = page.locator("#rule-dialog")
        dialog.get_by_label("Name").fill("Too long in the roads")
        dialog.get_by_label("For at least, in minutes").fill(DWELL_MIN)
        dialog.get_by_label("Open incidents").select_option("critical")
        dialog.get_by_role("button", name="Try").click()
        expect(dialog.locator(".try-told")).to_have_text("Would have fired 1 time in the last hour.")
        story.look("the rule is tried on the past")
        dialog.get_by_role("button", name="Save rule").click()
        screen.expect_query("Too long in the roads", "running", "0")

        # It fires: an incident, the title, a sound, a mail and a webhook.
        feed.put(anna=INSIDE)
        expect(page).to_have_title("(1) Lookout")
        screen.expect_critical_sound()
        wait_for(lambda: receiver.taken and mailbox.letters, lambda: f"{receiver.requests} {mailbox.letters}")
        (document,) = receiver.taken.values()
        assert document["query"]["name"] == "Too long in the roads"
        ((to, letter),) = mailbox.letters
        assert to == ["ann@example.org"] and "Too long in the roads" in letter["subject"]
        fired_s = time.time()

        # Why? And somebody takes care of it.
        screen.tab("Incidents")
        row = page.locator("#incident-list > li")
        row.locator(".event").click()
        story.look("an incident is open")
        row.get_by_role("button", name="Why?").click()
        panel = page.locator("#why-panel")
        expect(panel.locator("#why-verdict")).to_contain_text("Why the incident was opened")
        expect(panel.locator("#why-deliveries")).to_contain_text(f"hook of {user}")
        story.look("why it was opened")
        panel.get_by_role("button", name="Close the explanation").click()
        row.get_by_role("button", name="Acknowledge").click()
        expect(row).to_have_attribute("data-state", "seen")

        # The replay shows how it came to be.
        page.keyboard.press("Escape")
        page.locator("#open-replay").click()
        badge = page.locator("#replay-badge")
        expect(badge).to_contain_text("Replay")
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(fired_s))
        page.evaluate("(hash) => { location.hash = hash; }", f"#{ZOOM}/{MIDDLE[1]}/{MIDDLE[0]}&replay={at}")
        screen.tab("Queries")
        screen.expect_query("Roads", "running", "1")
        story.look("the replay")
        page.locator("#replay-live").click()
        expect(badge).to_be_hidden()

        # The ship leaves, and the incident closes.
        feed.put(anna=OUTSIDE)
        expect(page).to_have_title("Lookout")
        screen.tab("Incidents")
        expect(row).to_have_attribute("data-state", "closed")
        story.look("the incident is closed")

        # A report, and its file.
        screen.tab("History")
        page.locator("#pane-history").get_by_text("Report", exact=True).click()
        form = page.locator("#report-form")
        form.locator("[name=stream]").select_option(feed.name)
        form.locator("[name=where]").select_option("query")
        page.locator("#report-query").select_option(label="Roads")
        page.get_by_role("button", name="Make report").click()
        expect(page.locator("#report-summary")).to_contain_text("1 object")
        story.look("a report")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download as CSV").click()
        download.value.save_as(tmp_path / "report.csv")
        (told,) = csv.DictReader((tmp_path / "report.csv").read_text().splitlines())
        assert told["key"] == "anna" and re.fullmatch("[12]", told["visits"])
        assert not any(story.found.values()), story.found
