"""Take the README's pictures from a running demonstration.

Start ``make live`` in an empty state folder, wait until everything moves, and give this script the link it printed::

    .venv/bin/python -m docs.images.take http://127.0.0.1:8000/login/once/...

It draws queries over the Gulf of Finland, waits until ships have entered and left them, imports a layer of sea areas,
joins the ships with it, asks where buses were and what is around a ship, and writes the pictures beside itself. It
takes three minutes, and leaves its queries and its layer in the demonstration.
"""

import json
import re
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from bench.chromium import launch

HERE = Path(__file__).parent
GULF = "#7/59.45/24.3"
HELSINKI = "#13/60.175/24.945"
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
PATIENCE_MS = 180_000
# Sea areas of the Gulf of Finland, made for the pictures: corners as longitude and latitude.
AREAS = {
    "Helsinki roads": [(24.78, 59.98), (25.16, 59.98), (25.2, 60.12), (25.02, 60.19), (24.82, 60.15)],
    "Tallinn bay": [(24.58, 59.44), (24.9, 59.46), (24.95, 59.6), (24.76, 59.66), (24.55, 59.58)],
    "Crossing": [(24.3, 59.68), (25.3, 59.74), (25.35, 59.96), (24.95, 59.96), (24.2, 59.84)],
    "Hanko": [(22.5, 59.62), (23.3, 59.7), (23.5, 59.86), (22.9, 59.84), (22.4, 59.72)],
    "Western lane": [(20.9, 58.92), (22.3, 59.46), (22.2, 59.64), (20.7, 59.16)],
    "Eastern lane": [(25.6, 59.82), (27.1, 60.0), (27.05, 60.2), (25.55, 60.0)],
}


def take_operations(page: Page, base: str) -> None:
    """Take the picture of the operations page, once its charts have some minutes to show."""
    page.goto(f"{base.rstrip('/')}/operations/")
    expect(page.locator("#fresh")).to_have_attribute("data-state", "good", timeout=PATIENCE_MS)
    expect(page.locator(".uplot").first).to_be_visible()
    shoot(page, "operations")


def take(browser: Browser, link: str) -> None:
    """Take every picture."""
    context = browser.new_context(viewport=LAPTOP, color_scheme="light")
    page = context.new_page()
    page.goto(link)
    base = page.url.split("#")[0]
    look(page, base + GULF)
    page.get_by_role("button", name="Remove the examples").click()
    draw(page, (0.40, 0.42), (0.62, 0.62))
    save(page, "Helsinki to Tallinn")
    draw(page, (0.08, 0.25), (0.36, 0.80))
    page.locator("#field-where").fill("ship_type IN ('cargo', 'tanker')")
    save(page, "Freight to the west")
    wait_for_events(page)
    shoot(page, "map")

    page.locator(".query-main").first.click()
    pick_event(page)
    settle(page)
    shoot(page, "events")

    look(page, base + HELSINKI)
    draw(page, (0.42, 0.30), (0.66, 0.66))
    page.locator("#field-name").fill("City centre")
    page.locator("#field-where").fill("speed_mps > 5")
    shoot(page, "query")
    save(page, "City centre")

    page.keyboard.press("d")
    settle(page)
    shoot(page, "dark")

    phone = browser.new_context(
        viewport=PHONE,
        device_scale_factor=2,
        has_touch=True,
        storage_state=context.storage_state(),
    ).new_page()
    look(phone, base + GULF)
    shoot(phone, "phone")

    page.keyboard.press("d")
    look(page, base + GULF)
    import_areas(page)
    look(page, base + GULF)
    for name in ("Helsinki to Tallinn", "Freight to the west", "City centre"):
        page.get_by_role("button", name=f"Hide {name} on the map").click()
    page.get_by_role("button", name="Join with a layer").click()
    page.locator("#field-partner").select_option("layer:sea_areas")
    save(page, "Ships in sea areas")
    settle(page)
    point(page, (0.277, 0.48))
    expect(page.locator("#tooltip")).to_contain_text("now")
    shoot(page, "join")
    page.get_by_role("tab", name="Layers").click()
    page.locator("[data-layer=sea_areas] .query-main").click()
    page.get_by_role("button", name="Colour by count").click()
    expect(page.locator("#count-legend li")).to_have_count(4)
    settle(page)
    shoot(page, "counts")

    look(page, base + HELSINKI)
    page.get_by_role("tab", name="Layers").click()
    page.get_by_role("button", name="Hide Sea areas on the map").click()
    page.get_by_role("tab", name="History").click()
    page.locator("#history-limit").select_option("10000")
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator("tr[data-row='40'] button").click()
    settle(page)
    shoot(page, "history")
    look(page, base + GULF)
    follow(page)
    shoot(page, "around")
    take_alarms(page, base)
    take_table(page, base)
    take_replay(page, base)
    take_operations(page, base)


