"""From an app's request to a paid order, in a real browser: our page, the gateway's pages, and the way back."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, BrowserContext, Page, Route, async_playwright, expect
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.program import Program, free_port, simulated_account
from tests.scenarios.stories import assert_refused, fresh

import payrelay_simulator
from payrelay_simulator import Running

SHOP = "https://shop.example"
CONTINUE = "Continue to the payment provider"
LATE_S = 600
"""Of the simulator's clock, which the test moves: longer than any browser takes."""
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
VISA, POOR_VISA = "4916217501611292", "4024007194349121"
CUSTOMER = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "address": "No. 1, Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The service, the gateway behind it and an app with a key; the gateway lives in the test's own loop."""

    program: Program
    gateway: Running
    client: Client

    async def post(self, body: dict[str, Any], key: str | None = None) -> Reply:
        """Asks for a checkout."""
        return await asyncio.to_thread(self.client.post, "checkouts", body, key=key)

    async def opened(self, **changes: object) -> dict[str, Any]:
        """A new checkout on an order of its own."""
        reply = await self.post(body(**changes))
        assert reply.status == 200, str(reply)
        data = reply.json["data"]
        assert isinstance(data, dict)
        return data

    async def shown(self, checkout_id: str) -> dict[str, Any]:
        """The checkout as the app is shown it."""
        reply = await asyncio.to_thread(self.client.get, f"checkouts/{checkout_id}")
        assert reply.status == 200, str(reply)
        data = reply.json["data"]
        assert isinstance(data, dict)
        return data

    async def wait_for(self, checkout_id: str, state: str) -> dict[str, Any]:
        """The checkout, once it is in that state."""
        data = await self.shown(checkout_id)
        end_s = asyncio.get_running_loop().time() + PATIENCE_MS / 1000
        while data["state"] != state:
            assert asyncio.get_running_loop().time() < end_s, f"{checkout_id} is {data['state']}, not {state}"
            await asyncio.sleep(0.05)
            data = await self.shown(checkout_id)
        return data

    def charged(self, order_id: str) -> int:
        """How often the order was paid, by the gateway's own ledger."""
        return sum(1 for entry in self.gateway.simulator.ledger() if entry.order_id == order_id)


def body(**changes: object) -> dict[str, Any]:
    """A payment with what is required, but for what is named; None leaves a member out."""
    members: dict[str, Any] = {
        "type": "payment",
        "order_id": fresh("order"),
        "items": "Door bell",
        "currency": "LKR",
        "amount": 1000,
        "customer": CUSTOMER,
        "return_to": f"{SHOP}/done",
        "cancel_to": f"{SHOP}/basket",
        **changes,
    }
    return {name: value for name, value in members.items() if value is not None}


@asynccontextmanager
async def opened_scene(folder: Path) -> AsyncIterator[Scene]:
    """Starts the program as an operator does, with a gateway of its own."""
    simulator = payrelay_simulator.Simulator()
    async with payrelay_simulator.serve(simulator) as running:
        port = free_port()
        settings = simulated_account(running.base_url, simulator.merchant)
        more = {"PAYRELAY_PUBLIC_URL": f"http://127.0.0.1:{port}", "PAYRELAY_RETURN_LINKS": f"{SHOP}/*,myshop://"}
        logo = folder / "logo.png"
        logo.write_bytes(PNG)
        look = {"SHOP_NAME": "Perera Stores", "SHOP_LOGO": str(logo), "SHOP_COLOUR": "#ffd700"}
        more |= {f"PAYRELAY_GATEWAYS__GATEWAY__{name}": value for name, value in look.items()}
        program = Program(folder, settings | more)
        key = await asyncio.to_thread(program.new_key, "shop")
        await asyncio.to_thread(program.start, port)
        yield Scene(program=program, gateway=running, client=program.client(key))
        await asyncio.to_thread(program.kill)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """Gives the scene of all stories in which time passes by itself."""
    async with opened_scene(tmp_path_factory.mktemp("scene")) as scene:
        yield scene


