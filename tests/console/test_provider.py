"""The pages of the company's account: the way there and back, and what they say where it isn't open."""

import dataclasses
import html
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.console.browsing import Window, console_on, signed_in
from tests.flows.console.desk import PASSWORD, Desk
from tests.flows.console.test_provider_sign_in import linked
from tests.openid_provider import OpenIdProvider

from payrelay.console.dispatch import Console
from payrelay.console.web.cookies import form_token

ADA = "ada@shop.example"
COOKIE = "__Host-payrelay_console_provider"


@pytest.fixture
def provider(desk: Desk) -> Iterator[OpenIdProvider]:
    """Gives the provider that the desk's operators sign in by, which counts the second factor."""
    with OpenIdProvider(lambda: desk.clock.at_ms / 1000) as provider:
        linked(desk, provider, "otp")
        yield provider


@pytest.fixture
def console(desk: Desk, provider: OpenIdProvider) -> Console:
    """Gives the console, once it has the provider."""
    assert provider.is_up
    return console_on(desk)


def button_on(window: Window) -> str:
    """Gives where the button on the last page leads."""
    found = re.search(r'href="(/console/sign-in/provider[^"]*)"', window.text)
    assert found is not None, window.text
    return html.unescape(found[1])


async def led(window: Window, provider: OpenIdProvider, wanted: str = "") -> str:
    """Presses the button; gives where the provider leads the browser back to."""
    await window.get("/console/sign-in")
    answer = await window.send("GET", f"{button_on(window)}&next={wanted}")
    assert answer.status == 303, window.text
    away = dict(answer.headers)[b"location"].decode()
    assert away.startswith(provider.issuer)
    return provider.approved(dict(parse_qsl(urlsplit(away).query))).removeprefix("https://console.example")


async def test_somebody_signs_in_by_the_company_s_account(
    desk: Desk, console: Console, provider: OpenIdProvider
) -> None:
    """From the button to the page that was wanted; the code stays in no address bar, and the page shows the link."""
    await signed_in(desk, console, ADA)
    provider.person |= {"amr": ["otp"]}
    window = Window(console)
    await window.get("/console/operators")
    assert "Sign in with your company&#39;s account" in window.text or "company's account" in window.text
    back = await led(window, provider, "%2Fconsole%2Foperators")
    answer = await window.send("GET", back, sec_fetch_site="cross-site")

    assert dict(answer.headers)[b"location"] == b"/console/operators"
    await window.get("/console/operators")
    assert (window.title, "linked" in window.text) == ("Operators", True)
    assert len(window.cookies[COOKIE]) == 43


async def test_the_code_of_our_own_is_asked_for_first(desk: Desk, console: Console, provider: OpenIdProvider) -> None:
    """A half session opens no page, whoever began it."""
    await signed_in(desk, console, ADA)
    window = Window(console)
    await window.get(await led(window, provider, "%2Fconsole%2Facts"))
    assert window.title == "Enter the code"
    await window.get("/console/operators")

    assert window.title == "Enter the code"


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "/console/sign-in/provider/back?code=x"])
async def test_the_way_back_leads_to_no_other_site(
    desk: Desk, console: Console, provider: OpenIdProvider, wanted: str
) -> None:
    """Neither by the link to the button, nor by what the provider's address has."""
    await signed_in(desk, console, ADA)
    provider.person |= {"amr": ["otp"]}
    window = Window(console)
    await window.get(f"{await led(window, provider, wanted)}&next={wanted}")

    assert window.title == "Start"


async def test_an_answer_for_another_browser_signs_nobody_in(
    desk: Desk, console: Console, provider: OpenIdProvider
) -> None:
    """An attacker's own answer, sent to a victim, would have the victim work in the attacker's account."""
    await signed_in(desk, console, ADA)
    mine, victim = Window(console), Window(console)
    back = await led(mine, provider)
    for cookies in ({}, {COOKIE: "x" * 43}):
        victim.cookies = dict(cookies)
        await victim.get(back)
        assert victim.title == "Sign in"
        assert "That took too long" in victim.text
        assert "__Host-payrelay_console_session" not in victim.cookies


async def test_a_sign_in_replaces_the_token_that_was_planted(
    desk: Desk, console: Console, provider: OpenIdProvider
) -> None:
    """A session's token from before opens nothing."""
    await signed_in(desk, console, ADA)
    provider.person |= {"amr": ["otp"]}
    window = Window(console)
    window.cookies["__Host-payrelay_console_session"] = "p" * 43
    await window.get(await led(window, provider))

    assert window.title == "Start"
    assert window.cookies["__Host-payrelay_console_session"] != "p" * 43


