"""The browser that tests look at pages with: where it is, how it is started, and how long a step may take."""

import shutil

from tests.needed import lacking

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Root may not use the browser's own sandbox; the rest keeps it from calling its maker while we watch.
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 30_000  # for each step; a cold browser on two busy cores takes seconds


def find_browser() -> str:
    """Where the system's browser is; without one the test is skipped, but fails in CI."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        lacking("Chromium not found")
    return path
