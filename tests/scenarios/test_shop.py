"""The example as a newcomer has it: the demo with the shop beside it, in a real browser on a phone's screen."""

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Page, Route, async_playwright, expect
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.scenarios.program import PAYRELAY, surroundings
from tests.scenarios.waiting import until

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "shop" / "shop.py"
HEAR = ROOT / "examples" / "hear.py"
GOOD_CARD, REFUSED_CARD = "4916217501611292", "4024007194349121"


pytestmark = [pytest.mark.browser, pytest.mark.integration]


@dataclass(frozen=True)
class Demo:
    """What a newcomer reads in the terminal."""

    shop: str
    service: str
    key: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo with the shop, as `make demo` starts it."""
    folder = tmp_path_factory.mktemp("shop")
    printed, said = folder / "printed", folder / ".payrelay" / "shop.log"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [PAYRELAY, "demo", "--port", "0", "--shop", str(SHOP)],
            cwd=folder,
            env=surroundings({}),
            stdout=output,
            stderr=output,
        )
    until(lambda: "ends the" in printed.read_text() or process.poll() is not None, "the demo stands")
    log = folder / ".payrelay" / "demo.log"
    until(
        lambda: "/{account}/api/endpoints" in log.read_text(),
        "the shop listens, and has registered its endpoint",
        deadline_s=60,
    )
    names = ("shop", "service", "key")
    yield Demo(**{name: re.findall(rf"\b{name}\s+((?:http|prk_)\S+)", printed.read_text())[0] for name in names})
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0, printed.read_text()
    assert "Traceback" not in said.read_text()


@pytest.fixture
def shop_address(demo: Demo) -> str:
    """Where the shop is."""
    return demo.shop


@pytest_asyncio.fixture
async def phone(shop_address: str) -> AsyncIterator[Page]:
    """The shop on a phone of somebody's own."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(OPTIONS))
        page = await (await browser.new_context(viewport={"width": 412, "height": 915})).new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        await page.goto(shop_address)
        yield page
        await browser.close()


@pytest.fixture
def receiver(demo: Demo, tmp_path: Path) -> Iterator[Path]:
    """What the receiver of the README prints; it is stopped by Ctrl-C, and ends without complaint."""
    heard = tmp_path / "heard"
    address = {"PAYRELAY": f"{demo.service}/gateway/api", "PAYRELAY_KEY": demo.key}
    with heard.open("wb") as output:
        process = subprocess.Popen([sys.executable, HEAR], env=surroundings(address), stdout=output, stderr=output)
    until(lambda: "listening" in heard.read_text() or process.poll() is not None, "the receiver listens")
    yield heard
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0, heard.read_text()
    assert "Traceback" not in heard.read_text()


async def use_card(phone: Page, number: str) -> None:
    """Fills in the gateway's page, and pays."""
    for name, value in (("HolderName", "S Perera"), ("No", number), ("Expiry", "12/29"), ("SecureId", "123")):
        await phone.locator(f"[name=card{name}]").fill(value)
    await phone.get_by_role("button", name="Pay").click()


async def approve(phone: Page) -> None:
    """Has a card approved and kept."""
    await phone.get_by_role("button", name="Add a card").click()
    await use_card(phone, GOOD_CARD)
    await expect(phone.locator("#card")).to_contain_text("1292")


async def news(phone: Page, text: str) -> None:
    """Expects a line among what happened."""
    await expect(phone.locator("#news li", has_text=text).first).to_be_visible()


async def test_a_newcomer_approves_a_card_pays_and_joins(phone: Page) -> None:
    """From nothing to a paid order, a subscription that was ended, and webhooks that say so, by the browser alone."""
    await approve(phone)
    await news(phone, "Your card was approved")
    await phone.get_by_role("button", name="Pay Copper kettle").click()
    await news(phone, "Paid: Copper kettle, LKR 7450.00")
    await news(phone, "Your payment arrived")
    await phone.get_by_role("button", name="Join the club").click()
    await use_card(phone, GOOD_CARD)
    await news(phone, "A month of the club was paid")
    await phone.get_by_role("button", name="Leave the club").click()
    await news(phone, "You left the club")
    await news(phone, "Your membership has ended")
    await expect(phone.get_by_role("button", name="Join the club")).to_be_visible()
    await expect(phone.get_by_role("button", name="Leave the club")).to_be_hidden()

    await phone.reload()
    await news(phone, "Your membership has ended")
    await expect(phone.get_by_role("button", name="Join the club")).to_be_visible()


async def test_nobody_pays_with_or_ends_what_is_anothers(phone: Page, shop_address: str) -> None:
    """The shop's key reaches everybody's card and subscription, so that the shop itself must ask whose they are."""
    await approve(phone)
    customer = (await (await phone.request.get(f"{shop_address}/me")).json())["card"]["id"]
    order = {"goods": "tea", "customer": customer}
    own = await phone.request.post(f"{shop_address}/orders", data=order)
    stranger = await (await phone.context.browser.new_context()).new_page()  # type: ignore[union-attr]
    await stranger.goto(shop_address)
    foreign = await stranger.request.post(f"{shop_address}/orders", data=order)
    ended = await stranger.request.delete(f"{shop_address}/club/420075000001")

    assert (own.status, foreign.status, ended.status) == (200, 404, 404)


