"""Names of objects beside their symbols, and what has no room."""

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.test_moving import FAR, HERE, NEAR, ZOOM
from tests.browser.test_moving import seen as seen

pytestmark = [pytest.mark.browser, pytest.mark.spark]

BESIDE = (24.5 + 40 * 360 / (256 * 2**ZOOM), 59.7)  # 40 pixels to the right: in the middle of the name


def test_objects_have_their_names_beside_them_until_they_are_switched_off_for_good(seen):
    assert seen.painted(BESIDE, "text")
    seen.tab("Layers")
    names = seen.page.get_by_label("Names", exact=True)
    expect(names).to_be_checked()
    names.uncheck()
    assert seen.painted(BESIDE, "text", present=False)
    seen.page.reload()
    seen.live()
    assert seen.painted(HERE, "ship")
    assert seen.painted(BESIDE, "text", present=False)
    seen.tab("Layers")
    expect(names).not_to_be_checked()
    names.check()
    assert seen.painted(BESIDE, "text")


def test_far_away_there_are_no_names(screen, feed):
    feed.put(anna=HERE)
    screen.look(8, *HERE)
    assert screen.painted(HERE, "ship")
    assert screen.painted((24.5 + 40 * 360 / (256 * 2**8), 59.7), "text", present=False)


def test_ranks_of_two_queries_do_not_cover_each_other(seen):
    ranks = seen.page.locator(".rank")
    seen.menu(HERE).get_by_role("menuitem", name="10 nearest").click()
    seen.expect_query("10 nearest to MS Anna", "running", "2")
    expect(ranks).to_have_count(2)
    seen.menu(NEAR).get_by_role("menuitem", name="10 nearest").click()
    seen.expect_query("10 nearest to MS Berta", "running", "2")
    expect(ranks).to_have_count(3)  # both rank Carla second
    wait_for(lambda: sorted(ranks.all_inner_texts()) == ["1", "1", "2"], "two first ranks")


def test_a_shape_has_its_querys_name_and_is_filled_while_it_is_pointed_at_or_its_card_is_open(seen):
    seen.menu(HERE).get_by_role("menuitem", name="Watch 10 km around it").click()
    name = "10 km around MS Anna"
    label, ring = seen.page.locator(".query-label"), seen.page.locator(".around-range")
    expect(label).to_have_text(name)
    expect(seen.query(name).locator(".query-main")).to_have_attribute("aria-expanded", "true")
    seen.page.mouse.move(*seen.pixel(*FAR))
    expect(ring).to_have_attribute("fill-opacity", "0.1")
    seen.query(name).locator(".query-main").click()
    seen.page.mouse.move(*seen.pixel(*FAR))
    expect(ring).to_have_attribute("fill-opacity", "0")
    seen.page.mouse.move(*seen.pixel(24.47, 59.69))
    expect(ring).to_have_attribute("fill-opacity", "0.1")
    seen.turn(7, *HERE)
    expect(ring).to_be_visible()
    expect(label).to_have_count(0)
