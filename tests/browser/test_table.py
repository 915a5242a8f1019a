"""The table of objects, and the watch list."""

import csv
import io
import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.feed import feature

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
ANNA, BERTA = (24.4, 59.72), (24.7, 59.75)
FAR, FARTHER = (5.0, 54.0), (5.05, 54.02)


def report(feed, **ships):
    """Report where ships are and how fast: longitude, latitude and speed by key."""
    found = [feature(key, place[:2]) for key, place in ships.items()]
    for ship, (_, _, speed_mps) in zip(found, ships.values(), strict=True):
        ship["properties"]["speed_mps"] = speed_mps
    feed.send("".join(f"{json.dumps(ship)}\n" for ship in found).encode())


def names(page):
    """Return the cells of the column Name, from top to bottom, as a locator."""
    return page.locator(".table-body .table-row:visible .table-cell[data-name='@name']")


def row(page, name):
    """Return a row by the name of its object."""
    return page.locator(".table-body .table-row:visible").filter(has_text=name)


@pytest.fixture
def seen(screen, feed):
    """A window that shows Anna and Berta; Carla is far away."""
    report(feed, anna=(*ANNA, 3), berta=(*BERTA, 12), carla=(*FAR, 7))
    screen.look(ZOOM, *MIDDLE)
    for place in (ANNA, BERTA):
        assert screen.painted(place, "ship")
    return screen


@pytest.mark.long
def test_a_table_follows_the_objects_and_the_map(seen, feed):
    page = seen.page
    page.keyboard.press("o")
    expect(page.locator("#table-status")).to_have_text("2 objects in view")
    expect(names(page)).to_have_text(["MS Anna", "MS Berta"])

    page.locator("#table-source").select_option(f"stream:{feed.name}")
    expect(page.locator("#table-status")).to_have_text("3 objects of the stream")
    page.get_by_text("Columns", exact=True).click()
    page.locator("#table-columns").get_by_label("Speed").check()
    page.keyboard.press("Escape")
    speed = page.locator(".table-heading[data-name=speed_mps]")
    speed.get_by_role("button").click()
    expect(names(page)).to_have_text(["MS Anna", "MS Carla", "MS Berta"])
    speed.get_by_role("button").click()
    expect(speed).to_have_attribute("aria-sort", "descending")
    expect(names(page)).to_have_text(["MS Berta", "MS Carla", "MS Anna"])
    report(feed, anna=(*ANNA, 15))
    expect(names(page)).to_have_text(["MS Anna", "MS Berta", "MS Carla"])
    speed.get_by_role("textbox").fill("> 10")
    expect(page.locator("#table-status")).to_have_text("2 of 3 objects of the stream")
    speed.get_by_role("textbox").fill("> fast")
    expect(speed.get_by_role("textbox")).to_have_attribute("aria-invalid", "true")
    speed.get_by_role("textbox").fill("<10")
    expect(names(page)).to_have_text(["MS Carla"])

    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    text = download.value.path().read_text()
    (exported,) = csv.DictReader(io.StringIO(text))
    assert (exported["name"], exported["key"], float(exported["speed_mps"])) == ("MS Carla", "carla", 7)
    assert (float(exported["longitude"]), float(exported["latitude"])) == pytest.approx(FAR)
    speed.get_by_role("textbox").fill("")
    expect(page.locator("#table-status")).to_have_text("3 objects of the stream")
    with page.expect_download() as download:
        page.get_by_role("button", name="GeoJSON").click()
    features = json.loads(download.value.path().read_text())["features"]
    assert [feature["id"] for feature in features] == ["anna", "berta", "carla"]

    # What the address and the browser remember opens as it was.
    page.get_by_role("searchbox", name="Filter rows").fill("ms")
    expect(page).to_have_url(re.compile(r"&table=stream%3A\w+&sort=-speed_mps&find=ms$"))
    page.reload()
    expect(names(page)).to_have_text(["MS Anna", "MS Berta", "MS Carla"])
    expect(speed).to_have_attribute("aria-sort", "descending")

    # A row flies to its object; what is selected on the map is selected in the table.
    row(page, "MS Carla").click()
    expect(page.locator("#object-title")).to_have_text("MS Carla")
    expect(row(page, "MS Carla")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile(r"#9/5[34]\.\d+/[45]\.\d+"))
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#object-title")).to_have_text("MS Anna")
    expect(page).to_have_url(re.compile(r"#9/59\.\d+/24\.\d+"))
    page.get_by_role("combobox", name="Find an object").fill("berta")
    page.keyboard.press("Enter")
    expect(row(page, "MS Berta")).to_have_attribute("aria-selected", "true")

    page.locator("#table-grid").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#table")).to_be_hidden()
    expect(page).not_to_have_url(re.compile("table="))


def test_a_row_under_the_pointer_lights_its_object(seen):
    page = seen.page
    page.keyboard.press("o")
    expect(names(page)).to_have_text(["MS Anna", "MS Berta"])
    expect(page).not_to_have_url(re.compile(r"#9/59\.70*/"))  # the map is smaller, and its middle is further north
    seen.lat = float(re.search(r"#9/([\d.]+)/", page.url)[1])
    assert seen.painted(ANNA, "accent", radius=24)  # that of the row at which the keyboard is
    assert seen.painted(BERTA, "accent", present=False, radius=24)
    row(page, "MS Berta").hover()
    assert seen.painted(BERTA, "accent", radius=24)
    page.mouse.move(5, 5)
    assert seen.painted(BERTA, "accent", present=False, radius=24)


@pytest.mark.long
def test_watched_objects_are_followed_wherever_they_are(seen, feed):
    page = seen.page
    seen.draw(24.2, 59.6, 24.55, 59.8)
    seen.save("Harbour")
    seen.expect_query("Harbour", "running", "1")
    page.keyboard.press("o")
    page.locator("#table-source").select_option(f"stream:{feed.name}")
    row(page, "MS Carla").get_by_role("button").click()
    expect(row(page, "MS Carla").get_by_role("button")).to_have_attribute("aria-pressed", "true")
    page.locator("#table-source").select_option("watched")
    expect(names(page)).to_have_text(["MS Carla"])

    page.reload()
    expect(names(page)).to_have_text(["MS Carla"])
    seen.expect_query("Harbour", "running", "1")
    place = row(page, "MS Carla").locator("[data-name='@place']")
    report(feed, carla=(*FARTHER, 7))
    expect(place).to_have_text("54.0200\u00b0 N, 5.0500\u00b0 E")
    report(feed, carla=(24.45, 59.7, 7))
    expect(page.locator(".toast.watch")).to_contain_text("MS Carla entered \u201cHarbour\u201d: moved in.")
    expect(place).to_have_text("59.7000\u00b0 N, 24.4500\u00b0 E")

    row(page, "MS Carla").click()
    expect(page.locator("#object-star")).to_have_attribute("aria-pressed", "true")
    page.locator("#table-grid").focus()
    page.keyboard.press("w")
    expect(page.locator("#object-star")).to_have_attribute("aria-pressed", "false")
    expect(names(page)).to_have_count(0)
    expect(page.locator("#table-absent")).to_contain_text("Star objects to watch them")
