"""Clients of the gateway that others wrote and published, unchanged, on the simulator.

``make generators`` installs them. Both have the sandbox's address in their code, so what they send there is led to the
simulator outside of them.
"""

import asyncio
import json
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Route, async_playwright
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.needed import lacking
from tests.payrelay_simulator.shop import Form, a_card, a_form
from tests.sources import ROOT

from payrelay_simulator import DEFAULT_MERCHANT, Running, World

SANDBOX: Final = "https://sandbox.payhere.lk"
HERE: Final = Path(__file__).parent / "outside"
SDK: Final = ROOT / ".venv" / "node" / "node_modules" / "payhere-js-sdk" / "lib"
PYTHON: Final = ROOT / ".venv" / "generators" / "bin" / "python"
SHOP: Final = "http://shop.example"
VISA_BUTTON: Final = "1292"

pytestmark = pytest.mark.integration


def kinds(world: World, order_id: str) -> list[str]:
    """What happened to an order."""
    return [entry.kind for entry in world.ledger.entries() if entry.order_id == order_id]


def forms() -> dict[str, Form]:
    """A form for each kind of payment of payhere-js-sdk, signed by the shop's server."""
    back = {"return_url": f"{SHOP}/returned", "cancel_url": f"{SHOP}/cancelled"}
    return {
        "payment": a_form(order_id="OutsidePayment", **back),
        "subscription": a_form(order_id="OutsideSubscription", **back),
        "preapproval": a_form(signed="10.00", order_id="OutsidePreapproval", amount="", **back),
    }


@pytest.mark.browser
async def test_payhere_js_sdk_pays_in_each_of_its_ways(running: Running, world: World) -> None:
    """A customer presses its three buttons in a browser, pays on the page, and comes back to the shop."""
    if not SDK.is_dir():
        lacking("payhere-js-sdk is not installed: make generators")
    modules = {str(path.relative_to(SDK)): path.read_text() for path in SDK.rglob("*.js")}

    async def to_the_simulator(route: Route) -> None:
        """Has the simulator answer what was sent to the sandbox, and leads to the page that it leads to."""
        answer = await route.fetch(url=route.request.url.replace(SANDBOX, running.base_url), max_redirects=0)
        way = answer.headers.get("location", "/no-page")
        await route.fulfill(
            status=answer.status, headers={"Location": f"{running.base_url}{way}"}, body=await answer.body()
        )

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(OPTIONS))
        context = await browser.new_context()
        context.set_default_timeout(PATIENCE_MS)
        await context.route(f"{SHOP}/**", lambda route: route.fulfill(content_type="text/html", body="<h1>Shop</h1>"))
        await context.route(f"{SANDBOX}/**", to_the_simulator)
        page = await context.new_page()
        for kind, form in forms().items():
            await page.goto(f"{SHOP}/basket")
            await page.evaluate((HERE / "payhere_js_sdk.js").read_text(), modules)
            await page.evaluate((HERE / "shop.js").read_text(), {"kind": kind, "form": form})
            await page.get_by_role("button", name=VISA_BUTTON).click()
            await page.wait_for_url(f"{SHOP}/returned?order_id={form['order_id']}")
        await browser.close()

    assert [kinds(world, form["order_id"]) for form in forms().values()] == [
        ["charge"],
        ["installment"],
        ["charge", "refund"],
    ]


async def test_payhere_python_signs_reads_and_is_refused(running: Running, world: World) -> None:
    """It signs a form, checks the notification, reads the payment with each member typed, and outlives its token."""
    if not PYTHON.is_file():
        lacking("payhere-python is not installed: make generators")
    form = {name: value for name, value in a_form().items() if name != "hash"}
    names = ("merchant_id", "merchant_secret", "app_id", "app_secret")
    told = {
        "SIMULATOR": running.base_url,
        "FORM": json.dumps(form),
        "CARD": json.dumps(a_card()),
        "CREDENTIALS": json.dumps({name: getattr(DEFAULT_MERCHANT, name) for name in names}),
    }
    process = await asyncio.create_subprocess_exec(
        str(PYTHON), str(HERE / "payhere_python.py.txt"), env=told, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    assert json.loads(printed) == {
        "notification": True,
        "changed": False,
        "paid": ["Order12345", 1000.0, "RECEIVED", "Saman", "VISA"],
        "fee": 33.0,
        "refund": [-1, "Simulator: description is missing"],
        "unknown": [-1, None],
        "wrong_secret": "Error retrieving access token: Bad client credentials",
    }
    assert kinds(world, "Order12345") == ["charge"]
