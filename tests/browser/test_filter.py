"""A filter is written from the names and values that objects have, and tried before it is saved."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.spark]

PLACES = {"anna": (24.4, 59.7), "berta": (25.0, 59.7)}


@pytest.mark.long
def test_names_and_values_are_offered_and_what_the_filter_matches_is_told(screen, feed):
    feed.put(**PLACES)
    screen.look(9, 24.5, 59.7)
    assert all(screen.painted(place, "ship") for place in PLACES.values())
    screen.draw(24.2, 59.6, 24.8, 59.8)
    where, told = screen.field("where"), screen.page.locator("#where-check")
    options = screen.page.get_by_role("listbox", name="Names and values").get_by_role("option")
    where.press_sequentially("na")
    expect(options).to_have_text([re.compile("^name")])
    where.press("ArrowDown")
    expect(where).to_have_attribute("aria-activedescendant", "where-choice-0")
    where.press("Enter")
    where.press_sequentially("= 'ms a")
    options.get_by_text("'MS Anna'").click()
    expect(where).to_have_value("name = 'MS Anna' ")
    expect(told).to_have_text("Matches 1 of 2 in view now.")
    where.fill("sped_mps > 5")
    expect(told).to_have_text("No object in view has sped_mps. Did you mean speed_mps?")
    where.fill("speed_mps > 5 AN name")
    wrong = "An operator such as =, < or AND is expected at character 15; got AN."
    expect(told).to_have_text(wrong)
    screen.save("Fast")
    expect(screen.page.locator("#error-where")).to_have_text(wrong)
    expect(told).to_be_hidden()  # the same is not said twice
    where.fill("speed_mps > 5")
    expect(screen.page.locator("#error-where")).to_be_hidden()
    expect(told).to_have_text("Matches 2 of 2 in view now.")
    screen.save("Fast")
    screen.expect_query("Fast", "running", "1")
