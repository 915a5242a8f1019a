"""The page for operators, in a browser: it fills, follows, and is well formed in both themes and on a phone."""

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.screen import expect_no_sideways
from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]


@pytest.mark.long
def test_staff_go_from_the_map_to_charts_that_follow_what_happens(screen_of, user, feed):
    screen = screen_of(user, staff=True)
    screen.look(8, 24.4, 59.7)
    page = screen.page
    page.locator(".user summary").click()
    page.get_by_role("link", name="Operations").click()
    expect(page.locator("#fresh")).to_have_attribute("data-state", "good")
    expect(page.locator(".chart .uplot").first).to_be_visible()
    expect(page.locator("#parts")).to_contain_text("engine: works")
    expect(page.locator("#regions tbody tr").first).to_contain_text("task 0")
    as_of = wait_for(page.locator("#fresh").inner_text, "a time")
    expect(page.locator("#fresh")).not_to_have_text(as_of)
    assert wrong(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    expect_no_sideways(page)
    page.get_by_role("button", name="Dark theme").click()
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()
    expect(page.locator(".chart .uplot").first).to_be_visible()
