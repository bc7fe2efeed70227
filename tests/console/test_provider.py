"""The pages of the company's account: the way there and back, and what they say where it isn't open."""

import dataclasses
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.console.browsing import Window, console_on, signed_in
from tests.flows.console.desk import PASSWORD, Desk
from tests.flows.console.test_provider_sign_in import linked
from tests.openid_provider import OpenIdProvider

from payrelay.console.dispatch import Console

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


async def led(window: Window, provider: OpenIdProvider, wanted: str = "") -> str:
    """Presses the button; gives where the provider leads the browser back to."""
    answer = await window.send("GET", f"/console/sign-in/provider?next={wanted}")
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
    answer = await window.send("GET", "/console/sign-in/provider?next=%2Fconsole%2Facts")

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
    form = {"token": window.token, "password": PASSWORD, "again": PASSWORD}
    assert (await window.send("POST", f"/console/invitations/{token}", form)).status == 403
    provider.person |= {"email": "bob@shop.example"}
    await window.get(await led(window, provider))

    assert window.title == "Set up a second factor"


async def test_whoever_is_signed_in_is_led_on(desk: Desk, console: Console) -> None:
    """The button in another tab doesn't lead away from the console."""
    window = await signed_in(desk, console, ADA)
    await window.get("/console/sign-in/provider?next=%2Fconsole%2Facts")

    assert window.title == "What operators did"