@pytest_asyncio.fixture(loop_scope="module")
async def scene(shared_scene: Scene) -> AsyncIterator[Scene]:
    """Gives the shared scene, and takes the faults back that a story has ordered."""
    yield shared_scene
    caller = Client(port=int(shared_scene.gateway.base_url.rpartition(":")[2]), key=None)
    assert (await asyncio.to_thread(caller.send, "DELETE", "/_sim/faults")).status == 200


@pytest_asyncio.fixture(loop_scope="module")
async def late_scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """Gives a scene to a story that moves the gateway's clock."""
    async with opened_scene(tmp_path) as scene:
        yield scene


@dataclass
class Person:
    """A customer before a browser; ``arrived`` is where the app's own links were followed to."""

    context: BrowserContext
    page: Page
    arrived: list[str] = field(default_factory=list)

    async def pay(self, number: str = VISA) -> None:
        """Types a card into the gateway's page, and pays."""
        await self.page.get_by_label("Name on the card").fill("S Perera")
        await self.page.get_by_label("Card number").fill(number)
        await self.page.get_by_label("Expires").fill("12/29")
        await self.page.get_by_label("Security code").fill("123")
        await self.page.locator("#pay").click()

    async def at_the_gateway(self, url: str) -> None:
        """Opens our page, and stands on the gateway's."""
        await self.page.goto(url)
        await self.page.locator("#pay").wait_for()

    async def is_told(self, heading: str) -> None:
        """Waits until the page has this heading."""
        await expect(self.page.get_by_role("heading", level=1)).to_have_text(heading, timeout=PATIENCE_MS)

    async def is_back_at(self, address: str) -> None:
        """Waits until the app's own link was followed."""
        await self.page.wait_for_url(f"{address}*")


