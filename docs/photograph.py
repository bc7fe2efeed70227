"""Takes the pictures of the console for support: starts a demo, makes orders, signs in, and photographs pages.

Those of the books are of a day that is over, which a demo doesn't have: they were taken by hand.

Run it from the project's folder when the pages change: ``.venv/bin/python -m docs.photograph``. It needs Chromium.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import Page, async_playwright
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.scenarios.demo import running_demo
from tests.scenarios.orders_to_ask_about import invited, make_orders

PICTURES: Final = Path(__file__).parent / "pictures"
WIDTH: Final = 1_000
HEIGHT_MAX: Final = 1_000
"""Of a picture: a page that is longer is cut, so that the docs stay small."""
PASSWORD: Final = "a password of the demo's"  # noqa: S105  known to all


async def photograph(page: Page, name: str) -> None:
    """Takes a picture of a page, from its top."""
    await page.set_viewport_size({"width": WIDTH, "height": 200})
    height = min(HEIGHT_MAX, await page.evaluate("document.documentElement.scrollHeight"))
    await page.set_viewport_size({"width": WIDTH, "height": int(height)})
    await page.screenshot(path=PICTURES / f"{name}.png")
    await page.set_viewport_size({"width": WIDTH, "height": HEIGHT_MAX})


async def visit(page: Page, console: str, invitation: str) -> None:
    """Accepts the invitation, and goes where support goes."""
    await page.goto(f"{console}{invitation.removeprefix('/console')}")
    await page.fill("#password", PASSWORD)
    await page.fill("#again", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_selector("text=Start")
    await page.goto(f"{console}/orders/gateway/Tea-2")
    await photograph(page, "support-order")
    await page.goto(f"{console}/overview")
    await page.locator("div.trends").screenshot(path=PICTURES / "support-overview.png")
    await page.goto(f"{console}/queue")
    await page.wait_for_selector("text=Tea-3")
    await photograph(page, "support-queue")
    await page.locator("table a").first.click()
    await page.locator("fieldset").screenshot(path=PICTURES / "support-case.png")


async def taken(console: str, invitation: str) -> None:
    """Takes all pictures of a demo that runs."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(OPTIONS))
        page = await browser.new_page(viewport={"width": WIDTH, "height": HEIGHT_MAX})
        page.set_default_timeout(PATIENCE_MS)
        await visit(page, console, invitation)
        await browser.close()


def main() -> None:
    """Starts a demo, makes orders in it, and takes all pictures."""
    with tempfile.TemporaryDirectory() as folder, running_demo(Path(folder)) as demo:
        make_orders(demo)
        asyncio.run(taken(f"{demo.address}/console", invited(Path(folder))))


if __name__ == "__main__":
    main()
