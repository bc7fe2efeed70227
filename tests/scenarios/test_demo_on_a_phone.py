"""The demo as a phone in the same network has it; 127.0.0.2 stands for this machine's address in that network."""

from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.scenarios.shops import Shop, news, phone_at, running_shop, said_at

from payrelay.demo.reach import code_of

HOST = "127.0.0.2"

pytestmark = [pytest.mark.browser, pytest.mark.integration]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The demo on another address than the machine's usual one."""
    with running_shop(tmp_path_factory.mktemp("device"), "python/shop.py", "--host", HOST) as shop:
        yield shop


@pytest_asyncio.fixture
async def phone(shop: Shop) -> AsyncIterator[Page]:
    """A phone that has scanned the code."""
    async with phone_at(shop.address) as page:
        yield page


async def tap(phone: Page, name: str) -> None:
    """Presses a button."""
    await phone.get_by_role("button", name=name).click()


async def test_a_card_is_approved_and_pays_over_the_network(phone: Page, shop: Shop) -> None:
    """Every address that the phone is led to is one that it can open: shop, gateway's page, and the way back."""
    met: set[str | None] = set()
    phone.on("request", lambda request: met.add(urlsplit(request.url).hostname))
    await tap(phone, "Add a card")
    await tap(phone, "succeeds VISA")
    await news(phone, "Your card was approved")
    await tap(phone, "Pay Six cups")
    await said_at(phone, "Six cups", "Paid LKR 2400.00")
    await news(phone, "Your payment arrived")

    assert {name for name in met if name} == {HOST}
    assert len(shop.charges_of("cups")) == 1


async def test_a_reply_that_the_gateway_loses_is_found_and_paid_once(phone: Page, shop: Shop) -> None:
    """The product's point, by one press in the simulator: the phone says that it waits, and then that it is paid."""
    await tap(phone, "Add a card")
    await tap(phone, "succeeds VISA")
    await news(phone, "Your card was approved")
    simulator = await phone.context.new_page()
    await simulator.goto(f"{shop.gateway}/_sim/")
    await tap(simulator, "Lose the next reply")
    await expect(simulator.get_by_role("status")).to_contain_text("its reply will be lost")
    await tap(phone, "Pay Copper kettle")
    await said_at(phone, "Copper kettle", "Paid LKR 7450.00")

    (charge,) = shop.charges_of("kettle")
    await simulator.goto(f"{shop.gateway}/_sim/?order_id={charge['order_id']}")
    await expect(simulator.locator("#ledger + table tbody tr")).to_have_count(1)
    await expect(simulator.get_by_text("cut_after").first).to_be_visible()


def test_the_code_of_the_shops_address_is_printed(shop: Shop) -> None:
    """Nobody types an address with a port into a phone; and what anybody in the network may do is said."""
    printed = (shop.folder / "printed").read_text()

    assert "\n".join(f"  {line}" for line in code_of(shop.address)) in printed
    assert "Whoever is in this network can use all of it" in printed