def take_alarms(page: Page, base: str) -> None:
    """Take the picture of an incident with its explanation: a ship was off Helsinki for six seconds."""
    look(page, base + GULF)
    card = page.locator(".query", has_text="Helsinki to Tallinn")
    card.locator(".query-main").click()
    card.get_by_role("button", name="Alarm").click()
    dialog = page.locator("#rule-dialog")
    dialog.get_by_label("Name").fill("Waiting off Helsinki")
    dialog.get_by_label("For at least, in minutes").fill("0.1")
    dialog.get_by_label("Open incidents").select_option("warning")
    dialog.get_by_role("button", name="Save rule").click()
    page.get_by_role("tab", name="Incidents").click()
    incident = page.locator("#incident-list > li").first
    incident.locator(".event").click(timeout=PATIENCE_MS)
    incident.get_by_role("button", name="Why?").click()
    expect(page.locator("#why-verdict")).not_to_be_empty()
    settle(page)
    shoot(page, "incidents")


def take_table(page: Page, base: str) -> None:
    """Take the picture of the table of objects, coloured by speed on the map."""
    look(page, base + GULF)
    page.get_by_role("tab", name="Layers").click()
    page.locator("#colour-by").select_option("speed")
    page.get_by_role("button", name="Table of objects").click()
    settle(page)
    shoot(page, "table")
    page.get_by_role("tab", name="Layers").click()
    page.locator("#colour-by").select_option("")


def take_replay(page: Page, base: str) -> None:
    """Take the picture of a replay of the stored buses, a minute ago."""
    look(page, base + HELSINKI)
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.locator("#replay-badge")).to_be_visible()
    page.get_by_role("button", name="Play", exact=True).click()
    settle(page)
    shoot(page, "replay")


def follow(page: Page) -> None:
    """Ask what is around the ship of the newest event, and look at it."""
    pick_event(page)
    for what in ("Watch", "10 nearest", "Count"):
        page.locator("#object-around").click()
        page.get_by_role("menuitem", name=what).click()
        expect(page.locator("#around-menu")).to_be_hidden()
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Queries").click()
    nearest = page.locator(".query", has_text="10 nearest")
    expect(nearest.locator(".pill")).to_have_text("running", timeout=30_000)
    nearest.get_by_role("button", name="Zoom to").click()
    settle(page)


def pick_event(page: Page) -> None:
    """Select the ship of the newest event; the events of a ship may be folded into one row."""
    page.get_by_role("tab", name="Events").click()
    newest = page.locator("#event-list .event", has_text="ship-").first
    newest.click(timeout=PATIENCE_MS)
    if newest.get_attribute("aria-expanded") is not None:
        page.locator("#event-list .event-single").first.click()
    expect(page.locator("#object-panel")).to_be_visible()


def look(page: Page, address: str) -> None:
    """Open the map at a view, and wait until its objects are there."""
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=60_000)
    settle(page)


def settle(page: Page) -> None:
    """Wait while flights of the map end and trails grow."""
    page.wait_for_timeout(8_000)


def draw(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw a rectangle between two places of the map, given as parts of its width and height."""
    page.get_by_role("button", name="New query").click()
    box = page.locator("#map").bounding_box()
    (x, y), (to_x, to_y) = (
        (box["x"] + across * box["width"], box["y"] + down * box["height"]) for across, down in (start, end)
    )
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=8)
    page.mouse.up()


def point(page: Page, place: tuple[float, float]) -> None:
    """Point at a place of the map, given as parts of its width and height."""
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"])


def save(page: Page, name: str) -> None:
    """Name and save the query, and wait until it runs."""
    page.locator("#field-name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".query", has_text=name).locator(".pill")).to_have_text("running", timeout=30_000)


def import_areas(page: Page) -> None:
    """Import the sea areas as a layer, and wait until they are drawn."""
    features = [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
        }
        for name, ring in AREAS.items()
    ]
    content = json.dumps({"type": "FeatureCollection", "features": features}).encode()
    page.get_by_role("tab", name="Layers").click()
    file = {"name": "sea_areas.geojson", "mimeType": "application/json", "buffer": content}
    page.set_input_files("#layer-form [name=file]", file)
    page.get_by_role("button", name="Import").click()
    expect(page.locator("[data-layer=sea_areas]")).to_have_attribute("data-shown", "true", timeout=30_000)
    settle(page)


def wait_for_events(page: Page) -> None:
    """Wait until objects have entered and left."""
    expect(page.locator("#unread")).to_have_text(re.compile(r"^([6-9]|\d\d+)$"), timeout=PATIENCE_MS)


def shoot(page: Page, name: str) -> None:
    """Write a picture."""
    page.screenshot(path=HERE / f"{name}.png")


def main() -> None:
    """Run Chromium on the link that the command line names."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        take(browser, sys.argv[1])
        browser.close()


if __name__ == "__main__":
    main()
