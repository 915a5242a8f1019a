"""An object has the symbol of what it says it is, not that of its stream."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.feed import feature

pytestmark = [pytest.mark.browser, pytest.mark.spark]

KINDS = {
    "ship": (24.1, 59.7),
    "aircraft": (24.3, 59.7),
    "base station": (24.5, 59.7),
    "aid to navigation": (24.7, 59.7),
    "man overboard": (24.9, 59.7),
    "handheld radio": (24.7, 59.8),
}
COLOURS = {
    "ship": "ship",
    "aircraft": "aircraft",
    "base station": "station",
    "aid to navigation": "aid",
    "man overboard": "beacon",
    "handheld radio": "radio",
}
TESTED = (24.9, 59.8)


@pytest.mark.long
def test_beacons_aids_and_stations_in_a_stream_of_ships_look_like_what_they_are(screen, feed):
    features = [feature(kind.replace(" ", ""), place) for kind, place in KINDS.items()]
    for one, kind in zip(features, KINDS, strict=True):
        one["properties"]["kind"] = kind
    tested = feature("tested", TESTED)
    tested["properties"] |= {"kind": "search and rescue transmitter", "test": True}
    feed.send("".join(f"{json.dumps(one)}\n" for one in [*features, tested]).encode())
    screen.look(9, 24.5, 59.7)
    for kind, place in KINDS.items():
        assert screen.painted(place, COLOURS[kind]), kind
    assert screen.painted(TESTED, "beacon-test") and screen.painted(TESTED, "ship", present=False)
    screen.draw(24.2, 59.6, 25.0, 59.9)
    where = screen.field("where")
    where.press_sequentially("kind = 'man")
    screen.page.get_by_role("listbox", name="Names and values").get_by_text("'man overboard'").click()
    expect(screen.page.locator("#where-check")).to_have_text("Matches 1 of 7 in view now.")
