"""The pages for passkeys, with a device that tests hold in their hands."""

import html
import re

import msgspec
from tests.console.browsing import LOG, ORIGIN, Window, code_of, console_on, signed_in, site_of
from tests.console.device import Device, Lie
from tests.flows.console.desk import MINUTE_MS, PASSWORD, Desk

from payrelay.console.dispatch import Console
from payrelay.core.operators.operator import FRESH_MS

ADA = "ada@shop.example"
SET_UP = "/console/account/second-factor"


def asked_on(window: Window, kind: str) -> str:
    """Reads what the page has the browser ask a device."""
    found = re.search(rf'data-passkey="{kind}" data-asked="([^"]*)"', window.text)
    assert found is not None, window.text
    return html.unescape(found[1])


def policy_of(window: Window) -> str:
    """Gives the last page's Content-Security-Policy."""
    assert window.answer is not None
    return dict(window.answer.headers)[b"content-security-policy"].decode()


async def with_passkey(window: Window, name: str = "my phone") -> Device:
    """Adds a passkey in an open session."""
    device = Device(ORIGIN)
    await window.get(SET_UP)
    await window.post("/console/passkeys", answer=device.makes(asked_on(window, "make")), name=name)
    assert window.title == "Your account", window.text
    return device


async def half_in(desk: Desk) -> Window:
    """Opens a window, and signs in by the password."""
    desk.clock.at_ms += MINUTE_MS
    window = Window(console_on(desk))
    await window.get("/console/sign-in?next=/console/queue")
    await window.post("/console/sign-in", email=ADA, password=PASSWORD, next="/console/queue")
    return window


async def test_a_passkey_opens_the_page_that_was_wanted(desk: Desk) -> None:
    """And stands in the list of the account, with a button that removes it."""
    opened = await signed_in(desk, console_on(desk), ADA)
    device = await with_passkey(opened)
    assert "my phone" in opened.text
    window = await half_in(desk)
    assert window.title == "Show that it is you"
    await window.post("/console/code/passkey", answer=device.shows(asked_on(window, "show")), next="/console/queue")
    assert window.title == "What needs a person"
    await window.get("/console/account")
    [path] = re.findall(r'action="(/console/account/passkeys/[^"]+/remove)"', window.text)
    await window.post(path)
    assert "my phone" not in window.text
    assert (await half_in(desk)).title == "Enter the code"


async def test_a_passkey_may_be_the_first_second_factor(desk: Desk) -> None:
    """Beside the picture for an authenticator app; a name that can't be shown is asked for again."""
    token = (await desk.invited(ADA)).reveal()
    window, device = Window(console_on(desk)), Device(ORIGIN)
    await window.get(f"/console/invitations/{token}")
    await window.post(f"/console/invitations/{token}", password=PASSWORD, again=PASSWORD)
    answer = device.makes(asked_on(window, "make"))
    await window.post("/console/passkeys", answer=answer, name="a\u202eb")
    assert "A name must have 1 to 60 printable characters." in window.text
    await window.post("/console/passkeys", answer=answer, name="phone")
    assert window.title == "Start"


async def test_whoever_has_no_script_still_has_the_code(desk: Desk) -> None:
    """The form for a passkey is hidden until a script shows it, and the page says why; the code is below."""
    opened = await signed_in(desk, console_on(desk), ADA)
    await with_passkey(opened)
    window = await half_in(desk)

    assert re.search(r"<form [^>]*data-passkey[^>]* hidden>", window.text)
    assert '<noscript><p class="note">A passkey needs JavaScript' in window.text
    await window.post("/console/code", code=await code_of(desk, ADA), next="/console/queue")
    assert window.title == "What needs a person"


async def test_the_policy_allows_one_script_of_ours_and_no_connection(desk: Desk) -> None:
    """On the pages for passkeys alone; the account's own page has none."""
    window = await signed_in(desk, console_on(desk), ADA)
    await window.get(SET_UP)
    assert "script-src 'self'" in policy_of(window)
    assert "connect-src" not in policy_of(window)
    assert "unsafe" not in policy_of(window)
    assert re.findall(r"<script.*?>", window.text) == ['<script src="/console/assets/passkeys.js" defer>']
    await window.get("/console/account")
    assert "script-src" not in policy_of(window)


