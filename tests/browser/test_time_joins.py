"""Joins over event time: from the form to the line on the map and the event."""

import re

import pytest
from playwright.sync_api import expect

from bench.live import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
HERE, THERE = (24.4, 59.7), (24.6, 59.7)
# Between the two, away from their symbols.
BETWEEN = (24.5, 59.7)


@pytest.fixture
def met(screen, feed):
    """A window with two ships, and the form of a join of their stream with itself, near 20 km."""
    feed.put(anna=HERE, berta=THERE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(HERE, "ship")
    screen.draw(24.2, 59.6, 24.8, 59.8)
    screen.page.get_by_text("Joined", exact=True).click()
    screen.field("partner").select_option(f"stream:{feed.name}")
    screen.field("predicate").select_option("dwithin")
    screen.field("distance").fill("20000")
    return screen


@pytest.mark.long
def test_ships_that_meet_in_a_window_are_a_line_that_fades_and_an_event(met, feed):
    met.field("when").select_option("window")
    met.field("windowS").fill("0")
    met.save("Meetings")
    expect(met.page.locator("#error-windowS")).to_be_visible()
    met.field("windowS").fill("2")
    met.field("slideS").fill("0.001")
    met.page.locator("#late-fields summary").click()
    met.field("latenessS").fill("0")
    met.field("idleS").fill("1")
    met.save()
    expect(met.page.locator("#error-slideS")).to_contain_text("at least a 100th")
    met.field("slideS").fill("")
    met.save()
    expect(met.query("Meetings").locator(".query-about")).to_contain_text("within 20 km of Ships")
    expect(met.query("Meetings").locator(".query-about")).to_contain_text("in the same 2 s")
    count = met.query("Meetings").locator(".query-count")
    expect(count).to_have_text("0")
    assert met.painted(BETWEEN, "q0", present=False, radius=8)
    with feed.repeated(anna=HERE, berta=THERE):
        assert met.painted(BETWEEN, "q0", radius=8)
        wait_for(lambda: int(count.inner_text().replace(",", "")) > 0, "a count of told pairs")
    met.tab("Events")
    event = met.events().first
    expect(event.locator(".event-name")).to_have_text(
        re.compile(r"^MS (Anna met MS Berta|Berta met MS Anna), 11\.\d km$")
    )
    assert met.painted(BETWEEN, "q0", present=False, radius=8)  # faded

    event = met.single_event()
    expect(event).to_contain_text("window from")
    event.click()
    expect(met.page.locator("#object-title")).to_have_text(re.compile("^MS (Anna|Berta)$"))
    wait_for(lambda: float(met.page.evaluate("location.hash").split("/")[0][1:]) > ZOOM, "a view of the pair alone")
    met.follow()
    for place in (BETWEEN, HERE, THERE):
        assert met.painted(place, "q0", radius=8)
    for place in (HERE, THERE):
        assert met.painted(place, "accent", radius=20)
    met.page.keyboard.press("Escape")
    assert met.painted(BETWEEN, "q0", present=False, radius=8)


@pytest.mark.long
def test_the_interval_of_a_join_keeps_its_values_when_it_is_edited(met, live):
    met.field("when").select_option("interval")
    met.field("beforeS").fill("5")
    met.field("afterS").fill("-10")
    met.save("Followers")
    expect(met.page.locator("#error-beforeS")).to_be_visible()
    met.field("afterS").fill("90")
    met.save()
    expect(met.query("Followers").locator(".query-about")).to_contain_text("from 5 s before to 90 s after")
    met.act("Followers", "Edit")
    kept = {"when": "interval", "beforeS": "5", "afterS": "90", "latenessS": "10", "idleS": "30"}
    met.expect_fields(**kept)
    assert (met.plan()["lower_s"], met.plan()["upper_s"]) == (-5, 90)
    met.field("when").select_option("now")
    met.save()
    met.expect_query("Followers", "running", "2")
    (plan,) = [query["plan"] for query in live.queries().values() if query["name"] == "Followers"]
    assert plan["kind"] == "join" and "lower_s" not in plan and plan["emit"] != "all"
