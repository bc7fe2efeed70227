"""A customer's question, answered in the console of the running program, in Chromium."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import PATIENCE_MS
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Raw
from tests.scenarios.program import Program
from tests.scenarios.stories import charge_body, fresh, settings_for
from tests.scenarios.test_console import ADD, PASSWORD, code_on, looked_at, opened_browser


@pytest.fixture
def program(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Program]:
    """A running program with a console whose operators need no second factor."""
    console = {"PAYRELAY_CONSOLE__ENABLED": "true", "PAYRELAY_CONSOLE__SECOND_FACTOR": "optional"}
    made = Program(tmp_path, settings_for(gateway) | console)
    made.start()
    yield made
    made.kill()


async def sign_in(page: Page, base: str, path: str) -> None:
    """Follows an invitation, with or without a second factor."""
    await page.goto(base + path)
    await page.fill("#password", PASSWORD)
    await page.fill("#again", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_load_state()
    if await page.locator("svg").count():
        totp = await code_on(page)
        await page.fill("#code", totp.now())
        await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("Start")


@pytest.mark.browser
@pytest.mark.integration
@pytest.mark.parametrize("has_scripts", [True, False], ids=["scripts", "no scripts"])
async def test_a_question_about_an_order_is_answered(
    program: Program, gateway: GatewayDouble, *, has_scripts: bool
) -> None:
    """By keyboard: the order's id, its line of time, its evidence, and the gateway's record as it is now."""
    order_id = fresh("order")
    client = program.client(program.run("keys", "create", "--name", "shop").stdout.strip())
    gateway.script(payhere.CHARGE, order_id, payhere.refuses("the card was declined", -1))
    client.charge(charge_body(order_id), key=fresh("key"))
    assert client.charge(charge_body(order_id), key=fresh("key")).status == 200
    gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(payhere.payment(order_id, amount="345.67"))))
    path = program.run(*ADD).stdout.strip()
    base = f"http://127.0.0.1:{program.port}"
    async with opened_browser() as browser:
        context = await browser.new_context(java_script_enabled=has_scripts)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)

        async def look(name: str) -> None:
            if has_scripts:  # axe is a script
                await looked_at(page, name)

        await sign_in(page, base, path)
        await look("find-start")
        await page.focus("#q")
        await page.keyboard.type(order_id)
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("Find")
        await expect(page.get_by_role("status")).to_contain_text("2 shown")
        await look("find")
        await page.goto(f"{base}/console/find?state=succeeded&kind=charge&from=2020-01-01")
        await look("find-filter")
        await page.goto(f"{base}/console/find?q=nobody")
        await look("find-nothing")
        await page.goto(f"{base}/console/find?q={order_id}")
        await page.get_by_role("link", name=order_id).first.click()
        await expect(page.locator("h1")).to_have_text(f"Order {order_id}")
        await page.locator("summary", has_text="Charge of").first.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("details[open] dl")).to_contain_text("Operation")
        await look("order")
        await page.get_by_role("button", name="Ask the gateway now").click()
        await expect(page.locator("main")).to_contain_text("Asked at")
        await look("order-asked")
        await page.get_by_role("link", name="Charge of").first.click()
        await expect(page.locator("main")).to_contain_text("Request id")
        await look("operation")
        await page.goto(f"{base}/console/account")
        await page.select_option("#zone", "Asia/Colombo")
        await page.get_by_role("button", name="Show times so").click()
        await page.goto(f"{base}/console/orders/gateway/{order_id}")
        await expect(page.locator("time").first).to_contain_text("UTC+05:30")
        await context.close()
    verified = program.run("audit", "verify")
    assert "Verified: nothing was changed or removed." in verified.stdout, verified.stdout


@pytest.mark.browser
@pytest.mark.integration
async def test_whoever_waits_for_a_refund_is_told_how_much_came_back(program: Program) -> None:
    """Two refunds of parts by the shop: the page answers before it tells, and the refund form says what is left."""
    order_id = fresh("order")
    client = program.client(program.run("keys", "create", "--name", "shop").stdout.strip())
    payment_id = client.charge(charge_body(order_id), key=fresh("key")).json["data"]["payment_id"]
    for amount in ("100.00", "45.67"):
        body = {"payment_id": payment_id, "description": "one cup broken", "amount": Raw(text=amount)}
        assert client.post("payments/refund", body, key=fresh("key")).status == 200
    path = program.run(*ADD).stdout.strip()
    base = f"http://127.0.0.1:{program.port}"
    async with opened_browser() as browser:
        page = await browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        await sign_in(page, base, path)
        await page.goto(f"{base}/console/orders/gateway/{order_id}")
        await expect(page.locator(".answer")).to_have_text(
            "As far as is known, LKR 345.67 was paid, LKR 145.67 was given back, and LKR 200.00 is left."
        )
        await expect(page.locator("#live-money table")).to_contain_text("LKR 45.67 was given back")
        await looked_at(page, "order-money")
        await page.get_by_role("link", name="LKR 45.67 was given back").click()
        await expect(page.locator("h1")).to_contain_text("Refund of LKR 45.67")
        await page.goto(f"{base}/console/act/payment/gateway~{payment_id}")
        await expect(page.locator("#left-refund")).to_contain_text("LKR 200.00 of 345.67")
        await looked_at(page, "refund-money")
    shown = program.run("orders", "show", order_id).stdout
    assert "LKR 145.67 was given back" in shown
