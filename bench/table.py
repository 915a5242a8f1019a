"""How smooth the page is while its table lists all objects of a stream: ``python -m bench.table``.

A real stack moves the objects, and headless Chromium without a graphics card shows them. The map looks at a small part
of the stream. The page measures its own frames (``/?meter=1``): with the table closed, which is the baseline, open, and
while a mouse wheel scrolls through it. Beside them is the processor time of its main thread, which depends less on what
other programs do. Then the table is sorted by each column. The time is from the click to the second frame after it,
which the browser begins once the sorted rows are on the screen.
"""

import argparse
import json
import time
from dataclasses import asdict

import psutil
from playwright.sync_api import Page, sync_playwright

from bench import chromium
from bench.frames import KEEP, VIEWPORT, figures
from bench.live import wait_for
from bench.machine import machine
from bench.scenarios import FRAMES_STREAM
from bench.stack import Stack, child, running, said

OBJECTS, REPORT_S, SECONDS = 100_000, 10.0, 15.0
# The objects are all over the area; the map shows a few hundred of them.
AREA, VIEW = (-20.0, 30.0, 40.0, 70.0), "8/52/6"
APPEAR_S, SETTLE_S, WHEEL_PX, WHEEL_S = 240.0, 8.0, 400, 1 / 60
COLUMNS = ("@name", "@key", "@stream", "@heard", "@place", "speed_mps", "course_deg", "kind")
SORTS = 5
# What collecting, filtering and sorting takes, whether the user or new data asks for it.
OBSERVE = """
window.table_told = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByName("lookout:table")) window.table_told.push(entry.duration);
}).observe({type: "measure"});
"""
REMEMBER = f"localStorage.setItem('lookout-table', JSON.stringify({{columns: {json.dumps(COLUMNS)}, height: 400}}));"
SORT = """async (name) => {
  const began = performance.now();
  document.querySelector(`.table-heading[data-name="${name}"] button`).click();
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


def measure(stack: Stack, objects: int, report_s: float, seconds: float, niceness: int = 0) -> None:
    """Print the frames of the page with and without the table, and how long sorts take.

    Parameters
    ----------
    stack : Stack
    objects : int
        Of the stream.
    report_s : float
        Seconds between two reports of an object.
    seconds : float
        How long each state of the page is measured.
    niceness : int
        Of the browser's processes: below 0 if other programs keep the machine busy.
    """
    load = ("bench.load", stack.redis_url, "--stream", FRAMES_STREAM, "--objects", str(objects))
    area = ("--area", *map(str, AREA))
    with child(*load, "--rate", str(round(objects / report_s)), *area) as generator, sync_playwright() as playwright:
        said(generator, "filled")
        browser = chromium.launch(playwright)
        for process in psutil.Process().children(recursive=True) if niceness else ():
            if "chrom" in process.name():
                process.nice(niceness)  # those that it starts later inherit it
        try:
            page = browser.new_page(viewport=VIEWPORT)
            page.goto(stack.login_link())
            for script in (KEEP, OBSERVE, REMEMBER):
                page.add_init_script(script)
            page.goto(f"{stack.base_url}/?meter=1#{VIEW}/{FRAMES_STREAM}")
            wait_for(lambda: _told(page).get("visible", 0) > 0, "objects on the map", APPEAR_S)
            clock = page.context.new_cdp_session(page)
            clock.send("Performance.enable", {"timeDomain": "threadTicks"})
            heads = ("page", "objects held", "frames/s", "p99 ms", "longest frame ms", "main thread, CPU ms/s")
            print(_row(*heads), _row(*["---"] * len(heads)), sep="\n")
            _print_frames(page, clock, "table closed", seconds)
            page.keyboard.press("o")
            page.locator("#table-source").select_option(f"stream:{FRAMES_STREAM}")
            wait_for(lambda: _told(page).get("objects", 0) >= objects, lambda: f"all listed; {_told(page)}", APPEAR_S)
            _print_frames(page, clock, "table of all objects", seconds)
            _print_frames(page, clock, "table of all objects, scrolled", seconds, scrolled=True)
            page.evaluate("window.table_told.length = 0")
            print("", _row("sorted by", "median ms", "longest ms"), _row(*["---"] * 3), sep="\n")
            for name in COLUMNS:
                _print_times(name, [page.evaluate(SORT, name) for _ in range(SORTS)])
            page.wait_for_timeout(1000 * seconds)
            _print_times("collected, filtered and sorted anew", page.evaluate("window.table_told"))
        finally:
            browser.close()


def _print_frames(page, clock, what, seconds, scrolled=False):
    """Print a row of frames."""
    _spend(page, SETTLE_S, scrolled)
    page.evaluate("window.frames_told.length = 0")
    before_s, began_s = _busy_s(clock), time.monotonic()
    _spend(page, seconds, scrolled)
    busy = 1000 * (_busy_s(clock) - before_s) / (time.monotonic() - began_s)
    told = page.evaluate("window.frames_told")
    found = asdict(figures(told[-1]["objects"], told))
    shown = (found[name] for name in ("fps", "p99_ms", "longest_ms"))
    print(_row(what, f"{found['objects']:,}", *shown, round(busy)), flush=True)


def _busy_s(clock):
    """Return the processor time of the page's main thread so far, in seconds."""
    metrics = clock.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def _spend(page: Page, seconds: float, scrolled: bool) -> None:
    """Wait, or scroll the table by the mouse wheel, down and then up again."""
    if not scrolled:
        return page.wait_for_timeout(1000 * seconds)
    box = page.locator(".table-body").bounding_box()
    page.mouse.move(box["x"] + 300, VIEWPORT["height"] - 100)
    began_s = time.monotonic()
    while (spent_s := time.monotonic() - began_s) < seconds:
        page.mouse.wheel(0, WHEEL_PX if spent_s < 0.6 * seconds else -WHEEL_PX)
        page.wait_for_timeout(1000 * WHEEL_S)


def _told(page):
    """Return what the page measured in the last second; empty before the first."""
    return json.loads(page.evaluate("document.body.dataset.frames") or "{}")


def _print_times(what, times_ms):
    times_ms = sorted(times_ms)
    print(_row(what, round(times_ms[(len(times_ms) - 1) // 2]), round(times_ms[-1])), flush=True)


def _row(*cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.table", description=__doc__)
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--report-s", type=float, default=REPORT_S, help="seconds between two reports of an object")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--nice", type=int, default=0, help="of the browser, if other programs keep the machine busy")
    options = parser.parse_args()
    print(machine(), flush=True)
    with running(1) as stack:
        measure(stack, options.objects, options.report_s, options.seconds, options.nice)


if __name__ == "__main__":
    main()
