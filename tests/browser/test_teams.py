"""Teams, saved views and share links as people use them, in several windows; their pages in both themes."""

import os
import re

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.conftest import window
from tests.browser.screen import Screen, expect_no_sideways
from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]
ZOOM, MIDDLE = 9, (24.5, 59.7)
WEST, SOUTH, EAST, NORTH = 24.2, 59.6, 24.8, 59.8
INSIDE, OUTSIDE = (24.4, 59.7), (25.0, 59.7)


def shot(page, name):
    """Keep a picture of a page, if somebody wants to look at it (the folder of LOOKOUT_SHOTS)."""
    if folder := os.environ.get("LOOKOUT_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=f"{folder}/{name}-dark.png")
        page.emulate_media(color_scheme="light")


def add_others(screen, team):
    """Make a query of a team whose answer is a figure, and one that is nobody else's."""
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.field("team").select_option(label=team)
    screen.field("function").select_option("max")
    screen.field("of").select_option("longitude")
    screen.save("Easternmost")
    screen.expect_query("Easternmost", "running", "24.4")
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.save("Nobody else's")
    screen.expect_query("Nobody else's", "running", "1")


def choose_queries(dialog, *names):
    """Choose the queries that a link shows; none is chosen beforehand."""
    expect(dialog.locator("#link-queries :checked")).to_have_count(0)
    for name in names:
        dialog.get_by_label(name, exact=True).check()


@pytest.fixture
def guest(chromium):
    """A window of somebody who has no login."""
    context = window(chromium)
    yield context.new_page()
    context.close()


@pytest.mark.long
def test_a_team_shares_a_query_a_view_and_a_link_and_a_member_who_leaves_sees_nothing_more(
    screen, screen_of, user, feed, live, guest
):
    member, team = f"{user}-viewer", f"Harbour of {user}"
    other = screen_of(member)
    number = live.run("put_member", team, user, "admin")
    live.run("put_member", team, member, "viewer")
    feed.put(anna=INSIDE, berta=OUTSIDE)
    other.look(ZOOM, *MIDDLE)
    screen.look(ZOOM, *MIDDLE)

    # A query of the team is on the other page at once, without what a viewer may not do.
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.field("team").select_option(label=team)
    shot(screen.page, "form")
    screen.save("Roads")
    screen.expect_query("Roads", "running", "1")
    add_others(screen, team)
    other.expect_query("Roads", "running", "1")
    card = other.query("Roads")
    expect(card).to_contain_text(f"team {team}")
    card.locator(".query-main").click()
    for action in ("Edit", "Pause", "Delete", "Share"):
        expect(card.get_by_role("button", name=action, exact=True)).to_have_count(0)
    expect(screen.query("Roads")).to_contain_text(f"team {team}")

    # A saved view.
    found = {}
    screen.page.keyboard.press("Escape")
    screen.page.locator("#views-open").click()
    dialog = screen.page.locator("#views-dialog")
    dialog.get_by_label("Save what the map shows as").fill("The roads")
    dialog.locator("#views-form").get_by_label("Who sees it").select_option(label=team)
    dialog.get_by_role("button", name="Save view").click()
    expect(dialog.get_by_role("button", name="The roads", exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Rename The roads").click()
    dialog.get_by_label("New name").fill("Roads at nine")
    dialog.get_by_role("button", name="Rename", exact=True).click()
    expect(dialog.get_by_role("button", name="Roads at nine", exact=True)).to_be_visible()

    # A link for somebody without a login.
    dialog.locator("summary").click()
    dialog.get_by_label("Name of the link").fill("Harbour office")
    choose_queries(dialog, "Roads", "Easternmost")
    dialog.get_by_role("button", name="Make a link").click()
    expect(dialog.locator("#link-made")).to_be_visible()
    url = wait_for(dialog.locator("#link-url").input_value, "the address of the link")
    found["views"] = wrong(screen.page, "#views-dialog")
    shot(screen.page, "views")
    path = re.search(r"/shared/[^/]+/$", url).group()

    page = Screen(guest, live.base_url)
    guest.goto(live.base_url + path)
    row = guest.locator("#shared-queries > li").first
    expect(guest.locator("#shared-queries output")).to_have_text(["1", "24.4"])
    page.zoom, page.lon, page.lat = ZOOM, *MIDDLE
    shot(guest, "shared")
    colour = wait_for(lambda: re.search(r"--(q\d+)", row.get_attribute("style") or ""), "a colour").group(1)
    assert page.painted(INSIDE, colour)
    feed.put(anna=INSIDE, berta=INSIDE)
    expect(row.locator("output")).to_have_text("2")
    # Only the theme, and the zoom of the map.
    expect(guest.locator("button:not(.language button)")).to_have_count(1)
    expect(guest.get_by_role("button")).to_have_count(5)
    expect(guest.locator("form:not(.language), input:not(.language input), select, a[href^='/']")).to_have_count(0)
    found["a share link"] = wrong(guest)

    # The viewer opens the view.
    other.turn(4, 0, 0)
    other.page.locator("#views-open").click()
    theirs = other.page.locator("#views-dialog")
    expect(theirs.get_by_role("button", name="Rename Roads at nine")).to_have_count(0)
    theirs.get_by_role("button", name="Roads at nine", exact=True).click()
    expect(theirs).to_be_hidden()
    expect(other.page).to_have_url(re.compile(rf"#{ZOOM}/59\.\d+/24\.\d+"))

    # The link is revoked while it is open.
    dialog.get_by_role("button", name="Revoke Harbour office").click()
    expect(guest.locator("#shared-over")).to_contain_text("This link has ended")
    guest.reload()
    expect(guest.get_by_role("heading", name="This link does not work any more")).to_be_visible()
    found["an ended link"] = wrong(guest)
    page.faults = [fault for fault in page.faults if "410" not in fault]

    # A phone has room for the dialog and for the button that opens it.
    screen.page.set_viewport_size({"width": 390, "height": 780})
    shot(screen.page, "views-narrow")
    expect_no_sideways(screen.page)
    screen.page.keyboard.press("Escape")
    shot(screen.page, "map-narrow")
    screen.page.locator(".user summary").click()
    shot(screen.page, "menu-narrow")
    screen.page.locator("#views-menu").click()
    expect(dialog).to_be_visible()

    # The admin removes the viewer, whose page is open.
    screen.page.goto(f"{live.base_url}/teams/{number}/")
    expect(screen.page.get_by_role("rowheader", name="Roads at nine", exact=True)).to_be_visible()
    found["the page of a team"] = wrong(screen.page)
    shot(screen.page, "team-narrow")
    expect_no_sideways(screen.page)
    screen.page.set_viewport_size({"width": 1200, "height": 800})
    shot(screen.page, "team")
    screen.page.on("dialog", lambda box: box.accept())
    screen.page.get_by_role("button", name=f"Remove {member}").click()
    expect(screen.page.get_by_text(f"{member} is no longer a member.")).to_be_visible()
    expect(other.query("Roads")).to_have_count(0)

    # The other pages of a team.
    for name, at in {"channel kinds": "channel", "channel": "channel?kind=webhook", "alarms": "subscription"}.items():
        screen.page.goto(f"{live.base_url}/teams/{number}/{at}")
        found[name] = wrong(screen.page)
        shot(screen.page, name.replace(" ", "-"))
    screen.page.goto(f"{live.base_url}/teams/")
    expect(screen.page.get_by_role("link", name=team)).to_be_visible()
    found["teams"] = wrong(screen.page)
    shot(screen.page, "teams")
    assert page.faults == []
    assert not any(found.values()), found
