"""The example shop as a newcomer has it: the demo with one of its server sides beside it, and a phone that opens it."""

import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.async_api import Page, Route, async_playwright, expect
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.needed import lacking
from tests.scenarios.program import PAYRELAY, surroundings
from tests.scenarios.waiting import until
from tests.sources import ROOT

EXAMPLE: Final = ROOT / "examples" / "shop"
GOOD_CARD, REFUSED_CARD, OTHER_CARD = "4916217501611292", "4024007194349121", "5307732125531191"
PHONE: Final = {"width": 390, "height": 844}


@dataclass(frozen=True)
class Shop:
    """What a newcomer reads in the terminal, and the folder of the demo.

    Attributes:
        address, service, gateway: of the shop, of Payrelay, and of the simulator.
        key: the shop's key.
        folder: where the demo was started.
    """

    address: str
    service: str
    gateway: str
    key: str
    folder: Path

    def control(self, order: str, content: object = None) -> Any:  # noqa: ANN401 - any JSON value
        """Gives the simulator an order, and returns its answer."""
        method = "GET" if content is None else "POST"
        return httpx.request(method, f"{self.gateway}/_sim/{order}", json=content, timeout=15).json()

    def charges_of(self, goods: str) -> list[Any]:
        """What the simulator's ledger has of charges for these goods, whoever made them."""
        entries = self.control("ledger")["entries"]
        return [each for each in entries if each["kind"] == "charge" and each["order_id"].startswith(f"{goods}-")]

    def operations(self, order_id: str) -> list[Any]:
        """The operations of an order, as the shop's key sees them."""
        address = f"{self.service}/gateway/api/operations?order_id={order_id}"
        data = httpx.get(address, headers={"Authorization": f"Bearer {self.key}"}, timeout=15).json()["data"]
        assert isinstance(data, list)
        return data


@contextmanager
def running_shop(folder: Path, program: str, *options: str, **more: str) -> Iterator[Shop]:
    """The demo with a server side of the shop, as `make demo` starts it; ``more`` is its environment."""
    printed, said = folder / "printed", folder / ".payrelay" / "shop.log"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [PAYRELAY, "demo", "--port", "0", "--shop", str(EXAMPLE / program), *options],
            cwd=folder,
            env=surroundings(more),
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: "ends the" in printed.read_text() or process.poll() is not None, "the demo stands", deadline_s=60)
        found = {
            name: re.findall(rf"\b{name}\s+((?:http|prk_)\S+)", printed.read_text())[0]
            for name in ("shop", "service", "gateway", "key")
        }
        shop = Shop(found["shop"], found["service"], found["gateway"], found["key"], folder)
        until(lambda: _answers(shop.address), f"the shop answers: {said.read_text()}", deadline_s=60)
        yield shop
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(30)
    assert code == 0, printed.read_text()
    assert not re.search(r"Traceback|PHP (?:Fatal|Warning)|Error:", said.read_text()), said.read_text()


def _answers(address: str) -> bool:
    try:
        return httpx.get(address, timeout=5).is_success
    except httpx.HTTPError:
        return False


def autoloader(folder: Path) -> dict[str, str]:
    """The PHP client's classes, by composer; where PHP, composer or Laravel's parts are missing the test says so."""
    for program in ("php", "composer"):
        if shutil.which(program) is None:
            lacking(f"{program} isn't installed: apt-get install php-cli php-curl composer")
    if not Path("/usr/share/php/Illuminate/Routing").is_dir():
        lacking("Laravel's router isn't installed: apt-get install php-illuminate-http php-illuminate-routing")
    copy = folder / "client"
    shutil.copytree(ROOT / "clients" / "php", copy, ignore=shutil.ignore_patterns("vendor"))
    dump = ["env", "COMPOSER_ALLOW_SUPERUSER=1", "COMPOSER_NO_INTERACTION=1", "composer", "dump-autoload", "--quiet"]
    subprocess.run(dump, cwd=copy, check=True)
    return {"SHOP_AUTOLOAD": str(copy / "vendor" / "autoload.php")}


@asynccontextmanager
async def phone_at(address: str) -> AsyncIterator[Page]:
    """The shop on a phone of somebody's own."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(OPTIONS))
        page = await (await browser.new_context(viewport=PHONE)).new_page()  # type: ignore[arg-type]
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        await page.goto(address)
        yield page
        await browser.close()


async def use_card(phone: Page, number: str) -> None:
    """Fills in the gateway's page, and pays."""
    for name, value in (("HolderName", "S Perera"), ("No", number), ("Expiry", "12/29"), ("SecureId", "123")):
        await phone.locator(f"[name=card{name}]").fill(value)
    await phone.get_by_role("button", name="Pay").click()


async def approve(phone: Page, number: str = GOOD_CARD) -> None:
    """Has a card approved and kept."""
    await phone.get_by_role("button", name=re.compile("Add a")).click()
    await use_card(phone, number)
    await expect(phone.locator("#cards")).to_contain_text(number[-4:])


async def news(phone: Page, text: str) -> None:
    """Expects a line among what the shop heard."""
    await expect(phone.locator("#news li", has_text=text).first).to_be_visible()


async def said_at(phone: Page, goods: str, text: str) -> None:
    """Expects a sentence beside the button that pays these goods."""
    await expect(phone.locator("#goods li", has_text=goods).locator(".told")).to_contain_text(text)


class LostReplies:
    """Carries out every charge of a page, and loses the reply, until it is told to stop."""

    def __init__(self, phone: Page) -> None:
        self._phone = phone
        self.orders: list[str] = []
        self.keys: list[str | None] = []

    async def begin(self) -> None:
        """From now on replies are lost."""
        await self._phone.route("**/payments/charge", self._lose)

    async def end(self) -> None:
        """From now on they arrive."""
        await self._phone.unroute("**/payments/charge", self._lose)

    async def _lose(self, route: Route) -> None:
        self.orders.append((route.request.post_data_json or {})["order_id"])
        self.keys.append(await route.request.header_value("idempotency-key"))
        await route.fetch()
        await route.abort()
