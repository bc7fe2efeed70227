"""The console of the running program: who reaches it, and a first administrator's way in, in Chromium."""

import http.client
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyotp
import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, Page, async_playwright, expect
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, free_port
from tests.scenarios.stories import settings_for

PASSWORD = "correct horse battery"
ADD = ("operators", "add", "ada@shop.example", "--name", "Ada", "--role", "admin", "--reason", "the first")
PICTURES = os.environ.get("CONSOLE_PICTURES")
"""A folder for pictures of each page, for who wants to look at them."""


def answer_at(port: int, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    """Asks without a cookie."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


@pytest.fixture
def program(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Program]:
    """A program with a console, not started."""
    made = Program(tmp_path, settings_for(gateway) | {"PAYRELAY_CONSOLE__ENABLED": "true"})
    yield made
    made.kill()


def test_the_console_is_off_unless_it_is_switched_on(program: Program) -> None:
    """Nobody finds a form for passwords that nobody asked for."""
    del program.environment["PAYRELAY_CONSOLE__ENABLED"]
    program.start()

    assert answer_at(program.port, "/console/sign-in").status == 404


def test_the_console_is_at_a_path_of_the_services_address(program: Program) -> None:
    """The API beside it stays as it is, and the log has the route and no token."""
    program.start()
    assert answer_at(program.port, "/console/sign-in").status == 200
    assert answer_at(program.port, "/console/invitations/" + "x" * 43).status == 410
    assert answer_at(program.port, "/console/sign-in", Host="evil.example").status == 421
    assert answer_at(program.port, "/gateway/api/operations").status == 401
    assert answer_at(program.port, "/console/sign-in", "POST", Content_Length="70000").status == 413
    assert program.stop() == 0
    assert "/console/invitations/{token}" in program.log()
    assert "x" * 43 not in program.log()


def test_the_console_has_an_address_of_its_own(program: Program) -> None:
    """There and only there; and no API is there."""
    own = free_port()
    program.environment |= {"PAYRELAY_CONSOLE__ADDRESS": f"127.0.0.1:{own}"}
    program.start()
    assert (answer_at(own, "/console/sign-in").status, answer_at(program.port, "/console/sign-in").status) == (200, 404)
    assert answer_at(own, "/gateway/api/operations").status == 404
    assert answer_at(own, "/metrics").status == 404
    answer_at(own, "/console/sign-in", method="X" * 15_000)
    assert program.stop() == 0
    assert '"route":"/console/sign-in"' in program.log()
    assert "X" * 100 not in program.log()


@asynccontextmanager
async def opened_browser() -> AsyncIterator[Browser]:
    """Starts Chromium, and ends it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(OPTIONS))
        try:
            yield browser
        finally:
            await browser.close()


async def looked_at(page: Page, name: str) -> None:
    """Checks a page by day and in the dark, on a desk and on a phone; nothing is wider than the screen."""
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 360), ("dark", 360)):
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        await page.set_viewport_size({"width": width, "height": 800})
        if PICTURES:
            await page.screenshot(path=Path(PICTURES) / f"{name}-{scheme}-{width}.png", full_page=True)
        found = (await Axe().run(page)).response["violations"]
        assert found == [], (name, scheme, width, json.dumps(found, indent=1)[:2000])
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)


async def code_on(page: Page) -> pyotp.TOTP:
    """Reads the letters beside the QR code, as an operator without a camera does."""
    letters = await page.inner_text("code")
    return pyotp.TOTP(letters.replace(" ", ""))


