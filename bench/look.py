"""How smooth the map is while it colours or filters its objects: ``python -m bench.look``.

A real stack moves the objects, and headless Chromium without a graphics card shows them while the mouse pans the map.
The page measures its own frames (``/?meter=1``), each look in its turn, so that what other programs do spreads over all
of them. Beside them is the processor time of the page's main thread for a frame, which depends less on other programs.
"""

import argparse
import time
from collections import defaultdict

from playwright.sync_api import Page, sync_playwright

from bench import chromium
from bench.frames import AREA, KEEP, REPORT_S, VIEW, VIEWPORT, figures, pan, wait_until_shown
from bench.machine import machine
from bench.scenarios import FRAMES_STREAM
from bench.stack import Stack, child, running, said

OBJECTS, SECONDS, ROUNDS = 10_000, 8.0, 3
SETTLE_S = 2.0
LOOKS = {
    "plain": "",
    "coloured by speed": "&colour=speed",
    "coloured by a text": "&colour=property:kind",
    "filtered, all pass": "&filter=speed_mps+>=+0",
}


def measure(stack: Stack, objects: int, seconds: float) -> None:
    """Print the frames of the page with each look: medians over the rounds."""
    load = ("bench.load", stack.redis_url, "--stream", FRAMES_STREAM, "--objects", str(objects))
    area = ("--area", *map(str, AREA))
    told = defaultdict(list)
    with child(*load, "--rate", str(objects // REPORT_S), *area) as generator, sync_playwright() as playwright:
        said(generator, "filled")
        browser = chromium.launch(playwright)
        try:
            page = browser.new_page(viewport=VIEWPORT)
            page.goto(stack.login_link())
            page.add_init_script(KEEP)
            for _ in range(ROUNDS):
                for name, address in LOOKS.items():
                    page.goto("about:blank")
                    page.goto(f"{stack.base_url}/?meter=1#{VIEW}/{FRAMES_STREAM}{address}")
                    wait_until_shown(page, objects)
                    told[name].append(_round(page, objects, seconds))
        finally:
            browser.close()
    print(_row("look", "frames/s", "p99 ms", "main thread, CPU ms a frame"), _row(*["---"] * 4), sep="\n")
    for name, rounds in told.items():
        print(_row(name, *(sorted(column)[len(column) // 2] for column in zip(*rounds, strict=True))), flush=True)


def _round(page: Page, objects, seconds):
    """Return frames/s, the 99th percentile of frame times, and the processor time for a frame."""
    clock = page.context.new_cdp_session(page)
    clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    pan(page, SETTLE_S)
    page.evaluate("window.frames_told.length = 0")
    before_s, began_s = _busy_s(clock), time.monotonic()
    pan(page, seconds)
    busy_ms = 1000 * (_busy_s(clock) - before_s) / (time.monotonic() - began_s)
    found = figures(objects, page.evaluate("window.frames_told"))
    return found.fps, found.p99_ms, round(busy_ms / found.fps, 2)


def _busy_s(clock):
    """Return the processor time of the page's main thread so far, in seconds."""
    metrics = clock.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def _row(*cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.look", description=__doc__)
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each round with each look")
    options = parser.parse_args()
    print(machine(), flush=True)
    with running(1) as stack:
        measure(stack, options.objects, options.seconds)


if __name__ == "__main__":
    main()
