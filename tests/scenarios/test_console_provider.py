"""Signing in to the console of the running program by a provider at a real address, in Chromium."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import PATIENCE_MS
from tests.openid_provider import OpenIdProvider
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, free_port
from tests.scenarios.stories import settings_for
from tests.scenarios.test_console import ADD, code_on, looked_at, opened_browser


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    """Gives the provider of the company."""
    with OpenIdProvider() as provider:
        yield provider


@pytest.fixture
def program(tmp_path: Path, gateway: GatewayDouble, provider: OpenIdProvider) -> Iterator[Program]:
    """A program whose operators sign in by the provider alone."""
    made = Program(tmp_path, settings_for(gateway) | provider.settings(ONLY="true"))
    port = free_port()
    own = {"ENABLED": "true", "PUBLIC_URL": f"http://127.0.0.1:{port}"}
    made.environment |= {f"PAYRELAY_CONSOLE__{name}": value for name, value in own.items()}
    yield made.start(port)
    made.kill()


@pytest.mark.browser
@pytest.mark.integration
@pytest.mark.parametrize("has_scripts", [True, False], ids=["scripts", "no scripts"])
async def test_an_operator_gets_in_by_the_company_s_account(
    program: Program, provider: OpenIdProvider, *, has_scripts: bool
) -> None:
    """From the invitation to the page that was wanted, and again later; the log has neither code nor state."""
    path = program.run(*ADD).stdout.strip()
    path = "/console" + path.partition("/console")[2]
    base = f"http://127.0.0.1:{program.port}"
    async with opened_browser() as browser:
        context = await browser.new_context(java_script_enabled=has_scripts)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        await page.goto(base + path)
        if has_scripts:
            await looked_at(page, "invitation-by-provider")
        await page.click("text=Sign in with your company's account")
        await page.wait_for_selector("svg")
        totp = await code_on(page)
        await page.fill("#code", totp.now())
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("Start")
        await page.click("text=Sign out")
        if has_scripts:
            await looked_at(page, "sign-in-by-provider")
        await page.goto(f"{base}/console/acts")
        await page.click("text=Sign in with your company's account")
        await expect(page.locator("h1")).to_have_text("Enter the code")
        assert "code=" not in page.url
        provider.person |= {"email": "eve@shop.example", "sub": "u-2"}
        await context.clear_cookies()
        await page.goto(f"{base}/console/acts")
        await page.click("text=Sign in with your company's account")
        await expect(page.get_by_role("alert")).to_contain_text("Ask an administrator to invite you")
        await context.close()
    assert "linked" in program.run("operators", "list", "--json").stdout
    assert program.stop() == 0
    for form in provider.forms:
        assert form["code"] not in program.log()
        assert form["code_verifier"] not in program.log()
    assert "/console/sign-in/provider/back" in program.log()
