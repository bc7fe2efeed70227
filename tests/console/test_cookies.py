"""The cookies of the console, as browsers send them, and as nobody's browser does."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.console.web.cookies import BrowserCookies, CookieName, Cookies, zones

SECURE: Final = Cookies(is_secure=True)
PLAIN: Final = Cookies(is_secure=False)
OURS: Final = "__Host-payrelay_console_"
A: Final = "a" * 43
B: Final = "B-_" + "b" * 40


@pytest.mark.parametrize("cookies", [SECURE, PLAIN])
def test_a_cookie_that_was_set_is_read(cookies: Cookies) -> None:
    """Else nobody stays signed in; each name has its own value."""
    tokens = {CookieName.VISIT: A, CookieName.SESSION: B, CookieName.PROVIDER: "C" * 43}
    sent = [cookies.set(name, value)[1].partition(b";")[0] for name, value in tokens.items()]

    assert cookies.read(b"; ".join(sent)) == BrowserCookies(**tokens)


def test_every_time_zone_that_can_be_chosen_is_read() -> None:
    """A reader who chooses one of them sees its times on the next page."""
    unread = [zone for zone in zones() if SECURE.read(SECURE.set_zone(zone)[1].partition(b";")[0]).zone != zone]

    assert unread == []


def test_nothing_is_read_but_what_the_console_makes() -> None:
    """The rest of the header is anybody's: other programs of the host, proxies, or whoever tries what happens."""
    session = f"{OURS}session"
    expected = {
        "": None,
        ";;; ; =": None,
        session: None,
        f"{session}=": None,
        f"{session}={A}": A,
        f"\t{session}={A} \t": A,
        f"other=1;{session}={A};more": A,
        f'odd="\\";{session}={A}; {{"json": [1, 2]}}': A,
        f"{session}={B}; {session}={A}": A,
        f"{session}={A}; {session}=x": A,
        f'{session}="{A}"': None,
        f"{session}={A}x": None,
        f"{session}={A[1:]}": None,
        f"{session}={A[1:]}é": None,
        f"{session}={A[1:]}=": None,
        f"{session}={A} {B}": None,
        f"{session} ={A}": None,
        f"x{session}={A}": None,
        f"{session}x={A}": None,
        f"{session.lower()}={A}": None,
        f"payrelay_console_session={A}": None,
        f"{OURS}visit={A}": None,
        f"{OURS}zone={A}": None,
    }

    assert {header: SECURE.read(header.encode("latin-1")).session for header in expected} == expected


def test_a_zone_that_the_machine_does_not_know_is_utc() -> None:
    """A file of zones changes with the machine; the page is shown all the same."""
    assert SECURE.read(f"{OURS}zone=Mars/Olympus_Mons".encode()).zone == "UTC"
    assert SECURE.read(None) == BrowserCookies()


@given(before=st.binary(max_size=60), after=st.binary(max_size=60))
def test_cookies_of_others_hide_ours_from_nobody(before: bytes, after: bytes) -> None:
    """Whatever stands beside it: another program's odd cookie must not sign an operator out."""
    header = before + b"; " + f"{OURS}session={A}".encode() + b"; " + after

    assert SECURE.read(header).session == A
