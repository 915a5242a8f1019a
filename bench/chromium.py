"""The Chromium that the benchmark and the browser's tests drive: Debian's, without a window."""

import shutil

from playwright.sync_api import Browser, Playwright

# Chromium uses only the last list that it is given. The first two features would start two more processes for each
# window; the others are those that Playwright switches off.
FEATURES_OFF = ",".join(
    (
        "WebUIOmniboxPopup",
        "WebUIOmniboxAimPopup",
        "AvoidUnnecessaryBeforeUnloadCheckSync",
        "DestroyProfileOnBrowserClose",
        "HttpsUpgrades",
        "HttpsFirstBalancedModeAutoEnable",
        "MediaRouter",
        "PaintHolding",
        "ThirdPartyStoragePartitioning",
        "OptimizationHints",
    )
)
NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={FEATURES_OFF}",
]


def found() -> str | None:
    """Return the path of the first of `NAMES` that is on the PATH, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def launch(playwright: Playwright) -> Browser:
    """Start the browser.

    Raises
    ------
    FileNotFoundError
        When none of `NAMES` is on the PATH.
    """
    if (path := found()) is None:
        raise FileNotFoundError(f"one of {', '.join(NAMES)} must be on the PATH")
    return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
