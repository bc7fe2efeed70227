"""The example as a newcomer has it: the demo with the shop beside it, in a real browser on a phone's screen."""

import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Page, Route, expect
from tests.doc_blocks import code_of
from tests.scenarios.program import surroundings
from tests.scenarios.shops import (
    OTHER_CARD,
    REFUSED_CARD,
    LostReplies,
    Shop,
    approve,
    news,
    phone_at,
    running_shop,
    said_at,
    use_card,
)
from tests.scenarios.waiting import until
from tests.sources import ROOT

HEAR = ROOT / "examples" / "hear.py"
NUMBER = "0123456789ab"

pytestmark = [pytest.mark.browser, pytest.mark.integration]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The demo with the shop, as `make demo` starts it."""
    with running_shop(tmp_path_factory.mktemp("shop"), "python/shop.py") as shop:
        yield shop


@pytest_asyncio.fixture
async def phone(shop: Shop) -> AsyncIterator[Page]:
    """The shop on a phone of somebody's own."""
    async with phone_at(shop.address) as page:
        yield page


@pytest.fixture
def receiver(shop: Shop, tmp_path: Path) -> Iterator[Path]:
    """What the receiver of the README prints; it is stopped by Ctrl-C, and ends without complaint."""
    heard = tmp_path / "heard"
    address = {"PAYRELAY": f"{shop.service}/gateway/api", "PAYRELAY_KEY": shop.key}
    with heard.open("wb") as output:
        process = subprocess.Popen([sys.executable, HEAR], env=surroundings(address), stdout=output, stderr=output)
    until(lambda: "listening" in heard.read_text() or process.poll() is not None, "the receiver listens")
    yield heard
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0, heard.read_text()
    assert "Traceback" not in heard.read_text()


async def test_a_newcomer_approves_a_card_pays_and_joins(phone: Page) -> None:
    """From nothing to a paid order, a subscription that was ended, and webhooks that say so, by the browser alone."""
    await approve(phone)
    await news(phone, "Your card was approved")
    await phone.get_by_role("button", name="Pay Copper kettle").click()
    await said_at(phone, "Copper kettle", "Paid LKR 7450.00")
    await news(phone, "Your payment arrived, LKR 7450.00")
    await phone.get_by_role("button", name="Join the club").click()
    await use_card(phone, OTHER_CARD)
    await news(phone, "A month of the club was paid")
    await phone.get_by_role("button", name="Leave the club").click()
    await news(phone, "Your membership has ended")
    await expect(phone.get_by_role("button", name="Join the club")).to_be_visible()
    await expect(phone.get_by_role("button", name="Leave the club")).to_be_hidden()

    await phone.reload()
    await news(phone, "Your membership has ended")
    await expect(phone.get_by_role("button", name="Join the club")).to_be_visible()


async def test_two_presses_with_a_lost_reply_and_a_reload_are_one_charge(phone: Page, shop: Shop) -> None:
    """The first press charged, and nothing said so: whoever presses again must not pay a second time."""
    await approve(phone)
    before = len(shop.charges_of("cups"))
    lost = LostReplies(phone)
    await lost.begin()
    await phone.get_by_role("button", name="Pay Six cups").click()
    await said_at(phone, "Six cups", "Asking again")
    await phone.reload()
    await said_at(phone, "Six cups", "We don't know yet whether this was paid. Press again to ask: you pay once.")
    await lost.end()
    await phone.get_by_role("button", name="Pay Six cups").click()
    await said_at(phone, "Six cups", "Paid LKR 2400.00")

    assert len(set(lost.orders)) == len(set(lost.keys)) == 1
    assert None not in lost.keys
    assert len(shop.charges_of("cups")) == before + 1
    assert [each["state"] for each in shop.operations(lost.orders[0])] == ["succeeded"]


