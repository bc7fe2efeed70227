"""The shop's server side in Node and in PHP: the same page, the same stories, the same one charge."""

import shutil
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.needed import lacking
from tests.scenarios.shops import (
    EXAMPLE,
    LostReplies,
    Shop,
    approve,
    autoloader,
    news,
    phone_at,
    running_shop,
    said_at,
    use_card,
)

SIDES = {"node": "node/shop.mjs", "php": "php/index.php", "python": "python/shop.py"}
LINES_MAX = 159
GOOD_CARD = "4916217501611292"
NUMBER = "0123456789ab"

pytestmark = [pytest.mark.browser, pytest.mark.integration]


@pytest.fixture(scope="module", params=["node", "php"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The demo with one of the server sides."""
    folder = tmp_path_factory.mktemp("side")
    if request.param == "node" and shutil.which("node") is None:
        lacking("node isn't installed: apt-get install nodejs")
    more = autoloader(folder) if request.param == "php" else {}
    with running_shop(folder, SIDES[request.param], **more) as shop:
        yield shop


@pytest_asyncio.fixture
async def phone(shop: Shop) -> AsyncIterator[Page]:
    """The shop on a phone of somebody's own."""
    async with phone_at(shop.address) as page:
        yield page


async def test_a_newcomer_approves_a_card_pays_and_joins(phone: Page) -> None:
    """The page can't tell which language answers it: a card, a paid order, a membership that ends, and news of all."""
    await approve(phone)
    await news(phone, "Your card was approved")
    await phone.get_by_role("button", name="Pay Copper kettle").click()
    await said_at(phone, "Copper kettle", "Paid LKR 7450.00")
    await news(phone, "Your payment arrived, LKR 7450.00")
    await phone.get_by_role("button", name="Join the club").click()
    await use_card(phone, GOOD_CARD)
    await news(phone, "A month of the club was paid")
    await phone.get_by_role("button", name="Leave the club").click()
    await news(phone, "Your membership has ended")
    await expect(phone.get_by_role("button", name="Join the club")).to_be_visible()
    await phone.get_by_role("button", name="Remove").first.click()
    await news(phone, "Your card was removed")


async def test_two_presses_with_a_lost_reply_and_a_reload_are_one_charge(phone: Page, shop: Shop) -> None:
    """The same press is the same order in every language, so that the second one asks and doesn't pay."""
    await approve(phone)
    before = len(shop.charges_of("cups"))
    lost = LostReplies(phone)
    await lost.begin()
    await phone.get_by_role("button", name="Pay Six cups").click()
    await said_at(phone, "Six cups", "Asking again")
    await phone.reload()
    await lost.end()
    await phone.get_by_role("button", name="Pay Six cups").click()
    await said_at(phone, "Six cups", "Paid LKR 2400.00")

    assert len(set(lost.orders)) == 1
    assert len(shop.charges_of("cups")) == before + 1


async def test_nobody_pays_with_or_removes_what_is_anothers(phone: Page, shop: Shop) -> None:
    """The shop's key reaches everybody's card, so that each server side must ask whose it is."""
    await approve(phone)
    card = (await (await phone.request.get(f"{shop.address}/me")).json())["cards"][0]["id"]
    order = {"goods": "tea", "card": card, "number": NUMBER}
    stranger = await (await phone.context.browser.new_context()).new_page()  # type: ignore[union-attr]
    await stranger.goto(shop.address)
    answers = [
        await phone.request.post(f"{shop.address}/orders", data=order),
        await stranger.request.post(f"{shop.address}/orders", data=order),
        await stranger.request.delete(f"{shop.address}/cards/{card}"),
        await phone.request.post(f"{shop.address}/orders", data=order | {"goods": "gold"}),
        await phone.request.post(f"{shop.address}/orders", data=order | {"number": "1-2"}),
    ]

    assert [each.status for each in answers] == [200, 404, 404, 404, 400]


def test_it_takes_no_news_that_payrelay_did_not_sign(shop: Shop) -> None:
    """Whoever could tell the shop that an order is paid would get its goods for nothing."""
    forged = {"webhook-id": "evt_1", "webhook-timestamp": "1764000000", "webhook-signature": "v1,AAAA"}

    assert httpx.post(f"{shop.address}/webhooks", content=b"{}", headers=forged, timeout=15).status_code == 400


def test_it_shows_files_of_the_page_alone(shop: Shop) -> None:
    """Beside the page are the sources and, in a real shop, settings with a key."""
    with httpx.Client(base_url=shop.address, timeout=15) as phone:
        first, script = phone.get("/"), phone.get("/page/payrelay/index.js")
        others = [phone.get(path).status_code for path in ("/shop.json", "/page/..%2fshop.json", "/page/nothing.js")]

    assert (first.status_code, script.status_code, others) == (200, 200, [404, 404, 404])
    assert "script-src 'self'" in first.headers["content-security-policy"]
    assert "javascript" in script.headers["content-type"]
    assert "HttpOnly" in first.headers["set-cookie"] or "httponly" in first.headers["set-cookie"]


def test_a_page_that_is_asked_for_twice_is_one_and_its_key_is_on_the_disk(shop: Shop) -> None:
    """The reply of the first time may be lost, and the shop's process with it: the store finds the same key again."""
    with httpx.Client(base_url=shop.address, timeout=60) as phone:
        phone.get("/")
        stored = len(list((shop.folder / ".payrelay" / "shop" / "keys").glob("*.json")))
        first, again = (phone.post("/club", json={"number": NUMBER}).json() for _ in range(2))

    assert first == again
    assert len(list((shop.folder / ".payrelay" / "shop" / "keys").glob("*.json"))) == stored + 1


@pytest.mark.parametrize("program", [*SIDES.values(), "php/ShopController.php"])
def test_each_server_side_can_be_read_at_one_sitting(program: str) -> None:
    """Under 160 lines each: whoever copies it has read it."""
    assert len((EXAMPLE / program).read_text().splitlines()) <= LINES_MAX
