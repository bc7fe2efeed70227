"""The cookies of the console, and the tokens of its forms, which are made from them.

Rules:

1. Over https the names begin with ``__Host-``: a browser takes such a cookie only from this very host, over https.
2. ``visit`` is of a browser that nobody has signed in with; ``session`` has the token of a session. Neither tells
   anything. ``provider`` binds what the sign-in provider sends back to this browser. ``zone`` is the reader's choice
   of a time zone.
3. A form carries a digest of the cookie. Another site can send a form, but it knows no cookie, and so no digest.
4. The header is read once a request, in time that grows with its length: anybody can send one, and payments wait
   meanwhile. Python's own reader (``http.cookies``) takes time with the square of it (CVE-2024-7592). A cookie of the
   console has letters, digits and a few signs; whatever else a header has is none of it, quotes among them.
"""

import hmac
import re
import secrets
from enum import StrEnum
from functools import cache
from typing import Final
from zoneinfo import available_timezones

import msgspec

TOKEN_LENGTH: Final = 43
UTC: Final = "UTC"
_VALUE_LENGTH_MAX: Final = 64
"""More than a token has, or the name of any time zone."""
_YEAR_S: Final = 31_536_000
_FORM: Final = b"payrelay console form"
_ACT: Final = b"payrelay console act\0"


class CookieName(StrEnum):
    """What a cookie is for."""

    VISIT = "visit"
    SESSION = "session"
    PROVIDER = "provider"
    ZONE = "zone"


class BrowserCookies(msgspec.Struct, frozen=True, kw_only=True):
    """The console's cookies that a browser sent; None where it sent none, or one that the console doesn't make.

    Attributes:
        zone: the time zone that the reader has chosen; UTC where none is chosen, or the machine doesn't know it.
    """

    visit: str | None = None
    session: str | None = None
    provider: str | None = None
    zone: str = UTC


class Cookies:
    """Reads and writes the cookies of one console; ``is_secure`` where browsers reach it over https."""

    def __init__(self, *, is_secure: bool) -> None:
        self._prefix = "__Host-payrelay_console_" if is_secure else "payrelay_console_"
        self._attributes = "Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if is_secure else "")
        name = rf"{self._prefix}({'|'.join(CookieName)})"
        value = rf"([A-Za-z0-9_/+-]{{1,{_VALUE_LENGTH_MAX}}})"
        self._ours_in = re.compile(rf"(?:^|;)[ \t]*{name}={value}[ \t]*(?=;|$)").findall

    def read(self, header: bytes | None) -> BrowserCookies:
        """Reads a request's header; of several that the console could have made, the last counts."""
        found = self._ours_in((header or b"").decode("latin-1"))
        tokens = {name: value for name, value in found if len(value) == TOKEN_LENGTH and name != CookieName.ZONE}
        zone = next((value for name, value in reversed(found) if name == CookieName.ZONE and value in zones()), UTC)
        return BrowserCookies(**tokens, zone=zone)

    def set_zone(self, zone: str) -> tuple[bytes, bytes]:
        """Gives the header that keeps a time zone for a year."""
        value = f"{self._prefix}{CookieName.ZONE}={zone}; {self._attributes}; Max-Age={_YEAR_S}"
        return b"set-cookie", value.encode()

    def set(self, name: CookieName, value: str) -> tuple[bytes, bytes]:
        """Gives the header that sets a cookie, until the browser is closed."""
        return b"set-cookie", f"{self._prefix}{name}={value}; {self._attributes}".encode()

    def remove(self, name: CookieName) -> tuple[bytes, bytes]:
        """Gives the header that removes a cookie."""
        return b"set-cookie", f"{self._prefix}{name}=; {self._attributes}; Max-Age=0".encode()


@cache
def zones() -> frozenset[str]:
    """Gives the names of the time zones that the machine knows, which are safe in a cookie."""
    return frozenset({UTC, *(name for name in available_timezones() if name.isascii() and "/" in name)})


def new_visit() -> str:
    """Draws the value of a visit's cookie."""
    return secrets.token_urlsafe(32)


def form_token(cookie: str) -> str:
    """Gives what the forms of a browser with this cookie carry."""
    return hmac.digest(cookie.encode(), _FORM, "sha256").hex()


def act_token(cookie: str, what: bytes) -> str:
    """Gives what a form carries that asks a browser with this cookie for the second factor, for one act alone."""
    return hmac.digest(cookie.encode(), _ACT + what, "sha256").hex()


def is_form_token(cookie: str | None, token: str) -> bool:
    """True where a form was made for the browser that sends it."""
    return cookie is not None and hmac.compare_digest(form_token(cookie).encode(), token.encode(errors="replace"))