async def test_what_goes_wrong_by_a_press_is_told_and_charges_once(phone: Page, shop: Shop) -> None:
    """The product's point, shown by the thumb: a lost reply, two presses and a reload are one charge."""
    await approve(phone)
    before = len(shop.charges_of("cups"))
    await phone.get_by_role("button", name="Lose the next reply").click()
    await expect(phone.locator("#trouble-told")).to_contain_text("its reply will be lost")
    await phone.get_by_role("button", name="Pay Six cups").click()
    await said_at(phone, "Six cups", "Paid LKR 2400.00")
    assert len(shop.charges_of("cups")) == before + 1

    await phone.get_by_role("button", name="Decline").click()
    await expect(phone.locator("#trouble-told")).to_contain_text("will be declined")
    await phone.get_by_role("button", name="Pay Six cups").click()
    await said_at(phone, "Six cups", "Not paid, nothing was taken")
    await phone.get_by_role("button", name="Notification late").click()
    await expect(phone.locator("#trouble-told")).to_contain_text("60 s late")
    await phone.get_by_role("button", name="A month passes").click()
    await expect(phone.locator("#trouble-told")).to_contain_text("A month of each subscription has passed")
    assert len(shop.charges_of("cups")) == before + 1
    shop.control("press/forget", {})  # the other tests have this gateway, too


async def test_what_was_paid_can_be_bought_once_more(phone: Page, shop: Shop) -> None:
    """Keeping an order through a lost reply must not keep a customer from buying the same thing tomorrow."""
    await approve(phone)
    before = len(shop.charges_of("tea"))
    for bought in (1, 2):
        await phone.get_by_role("button", name="Pay Ceylon tea").click()
        await said_at(phone, "Ceylon tea", "Paid LKR 950.00")
        await expect(phone.locator("#news li", has_text="Your payment arrived")).to_have_count(bought)

    assert len(shop.charges_of("tea")) == before + 2


async def test_a_decline_is_told_and_the_next_press_is_another_attempt(phone: Page, shop: Shop) -> None:
    """After a certain no the customer may try again at once, for the same order, and pays once."""
    await approve(phone)
    before = len(shop.charges_of("kettle"))
    shop.control("faults", {"script": [{"fault": "decline", "match": {"endpoint": "charge"}}]})
    await phone.get_by_role("button", name="Pay Copper kettle").click()
    await said_at(phone, "Copper kettle", "Not paid, nothing was taken")
    assert len(shop.charges_of("kettle")) == before

    await phone.reload()
    await phone.get_by_role("button", name="Pay Copper kettle").click()
    await said_at(phone, "Copper kettle", "Paid LKR 7450.00")
    assert len(shop.charges_of("kettle")) == before + 1


async def test_cards_are_listed_chosen_and_removed(phone: Page, shop: Shop) -> None:
    """Who has two cards pays with the one that is chosen, and a card that was removed is gone for good."""
    await approve(phone)
    await approve(phone, OTHER_CARD)
    await expect(phone.locator("#cards li")).to_have_count(2)
    await phone.locator("#cards li", has_text="1292").get_by_role("radio").check()
    cards = (await (await phone.request.get(f"{shop.address}/me")).json())["cards"]
    chosen = next(each["id"] for each in cards if each["card_no_masked"].endswith("1292"))
    async with phone.expect_request("**/payments/charge") as charge:
        await phone.get_by_role("button", name="Pay Ceylon tea").click()
    assert (await charge.value).post_data_json["customer_token"] == chosen  # type: ignore[index]
    await said_at(phone, "Ceylon tea", "Paid LKR 950.00")

    await phone.get_by_role("button", name="Remove VISA …1292").click()
    await expect(phone.locator("#approve-told")).to_have_text("VISA …1292 was removed. Nobody can charge it any more.")
    await expect(phone.locator("#cards li")).to_have_count(1)
    await phone.reload()
    await expect(phone.locator("#cards")).not_to_contain_text("1292")


async def test_a_card_of_an_open_payment_stays(phone: Page) -> None:
    """What became of a payment is asked with its card: without it the customer would never learn it here."""
    await approve(phone)
    lost = LostReplies(phone)
    await lost.begin()
    await phone.get_by_role("button", name="Pay Six cups").click()
    await said_at(phone, "Six cups", "Asking again")
    await phone.reload()
    await phone.get_by_role("button", name="Remove").click()
    await expect(phone.locator("#cards .told")).to_contain_text("we don't know yet what became of that")
    await expect(phone.locator("#cards li")).to_have_count(1)


