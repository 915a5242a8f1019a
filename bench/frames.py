"""Frame rates of the map, measured by the page itself (``/?meter=1``) in headless Chromium while the mouse pans it."""

import json
import math
import time
from dataclasses import dataclass

from playwright.sync_api import Page, sync_playwright

from bench import chromium
from bench.live import StackFailed, wait_for
from bench.scenarios import FRAMES_STREAM
from bench.stack import Stack, child, said

VIEWPORT = {"width": 1280, "height": 800}
# The objects lie in the middle of the view, so that panning moves none out of it.
VIEW, AREA = "6/55/0", (-7.0, 51.0, 7.0, 58.5)
PAN_PX, PAN_PERIOD_S, MOVE_S = 90, 2.0, 1 / 60
# Seconds between two reports of an object.
REPORT_S = 2
APPEAR_S = 60
KEEP = "window.frames_told = []; window.addEventListener('lookout:frames', e => window.frames_told.push(e.detail));"


@dataclass(frozen=True)
class Frames:
    """What the page measured.

    Parameters
    ----------
    objects : int
        Moving objects of the load.
    fps, p99_ms, longest_ms : float
        Frames a second; the 99th percentile of the frame times, the median over all seconds; the longest frame time.
    visible : int
        The fewest objects in view in any second.
    """

    objects: int
    fps: float
    p99_ms: float
    longest_ms: float
    visible: int


def measure(stack: Stack, objects: int, seconds: float) -> Frames:
    """Show the moving objects of a stack, pan the map for `seconds`, and return what the page measured."""
    load = ("bench.load", stack.redis_url, "--stream", FRAMES_STREAM, "--objects", str(objects))
    area = ("--area", *map(str, AREA))
    with child(*load, "--rate", str(objects // REPORT_S), *area) as generator, sync_playwright() as playwright:
        said(generator, "filled")
        browser = chromium.launch(playwright)
        try:
            page = browser.new_page(viewport=VIEWPORT)
            page.goto(stack.login_link())
            page.add_init_script(KEEP)
            page.goto(f"{stack.base_url}/?meter=1#{VIEW}/{FRAMES_STREAM}")
            wait_until_shown(page, objects)
            pan(page, 2.0)
            page.evaluate("window.frames_told.length = 0")
            pan(page, seconds)
            told = page.evaluate("window.frames_told")
        finally:
            browser.close()
    return figures(objects, told)


def figures(objects: int, told: list[dict]) -> Frames:
    """Return the figures of a page, given its measurements of one second each.

    Raises
    ------
    StackFailed
        When there are no measurements.

    Examples
    --------
    >>> second = {"frames": 30, "fps": 30.0, "p99": 40.0, "max": 50.0, "visible": 10}
    >>> figures(10, [second, {**second, "frames": 10, "fps": 20.0, "max": 90.0, "visible": 9}])
    Frames(objects=10, fps=26.7, p99_ms=40.0, longest_ms=90.0, visible=9)
    """
    if not told:
        raise StackFailed("the page told no frames")
    seconds = sum(second["frames"] / second["fps"] for second in told if second["fps"])
    p99 = sorted(second["p99"] for second in told)
    return Frames(
        objects,
        round(sum(second["frames"] for second in told) / seconds, 1),
        p99[(len(p99) - 1) // 2],
        max(second["max"] for second in told),
        min(second["visible"] for second in told),
    )


def wait_until_shown(page: Page, objects: int) -> None:
    """Wait until the page says that it shows the objects."""
    # The question comes from outside: the page's content security policy lets no text be evaluated inside.
    wait_for(lambda: _told(page).get("visible", 0) >= objects, lambda: f"all in view; {_told(page)}", APPEAR_S)


def _told(page: Page) -> dict:
    """Return what the page measured in the last second; empty before the first."""
    return json.loads(page.evaluate("document.body.dataset.frames") or "{}")


def pan(page: Page, seconds: float) -> None:
    """Drag the map to and fro by mouse."""
    x, y = VIEWPORT["width"] / 2, VIEWPORT["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    began_s = time.monotonic()
    while (spent_s := time.monotonic() - began_s) < seconds:
        phase = 2 * math.pi * spent_s / PAN_PERIOD_S
        page.mouse.move(x + PAN_PX * math.sin(phase), y + PAN_PX / 2 * math.sin(2 * phase))
        page.wait_for_timeout(1000 * MOVE_S)
    page.mouse.move(x, y)
    page.mouse.up()
