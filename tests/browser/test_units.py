"""What a person types is in the units that the page shows; plans keep SI units, exactly."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_moving import choose_units, plan_of

pytestmark = [pytest.mark.browser, pytest.mark.spark]

HERE = (24.4, 59.7)
KNOT = 1852 / 3600


@pytest.fixture
def seen(screen, feed):
    """A window with a ship, in nautical units."""
    feed.put(anna=HERE)
    screen.look(9, 24.5, 59.7)
    assert screen.painted(HERE, "ship")
    choose_units(screen, "Nautical")
    return screen


def expect_running(screen, name):
    """Wait until a query runs, whatever is in its answer."""
    expect(screen.query(name).locator(".pill")).to_have_text("running")


def about(screen, name):
    """Return what the card of a query says of it."""
    return screen.query(name).locator(".query-about")


@pytest.mark.long
def test_distances_and_speeds_are_typed_and_shown_in_the_units_of_the_page_and_saved_in_si(seen, feed, live):
    seen.draw(24.2, 59.6, 24.8, 59.8)
    seen.page.get_by_text("Passing", exact=True).click()
    seen.expect_fields(closeM="0.2699784", closeMUnit="nm")
    seen.field("closeM").fill("2")
    assert seen.plan()["within_m"] == 3704
    seen.page.get_by_text("Joined", exact=True).click()
    seen.field("partner").select_option(f"stream:{feed.name}")
    seen.field("predicate").select_option("dwithin")
    seen.expect_fields(distance="50", distanceUnit="m")
    seen.field("distanceUnit").select_option("nm")
    seen.field("distance").fill("12")
    seen.field("partnerWhere").fill("speed_mps < 20 kn")
    seen.field("where").fill("speed_mps > 10 kn")
    expect(seen.page.locator("#where-check")).to_have_text("Matches 1 of 1 in view now.")
    assert seen.plan()["join"] == {
        "stream": feed.name, "predicate": "dwithin", "distance": 22_224, "where": f"speed_mps < {20 * KNOT}"
    }  # fmt: skip
    seen.save("Near")
    expect(about(seen, "Near")).to_contain_text("within 12 nm of")
    expect(about(seen, "Near")).to_contain_text("where speed_mps > 10 kn")
    expect_running(seen, "Near")
    saved = plan_of(live, "Near")
    assert saved["where"] == f"speed_mps > {10 * KNOT}"
    seen.act("Near", "Edit")
    seen.expect_fields(distance="12", distanceUnit="nm", where="speed_mps > 10 kn", partnerWhere="speed_mps < 20 kn")
    seen.save()
    expect_running(seen, "Near")
    assert plan_of(live, "Near") == saved


@pytest.mark.long
def test_what_nobody_changes_stays_as_it_was_whatever_units_are_chosen_while_the_form_is_open(seen, live):
    seen.draw(24.2, 59.6, 24.8, 59.8)
    seen.page.locator("#noise-fields summary").click()
    seen.field("accuracyM").fill("77.7")
    seen.field("fastest").fill("33.3")
    seen.field("where").fill("speed_mps > 5.123")
    expect(seen.page.locator("#where-check")).to_contain_text("speed_mps is in m/s: 5.123 m/s = 9.958 kn")
    seen.save("Odd")
    expect_running(seen, "Odd")
    saved = plan_of(live, "Odd")
    assert (saved["accuracy"], saved["fastest_m_s"], saved["where"]) == (77.7, 33.3 * KNOT, "speed_mps > 5.123")
    expect(about(seen, "Odd")).to_contain_text("at most 33.3 kn")
    seen.act("Odd", "Edit")
    seen.expect_fields(accuracyM="77.7", fastest="33.3", fastestUnit="kn", where="speed_mps > 9.958 kn")
    choose_units(seen, "Imperial")
    seen.expect_fields(accuracyMUnit="ft", fastest="38.32096", fastestUnit="mph", where="speed_mps > 11.46 mph")
    choose_units(seen, "Metric")
    seen.expect_fields(accuracyM="77.7", fastestUnit="m/s", where="speed_mps > 5.123")
    choose_units(seen, "Nautical")
    seen.expect_fields(fastest="33.3", where="speed_mps > 9.958 kn")
    seen.save()
    expect_running(seen, "Odd")
    assert plan_of(live, "Odd") == saved


@pytest.mark.long
def test_thresholds_and_limits_of_rules_are_in_the_units_of_the_page(seen, live):
    page = seen.page
    seen.draw(24.2, 59.6, 24.8, 59.8)
    seen.field("function").select_option("avg")
    seen.field("property").fill("speed_mps")
    page.get_by_role("button", name="Add a threshold").click()
    page.get_by_label("Limit").fill("10")
    seen.save("Mean")
    seen.expect_query("Mean", "running", "14.6 kn")
    assert plan_of(live, "Mean")["aggregate"]["thresholds"] == [{"above": 10 * KNOT}]
    seen.query("Mean").locator(".query-name").click()
    expect(page.locator(".threshold")).to_have_text("above 10 kn")
    seen.act("Mean", "Alarm")
    page.locator("#rule-form [name=bound]").fill("20")
    expect(page.locator("#rule-sentence")).to_contain_text("Mean below 20 kn")
    page.get_by_role("button", name="Save rule").click()
    expect(about(seen, "Mean, alarm")).to_contain_text("below 20 kn")
    expect_running(seen, "Mean, alarm")
    assert plan_of(live, "Mean, alarm")["when"]["value"]["below"] == 20 * KNOT


@pytest.mark.long
def test_the_filter_of_the_map_takes_units_and_its_link_has_none(seen):
    page = seen.page
    page.locator("#open-filter").click()
    text = page.locator("#display-filter-text")
    text.fill("draught_m > 20 kn")
    text.press("Enter")
    expect(page.locator("#display-filter-error")).to_have_text(
        "Draught_m is in m, so it cannot be compared with 20 kn."
    )
    text.fill("speed_mps > 20 kn")
    text.press("Enter")
    expect(page.locator("#display-filter-count")).to_have_text("0 of 1 shown")
    expect(page).to_have_url(re.compile(r"filter=speed_mps[^k]*10\.28[^k]*$"))
