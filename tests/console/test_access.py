"""Who may open what: every route of the console, by every role and stage, and by forms that aren't its own."""

import contextlib
import dataclasses
import re

import msgspec
import pytest
from tests.console.browsing import LOG, ORIGIN, Window, code_of, console_on, signed_in, site_of
from tests.flows.console.desk import MINUTE_MS, PASSWORD, Desk

from payrelay.console.dispatch import Console
from payrelay.console.routes import ROUTES
from payrelay.console.runtime.passwords import PLACES_MAX
from payrelay.console.web.route import ConsoleRoute, Entry
from payrelay.core.operators.roles import MAY, Role
from payrelay.store.operators.acts import OperatorActs

ADA, BOB, EVE = "ada@shop.example", "bob@shop.example", "eve@shop.example"


class BrokenDatabase:
    """Fails with a text that quotes somebody's data."""

    async def read(self, unit: object) -> object:
        """Fails."""
        raise RuntimeError(f"quoted {unit}")


INNER = [route for route in ROUTES if route.entry is not Entry.ANYBODY]
POSTED = [route for route in ROUTES if route.method == "POST"]


def address(route: ConsoleRoute) -> str:
    """Gives an address of a route, with names that exist."""
    names = {
        "email": BOB,
        "session": "ses_1",
        "passkey": "psk_1",
        "token": "x",
        "order": "A-1",
        "operation": "op_1",
        "day": "2026-11-22",
    }
    named = {"noun": "account", "id": "gateway", "account": "gateway", "confirmation": "cnf_1", **names}
    return route.path.format(**named)


def body(route: ConsoleRoute, window: Window) -> dict[str, str] | None:
    """Gives a form that the route takes."""
    if route.method == "GET":
        return None
    fields = {"email": EVE, "name": "Eve", "role": "viewer", "reason": "why", "code": "000000", "password": "x"}
    return {"token": window.token, **fields}


def test_every_route_says_who_may() -> None:
    """A page without an act is one that anybody may open, and these are few."""
    assert {route.path for route in ROUTES if route.act is None} == {
        "/console/assets/console.css",
        "/console/assets/live.js",
        "/console/assets/passkeys.js",
        "/console/sign-in",
        "/console/sign-in/provider",
        "/console/sign-in/provider/back",
        "/console/invitations/{token}",
    }
    assert all(route.act is not None for route in INNER)


@pytest.mark.parametrize("role", Role)
async def test_each_role_by_each_route(desk: Desk, console: Console, role: Role) -> None:
    """Also by the address alone: what the navigation leaves out is refused all the same."""
    await signed_in(desk, console, BOB)
    for route in INNER:
        if route.path in {"/console/sign-out", "/console/code"}:
            continue
        number = INNER.index(route)
        window = await signed_in(desk, console, f"r{number}@shop.example", role)
        await window.get("/console/account")
        before = len(await desk.done())
        answer = await window.send(route.method, address(route), body(route, window))
        is_allowed = route.act in MAY[role]
        assert (answer.status != 403) is is_allowed, (route.path, role, answer.status)
        if not is_allowed:
            assert len(await desk.done()) == before


@pytest.mark.parametrize("role", Role)
async def test_the_navigation_shows_what_may_be_opened(desk: Desk, console: Console, role: Role) -> None:
    """Nobody is led to a page that is then refused."""
    window = await signed_in(desk, console, ADA, role)
    shown = set(re.findall(r'<a href="(/console/[a-z]*)"', window.text))

    assert {(await window.send("GET", path)).status for path in shown} == {200}
    assert ("/console/operators" in shown, "/console/acts" in shown) == (
        role is Role.ADMIN,
        role in {Role.ADMIN, Role.OPERATOR},
    )


@pytest.mark.parametrize("route", INNER, ids=lambda route: f"{route.method} {route.path}")
async def test_nobody_gets_in_without_a_session(console: Console, route: ConsoleRoute) -> None:
    """Every page but the sign-in leads there; a form does nothing."""
    window = Window(console)
    await window.get("/console/sign-in")
    answer = await window.send(route.method, address(route), body(route, window))

    assert answer.status == 303
    assert dict(answer.headers)[b"location"].startswith(b"/console/sign-in")


async def test_a_half_sign_in_opens_nothing(desk: Desk, console: Console) -> None:
    """Who has the password alone is asked for the code on every page."""
    await signed_in(desk, console, ADA)
    half = Window(console)
    await half.get("/console/sign-in")
    await half.post("/console/sign-in", email=ADA, password=PASSWORD)
    assert half.title == "Enter the code"
    for route in INNER:
        if route.entry is Entry.OPEN:
            answer = await half.send(route.method, address(route), body(route, half))
            assert (answer.status, dict(answer.headers).get(b"location")) == (303, b"/console/code"), route.path


