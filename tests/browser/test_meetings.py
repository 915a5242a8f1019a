"""Joins over event time: begun with the form, told as events, and drawn as lines that fade."""

import json
import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.spark]

HERE = (24.5, 59.7)
NEAR = (24.55, 59.7)


def test_two_ships_that_met_are_an_event_and_a_line_and_a_click_shows_both(screen, feed):
    screen.look(10, *HERE)
    screen.page.keyboard.press("j")
    expect(screen.field("partner")).to_be_visible()
    screen.field("stream").select_option(feed.name)
    screen.field("partner").select_option(f"stream:{feed.name}")
    screen.field("predicate").select_option("dwithin")
    screen.field("distance").fill("5000")
    screen.field("when").select_option("interval_join")
    screen.field("afterS").fill("-90")
    screen.save("Meetings")
    expect(screen.page.locator("#error-beforeS")).to_contain_text("must not end before it begins")
    screen.field("afterS").fill("60")
    plan = json.loads(screen.field("plan").input_value())
    assert [plan[key] for key in ("kind", "lower_s", "upper_s", "lateness_s")] == ["interval_join", -60, 60, 10]
    screen.save()
    expect(screen.query("Meetings").locator(".pill")).to_have_text("running")
    expect(screen.query("Meetings")).to_contain_text("from 1 min before to 1 min after")
    with feed.repeated(anna=HERE, bea=NEAR):
        screen.tab("Events")
        head = screen.events().first
        expect(head).to_contain_text("met MS")
        expect(head).to_contain_text(re.compile(r"2,8\d\d.m apart|2\.8\d?.km apart"))
        # The line is drawn anew with each pair.
        assert screen.painted(((HERE[0] + NEAR[0]) / 2, HERE[1]), "q0", radius=6)
    assert screen.painted(((HERE[0] + NEAR[0]) / 2, HERE[1]), "q0", present=False, radius=6)
    head.click()
    singles = screen.page.locator(".event-single")
    (singles.first if singles.count() else head).click()
    expect(screen.page.locator("#object-panel")).to_be_visible()
