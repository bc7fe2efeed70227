"""Live pages of the running program, in Chromium: what changes appears, and without a script the page is read again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import PATIENCE_MS
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, free_port
from tests.scenarios.stories import charge_body, fresh, settings_for
from tests.scenarios.test_console import ADD, looked_at, opened_browser
from tests.scenarios.test_console_orders import sign_in

pytestmark = [pytest.mark.browser, pytest.mark.integration]

LIVE = "This page is live."


@pytest.fixture(params=["beside the API", "at an address of its own"])
def program(request: pytest.FixtureRequest, tmp_path: Path, gateway: GatewayDouble) -> Iterator[Program]:
    """A running program with a console, whose operators need no second factor."""
    console = {"PAYRELAY_CONSOLE__ENABLED": "true", "PAYRELAY_CONSOLE__SECOND_FACTOR": "optional"}
    if request.param != "beside the API":
        console |= {"PAYRELAY_CONSOLE__ADDRESS": f"127.0.0.1:{free_port()}"}
    made = Program(tmp_path, settings_for(gateway) | console)
    made.start()
    yield made
    made.kill()


def base_of(program: Program) -> str:
    """Gives the console's address."""
    own = program.environment.get("PAYRELAY_CONSOLE__ADDRESS")
    return f"http://{own or f'127.0.0.1:{program.port}'}"


async def is_live(page: Page) -> None:
    """Waits until the page says so."""
    await expect(page.locator("#live-state")).to_have_text(LIVE)


async def test_what_happens_appears_on_open_pages(program: Program, gateway: GatewayDouble) -> None:
    """What happens appears as it happens; what is open on the page, and where the cursor is, stay as they were."""
    base, order_id = base_of(program), fresh("order")
    client = program.client(program.run("keys", "create", "--name", "shop").stdout.strip())
    client.charge(charge_body(order_id), key=fresh("key"))
    path = program.run(*ADD).stdout.strip()
    async with opened_browser() as browser:
        context = await browser.new_context()
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if "Policy" in said.text else None)
        await sign_in(page, base, path)
        await page.goto(f"{base}/console/overview")
        await is_live(page)
        await looked_at(page, "overview")
        await page.goto(f"{base}/console/orders/gateway/{order_id}")
        await is_live(page)
        opened = page.locator(".timeline details").first
        await opened.locator("summary").focus()
        await page.keyboard.press("Enter")
        queue = await context.new_page()
        await queue.goto(f"{base}/console/queue")
        gateway.script(payhere.CHARGE, order_id, payhere.refuses("the card was declined", -1))
        await asyncio.to_thread(client.charge, charge_body(order_id), key=fresh("key"))
        await page.bring_to_front()
        await expect(page.locator("#live-happened")).to_contain_text("declined", timeout=PATIENCE_MS)
        await expect(opened).to_have_attribute("open", "")
        assert await page.locator(".timeline details[open]").count() == 1
        assert await page.evaluate("document.activeElement.tagName") == "SUMMARY"
        await looked_at(page, "order-live")
        assert faults == []
        await context.close()


async def test_a_page_ends_being_live_with_the_session_and_the_program(program: Program) -> None:
    """It says so on the page; and a stop of the program waits for no open page."""
    base = base_of(program)
    path = program.run(*ADD).stdout.strip()
    async with opened_browser() as browser:
        context = await browser.new_context()
        page, other = await context.new_page(), await context.new_page()
        for each in (page, other):
            each.set_default_timeout(PATIENCE_MS)
        await sign_in(page, base, path)
        await page.goto(f"{base}/console/queue")
        await is_live(page)
        await other.goto(f"{base}/console/account")
        await other.get_by_role("button", name="Sign out").click()
        await page.bring_to_front()
        await expect(page.locator("#live-state")).not_to_have_text(LIVE)
        await context.close()


async def test_a_stop_does_not_wait_for_open_pages(program: Program) -> None:
    """The program ends cleanly although a page is live."""
    base = base_of(program)
    path = program.run(*ADD).stdout.strip()
    async with opened_browser() as browser:
        page = await (await browser.new_context()).new_page()
        page.set_default_timeout(PATIENCE_MS)
        await sign_in(page, base, path)
        await page.goto(f"{base}/console/queue")
        await is_live(page)
        assert await asyncio.to_thread(program.stop) == 0
        await expect(page.locator("#live-state")).to_contain_text("not live")
    assert "console_failed" not in program.log()


async def test_without_a_script_the_pages_are_read_and_read_again(program: Program, gateway: GatewayDouble) -> None:
    """Nothing says that the page is live, and loading it again shows what has happened meanwhile."""
    base, order_id = base_of(program), fresh("order")
    client = program.client(program.run("keys", "create", "--name", "shop").stdout.strip())
    path = program.run(*ADD).stdout.strip()
    async with opened_browser() as browser:
        page = await (await browser.new_context(java_script_enabled=False)).new_page()
        page.set_default_timeout(PATIENCE_MS)
        await sign_in(page, base, path)
        await page.goto(f"{base}/console/queue")
        await expect(page.locator("#live-state")).to_be_empty()
        gateway.script(payhere.CHARGE, order_id, payhere.refuses("the card was declined", -1))
        await asyncio.to_thread(client.charge, charge_body(order_id), key=fresh("key"))
        await page.goto(f"{base}/console/overview?span=hour")
        await expect(page.locator("main")).to_contain_text("declined, refused or failed: 1")
        await page.goto(f"{base}/console/orders/gateway/{order_id}")
        await expect(page.locator("#live-happened")).to_contain_text("declined")