@pytest.mark.parametrize("route", POSTED, ids=lambda route: route.path)
@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("", {}),
        ("0" * 64, {}),
        (None, {"origin": "https://evil.example"}),
        (None, {"origin": "null"}),
        (None, {"origin": None, "sec_fetch_site": "cross-site"}),
        (None, {"sec_fetch_site": "same-site"}),
    ],
)
async def test_a_form_of_another_site_does_nothing(
    desk: Desk, console: Console, route: ConsoleRoute, token: str | None, headers: dict[str, str | None]
) -> None:
    """Whether it lacks the token, has another's, or the browser says where it comes from."""
    window = await signed_in(desk, console, ADA)
    await window.get("/console/account")
    before = len(await desk.done())
    form = body(route, window) or {}
    answer = await window.send(
        "POST", address(route), {**form, **({} if token is None else {"token": token})}, **headers
    )

    assert answer.status == 403
    assert len(await desk.done()) == before
    assert (await window.get("/console/account")).status == 200


async def test_a_token_of_another_browser_is_worth_nothing(desk: Desk, console: Console) -> None:
    """Eve can't put the token of her own forms into a form for Ada."""
    eve, ada = await signed_in(desk, console, EVE, Role.VIEWER), await signed_in(desk, console, ADA)
    await eve.get("/console/account")
    fields = {"token": eve.token, "role": "admin", "reason": "x"}

    assert (await ada.send("POST", f"/console/operators/{EVE}/role", fields)).status == 403


async def test_a_session_that_somebody_planted_is_never_signed_in(desk: Desk, console: Console) -> None:
    """Each stage gives the browser another cookie, and the one from before opens nothing."""
    await signed_in(desk, console, ADA)
    window = Window(console)
    await window.get("/console/sign-in")
    planted = dict(window.cookies)
    await window.post("/console/sign-in", email=ADA, password=PASSWORD)
    half = dict(window.cookies)
    await window.post("/console/code", code=await code_of(desk, ADA))
    assert window.title == "Start"
    for cookies in (planted, half):
        other = Window(console)
        other.cookies = dict(cookies)
        await other.get("/console/account")
        assert other.title == "Sign in"
    assert not set(planted.values()) & set(half.values()) & set(window.cookies.values())


async def test_a_session_ends_at_once_everywhere(desk: Desk, console: Console) -> None:
    """Signed out, disabled, or too long unused: the next request of that browser is led to the sign-in."""
    ada, bob, eve = [await signed_in(desk, console, email) for email in (ADA, BOB, EVE)]
    copied = Window(console)
    copied.cookies = dict(ada.cookies)
    await ada.get("/console/")
    await ada.post("/console/sign-out")
    assert (ada.title, (await copied.get("/console/"), copied.title)[1]) == ("Sign in", "Sign in")
    await bob.get(f"/console/operators/{EVE}")
    await bob.post(f"/console/operators/{EVE}/disable", reason="has left")
    await eve.get("/console/")
    assert eve.title == "Sign in"
    desk.clock.at_ms += 31 * MINUTE_MS
    await bob.get("/console/operators")
    assert bob.title == "Sign in"


@pytest.mark.parametrize(
    "host", ["evil.example", "console.example.evil.example", "", "127.0.0.1", "console.example:8443"]
)
async def test_another_name_that_leads_here_is_refused(console: Console, host: str) -> None:
    """A page of another site can't read ours by pointing its own name at the console's address."""
    assert (await Window(console).send("GET", "/console/sign-in", host=host)).status == 421


@pytest.mark.parametrize("host", ["[", "[::1", "localhost]", "[localhost]", "192.0.2.1", ""])
async def test_what_names_no_place_on_this_machine_is_refused(desk: Desk, host: str) -> None:
    """A console without an address of its own refuses it, and doesn't fail, where it can't even be read."""
    local = Console(msgspec.structs.replace(site_of(desk), origin=None), LOG)

    assert (await Window(local).send("GET", "/console/sign-in", host=host)).status == 421


async def test_a_query_of_nothing_but_percent_signs_is_no_query(console: Console) -> None:
    """No browser sends more percent signs than escapes have room for, and each takes longer than an escape."""
    window = Window(console)

    assert (await window.send("GET", "/console/sign-in?next=100%")).status == 200
    assert (await window.send("GET", "/console/sign-in?next=%%%%")).status == 400


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example",
        "/console/../x\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
        "/\\evil.example",
        "/console/../shop",
        "/console/%2E./%2e%2e/shop?x=/..",
    ],
)
async def test_the_sign_in_leads_to_no_other_site(desk: Desk, console: Console, wanted: str) -> None:
    """Somebody who sends a link to the sign-in doesn't say where it ends."""
    await signed_in(desk, console, ADA)
    window = Window(console)
    await window.get("/console/sign-in")
    await window.post("/console/sign-in", email=ADA, password=PASSWORD, next=wanted)
    await window.post("/console/code", code=await code_of(desk, ADA), next=wanted)

    assert window.title == "Start"


