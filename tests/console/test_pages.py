import re

import pytest
from tests.console.browsing import Window, console_on, signed_in
from tests.flows.console.desk import PASSWORD, Desk

from payrelay.console.dispatch import Console
from payrelay.console.flows.sign_in import visitor_of
from payrelay.core.operators.roles import Role

ADA, BOB = "ada@shop.example", "bob@shop.example"
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}'


async def test_an_administrator_invites_and_the_invited_gets_in(desk: Desk, console: Console) -> None:
    """The address is shown once; the history tells who did what, and why."""
    ada = await signed_in(desk, console, ADA)
    await ada.get("/console/operators")
    await ada.post("/console/operators", email=BOB, name="Bob", role="support", reason="new in support")
    assert ada.title == "Bob is invited"
    path = re.search(r"https://console.example(/console/invitations/[\w-]{43})", ada.text)
    assert path is not None
    bob = Window(console, "192.0.2.2")
    await bob.get(path[1])
    assert "Bob" in bob.text
    await bob.post(path[1], password=PASSWORD, again=PASSWORD)
    assert bob.title == "Set up a second factor"
    assert "<svg" in bob.text
    await Window(console).get(path[1])
    await ada.get("/console/acts")

    assert "new in support" in ada.text
    assert "accept invitation" in ada.text
    again = Window(console)
    assert (await again.get(path[1])).status == 410


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"email": "bob"}, "The e-mail address must be an e-mail address"),
        ({"name": " "}, "The name must have 1 to 100"),
        ({"role": "root"}, "the role must be one of"),
        ({"reason": ""}, "the reason must have 1 to 500"),
        ({"email": ADA}, "an operator has the address ada@shop.example already"),
    ],
)
async def test_a_wrong_field_is_named_and_the_rest_is_kept(
    desk: Desk, console: Console, fields: dict[str, str], text: str
) -> None:
    """Nobody types the whole form again, and nobody was invited."""
    ada = await signed_in(desk, console, ADA)
    await ada.get("/console/operators")
    given = {"email": BOB, "name": "Bob", "role": "support", "reason": "because"} | fields
    answer = await ada.post("/console/operators", **given)

    assert answer.status == 422
    assert text in ada.text
    assert [
        value for name, value in given.items() if name not in {"role", *fields} and f'value="{value}"' not in ada.text
    ] == []
    assert len(await desk.parts.operators.list()) == 1


async def test_what_operators_write_is_no_markup(desk: Desk, console: Console) -> None:
    """Every field that a person can fill, on every page that shows it."""
    ada = await signed_in(desk, console, ADA)
    await ada.get("/console/operators")
    await ada.post("/console/operators", email="x@shop.example", name=HOSTILE[:100], role="viewer", reason=HOSTILE)
    await ada.post("/console/operators", email=HOSTILE, name=HOSTILE, role=HOSTILE, reason=HOSTILE)
    pages = [ada.text]
    stranger = Window(console)
    await stranger.send("GET", "/console/sign-in", user_agent=HOSTILE)
    await stranger.post("/console/sign-in", email=HOSTILE, password="x", next=HOSTILE)
    pages.append(stranger.text)
    addresses = ("operators", "operators/x@shop.example", "acts", HOSTILE, f"sign-in?next={HOSTILE}")
    pages += [(await ada.get(f"/console/{each.replace(' ', '%20')}")).body.decode() for each in addresses]

    assert all("<script>" not in page and "<img" not in page and ">49" not in page for page in pages)
    assert "&lt;script&gt;" in pages[2]


async def test_a_browser_with_a_hostile_name_is_shown_as_text(desk: Desk, console: Console) -> None:
    """The list of sessions shows what a browser calls itself."""
    await signed_in(desk, console, ADA)
    window = Window(console)
    await window.send("GET", "/console/sign-in")
    await window.send(
        "POST", "/console/sign-in", {"token": window.token, "email": ADA, "password": PASSWORD}, user_agent=HOSTILE
    )
    await window.get("/console/code")
    operator = await desk.parts.operators.by_email(ADA)
    assert operator is not None
    form = {"token": window.token, "code": await desk.code(operator)}
    await window.send("POST", "/console/code", form, user_agent=HOSTILE)
    await window.get("/console/account")

    assert "&lt;script&gt;" in window.text
    assert "<script>" not in window.text


