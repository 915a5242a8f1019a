"""What the sketch of a stream shows: a density on the map, charts of an area, the card of a saved question."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import _feed
from tests.browser.test_accessibility import wrong

pytestmark = [pytest.mark.browser, pytest.mark.spark]

MIDDLE = (24.5, 59.7)
# Cells of 16 bits are 8 pixels wide at zoom 3, and 256 pixels at zoom 8.
FAR, NEAR = 3, 8
SETTINGS = {"features": ["speed_mps", "draught_m"], "comoments": ["speed_mps", "draught_m"], "cell_bits": 16}
SPEEDS = range(1, 41)
EDIT = "(edit, text) => { edit.click(); document.getElementById('sketch-text').value = text; }"
COUNT, MEAN = str(len(SPEEDS)), "20.5 m/s"


@pytest.fixture
def sketched(live):
    """A stream that is sketched and stored."""
    yield from _feed(live, stored=True, sketch=SETTINGS)


def ship(speed):
    """Return a ship near the middle; its draught follows from its speed."""
    lon, lat = MIDDLE[0] + 0.02 * (speed % 7 - 3), MIDDLE[1] + 0.01 * (speed // 7 - 3)
    properties = {"speed_mps": speed, "draught_m": 12 - speed / 5}
    geometry = {"type": "Point", "coordinates": [round(lon, 4), round(lat, 4)]}
    return {"type": "Feature", "id": f"s{speed}", "geometry": geometry, "properties": properties}


@pytest.fixture
def seen(screen, sketched):
    """A window near forty ships that the sketch has seen once each."""
    sketched.send("".join(f"{json.dumps(ship(speed))}\n" for speed in SPEEDS).encode())
    screen.look(NEAR, *MIDDLE)
    assert screen.painted(MIDDLE, "ship")
    return screen


def statistics(screen, **fields):
    """Ask in the panel, with the fields that are given chosen."""
    screen.page.keyboard.press("s")
    for name, value in fields.items():
        screen.page.locator(f"#sketch-form [name={name}]").select_option(value)
    screen.page.locator("#sketch-run").click()


def figure(screen, name):
    """Return the cell of a figure."""
    row = screen.page.locator(".sketch-figures tr").filter(has=screen.page.get_by_role("rowheader", name=name))
    return row.locator("td")


def answer(screen, question):
    """Return the part of the panel that shows an answer."""
    return screen.page.locator(f".sketch-answer[data-question={question}]")


@pytest.mark.long
def test_a_density_stands_for_the_ships_from_afar_and_gives_way_to_them(seen, sketched):
    page = seen.page
    seen.tab("Layers")
    page.get_by_label(f"Density of Ships of {sketched.name}").check()
    expect(page.locator("#density-basis")).to_contain_text("At this zoom the map shows the objects.")
    assert seen.painted(MIDDLE, "ship")
    seen.turn(FAR, *MIDDLE)
    expect(page.locator("#density-basis")).to_contain_text(f"{COUNT} elements")
    assert seen.painted(MIDDLE, "ship", present=False)
    expect(seen.hover(MIDDLE)).to_contain_text(re.compile("Count of elements.*Elements", re.S))
    page.locator("#density-of").select_option("mean:speed_mps")
    expect(seen.hover(MIDDLE)).to_contain_text(re.compile("Mean of speed.*m/s", re.S))
    found = wrong(page)
    assert not found, found

    seen.look(FAR, *MIDDLE)
    expect(page.locator("#density-of")).to_have_value("mean:speed_mps")
    page.get_by_role("button", name="Stop showing the density").click()
    expect(page.locator("#density")).to_be_hidden()
    assert seen.painted(MIDDLE, "ship")


@pytest.mark.long
def test_an_area_is_asked_compared_with_what_is_stored_and_saved(seen, sketched):
    page, found = seen.page, {}
    statistics(seen, stream=sketched.name, where="view")
    expect(figure(seen, "Values of speed")).to_have_text(COUNT)
    expect(figure(seen, "Mean of speed")).to_contain_text(MEAN)
    expect(answer(seen, "series").locator(".chart-told")).to_contain_text(f"mean {MEAN}")
    expect(answer(seen, "histogram").locator(".chart-bar")).not_to_have_count(0)
    expect(answer(seen, "correlation")).to_contain_text(re.compile("[-\u2212]1"))
    plot = answer(seen, "histogram").get_by_role("slider")
    plot.focus()
    page.keyboard.press("Home")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^1 m/s to .* of the values"))
    found["answers"] = wrong(page)

    page.get_by_role("button", name="Compare with exact").click()
    exact = page.locator("#sketch-exact tr[data-statistic=mean]")
    expect(exact).to_contain_text("within")
    expect(exact).to_contain_text(MEAN)

    page.locator("#sketch-text").fill(f"SELECT mean(speed_mps), max(draught_m) FROM {sketched.name}")
    page.keyboard.press("Enter")
    expect(answer(seen, "mean")).to_contain_text(MEAN)
    expect(answer(seen, "max")).to_contain_text("11.8 m")
    page.get_by_role("button", name="Save as query").click()
    page.locator("#sketch-name").fill("How fast")
    page.locator("#sketch-name").press("Enter")
    card = seen.query("How fast")
    expect(card.locator(".pill")).to_have_text("running")
    expect(card.locator(".query-count")).to_contain_text(MEAN)
    expect(card.locator(".query-about")).to_contain_text("mean of speed, largest of draught")
    expect(card.locator(".query-sketch")).to_contain_text("Largest of draught: 11.8 m")
    found["card"] = wrong(page)
    assert not any(found.values()), found

    change(seen, card, f"SELECT count() FROM {sketched.name}")


def change(seen, card, text):
    """Change the question of a card to one that counts, and save it."""
    # What is typed before the question is there as text stays.
    page = seen.page
    card.get_by_role("button", name="Edit", exact=True).evaluate(EDIT, text)
    expect(answer(seen, "mean")).to_contain_text(MEAN)
    page.locator("#sketch-text").press("Enter")
    expect(answer(seen, "count")).to_contain_text(COUNT)
    page.get_by_role("button", name="Save “How fast”").click()
    seen.expect_query("How fast", "running", COUNT)
    seen.act("How fast", "Edit")
    expect(page.locator("#sketch-text")).to_have_value(re.compile("^SELECT count"))


def test_what_is_wrong_with_a_question_is_said_where_it_is_asked(seen, sketched):
    page = seen.page
    statistics(seen, stream=sketched.name, span="custom")
    expect(page.locator("#sketch-error-span")).to_have_text("Type a beginning, an end, or both.")
    page.locator("#sketch-text").fill(f"SELECT mean(speed_mps) FRM {sketched.name}")
    page.locator("#sketch-text").press("Enter")
    expect(page.locator("#sketch-error-form")).to_contain_text("line 1, column 24")
    page.locator("#sketch-text").fill(f"SELECT mean(beauty) FROM {sketched.name}")
    page.locator("#sketch-text").press("Enter")
    expect(page.locator("#sketch-error-form")).to_contain_text("got 'beauty'")