async def test_a_link_that_was_shared_is_opened_after_the_sign_in(desk: Desk, console: Console) -> None:
    """A colleague's link leads to its page, and not to the start."""
    await signed_in(desk, console, ADA)
    window = Window(console)
    await window.get("/console/acts?before=2")
    wanted = re.search(r'name="next" value="([^"]*)"', window.text)
    assert wanted is not None
    await window.post("/console/sign-in", email=ADA, password=PASSWORD, next=wanted[1])
    wanted = re.search(r'name="next" value="([^"]*)"', window.text)
    assert wanted is not None
    await window.post("/console/code", code=await code_of(desk, ADA), next=wanted[1])

    assert window.title == "What operators did"
    assert "add operator" in window.text


async def test_guesses_are_limited_by_the_pages_too(desk: Desk, console: Console) -> None:
    """Ten passwords; then the right one is refused as well, and the page says how long, to people and to programs."""
    await signed_in(desk, console, ADA)
    window = Window(console, "198.51.100.7")
    await window.get("/console/sign-in")
    for _ in range(10):
        assert (await window.post("/console/sign-in", email=ADA, password="guess")).status == 403
    refused = await window.post("/console/sign-in", email=ADA, password=PASSWORD)
    assert (refused.status, dict(refused.headers)[b"retry-after"]) == (429, b"900")
    assert "Wait for a quarter of an hour" in window.text


async def test_where_too_many_sign_in_at_once_the_page_asks_to_come_again(desk: Desk, console: Console) -> None:
    """On the page of the password, and on that of an invitation, which is not used up by it."""
    token = (await desk.invited("new@shop.example")).reveal()
    window = Window(console, "198.51.100.7")
    await window.get("/console/sign-in")
    with contextlib.ExitStack() as places:
        for number in range(PLACES_MAX):
            places.enter_context(desk.parts.passwords.place(f"192.0.2.{number}"))
        invitation = f"/console/invitations/{token}"
        for path, form in (
            ("/console/sign-in", {"email": ADA, "password": PASSWORD}),
            (invitation, {"password": PASSWORD, "again": PASSWORD}),
        ):
            refused = await window.post(path, **form)
            assert (refused.status, dict(refused.headers)[b"retry-after"]) == (429, b"5"), path
            assert "try again in a few seconds" in window.text, path
    assert (await window.post(invitation, password=PASSWORD, again=PASSWORD)).status == 200


async def test_every_answer_has_the_headers_that_guard_it(desk: Desk, console: Console) -> None:
    """No script but ours, no frame, no cache; also on errors. Cookies are the host's own, over https, for no script."""
    window = await signed_in(desk, console, ADA)
    addresses = [address(route) for route in ROUTES if route.method == "GET" and "assets" not in route.path]
    for each in (*addresses, "/console/nothing", "/console/operators/nobody@x.example"):
        answer = await window.send("GET", each)
        headers = dict(answer.headers)
        policy = headers[b"content-security-policy"].decode()
        assert policy.startswith("default-src 'none'; style-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers[b"cache-control"] == b"no-store"
        assert (headers[b"x-frame-options"], headers[b"x-content-type-options"]) == (b"DENY", b"nosniff")
        own = "passkeys" if each.endswith("/second-factor") else "live"
        scripts = [f'<script src="/console/assets/{own}.js" defer></script>'] if "script-src 'self'" in policy else []
        assert re.findall(r"<script.*?</script>", answer.body.decode()) == scripts, each
        assert ("connect-src 'self'" in policy) is (bool(scripts) and own == "live"), each
        assert not re.search(r"style=|\son[a-z]+=", answer.body.decode()), each
    cookies = [
        value.decode()
        for name, value in (await Window(console).send("GET", "/console/sign-in")).headers
        if name == b"set-cookie"
    ]
    assert cookies
    assert all(each.startswith("__Host-") and "HttpOnly; SameSite=Lax; Secure" in each for each in cookies)
    assert ORIGIN not in "".join(cookies)


async def test_the_text_of_an_error_says_nothing_of_its_cause(desk: Desk) -> None:
    """A fault of ours has a page with the request id; the database's absence has another."""
    console = console_on(desk)
    window = await signed_in(desk, console, ADA)
    broken = dataclasses.replace(desk.parts, acts=OperatorActs(BrokenDatabase(), b"k" * 32))  # type: ignore[arg-type]
    window.console = Console(msgspec.structs.replace(site_of(desk), parts=broken), LOG)
    answer = await window.send("GET", "/console/acts")

    assert answer.status == 500
    assert "req_1" in answer.body.decode()
    assert "quoted" not in answer.body.decode()
