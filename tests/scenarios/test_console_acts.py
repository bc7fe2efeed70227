"""Operators at work in Chromium: a case with two people at it, a refund, double clicks and ways back."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyotp
import pytest
from playwright.async_api import Browser, Page, expect
from tests.browser import PATIENCE_MS
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client
from tests.scenarios.program import Program
from tests.scenarios.stories import charge_body, fresh, settings_for
from tests.scenarios.test_console import PASSWORD, code_on, looked_at, opened_browser

pytestmark = [pytest.mark.browser, pytest.mark.integration]
LOOKS_MAX = 100
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


@pytest.fixture
def program(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Program]:
    """A program with a console, where a second person confirms decisions; not started."""
    console = {"PAYRELAY_CONSOLE__ENABLED": "true", "PAYRELAY_CONSOLE__SECOND_PERSON": "decide"}
    made = Program(tmp_path, settings_for(gateway) | console)
    yield made
    made.kill()


@pytest.fixture
def shop(program: Program) -> Client:
    """A shop that charges; the program runs from then on."""
    key = program.new_key("shop")
    program.start()
    return program.client(key)


@asynccontextmanager
async def signed_in(
    browser: Browser, program: Program, name: str, role: str, *, has_scripts: bool = True
) -> AsyncIterator[Page]:
    """Opens a browser of its own in which a new operator is signed in."""
    email = f"{name.lower()}@shop.example"
    added = program.run("operators", "add", email, "--name", name, "--role", role, "--reason", "test")
    context = await browser.new_context(java_script_enabled=has_scripts)
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    await page.goto(f"http://127.0.0.1:{program.port}{added.stdout.strip()}")
    await page.fill("#password", PASSWORD)
    await page.fill("#again", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_selector("svg")
    totp: pyotp.TOTP = await code_on(page)
    await page.fill("#code", totp.now())
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("Start")
    yield page
    await context.close()


def case_of(shop: Client, gateway: GatewayDouble, order_id: str) -> str:
    """A charge that the gateway answers for another amount: it needs a person. Gives its operation's id."""
    gateway.script(payhere.CHARGE, order_id, payhere.succeeds_with(amount=500.0))
    reply = shop.charge(charge_body(order_id), key=fresh("key"))
    return str(reply.error["operation_id"])


@pytest.mark.parametrize("has_scripts", [True, False], ids=["scripts", "no scripts"])
async def test_two_people_settle_a_case(
    program: Program, shop: Client, gateway: GatewayDouble, *, has_scripts: bool
) -> None:
    """From the queue to the decision; the one proposes, the other confirms, and a page of before does nothing."""
    order_id = fresh("order")
    operation_id = case_of(shop, gateway, order_id)
    base = f"http://127.0.0.1:{program.port}"
    async with (
        opened_browser() as browser,
        signed_in(browser, program, "Ada", "operator", has_scripts=has_scripts) as ada,
        signed_in(browser, program, "Bob", "operator", has_scripts=has_scripts) as bob,
    ):

        async def look(page: Page, name: str) -> None:
            if has_scripts:  # axe is a script
                await looked_at(page, name)

        await ada.click("nav >> text=Queue")
        await look(ada, "queue")
        await ada.click("main table a")
        await expect(ada.get_by_text("Where to look at the gateway")).to_be_visible()
        await look(ada, "case")
        await bob.goto(f"{base}/console/act/operation/{operation_id}")
        await bob.fill("#note", HOSTILE)
        await bob.click("text=Add the note")
        await expect(bob.get_by_text(HOSTILE)).to_be_visible()
        await ada.get_by_label("It did not happen").check()
        await ada.click("text=Go on to the confirmation")
        await expect(ada.locator("h1")).to_have_text("This has changed since your page was shown")
        await look(ada, "stale")
        await ada.click("text=Look at it as it is now")
        await ada.get_by_label("It did not happen").focus()
        await ada.keyboard.press("Space")
        await ada.click("text=Go on to the confirmation")
        await expect(ada.locator("h1")).to_have_text(f"Decide (order {order_id})?")
        await look(ada, "confirmation")
        await ada.fill("#reason", "the portal shows nothing")
        await ada.click("text=Propose it")
        await expect(ada.get_by_text("Nothing was done yet.")).to_be_visible()
        await look(ada, "proposed")
        assert await ada.get_by_role("button", name="Decide now").count() == 0
        await bob.goto(f"{base}/console/queue")
        await look(bob, "queue-proposed")
        await bob.click("main .cards a")
        await bob.fill("#reason", "I looked, too")
        await bob.click("text=Decide now")
        await expect(bob.get_by_role("status")).to_contain_text("Done. The decision is stored.")
        await look(bob, "decided")
        await bob.go_back()
        await bob.go_forward()
        await expect(bob.get_by_role("status")).to_contain_text("Done.")
    shown = program.run("operations", "show", operation_id)
    assert "the portal shows nothing" in " ".join(shown.stdout.split())
    assert "Verified: nothing was changed or removed." in program.run("audit", "verify").stdout


