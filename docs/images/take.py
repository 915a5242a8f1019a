"""Take the README's pictures from a running demonstration.

Start ``make live`` in an empty state folder, wait until everything moves, and give this script the link it printed::

    .venv/bin/python -m docs.images.take http://127.0.0.1:8000/login/once/...

It draws queries over the Gulf of Finland, waits until ships have entered and left them, and writes the pictures
beside itself. It takes two or three minutes and leaves the queries as they are.
"""

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


def take(browser: Browser, link: str) -> None:
    """Take every picture."""
    context = browser.new_context(viewport=LAPTOP, color_scheme="light")
    page = context.new_page()
    page.goto(link)
    base = page.url.split("#")[0]
    look(page, base + GULF)
    draw(page, (0.40, 0.42), (0.62, 0.62))
    save(page, "Helsinki to Tallinn")
    draw(page, (0.08, 0.25), (0.36, 0.80))
    page.get_by_label("Filter", exact=False).first.fill("ship_type IN ('cargo', 'tanker')")
    save(page, "Freight to the west")
    wait_for_events(page)
    shoot(page, "map")

    page.locator(".query-main").first.click()
    page.get_by_role("tab", name="Events").click()
    page.locator("#event-list button").first.click()
    expect(page.locator("#object-panel")).to_be_visible()
    settle(page)
    shoot(page, "events")

    look(page, base + HELSINKI)
    draw(page, (0.42, 0.30), (0.66, 0.66))
    page.get_by_label("Name").fill("City centre")
    page.get_by_label("Filter", exact=False).first.fill("speed_mps > 5")
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


def save(page: Page, name: str) -> None:
    """Name and save the query, and wait until it runs."""
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".query", has_text=name).locator(".pill")).to_have_text("running", timeout=30_000)


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