async def test_a_wrong_answer_is_told_and_may_be_given_again(desk: Desk) -> None:
    """It uses nothing up, whoever sent it; a copy of a passkey ends the sign-in."""
    opened = await signed_in(desk, console_on(desk), ADA)
    device = await with_passkey(opened)
    window = await half_in(desk)
    device.count = 6
    answer = device.shows(asked_on(window, "show"))
    await window.post("/console/code/passkey", answer="{}", next="")
    assert "That was not one of your passkeys." in window.text
    await window.post("/console/code/passkey", answer=answer, next="")
    assert window.title == "Start"
    again = await half_in(desk)
    copied = device.shows(asked_on(again, "show"), Lie(count=3))
    await again.post("/console/code/passkey", answer=copied, next="")
    assert (again.title, "Somebody has a copy of this passkey" in again.text) == ("Sign in", True)
    await window.get("/console/account")
    assert "It opens nothing since" in window.text


async def test_long_after_the_sign_in_the_page_leads_to_another_one(desk: Desk) -> None:
    """And back; whoever found the browser open changes nothing."""
    window = await signed_in(desk, console_on(desk), ADA)
    await with_passkey(window)
    await window.get(SET_UP)
    answer = Device(ORIGIN, b"another").makes(asked_on(window, "make"))
    desk.clock.at_ms += FRESH_MS
    await window.post("/console/passkeys", answer=answer, name="thief")
    assert "sign in again first" in window.text.lower()
    await window.get(SET_UP)
    assert (window.title, "sign in again first" in window.text.lower()) == ("That was not done", True)
    await window.get("/console/account")
    assert "/remove" not in window.text
    await window.post("/console/sign-out", next="/console/account")
    assert (window.title, 'value="/console/account"' in window.text) == ("Sign in", True)


async def test_a_name_is_only_a_name(desk: Desk) -> None:
    """Whatever an operator calls a passkey, colleagues who read the history see it as text."""
    window = await signed_in(desk, console_on(desk), ADA)
    hostile = "<script>alert(1)</script>\"'>"
    await with_passkey(window, hostile)
    assert html.escape(hostile) in window.text.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")
    await window.get("/console/acts")
    assert "<script>" not in window.text
    assert "&lt;script&gt;" in window.text


async def test_a_name_is_no_more_of_a_line_than_a_name(desk: Desk) -> None:
    """A line says from where somebody signed in: no name of a passkey says it in its place."""
    window = await signed_in(desk, console_on(desk), ADA)
    device = await with_passkey(window, "phone, from 10.1.2.3")
    half = await half_in(desk)
    await half.post("/console/code/passkey", answer=device.shows(asked_on(half, "show")), next="")

    lines = [line.details for line in await desk.parts.acts.before(None, 2)]
    assert lines == [
        "by passkey “phone, from 10.1.2.3”, from 192.0.2.1",
        "passkey “phone, from 10.1.2.3”, from 192.0.2.1",
    ]


async def test_at_an_address_in_numbers_the_page_says_why_there_are_none(desk: Desk) -> None:
    """No browser makes passkeys there; the authenticator app works as before."""
    local = Console(msgspec.structs.replace(site_of(desk), origin=None), LOG)
    window = Window(local)
    token = (await desk.invited(ADA)).reveal()
    own = {"host": "127.0.0.1:8080", "origin": None}
    await window.send("GET", f"/console/invitations/{token}", None, **own)
    form = {"token": window.token, "password": PASSWORD, "again": PASSWORD}
    await window.send("POST", f"/console/invitations/{token}", form, **own)
    await window.send("GET", "/console/code", None, **own)
    assert "or is localhost" in window.text
    assert "<script" not in window.text
    await window.send("GET", "/console/code", None, host="localhost:8080", origin=None)
    assert '"id": "localhost"' in asked_on(window, "make")


async def test_whoever_has_no_passkey_for_this_address_is_told_what_to_do(desk: Desk) -> None:
    """Their only one was made for another host: they aren't let in without, and no form asks for what can't be."""
    window = await signed_in(desk, console_on(desk), ADA)
    await with_passkey(window)
    await window.post("/console/account/authenticator/remove")
    moved = Window(Console(msgspec.structs.replace(site_of(desk), origin="https://new.example"), LOG))
    own = {"host": "new.example", "origin": "https://new.example"}
    await moved.send("GET", "/console/sign-in", None, **own)
    form = {"token": moved.token, "email": ADA, "password": PASSWORD}
    await moved.send("POST", "/console/sign-in", form, **own)
    await moved.send("GET", "/console/code", None, **own)

    assert moved.title == "You can't go on here"
    assert "ask an administrator" in moved.text
    assert "<script" not in moved.text
    assert 'name="code"' not in moved.text
