"""The hosted pages in a real browser, from a merchant's page with a form to the merchant's pages after it."""

import html
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import BrowserContext, Page, async_playwright, expect
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.payrelay_simulator.shop import MASTER, POOR_VISA, VISA, Form, Receiver, a_form

from payrelay_simulator import Running, World

pytestmark = [pytest.mark.browser, pytest.mark.integration]


@dataclass
class Shop:
    """A merchant with a page that posts the form, and pages to come back to."""

    gateway: str
    address: str = ""
    policy: str = "origin"
    forms: dict[str, tuple[str, Form]] = field(default_factory=dict)

    def offer(self, page: str, signed: str = "1000.00", **changes: str) -> str:
        """Return the address of a page with a form for that page of the gateway."""
        ways = {"return_url": f"{self.address}/returned", "cancel_url": f"{self.address}/cancelled"}
        name = str(len(self.forms))
        self.forms[name] = (page, a_form(signed, **{**ways, **changes}))
        return f"{self.address}/forms/{name}"

    async def show_form(self, request: web.Request) -> web.Response:
        """Show the form with a button."""
        page, form = self.forms[request.match_info["name"]]
        inputs = "".join(f'<input type="hidden" name="{name}" value="{html.escape(form[name])}">' for name in form)
        text = f'<form method="post" action="{self.gateway}/pay/{page}">{inputs}<button>Buy</button></form>'
        return web.Response(text=text, content_type="text/html", headers={"Referrer-Policy": self.policy})

    async def show_end(self, request: web.Request) -> web.Response:
        """Show where the payer came back to."""
        return web.Response(text=f"<h1>{request.path}</h1>", content_type="text/html")


@pytest.fixture
async def shop(running: Running) -> AsyncIterator[Shop]:
    """Serve the merchant's pages on a free port."""
    shop = Shop(gateway=running.base_url)
    app = web.Application()
    app.router.add_get("/forms/{name}", shop.show_form)
    app.router.add_get("/{end}", shop.show_end)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    shop.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield shop
    await runner.cleanup()


@pytest.fixture
async def context(shop: Shop) -> AsyncIterator[BrowserContext]:
    """Return a browser; without one the test is skipped, but fails in CI. No page may have complained at the end."""
    assert shop.address
    complaints: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(OPTIONS))
        # The pages must work for a browser without scripts.
        context = await browser.new_context(java_script_enabled=False)
        context.set_default_timeout(PATIENCE_MS)
        context.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        yield context
        await browser.close()
    # A status of 4xx is noted as an error by the browser itself.
    assert [text for text in complaints if "status of 4" not in text] == []


async def arrive(context: BrowserContext, address: str) -> Page:
    """Open a merchant's page and post its form."""
    page = await context.new_page()
    await page.goto(address)
    await page.get_by_role("button", name="Buy").click()
    return page


async def fill(page: Page, number: str = VISA) -> None:
    """Type a card, by the labels that a person reads."""
    await page.get_by_label("Name on the card").fill("S Perera")
    await page.get_by_label("Card number").fill(number)
    await page.get_by_label("Expires").fill("12/29")
    await page.get_by_label("Security code").fill("123")


def paid(world: World) -> list[str]:
    """Return what happened to the order."""
    return [entry.kind for entry in world.ledger.entries() if entry.order_id == "Order12345"]


MONTHLY = {"recurrence": "1 Month", "duration": "1 Year"}


@pytest.mark.parametrize(
    ("path", "changes", "kinds"),
    [
        ("checkout", {}, ["charge"]),
        ("preapprove", {"signed": "10.00", "amount": ""}, ["charge", "refund"]),
        ("authorize", {}, ["authorization"]),
        ("checkout", MONTHLY, ["installment"]),
    ],
)
async def test_each_flow_to_its_end(
    context: BrowserContext, shop: Shop, path: str, changes: Form, kinds: list[str], *, world: World
) -> None:
    """The payer comes back to the merchant, and the money is where it belongs."""
    page = await arrive(context, shop.offer(path, **changes))
    await expect(page).to_have_title("Pay with PayHere (simulator)")
    await fill(page)
    await page.locator("#pay").click()

    await page.wait_for_url(f"{shop.address}/returned?order_id=Order12345")
    assert paid(world) == kinds