async def test_an_operator_ends_another_of_the_own_sessions(desk: Desk, console: Console) -> None:
    """From the list; the browser in hand stays."""
    here = await signed_in(desk, console, ADA)
    there = Window(console)
    await there.get("/console/sign-in")
    await there.post("/console/sign-in", email=ADA, password=PASSWORD)
    operator = await desk.parts.operators.by_email(ADA)
    assert operator is not None
    await there.post("/console/code", code=await desk.code(operator))
    await here.get("/console/account")
    [other] = [
        each
        for each in re.findall(r"/console/account/sessions/(ses_\w+)/end", here.text)
        if each != await own(desk, here)
    ]
    await here.post(f"/console/account/sessions/{other}/end")
    await there.get("/console/")

    assert (here.title, there.title) == ("Your account", "Sign in")


async def own(desk: Desk, window: Window) -> str:
    """Gives the id of a window's session."""
    visitor = await visitor_of(desk.parts, window.cookies["__Host-payrelay_console_session"])
    assert visitor is not None
    return visitor.session.id


async def test_an_administrator_sees_where_an_operator_is_signed_in(desk: Desk, console: Console) -> None:
    """And that a session waits for its code; whatever a browser calls itself is text. Nobody else sees it."""
    ada = await signed_in(desk, console, "ada@shop.example")
    bob = await signed_in(desk, console, "bob@shop.example", Role.SUPPORT)
    half = Window(console, "203.0.113.9")
    await half.send("GET", "/console/sign-in")
    form = {"token": half.token, "email": "bob@shop.example", "password": PASSWORD}
    await half.send("POST", "/console/sign-in", form, user_agent="<b>phone</b>")
    await ada.get("/console/operators/bob@shop.example")

    assert "&lt;b&gt;phone&lt;/b&gt;</strong> (waits for the second factor)" in ada.text
    assert "From 203.0.113.9" in ada.text
    assert (await bob.get("/console/operators/bob@shop.example")).status == 403


async def test_a_role_is_given_and_taken_on_the_page(desk: Desk, console: Console) -> None:
    """What the other may open changes with the next request; the last administrator stays one."""
    ada, bob = await signed_in(desk, console, ADA), await signed_in(desk, console, BOB, Role.VIEWER)
    await ada.get(f"/console/operators/{BOB}")
    await ada.post(f"/console/operators/{BOB}/role", role="admin", reason="holiday")
    assert (await bob.get("/console/operators")).status == 200
    await ada.get(f"/console/operators/{BOB}")
    await ada.post(f"/console/operators/{BOB}/role", role="viewer", reason="is back")
    assert (await bob.get("/console/operators")).status == 403
    await ada.get(f"/console/operators/{ADA}")
    assert (await ada.post(f"/console/operators/{ADA}/role", role="viewer", reason="x")).status == 409
    assert "This is the last administrator" in ada.text


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("GET", "/console/nothing", 404),
        ("GET", "/console/operators/nobody@shop.example", 404),
        ("PUT", "/console/sign-in", 405),
        ("GET", "/console/sign-in?%ff=%ff", 400),
        ("GET", "/console/sign-in?" + "a=1&" * 30, 400),
        ("HEAD", "/console/account", 200),
        ("GET", "/console/code", 303),
        ("GET", "/console", 303),
    ],
)
async def test_what_is_wrong_has_a_page(desk: Desk, console: Console, method: str, address: str, status: int) -> None:
    """A person who mistypes an address reads what is wrong, and finds the way back."""
    window = await signed_in(desk, console, ADA)
    answer = await window.send(method, address)

    assert answer.status == status
    if method == "GET" and status not in {200, 303}:
        assert '<a href="/console/">To the start</a>' in answer.body.decode()
    if method == "HEAD":
        assert answer.body == b""


async def test_passwords_that_differ_or_are_weak_are_refused_with_the_form(desk: Desk) -> None:
    """The invitation is still open then."""
    console = console_on(desk)
    token = (await desk.invited(BOB)).reveal()
    window = Window(console)
    await window.get(f"/console/invitations/{token}")
    assert (await window.post(f"/console/invitations/{token}", password=PASSWORD, again="other")).status == 422
    assert "The two passwords differ." in window.text
    assert (await window.post(f"/console/invitations/{token}", password="short", again="short")).status == 422
    assert "A password must have 12 to 256 characters." in window.text
    assert PASSWORD not in window.text
    await window.post(f"/console/invitations/{token}", password=PASSWORD, again=PASSWORD)

    assert window.title == "Set up a second factor"
