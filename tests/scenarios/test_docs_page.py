"""The docs page in a real browser: a person can try calls from it, and nothing is fetched from elsewhere."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Locator, Page, async_playwright, expect
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.scenarios.gateway_double import CHARGE, SEARCH, GatewayDouble, found, payment_now, says
from tests.scenarios.program import Program, account
from tests.scenarios.stories import Scene, charge_body, fresh

pytestmark = [pytest.mark.browser, pytest.mark.integration]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A person before the page, and what the browser asked for and complained of."""

    page: Page
    origin: str
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    async def open(self) -> None:
        """Opens the docs and waits until the reference is drawn."""
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        await self.page.goto(f"{self.origin}/docs")
        await self.page.locator(".opblock").first.wait_for()

    async def authorize(self, key: str) -> None:
        """Gives the key to the page's own dialog."""
        await self.page.get_by_role("button", name="Authorize", exact=True).click()
        await self.page.locator(".auth-container input").fill(key)
        await self.page.locator(".auth-container button[type=submit]").click()
        await self.page.locator(".auth-container .btn-done").click()

    async def unfold(self, name: str) -> Locator:
        """Opens an operation's form."""
        operation = self.page.locator(f'[id^="operations-"][id$="-{name}"]')
        await operation.locator(".opblock-summary-control").click()
        await operation.locator("button.execute").wait_for()
        return operation

    async def execute(self, operation: Locator) -> tuple[str, str]:
        """Sends the call; the status and the body as the page shows them."""
        await operation.locator("button.execute").click()
        shown = operation.locator(".live-responses-table tbody tr.response")
        await expect(shown).to_be_visible(timeout=PATIENCE_MS)
        status = await shown.locator(".response-col_status").inner_text()
        return status.split()[0], await shown.locator(".highlight-code code").first.inner_text()

    def assert_kept_to_itself(self) -> None:
        """Every request went to the service, and the browser had nothing to complain of: no breach of the policy."""
        assert self.asked
        # data: and blob: stand in the page itself.
        elsewhere = [url for url in self.asked if not url.startswith((f"{self.origin}/", "data:", "blob:"))]
        assert (elsewhere, self.complaints) == ([], [])


@pytest.fixture(scope="module")
def scene(folder: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """A service with one account: a browser takes many seconds to draw the calls of twenty."""
    program = Program(folder, account("gateway", gateway.base_url))
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


@pytest_asyncio.fixture
async def reader(scene: Scene) -> AsyncIterator[Reader]:
    """A reader who has opened the page; at the end the browser must have kept to the service."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(OPTIONS))
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        reader = Reader(page=page, origin=f"http://127.0.0.1:{scene.program.port}")
        await reader.open()
        yield reader
        await browser.close()
    reader.assert_kept_to_itself()


async def test_a_person_tries_calls_from_the_docs(reader: Reader, scene: Scene) -> None:
    """With a key in the dialog, a read and a charge show the gateway's own answers in the page."""
    order_id = fresh("order")
    scene.gateway.script(SEARCH, order_id, says(found(payment_now(order_id, "77.25"))))
    key = await asyncio.to_thread(scene.program.new_key, fresh("reader"))  # a command has an event loop of its own
    await reader.authorize(key)

    read = await reader.unfold("retrievePayments")
    await read.locator("tr[data-param-name=id] input").fill(order_id)
    status, body = await reader.execute(read)
    assert (status, order_id in body, "77.25" in body) == ("200", True, True), body

    charge = await reader.unfold("charge")
    await charge.locator("textarea.body-param__text").fill(json.dumps(charge_body(order_id, amount=77)))
    status, body = await reader.execute(charge)
    assert (status, order_id in body, scene.gateway.count(CHARGE, order_id)) == ("200", True, 1), body


async def test_a_call_without_a_key_is_refused_in_the_page(reader: Reader) -> None:
    """Who forgot to authorize sees our 401 and its code, and not a dead page."""
    operation = await reader.unfold("listSubscriptions")
    status, body = await reader.execute(operation)
    assert (status, json.loads(body)["error"]["code"]) == ("401", "unauthenticated"), body
    # The browser itself notes every 401 as an error.
    reader.complaints[:] = [text for text in reader.complaints if "401" not in text]


async def test_the_docs_can_be_read_by_all(reader: Reader) -> None:
    """Somebody with a screen reader or weak eyes can use the docs: axe finds nothing, folded, unfolded or answered."""
    await reader.execute(await reader.unfold("charge"))
    answered = await Axe().run(reader.page)
    await reader.page.get_by_role("button", name="Authorize", exact=True).click()
    await reader.page.locator(".auth-container input").wait_for()
    asked = await Axe().run(reader.page)
    reader.complaints[:] = [text for text in reader.complaints if "401" not in text]
    for results in (answered, asked):
        assert results.violations_count == 0, results.generate_report()