async def test_refusal_then_another_card(context: BrowserContext, shop: Shop, world: World, receiver: Receiver) -> None:
    """The refusal is said aloud to those who cannot see it, and the next card pays."""
    page = await arrive(context, shop.offer("checkout", notify_url=receiver.address))
    await fill(page, POOR_VISA)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("refused: insufficient funds")
    assert paid(world) == []
    await fill(page, MASTER)
    await page.keyboard.press("Enter")

    await page.wait_for_url(f"{shop.address}/returned?order_id=Order12345")
    assert [body["status_code"] for body in await receiver.wait_for(2)] == ["-2", "2"]


async def test_cancel_goes_back_to_the_merchant(context: BrowserContext, shop: Shop, world: World) -> None:
    """Nothing is taken, and going back shows that it is over."""
    page = await arrive(context, shop.offer("checkout"))
    await page.get_by_role("button", name="Cancel").click()
    await page.wait_for_url(f"{shop.address}/cancelled")
    await page.go_back()

    await expect(page.get_by_role("heading")).to_have_text("You cancelled")
    assert paid(world) == []


async def test_double_click_pays_once(context: BrowserContext, shop: Shop, world: World) -> None:
    """The second click changes nothing but the time it takes."""
    page = await arrive(context, shop.offer("checkout"))
    await fill(page)
    await page.get_by_role("button", name="Pay").dblclick()

    await page.wait_for_url(f"{shop.address}/returned?order_id=Order12345")
    assert paid(world) == ["charge"]


async def test_going_back_and_reloading_after_paying(context: BrowserContext, shop: Shop, world: World) -> None:
    """The page shows what happened, and leads on; a second window of it does, too."""
    page = await arrive(context, shop.offer("checkout"))
    visit = page.url
    other = await context.new_page()
    await other.goto(visit)
    await fill(page)
    await page.get_by_role("button", name="Pay").click()
    await page.wait_for_url(f"{shop.address}/returned?order_id=Order12345")
    await page.go_back()
    await expect(page.get_by_role("heading")).to_have_text("You have paid")
    await page.reload()
    await page.get_by_role("link", name="Continue").click()
    await page.wait_for_url(f"{shop.address}/returned?order_id=Order12345")
    await fill(other)
    await other.get_by_role("button", name="Pay").click()
    await other.wait_for_url(f"{shop.address}/returned?order_id=Order12345")

    assert paid(world) == ["charge"]


async def test_page_that_hides_where_it_is_cannot_post(context: BrowserContext, shop: Shop) -> None:
    """What the real gateway does to a page with no-referrer is seen here first."""
    shop.policy = "no-referrer"
    page = await arrive(context, shop.offer("checkout"))

    await expect(page.get_by_role("heading", level=1)).to_have_text("Unauthorized payment request")


async def test_pages_are_accessible(context: BrowserContext, shop: Shop, running: Running) -> None:
    """Nothing for axe to find: on the form, beside a slip, after a refusal, when it is over, on an error, on /_sim/."""
    browser = context.browser
    assert browser is not None
    # Only the checker needs scripts, and to put its own into a page that lets none in.
    checked = await browser.new_context(bypass_csp=True)
    page = await arrive(checked, shop.offer("checkout", item_name_1="Bell", amount_1="500", quantity_1="2"))
    found = [await violations(page)]
    await page.get_by_role("button", name="Pay").click()
    await expect(page.get_by_role("alert")).to_contain_text("Enter the card number")
    found.append(await violations(page))
    await fill(page, POOR_VISA)
    await page.get_by_role("button", name="Pay").click()
    await expect(page.get_by_role("alert")).to_contain_text("refused")
    found.append(await violations(page))
    visit = page.url
    await page.get_by_role("button", name="Cancel").click()
    await page.wait_for_url(f"{shop.address}/cancelled")
    for address in (visit, f"{running.base_url}/pay/nowhere", f"{running.base_url}/_sim/"):
        await page.goto(address)
        found.append(await violations(page))

    assert found == [[]] * 6


async def violations(page: Page) -> list[str]:
    """Return what the accessibility checker finds on a page."""
    results = await Axe().run(page)
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in results.response["violations"]]