async def test_nobody_pays_with_removes_or_ends_what_is_anothers(phone: Page, shop: Shop) -> None:
    """The shop's key reaches everybody's card and subscription, so that the shop itself must ask whose they are."""
    await approve(phone)
    card = (await (await phone.request.get(f"{shop.address}/me")).json())["cards"][0]["id"]
    order = {"goods": "tea", "card": card, "number": NUMBER}
    own = await phone.request.post(f"{shop.address}/orders", data=order)
    stranger = await (await phone.context.browser.new_context()).new_page()  # type: ignore[union-attr]
    await stranger.goto(shop.address)
    foreign = await stranger.request.post(f"{shop.address}/orders", data=order)
    removed = await stranger.request.delete(f"{shop.address}/cards/{card}")
    kept = (await (await phone.request.get(f"{shop.address}/me")).json())["cards"]

    assert (own.status, foreign.status, removed.status) == (200, 404, 404)
    assert [each["id"] for each in kept] == [card]


async def test_the_shops_page_loads_and_asks_only_what_is_its_own(phone: Page, shop: Shop) -> None:
    """A page that holds a token for paying runs no script of anybody else's."""
    answer = await phone.request.get(shop.address)
    policy = answer.headers["content-security-policy"]

    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy


async def test_a_refused_card_is_told_and_nothing_is_kept(phone: Page) -> None:
    """The gateway's page says why; whoever turns back finds the shop as it was, and may begin again."""
    await phone.get_by_role("button", name="Add a card").click()
    await use_card(phone, REFUSED_CARD)
    await phone.get_by_role("button", name="Cancel").click()
    await expect(phone.get_by_role("button", name="Pay Copper kettle")).to_be_disabled()
    await approve(phone)


async def test_the_shop_fits_a_phone_and_can_be_used_by_everybody(phone: Page) -> None:
    """Labels, contrast and structure, what a screen reader needs; and nothing to scroll sideways for."""
    await approve(phone)
    await phone.get_by_role("button", name="Pay Ceylon tea").click()
    await said_at(phone, "Ceylon tea", "Paid")
    found = await Axe().run(phone)

    assert found.violations_count == 0, found.generate_report()
    assert await phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


async def test_who_presses_again_is_led_to_the_same_page(phone: Page, shop: Shop) -> None:
    """A page whose answer was lost may be paid: another order would be a second subscription."""
    wanted = {"number": NUMBER}
    first, again = [await (await phone.request.post(f"{shop.address}/club", data=wanted)).json() for _ in range(2)]
    assert first == again
    assert first["url"].startswith(shop.service)


async def test_an_app_developers_javascript_pays_once(phone: Page, shop: Shop) -> None:
    """The code of the page for app developers is copied as it is: it must pay once, whatever comes between."""
    await approve(phone)
    card = (await (await phone.request.get(f"{shop.address}/me")).json())["cards"][0]["id"]
    wanted = {"goods": "tea", "card": card, "number": "ba9876543210"}
    order = await (await phone.request.post(f"{shop.address}/orders", data=wanted)).json()
    order["charge"]["amount"] = float(order["charge"]["amount"])
    (code,) = code_of(ROOT / "docs" / "apps.md", "javascript")
    await phone.route("**/payments/charge", lambda route: route.fulfill(status=502, body="<h1>Bad</h1>"), times=1)
    paying = f"async ({{address, token, charge}}) => {{ {code}\n return [await pay(address, token, charge), "
    paying += "await pay(address, token, charge), await pay(address, 'prt_', charge)]; }"
    first, again, refused = await phone.evaluate(paying, {**order, "address": f"{shop.service}/gateway/api"})

    assert (first["code"], again["code"], refused["code"]) == (200, 200, 401)
    assert first["told"]["data"]["payment_id"] == again["told"]["data"]["payment_id"]


async def test_a_newcomer_receives_a_webhook(phone: Page, receiver: Path) -> None:
    """The receiver of the README registers itself, and prints what was signed for it."""
    await approve(phone)

    until(lambda: {"customer.created", "checkout.completed"} <= set(receiver.read_text().split()), "both events arrive")


async def test_an_app_developers_javascript_waits_for_a_recovery_with_one_request(phone: Page, shop: Shop) -> None:
    """503 says nothing of an earlier try: the same request, no sooner than told. Where a person decides, it says so."""
    (code,) = code_of(ROOT / "docs" / "apps.md", "javascript")
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
    address = f"{shop.service}/gateway/api"
    shown = await phone.evaluate(
        f"async ([address, charge]) => {{ {code}\n return await pay(address, 'prt_', charge).catch(String); }}",
        [address, charge],
    )
    (first_s, *first), (second_s, *second) = sent
    assert shown == "Error: We are waiting for your payment. Please do not pay again."
    assert (first == second, second_s - first_s >= 2) == (True, True)
