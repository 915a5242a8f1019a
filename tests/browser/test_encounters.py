"""Encounters: from the form to the line between two ships, the count on the card, and the events."""

import re

import pytest
from playwright.sync_api import expect

from bench.live import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
HERE, THERE, AWAY = (24.4, 59.7), (24.6, 59.7), (24.6, 59.85)
# Between the two, but not in the middle, where the diamond is.
BETWEEN = (24.47, 59.7)


@pytest.mark.long
def test_ships_that_stay_near_each_other_are_a_line_a_count_and_two_events(screen, feed):
    feed.put(anna=HERE, berta=THERE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(HERE, "ship")
    screen.draw(24.2, 59.6, 24.8, 59.9)
    screen.page.get_by_text("Joined", exact=True).click()
    screen.field("partner").select_option(f"stream:{feed.name}")
    screen.field("predicate").select_option("dwithin")
    screen.field("distance").fill("14000")
    screen.field("when").select_option("encounter")
    screen.field("forMin").fill("-1")
    screen.save("Meetings")
    expect(screen.page.locator("#error-forMin")).to_be_visible()
    screen.field("forMin").fill("0.05")
    screen.page.locator("#late-fields summary").click()
    screen.field("latenessS").fill("0")
    screen.field("idleS").fill("1")
    screen.save()
    card = screen.query("Meetings")
    expect(card.locator(".query-about")).to_contain_text(re.compile("within 14 km of Ships.* for at least 0.05 min"))
    expect(card.locator(".query-count")).to_have_text("0")
    assert screen.painted(BETWEEN, "q0", present=False, radius=6)
    with feed.repeated(anna=HERE, berta=THERE):
        expect(card.locator(".query-count")).to_have_text("1")
        assert screen.painted(BETWEEN, "q0", radius=6)
        assert screen.painted(MIDDLE, "q0", radius=6)
    with feed.repeated(anna=HERE, berta=AWAY):
        expect(card.locator(".query-count")).to_have_text("0")
        assert screen.painted(BETWEEN, "q0", present=False, radius=6)
    screen.tab("Events")
    event = screen.events().first
    head = event.locator(".event-name")
    expect(head).to_have_text(
        re.compile(r"^MS (Anna parted from MS Berta|Berta parted from MS Anna) after .+, 11\.\d km$")
    )
    event.click()
    expect(screen.page.locator(".event-single")).to_have_count(2)
    expect(screen.page.locator(".event-single").last).to_contain_text("since")
    screen.page.locator(".event-single").first.click()
    expect(screen.page.locator("#object-title")).to_have_text(re.compile("^MS (Anna|Berta)$"))
    wait_for(lambda: float(screen.page.evaluate("location.hash").split("/")[0][1:]) > ZOOM, "a view of the pair alone")
    screen.follow()
    assert screen.painted(BETWEEN, "q0", radius=8)
    assert screen.painted(HERE, "accent", radius=20)
    screen.tab("Queries")
    screen.act("Meetings", "Edit")
    screen.expect_fields(when="encounter", forMin="0.05", gapMin="10", away="", latenessS="0", idleS="1")
    plan = screen.plan()
    assert (plan["kind"], plan["for_s"], plan["gap_s"]) == ("encounter", 3, 600)