@pytest.mark.browser
@pytest.mark.integration
@pytest.mark.parametrize("has_scripts", [True, False], ids=["scripts", "no scripts"])
async def test_the_first_administrator_gets_in_and_invites_another(program: Program, *, has_scripts: bool) -> None:
    """From the command to a colleague's invitation; every page is clean for screen readers, by day and in the dark."""
    program.start()
    path = program.run(*ADD).stdout.strip()
    base = f"http://127.0.0.1:{program.port}"
    async with opened_browser() as browser:
        context = await browser.new_context(java_script_enabled=has_scripts)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)

        async def look(name: str) -> None:
            if has_scripts:  # axe is a script
                await looked_at(page, name)

        await page.goto(base + path)
        await look("invitation")
        await page.fill("#password", PASSWORD)
        await page.fill("#again", PASSWORD)
        await page.keyboard.press("Enter")
        await page.wait_for_selector("svg")
        await look("second-factor")
        totp = await code_on(page)
        await page.fill("#code", "000000")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("The code is wrong")
        await look("wrong-code")
        await page.fill("#code", totp.now())
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("Start")
        await look("start")
        await page.click("text=Operators")
        await page.fill("#email", "bob@shop.example")
        await page.fill("#name", "Bob")
        await page.select_option("#role", "support")
        await page.fill("#reason", "new in support")
        await look("operators")
        await page.click("text=Invite >> nth=-1")
        await expect(page.locator("h1")).to_have_text("Bob is invited")
        await look("invited")
        await page.goto(f"{base}/console/operators/bob@shop.example")
        await look("operator")
        for name in ("nothing", "acts", "account"):
            await page.goto(f"{base}/console/{name}")
            await look(name)
        await page.click("text=Sign out")
        await expect(page.locator("h1")).to_have_text("Sign in")
        await look("sign-in")
        await page.go_back()
        await page.reload()
        await expect(page.locator("h1")).to_have_text("Sign in")
        await context.close()
    verified = program.run("audit", "verify")
    assert "Verified: nothing was changed or removed." in verified.stdout, verified.stdout


@pytest.mark.browser
@pytest.mark.integration
async def test_a_passkey_of_the_browser_signs_an_operator_in(program: Program) -> None:
    """Chromium's authenticator makes it, signs with it, and makes no second one; who says no is told so."""
    program.start()
    path = program.run(*ADD).stdout.strip()
    base = f"http://localhost:{program.port}"
    async with opened_browser() as browser:
        context = await browser.new_context()
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        device = await context.new_cdp_session(page)
        await device.send("WebAuthn.enable")
        kind = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
        options = kind | {"isUserVerified": True, "automaticPresenceSimulation": True}
        made = await device.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        await page.goto(base + path)
        await page.fill("#password", PASSWORD)
        await page.fill("#again", PASSWORD)
        await page.keyboard.press("Enter")
        await page.fill("#name", "my laptop")
        await looked_at(page, "first-passkey")
        await page.click("text=Add a passkey")
        await expect(page.locator("h1")).to_have_text("Start")
        await page.goto(f"{base}/console/account/second-factor")
        await page.fill("#name", "again")
        await page.click("text=Add a passkey")
        await expect(page.locator("form[data-passkey] [role=status]")).to_contain_text("has a passkey for your account")
        await looked_at(page, "second-passkey")
        await page.goto(f"{base}/console/account")
        await expect(page.locator("main")).to_contain_text("my laptop")
        await looked_at(page, "account-with-passkey")

        await page.click("text=Sign out")
        await page.fill("#email", "ada@shop.example")
        await page.fill("#password", PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("Show that it is you")
        verified = {"authenticatorId": made["authenticatorId"], "isUserVerified": False}
        await device.send("WebAuthn.setUserVerified", verified)
        await page.click("text=Use a passkey")
        await expect(page.locator("form[data-passkey] [role=status]")).to_contain_text("Nothing was done")
        await looked_at(page, "use-passkey")
        await device.send("WebAuthn.setUserVerified", verified | {"isUserVerified": True})
        await page.click("text=Use a passkey")
        await expect(page.locator("h1")).to_have_text("Start")
        assert [each for each in said if "Content Security Policy" in each] == []
        await context.close()
    assert "Verified: nothing was changed or removed." in program.run("audit", "verify").stdout