async def until_known(page: Page, address: str) -> None:
    """Looks again while the page says that the outcome isn't known yet, as it does to the second click's answer."""
    await expect(page.get_by_role("status")).not_to_be_empty()
    for _ in range(LOOKS_MAX):
        if "Not known yet." not in await page.get_by_role("status").inner_text():
            return
        await page.goto(address)


async def test_a_refund_is_done_once(program: Program, shop: Client, gateway: GatewayDouble) -> None:
    """Two clicks, two tabs, the way back, and a session that ended in between: the gateway is asked once."""
    order_id = fresh("order")
    reply = shop.charge(charge_body(order_id), key=fresh("key"))
    operation_id = reply.header("Payrelay-Operation")
    payment_id = str(reply.json["data"]["payment_id"])
    base = f"http://127.0.0.1:{program.port}"
    async with opened_browser() as browser, signed_in(browser, program, "Ada", "operator") as ada:
        await ada.goto(f"{base}/console/act/operation/{operation_id}")
        await looked_at(ada, "operation")
        await ada.fill("#amount-refund", "100")
        await ada.click("text=Refund…")
        await expect(ada.locator("dl")).to_contain_text("LKR 100.00")
        await looked_at(ada, "refund")
        address = ada.url
        tab = await ada.context.new_page()
        tab.set_default_timeout(PATIENCE_MS)
        await tab.goto(address)
        for page in (ada, tab):
            await page.fill("#reason", "sent back")
        await ada.dblclick("button:has-text('Refund now')")
        await until_known(ada, address)
        await expect(ada.get_by_role("status")).to_contain_text("Done.")
        await looked_at(ada, "refunded")
        await tab.click("button:has-text('Refund now')")
        await expect(tab.get_by_role("status")).to_contain_text("Done.")
        await ada.go_back()
        await ada.go_back()
        await ada.goto(address)
        await expect(ada.get_by_role("status")).to_contain_text("Done.")
        await tab.goto(f"{base}/console/act/operation/{operation_id}")
        await tab.fill("#amount-refund", "9,999")
        await tab.click("text=Refund…")
        await expect(tab.get_by_role("alert")).to_contain_text("This refund is of more than is left of the payment")
        await expect(tab.get_by_label("Refund it all the same")).not_to_be_checked()
        await looked_at(tab, "refused-refund")
        await tab.fill("#amount-refund", "1")
        await tab.click("text=Refund…")
        await tab.fill("#reason", "again")
        await ada.click("text=Sign out")
        await tab.click("button:has-text('Refund now')")
        await expect(tab.locator("h1")).to_have_text("Sign in")
    refunds = gateway.calls(payhere.REFUND, payment_id)
    assert len(refunds) == 1
    assert "Verified: nothing was changed or removed." in program.run("audit", "verify").stdout
