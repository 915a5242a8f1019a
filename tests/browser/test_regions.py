"""The regions of the engine: split by hand in the admin, they change on the map, and no answer does."""

import pytest
from playwright.sync_api import expect

from bench.live import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.spark]

HERE, NEAR = (24.5, 59.7), (24.6, 59.72)


@pytest.mark.long
def test_who_splits_a_region_sees_it_on_the_map_and_answers_go_on(screen_of, feed, user):
    screen = screen_of(user, staff=True)
    page = screen.page
    feed.put(anna=HERE, berta=NEAR)
    screen.look(9, 24.55, 59.7)
    assert screen.painted(HERE, "ship")
    screen.menu(HERE).get_by_role("menuitem", name="Watch 10 km around it").click()
    name = "10 km around MS Anna"
    screen.expect_query(name, "running", "1")
    screen.tab("Layers")
    page.locator("#regions").check()
    rows = page.locator("#region-rows tr")
    before = wait_for(rows.count, "rows of regions")
    expect(page.locator(".region-label")).to_have_count(before)
    expect(page.locator(".region-label span", has_text="/s").first).to_be_visible()

    with page.context.expect_page() as opened:
        page.get_by_text("Split, merge and move regions by hand").click(modifiers=["Control"])
    admin = opened.value
    admin.locator("#split-form").get_by_label("Partitioner").select_option("quadtree")
    admin.locator("#split-form").get_by_role("button", name="Split").click()
    expect(admin.get_by_text("In force now: split")).to_be_visible()

    expect(rows).to_have_count(before + 3)
    expect(page.locator(".region-label")).to_have_count(before + 3)
    expect(page.locator("#region-changes tr").first).to_contain_text(f"{before + 3}")
    feed.put(anna=HERE, berta=NEAR)
    screen.tab("Queries")
    screen.expect_query(name, "running", "1")
    screen.tab("Events")
    expect(page.locator("#event-list")).not_to_contain_text("left")
    page.goto(f"{screen.base_url}/admin/webapp/space/earth/regions/")
    page.locator("#cut-form").get_by_label("Regions").fill(str(before))
    page.locator("#cut-form").get_by_label("Partitioner").select_option("grid")
    page.locator("#cut-form").get_by_role("button", name="Cut").click()
    expect(page.get_by_text("In force now: cut anew into")).to_be_visible()