async def test_the_shops_page_loads_and_asks_only_what_is_its_own(phone: Page, shop_address: str) -> None:
    """A page that holds a token for paying runs no script of anybody else's."""
    answer = await phone.request.get(shop_address)
    policy = answer.headers["content-security-policy"]

    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy


async def test_a_refused_card_is_told_and_nothing_is_kept(phone: Page) -> None:
    """The gateway's page says why; whoever turns back finds the shop as it was."""
    await phone.get_by_role("button", name="Add a card").click()
    await use_card(phone, REFUSED_CARD)
    await phone.get_by_role("button", name="Cancel").click()
    await expect(phone.get_by_role("button", name="Add a card")).to_be_visible()
    await expect(phone.get_by_role("button", name="Pay Copper kettle")).to_be_disabled()


async def test_the_shop_can_be_used_by_everybody(phone: Page) -> None:
    """Labels, contrast and structure: what a screen reader needs."""
    await approve(phone)
    found = await Axe().run(phone)
    assert found.violations_count == 0, found.generate_report()


async def test_an_app_developers_javascript_pays_once(phone: Page, shop_address: str) -> None:
    """The code of the page for app developers is copied as it is: it must pay once, whatever comes between."""
    await approve(phone)
    customer = (await (await phone.request.get(f"{shop_address}/me")).json())["card"]["id"]
    wanted = {"goods": "tea", "customer": customer}
    order = await (await phone.request.post(f"{shop_address}/orders", data=wanted)).json()
    (code,) = re.findall(r"```javascript\n(.*?)```", (ROOT / "docs" / "apps.md").read_text(), re.DOTALL)
    await phone.route("**/payments/charge", lambda route: route.fulfill(status=502, body="<h1>Bad</h1>"), times=1)
    paying = f"async ({{address, token, charge}}) => {{ {code}\n return [await pay(address, token, charge), "
    paying += "await pay(address, token, charge), await pay(address, 'prt_', charge)]; }"
    first, again, refused = await phone.evaluate(paying, order)

    assert (first["code"], again["code"], refused["code"]) == (200, 200, 401)
    assert first["told"]["data"]["payment_id"] == again["told"]["data"]["payment_id"]


async def test_a_newcomer_receives_a_webhook(phone: Page, receiver: Path) -> None:
    """The receiver of the README registers itself, and prints what was signed for it."""
    await approve(phone)

    until(lambda: {"customer.created", "checkout.completed"} <= set(receiver.read_text().split()), "both events arrive")


async def test_who_presses_again_without_an_answer_pays_the_same_order(phone: Page, demo: Demo) -> None:
    """The answer was lost, and so may be the service's own row of it: another order would be a second charge."""
    await approve(phone)
    orders: list[str] = []
    lost = asyncio.Event()

    async def carried_out_and_lost(route: Route) -> None:
        orders.append((route.request.post_data_json or {})["order_id"])
        await route.fetch()
        await route.abort()
        lost.set()

    await phone.route("**/payments/charge", carried_out_and_lost, times=1)
    await phone.get_by_role("button", name="Pay Six cups").click()
    await lost.wait()
    await phone.reload()
    await phone.get_by_role("button", name="Pay Six cups").click()
    await news(phone, "Paid: Six cups")
    listed = await phone.request.get(
        f"{demo.service}/gateway/api/operations?order_id={orders[0]}", headers={"Authorization": f"Bearer {demo.key}"}
    )
    assert [each["state"] for each in (await listed.json())["data"]] == ["succeeded"]


async def test_an_app_developers_javascript_waits_for_a_recovery_with_one_request(phone: Page, demo: Demo) -> None:
    """503 says nothing of an earlier try, and 202 is an answer: the same request until then, no sooner than told."""
    (code,) = re.findall(r"```javascript\n(.*?)```", (ROOT / "docs" / "apps.md").read_text(), re.DOTALL)
    sent: list[tuple[float, str | None, str | None]] = []
    error = {"code": "unavailable", "retry": "after", "request_id": "req_1"}
    held = {"code": "needs_attention", "retry": "after", "request_id": "req_2"}
    exposed = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "retry-after"}

    async def recovering(route: Route) -> None:
        key = await route.request.header_value("idempotency-key")
        sent.append((time.monotonic(), key, route.request.post_data))
        is_early = len(sent) == 1
        told = {"status": -1, "msg": "later", "data": None, "error": error if is_early else held}
        headers = exposed | ({"Retry-After": "2"} if is_early else {})
        await route.fulfill(status=503 if is_early else 202, json=told, headers=headers)

    await phone.route("**/payments/charge", recovering)
    charge = {
        "order_id": "A-1",
        "amount": 1,
        "currency": "LKR",
        "customer_token": "x",
        "type": "PAYMENT",
        "items": "Tea",
    }
    address = f"{demo.service}/gateway/api"
    answered = await phone.evaluate(
        f"async ([address, charge]) => {{ {code}\n return await pay(address, 'prt_', charge); }}", [address, charge]
    )
    (first_s, *first), (second_s, *second) = sent
    assert (answered["code"], first == second, second_s - first_s >= 2) == (202, True, True)
