"""Takes the pictures of the console: starts the demo, types what it prints, signs in, and photographs pages.

Run it from the project's folder when the pages change: ``.venv/bin/python -m docs.photograph``. It needs Chromium.
"""

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.async_api import Page, async_playwright
from tests.browser import OPTIONS, PATIENCE_MS, find_browser

PICTURES: Final = Path(__file__).parent / "pictures"
PROGRAM: Final = Path(sys.executable).with_name("payrelay")
WIDTH: Final = 1_000
HEIGHT_MAX: Final = 1_000
"""Of a picture: a page that is longer is cut, so that the docs stay small."""
SETTLED_MS: Final = 61_000
"""A day can be closed a minute after something of it has changed, as the demo's open charge does at its start."""
LAST_LINE: Final = "Ctrl-C ends the demo."


@contextmanager
def demo(folder: Path) -> Iterator[str]:
    """Runs the demo in a folder; gives what it prints."""
    process = subprocess.Popen(  # noqa: S603  our own program
        [PROGRAM, "demo", "--port", "0"], stdout=subprocess.PIPE, text=True, cwd=folder
    )
    printed = ""
    for line in process.stdout or ():
        printed += line
        if LAST_LINE in printed:
            break
    try:
        yield printed
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=PATIENCE_MS)


def found(pattern: str, text: str) -> str:
    """Gives what a pattern finds; raises ValueError where the demo prints something else by now."""
    match = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if match is None:
        raise ValueError(f"the demo prints nothing like {pattern}")
    return match[1]


async def photograph(page: Page, name: str) -> None:
    """Takes a picture of a page, from its top."""
    await page.set_viewport_size({"width": WIDTH, "height": 200})
    height = min(HEIGHT_MAX, await page.evaluate("document.documentElement.scrollHeight"))
    await page.set_viewport_size({"width": WIDTH, "height": int(height)})
    await page.screenshot(path=PICTURES / f"{name}.png")
    await page.set_viewport_size({"width": WIDTH, "height": HEIGHT_MAX})


async def walk(page: Page, printed: str) -> None:
    """Goes from the sign-in to the closed day, and photographs what an accountant sees."""
    address = found(r"^Then look at (\S+)$", printed)
    await page.goto(address)
    await page.fill("#email", found(r"sign in as (\S+) with", printed))
    await page.fill("#password", found(r"with the password (\S+)$", printed))
    await page.keyboard.press("Enter")
    await page.wait_for_selector("text=What this rests on")
    await photograph(page, "books-day")
    await page.locator("summary", has_text="Evidence").nth(1).click()
    await page.locator(".cards li").nth(1).scroll_into_view_if_needed()
    await page.locator(".cards li").nth(1).screenshot(path=PICTURES / "books-difference.png")
    await page.wait_for_timeout(SETTLED_MS)
    await page.get_by_role("button", name="Close the day").click()
    await photograph(page, "books-close")
    await page.fill("#reason", "month end")
    await page.get_by_role("button", name="Close the day now").click()
    await page.wait_for_selector("text=The day is closed.")
    await page.goto(address.rpartition("/")[0].rpartition("/")[0])
    await page.set_viewport_size({"width": WIDTH, "height": 600})
    await page.locator("table").last.locator("tr").last.scroll_into_view_if_needed()
    await page.screenshot(path=PICTURES / "books-month.png")


async def visit(page: Page, printed: str) -> None:
    """Goes where support goes, signed in already."""
    console = found(r"(http://\S+/console)/ \(", printed)
    order_id, looked_up = found(r"the order (\S+) waits", printed), found(r"look up (\S+), too", printed)
    await page.goto(f"{console}/orders/gateway/{looked_up}")
    await photograph(page, "support-order")
    await page.goto(f"{console}/overview")
    await page.locator(".trends").screenshot(path=PICTURES / "support-overview.png")
    await page.goto(f"{console}/queue")
    await page.wait_for_selector(f"text={order_id}")
    await photograph(page, "support-queue")
    await page.locator("table a").first.click()
    await page.locator("fieldset").screenshot(path=PICTURES / "support-case.png")


async def taken(printed: str) -> None:
    """Takes all pictures of a demo that runs."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(OPTIONS))
        page = await browser.new_page(viewport={"width": WIDTH, "height": HEIGHT_MAX})
        page.set_default_timeout(PATIENCE_MS)
        await walk(page, printed)
        await visit(page, printed)
        await browser.close()


def main() -> None:
    """Starts the demo, reconciles its day as it says, and takes all pictures."""
    with tempfile.TemporaryDirectory() as folder, demo(Path(folder)) as printed:
        commands = found(r"^(export PAYRELAY_CONFIG.*? run --day \S+)$", printed)
        subprocess.run(["/bin/sh", "-c", commands], cwd=folder, check=False, stdout=subprocess.DEVNULL)  # noqa: S603  the demo's
        asyncio.run(taken(printed))


if __name__ == "__main__":
    main()