async def test_nothing_of_the_provider_s_answer_is_on_a_page(console: Console, provider: OpenIdProvider) -> None:
    """Whatever stands in the address that somebody made up; the page that says so has an address of its own."""
    window = Window(console)
    back = await led(window, provider)
    state = dict(parse_qsl(urlsplit(back).query))["state"]
    address = f"/console/sign-in/provider/back?state={state}&error=%3Cb%3Ehush&error_description=%3Cscript%3E"
    answer = await window.send("GET", address)
    assert dict(answer.headers)[b"location"] == b"/console/sign-in?why=provider_refused"
    await window.get("/console/sign-in?why=provider_refused")

    assert "let nobody in" in window.text
    assert "hush" not in window.text
    assert window.answer is not None
    assert window.answer.status == 403
    assert "let nobody in" not in (await window.get("/console/sign-in?why=made+up")).body.decode()


async def test_a_provider_that_is_down_has_a_page(console: Console, provider: OpenIdProvider) -> None:
    """It says so, and the password is still asked for."""
    provider.is_up = False
    window = Window(console)
    await window.get("/console/acts")
    answer = await window.send("GET", button_on(window))

    assert answer.status == 503
    assert "can&#39;t be reached" in window.text
    assert 'name="password"' in window.text
    assert 'value="/console/acts"' in window.text


async def test_whoever_is_not_invited_is_told_what_to_do(
    desk: Desk, console: Console, provider: OpenIdProvider
) -> None:
    """The provider knows them, and the console doesn't."""
    await signed_in(desk, console, ADA)
    provider.person |= {"email": "eve@shop.example"}
    window = Window(console)
    await window.get(await led(window, provider))

    assert "Ask an administrator to invite you" in window.text
    assert await desk.parts.operators.by_email("eve@shop.example") is None


async def test_where_the_provider_is_the_only_way_no_page_asks_for_a_password(
    desk: Desk, console: Console, provider: OpenIdProvider
) -> None:
    """Nor takes one that somebody sends all the same; an invitation leads to the provider."""
    await signed_in(desk, console, ADA)
    token = (await desk.invited("bob@shop.example")).reveal()
    desk.parts = dataclasses.replace(desk.parts, takes_passwords=False)
    window = Window(console_on(desk))
    await window.get("/console/sign-in")
    assert 'name="password"' not in window.text
    window.console = console
    await window.get("/console/sign-in")
    window.console = console_on(desk)
    answer = await window.post("/console/sign-in", email=ADA, password=PASSWORD)
    assert (answer.status, "Passwords open nothing here" in window.text) == (403, True)
    await window.get(f"/console/invitations/{token}")
    assert ('name="password"' in window.text, window.title) == (False, "You are invited")
    assert (await window.send("GET", button_on(window))).status == 303
    form = {
        "token": form_token(window.cookies["__Host-payrelay_console_visit"]),
        "password": PASSWORD,
        "again": PASSWORD,
    }
    assert (await window.send("POST", f"/console/invitations/{token}", form)).status == 403
    provider.person |= {"email": "bob@shop.example"}
    await window.get(await led(window, provider))

    assert window.title == "Set up a second factor"


async def test_pages_of_other_sites_use_up_no_tries_of_an_office(
    desk: Desk, console: Console, provider: OpenIdProvider
) -> None:
    """A page with a hundred pictures of the console, which anybody in the office opens, locks nobody out.

    Neither where the browser has a cookie of the console, nor where it has none; on the way there and on the way back.
    """
    await signed_in(desk, console, ADA)
    provider.person |= {"amr": ["otp"]}
    victim, fresh = Window(console), Window(console)
    await victim.get(await led(victim, provider))
    for address in ("/console/sign-in/provider", "/console/sign-in/provider/back?state=a&code=b"):
        for window in (fresh, victim):
            kept = dict(window.cookies)
            for _ in range(62):
                window.cookies = {} if window is fresh else dict(kept)
                answer = await window.send("GET", address, None, sec_fetch_site="cross-site", sec_fetch_dest="image")
                assert (answer.status, dict(answer.headers)[b"location"][:8]) == (303, b"/console")
    office = Window(console)
    await office.get("/console/sign-in")
    await office.post("/console/sign-in", email=ADA, password=PASSWORD)
    assert office.title == "Enter the code"
    for_provider = Window(console)
    await for_provider.get(await led(for_provider, provider))

    assert for_provider.title == "Start"


async def test_a_link_without_the_token_leads_to_the_page_that_has_it(console: Console) -> None:
    """A bookmark of the button still leads somewhere, and on to the page that was wanted."""
    window = Window(console)
    await window.get("/console/sign-in/provider?next=%2Fconsole%2Facts")

    assert window.title == "Sign in"
    assert "next=/console/acts" in button_on(window)


async def test_whoever_is_signed_in_is_led_on(desk: Desk, console: Console) -> None:
    """The button in another tab doesn't lead away from the console."""
    window = await signed_in(desk, console, ADA)
    await window.get("/console/sign-in/provider?next=%2Fconsole%2Facts")

    assert window.title == "What operators did"
