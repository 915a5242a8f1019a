"""The Chromium that the benchmark and the browser's tests drive: Debian's, without a window."""

import shutil

from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def found() -> str | None:
    """Return the path of the first of `NAMES` that is on the PATH, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def launch(playwright: Playwright) -> Browser:
    """Start the browser."""
    if (path := found()) is None:
        raise FileNotFoundError(f"one of {', '.join(NAMES)} must be on the PATH")
    return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
