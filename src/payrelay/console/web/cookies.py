"""The cookies of the console, and the tokens of its forms, which are made from them.

Rules:

1. Over https the names begin with ``__Host-``: a browser takes such a cookie only from this very host, over https.
2. ``visit`` is of a browser that nobody has signed in with; ``session`` has the token of a session. Neither tells
   anything. ``provider`` binds what the sign-in provider sends back to this browser. ``zone`` is the reader's choice
   of a time zone.
3. A form carries a digest of the cookie. Another site can send a form, but it knows no cookie, and so no digest.
"""

import hmac
import secrets
from enum import StrEnum
from functools import cache
from http.cookies import CookieError, SimpleCookie
from typing import Final
from zoneinfo import available_timezones

TOKEN_LENGTH: Final = 43
UTC: Final = "UTC"
_YEAR_S: Final = 31_536_000
_FORM: Final = b"payrelay console form"


class CookieName(StrEnum):
    """What a cookie is for."""

    VISIT = "visit"
    SESSION = "session"
    PROVIDER = "provider"
    ZONE = "zone"


class Cookies:
    """Reads and writes the cookies of one console; ``is_secure`` where browsers reach it over https."""

    def __init__(self, *, is_secure: bool) -> None:
        self._prefix = "__Host-payrelay_console_" if is_secure else "payrelay_console_"
        self._attributes = "Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if is_secure else "")

    def read(self, header: bytes | None, name: CookieName) -> str | None:
        """Gives a cookie's value; None where it is missing, or isn't one that the console makes."""
        value = self._value(header, name)
        return value if len(value) == TOKEN_LENGTH and value.isascii() else None

    def zone(self, header: bytes | None) -> str:
        """Gives the time zone that the reader has chosen; UTC where none is chosen, or the machine doesn't know it."""
        value = self._value(header, CookieName.ZONE)
        return value if value in zones() else UTC

    def set_zone(self, zone: str) -> tuple[bytes, bytes]:
        """Gives the header that keeps a time zone for a year."""
        value = f"{self._prefix}{CookieName.ZONE}={zone}; {self._attributes}; Max-Age={_YEAR_S}"
        return b"set-cookie", value.encode()

    def _value(self, header: bytes | None, name: CookieName) -> str:
        try:
            found = SimpleCookie((header or b"").decode("latin-1")).get(self._prefix + name)
        except CookieError:
            return ""
        return "" if found is None else found.value

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


def is_form_token(cookie: str | None, token: str) -> bool:
    """True where a form was made for the browser that sends it."""
    return cookie is not None and hmac.compare_digest(form_token(cookie).encode(), token.encode(errors="replace"))
