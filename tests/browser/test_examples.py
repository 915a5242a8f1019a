"""The examples of the demonstration on the page."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.spark]

NAME = "Ships of the example"


@pytest.fixture
def example(live, feed):
    """An example query with a ship in its answer."""
    feed.put(anna=(24.4, 59.7))
    number = live.run("add_example", NAME, {"stream": feed.name, "compare": {"lo": [24.2, 59.6], "hi": [24.8, 59.8]}})
    yield NAME
    live.run("forget_query", number)


@pytest.mark.long
def test_examples_are_removed_with_one_click_for_one_user_and_come_back_with_undo(example, screen, screen_of):
    other = screen_of("another viewer")
    for seen in (screen, other):
        seen.look(9, 24.5, 59.7)
        seen.expect_query(example, "running", "1")
    expect(screen.query(example).locator(".query-about")).to_contain_text("example")
    screen.query(example).locator(".query-main").click()
    expect(screen.query(example).get_by_role("button", name="Delete")).to_be_hidden()
    remove = screen.page.get_by_role("button", name="Remove the examples")
    remove.click()
    expect(screen.query(example)).to_have_count(0)
    expect(remove).to_be_hidden()
    screen.page.get_by_role("button", name="Undo").click()
    screen.expect_query(example, "running", "1")
    remove.click()
    expect(screen.query(example)).to_have_count(0)
    screen.page.reload()
    screen.live()
    expect(screen.page.locator("#queries-empty")).to_be_visible()
    other.expect_query(example, "running", "1")