Entering = Callable[..., Awaitable[Person]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Gives the one browser of these stories."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(OPTIONS))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def person(browser: Browser) -> AsyncIterator[Entering]:
    """Gives customers with windows of their own; no page may have complained at the end, as of its policy."""
    complaints: list[str] = []
    contexts: list[BrowserContext] = []

    async def enter(*, has_scripts: bool = True, locale: str = "en-GB") -> Person:
        context = await browser.new_context(java_script_enabled=has_scripts, locale=locale)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        person = Person(context, await context.new_page())

        async def arrive(route: Route) -> None:
            person.arrived.append(route.request.url)
            await route.fulfill(body="<h1>the shop</h1>", content_type="text/html")

        await context.route(f"{SHOP}/**", arrive)
        return person

    yield enter
    for context in contexts:
        await context.close()
    # A status of 4xx is noted as an error by the browser itself.
    assert [text for text in complaints if "status of 4" not in text] == []


async def assert_accessible(page: Page) -> None:
    """Nothing that keeps people out, by the rules that can be tried by a machine."""
    results = await Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


@pytest.mark.browser
async def test_a_customer_pays_and_comes_back_to_the_shop(scene: Scene, person: Entering) -> None:
    """One link, the gateway's page, and the shop again, with an outcome that we know by proof."""
    somebody, checkout = await person(), await scene.opened()
    await somebody.at_the_gateway(checkout["url"])
    await somebody.pay()
    await somebody.is_back_at(f"{SHOP}/done")
    done = await scene.wait_for(checkout["id"], "completed")

    assert done["payment_id"].isdigit()
    assert scene.charged(done["order_id"]) == 1
    assert f"checkout={checkout['id']}" in somebody.arrived[-1]


@pytest.mark.browser
async def test_it_works_without_scripts(scene: Scene, person: Entering) -> None:
    """By a button; what the page says, an assistive program can read."""
    somebody, checkout = await person(has_scripts=False), await scene.opened()
    await somebody.page.goto(checkout["url"])
    await expect(somebody.page.get_by_role("heading", level=1)).to_have_text("Pay")
    await somebody.page.get_by_role("button", name=CONTINUE).click()
    await somebody.pay()
    await somebody.is_back_at(f"{SHOP}/done")

    await scene.wait_for(checkout["id"], "completed")


@pytest.mark.browser
async def test_a_refused_card_can_be_followed_by_another(scene: Scene, person: Entering) -> None:
    """The refusal is told, and the payment after it counts."""
    somebody, checkout = await person(), await scene.opened()
    await somebody.at_the_gateway(checkout["url"])
    await somebody.pay(POOR_VISA)
    await somebody.page.locator("#problem").wait_for()
    await scene.wait_for(checkout["id"], "failed")
    await somebody.pay()
    await somebody.is_back_at(f"{SHOP}/done")

    await scene.wait_for(checkout["id"], "completed")
    assert scene.charged(checkout["order_id"]) == 1


@pytest.mark.browser
async def test_who_cancels_comes_to_the_basket_and_may_begin_again(scene: Scene, person: Entering) -> None:
    """Nothing was taken, and the order is free for another checkout."""
    somebody, checkout = await person(), await scene.opened()
    await somebody.at_the_gateway(checkout["url"])
    await somebody.page.locator("#cancel").click()
    await somebody.is_back_at(f"{SHOP}/basket")
    assert (await scene.shown(checkout["id"]))["state"] == "cancelled"

    again = await scene.opened(order_id=checkout["order_id"])
    await somebody.at_the_gateway(again["url"])
    await somebody.pay()
    await scene.wait_for(again["id"], "completed")
    assert scene.charged(checkout["order_id"]) == 1


@pytest.mark.browser
async def test_who_goes_back_finds_the_button_and_can_go_on(scene: Scene, person: Entering) -> None:
    """The same form again, as long as it isn't paid."""
    somebody, checkout = await person(has_scripts=False), await scene.opened()
    await somebody.page.goto(checkout["url"])
    button = somebody.page.get_by_role("button", name=CONTINUE)
    await button.click()
    await somebody.page.locator("#pay").wait_for()
    await somebody.page.go_back()
    await button.click()
    await somebody.pay()
    await somebody.is_back_at(f"{SHOP}/done")

    await scene.wait_for(checkout["id"], "completed")
    assert scene.charged(checkout["order_id"]) == 1


@pytest.mark.browser
async def test_who_goes_back_from_the_gateway_is_in_the_shop(scene: Scene, person: Entering) -> None:
    """A page that presses its own button must not make the back button dead."""
    somebody, checkout = await person(), await scene.opened()
    await somebody.page.goto(f"{SHOP}/basket")
    await somebody.at_the_gateway(checkout["url"])
    await somebody.page.go_back()

    assert somebody.page.url == f"{SHOP}/basket"


@pytest.mark.browser
async def test_a_double_click_pays_once(scene: Scene, person: Entering) -> None:
    """On our button, and on the gateway's."""
    somebody, checkout = await person(has_scripts=False), await scene.opened()
    await somebody.page.goto(checkout["url"])
    await somebody.page.get_by_role("button", name=CONTINUE).dblclick()
    await somebody.page.get_by_label("Name on the card").fill("S Perera")
    await somebody.page.get_by_label("Card number").fill(VISA)
    await somebody.page.get_by_label("Expires").fill("12/29")
    await somebody.page.get_by_label("Security code").fill("123")
    await somebody.page.locator("#pay").dblclick()
    await scene.wait_for(checkout["id"], "completed")

    assert scene.charged(checkout["order_id"]) == 1


@pytest.mark.browser
async def test_a_closed_tab_is_opened_again(scene: Scene, person: Entering) -> None:
    """The same link leads on, until it is paid; then it says so."""
    somebody, checkout = await person(), await scene.opened(return_to=None, cancel_to=None)
    await somebody.at_the_gateway(checkout["url"])
    await somebody.page.close()
    somebody.page = await somebody.context.new_page()
    await somebody.page.goto(checkout["url"])
    await assert_accessible(somebody.page)
    await somebody.page.get_by_role("button", name=CONTINUE).click()
    await somebody.pay()
    await somebody.is_told("Payment received")
    await assert_accessible(somebody.page)
    await somebody.page.goto(checkout["url"])

    await somebody.is_told("Payment received")
    assert await somebody.page.locator("form").count() == 0


@pytest.mark.browser
async def test_who_pays_and_never_comes_back_has_paid(scene: Scene, person: Entering) -> None:
    """The tab was closed on the gateway's page, and the notification lost: the gateway shows it to whoever asks."""
    rule = {"notifications": [{"fault": "lost", "times": None}]}
    await post_to_gateway(scene, "/_sim/faults", rule)
    somebody, checkout = await person(), await scene.opened()
    await somebody.context.route(f"http://127.0.0.1:{scene.program.port}/gateway/checkouts/**/return*", drop)
    await somebody.at_the_gateway(checkout["url"])
    await somebody.pay()

    done = await scene.wait_for(checkout["id"], "completed")
    assert (done["payment_id"] is not None, scene.charged(checkout["order_id"])) == (True, 1)


async def drop(route: Route) -> None:
    """Ends a request as a closed tab does."""
    await route.abort()


async def say_nothing(route: Route) -> None:
    """Answers with a script that does nothing."""
    await route.fulfill(body="", content_type="text/javascript")


async def post_to_gateway(scene: Scene, path: str, value: dict[str, Any]) -> None:
    """Tells the gateway what to do."""
    port = int(scene.gateway.base_url.rpartition(":")[2])
    caller = Client(port=port, key=None)
    headers = [("Content-Type", "application/json")]
    reply = await asyncio.to_thread(caller.send, "POST", path, encoded(value), headers)
    assert reply.status == 200, str(reply)


def encoded(value: dict[str, Any]) -> bytes:
    """The value as JSON."""
    return json.dumps(value).encode()


KINDS: dict[str, dict[str, object]] = {
    "payment": {},
    "preapproval": {"amount": None, "customer_reference": "user-17"},
    "recurring": {"recurrence": "1 Month", "duration": "1 Year"},
    "authorization": {},
}


@pytest.mark.browser
@pytest.mark.parametrize("news", ["at once", "late", "never"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_refused_card_and_a_good_one_end_in_what_is_true(
    late_scene: Scene, person: Entering, kind: str, news: str
) -> None:
    """Until it is known that the good card was taken, the page waits; neither it nor the link says that it failed."""
    somebody, checkout = await person(), await late_scene.opened(type=kind, **KINDS[kind])
    await somebody.at_the_gateway(checkout["url"])
    await somebody.pay(POOR_VISA)
    await somebody.page.locator("#problem").wait_for()
    await late_scene.wait_for(checkout["id"], "failed")
    if news != "at once":
        late = {"args": {"wait_s": LATE_S}}
        told = {"fault": "late"} | late if news == "late" else {"fault": "lost"}
        await post_to_gateway(late_scene, "/_sim/faults", {"script": [{"fault": "late_visibility"} | late]})
        await post_to_gateway(late_scene, "/_sim/faults", {"notifications": [told]})
    await somebody.pay()
    if news != "at once":
        await somebody.is_told("An attempt did not succeed")
        await somebody.page.wait_for_event("load")  # it loads itself again
        await somebody.is_told("An attempt did not succeed")
        link = somebody.page.get_by_role("link", name="Go back without waiting")
        assert (await link.get_attribute("href") or "").endswith("&state=open")
        assert "charged" not in await somebody.page.inner_text("main")
        assert somebody.arrived == []
        await post_to_gateway(late_scene, "/_sim/clock", {"advance_s": LATE_S})
    state = "notified" if kind == "authorization" else "completed"
    if news != "never" or kind in {"payment", "recurring"}:
        await somebody.is_back_at(f"{SHOP}/done")
        assert [urlsplit(address).query.rpartition("=")[2] for address in somebody.arrived] == [state]
        assert (await late_scene.shown(checkout["id"]))["state"] == state
    else:
        await somebody.page.reload()
        await somebody.is_told("An attempt did not succeed")
        assert somebody.arrived == []


@pytest.mark.browser
async def test_a_second_tab_cancels_nothing_that_the_first_has_paid(late_scene: Scene, person: Entering) -> None:
    """The page is opened twice, paid in one tab and left in the other, and no news comes: the links say ``open``."""
    late = {"wait_s": LATE_S}
    await post_to_gateway(late_scene, "/_sim/faults", {"script": [{"fault": "late_visibility", "args": late}]})
    await post_to_gateway(
        late_scene, "/_sim/faults", {"notifications": [{"fault": "late", "args": late, "times": None}]}
    )
    somebody, checkout = await person(), await late_scene.opened()
    await somebody.at_the_gateway(checkout["url"])
    first, somebody.page = somebody.page, await somebody.context.new_page()
    await somebody.page.goto(checkout["url"])
    await expect(somebody.page.locator("main")).to_contain_text("This page was opened before.")
    await somebody.page.get_by_role("button", name=CONTINUE).click()
    await somebody.page.locator("#pay").wait_for()
    second, somebody.page = somebody.page, first
    await somebody.pay()
    await somebody.is_told("One moment")
    somebody.page = second
    await somebody.page.locator("#cancel").click()
    await somebody.is_back_at(f"{SHOP}/basket")
    assert somebody.arrived[-1].endswith("&state=open")
    somebody.page = first
    await somebody.is_told("Cancelled, as far as we know")
    await post_to_gateway(late_scene, "/_sim/clock", {"advance_s": LATE_S})
    await somebody.is_back_at(f"{SHOP}/done")

    assert somebody.arrived[-1].endswith("&state=completed")
    assert late_scene.charged(checkout["order_id"]) == 1


@pytest.mark.browser
@pytest.mark.parametrize("has_scripts", [True, False])
async def test_who_reloads_and_goes_back_is_not_sent_to_pay_again(
    late_scene: Scene, person: Entering, *, has_scripts: bool
) -> None:
    """No news of the payment has come: the page says so however it is reached, and presses no button by itself."""
    late = {"args": {"wait_s": LATE_S}}
    await post_to_gateway(late_scene, "/_sim/faults", {"script": [{"fault": "late_visibility"} | late]})
    await post_to_gateway(late_scene, "/_sim/faults", {"notifications": [{"fault": "late"} | late]})
    somebody, checkout = await person(has_scripts=has_scripts), await late_scene.opened()
    await somebody.page.goto(checkout["url"])
    if not has_scripts:
        await somebody.page.get_by_role("button", name=CONTINUE).click()
    await somebody.pay()
    await somebody.is_told("One moment")
    await somebody.page.reload()
    await somebody.is_told("One moment")
    await somebody.page.goto(checkout["url"])
    await expect(somebody.page.locator("main")).to_contain_text("look at the outcome first")
    await somebody.page.get_by_role("link", name="Look at the outcome").click()
    await somebody.is_told("One moment")
    await somebody.page.go_back()
    await somebody.is_told("Pay")
    assert somebody.arrived == []
    await post_to_gateway(late_scene, "/_sim/clock", {"advance_s": LATE_S})
    await late_scene.wait_for(checkout["id"], "completed")
    await somebody.page.reload()
    await somebody.is_back_at(f"{SHOP}/done")

    assert somebody.arrived[-1].endswith("&state=completed")
    assert late_scene.charged(checkout["order_id"]) == 1


@pytest.mark.browser
@pytest.mark.parametrize(
    ("locale", "heading"), [("si-LK", "මොහොතක් රැඳී සිටින්න"), ("ta-LK", "சற்றுப் பொறுங்கள்"), ("en-US", "One moment")]
)
async def test_a_page_speaks_the_browsers_language(scene: Scene, person: Entering, locale: str, heading: str) -> None:
    """With the shop's name, order and amount, and by the rules of accessibility."""
    somebody, checkout = await person(locale=locale), await scene.opened()
    await somebody.page.goto(f"{checkout['url']}/return")
    await somebody.is_told(heading)
    text = await somebody.page.inner_text("main")

    assert {"Perera Stores", checkout["order_id"], "LKR\u00a01,000.00"} <= set(text.splitlines())
    assert await somebody.page.locator("html").get_attribute("lang") == locale[:2]
    await assert_accessible(somebody.page)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("changes", "state", "outcome"),
    [
        ({"type": "preapproval", "amount": None, "customer_reference": "user-17"}, "completed", "customer_id"),
        (
            {"type": "recurring", "recurrence": "1 Month", "duration": "1 Year", "startup_fee": 50},
            "completed",
            "subscription_id",
        ),
        ({"type": "authorization"}, "notified", None),
    ],
    ids=["approval", "plan", "hold"],
)
async def test_every_kind_comes_to_its_end(
    scene: Scene, person: Entering, changes: dict[str, object], state: str, outcome: str | None
) -> None:
    """By the gateway's notification, with what came of it; an authorization is proved by its capture alone."""
    somebody, checkout = await person(), await scene.opened(**changes)
    await somebody.at_the_gateway(checkout["url"])
    await somebody.pay()
    await somebody.is_back_at(f"{SHOP}/done")
    done = await scene.wait_for(checkout["id"], state)

    assert outcome is None or done[outcome]


@pytest.mark.browser
async def test_our_pages_keep_nobody_out(scene: Scene, person: Entering) -> None:
    """The form, the waiting and what is said of a wrong address."""
    somebody, checkout = await person(), await scene.opened(return_to=None, cancel_to=None)
    await somebody.context.route("**/continue.js", say_nothing)
    for rest in ("", "/return", "x", "/cancel"):
        await somebody.page.goto(checkout["url"] + rest, wait_until="load")
        await assert_accessible(somebody.page)


async def test_a_form_of_our_own_hands_is_taken_by_the_gateway(scene: Scene) -> None:
    """For those who post it on their own: the fields of the answer, from a page of theirs."""
    checkout = await scene.opened()
    port = int(scene.gateway.base_url.rpartition(":")[2])
    target = checkout["form"]["action"].removeprefix(scene.gateway.base_url)
    headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Referer", f"{SHOP}/")]
    form = urlencode(checkout["form"]["fields"]).encode()
    reply = await asyncio.to_thread(Client(port=port, key=None).send, "POST", target, form, headers)

    assert (reply.status, "/pay/visits/" in (reply.header("location") or "")) == (303, True), str(reply)


async def test_an_outcome_in_an_address_is_not_believed(scene: Scene) -> None:
    """Anybody can write one."""
    checkout = await scene.opened(return_to=None)
    page = urlsplit(checkout["url"]).path
    reply = await asyncio.to_thread(
        scene.client.holding(None).send,
        "GET",
        f"{page}/return?order_id={checkout['order_id']}&status=2&state=completed",
    )

    assert (reply.status, b"One moment" in reply.body) == (200, True), str(reply)
    assert (await scene.shown(checkout["id"]))["state"] == "open"


async def test_a_repeat_is_the_same_checkout_and_another_body_is_refused(scene: Scene) -> None:
    """As with every other request that begins something."""
    wanted, key = body(), fresh("key")
    first, again = await scene.post(wanted, key), await scene.post(wanted, key)

    assert again.body == first.body
    assert again.header("idempotent-replayed") == "true"
    assert_refused(await scene.post({**wanted, "amount": 5}, key), 422, "idempotency_mismatch")
    assert_refused(await scene.post({**wanted, "amount": 5}), 409, "in_progress")


async def test_no_secret_and_no_person_is_in_the_log(scene: Scene) -> None:
    """Whoever reads the log must not open a customer's page."""
    checkout = await scene.opened()
    path = urlsplit(checkout["url"]).path
    for rest in ("", "/return", "/cancel", "/nothing"):
        await asyncio.to_thread(scene.client.holding(None).send, "GET", path + rest)
    log = scene.program.log()

    assert path.rpartition("/")[2] not in log
    assert not [value for value in CUSTOMER.values() if value in log]
