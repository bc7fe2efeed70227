"""Secret texts, which print as stars wherever a value that holds them is printed."""

import hashlib
import hmac
import re
from typing import Final, NoReturn

import msgspec

STARS: Final = "********"
"""What is printed in place of a secret."""

_is_uuid: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}").fullmatch

SECRET_MEMBERS: Final = frozenset({"customer_token", "authorization_token", "card_holder", "url"})
"""The ``url`` of an endpoint is one: whoever knows its path may call it."""


class MaskedRepr(msgspec.Struct, frozen=True, kw_only=True):
    """The base of values with a secret among their members; the printed form has stars in its place."""

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({members})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Gives the members for a printed form, here and in rich's tracebacks."""
        members = [(name, getattr(self, name)) for name in self.__struct_fields__]
        return [(name, STARS if name in SECRET_MEMBERS and value else value) for name, value in members]


class Secret:
    """Holds a secret text. Only ``reveal`` gives the text, so that every use of it can be found by that word."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Gives the text itself."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({STARS})"

    def __str__(self) -> str:
        return STARS

    def __format__(self, spec: str) -> str:
        return format(STARS, spec)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


def secret_of(value: object) -> Secret:
    """Makes the text of a setting a secret; a Secret stays as it is. Raises ValueError for anything else."""
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError("must be text")
    return Secret(value)


def secret_hash(token: str) -> str:
    """Gives the hash of a gateway's token, 64 hex digits, for use where the token itself must not be stored in clear.

    The gateway's tokens are random and over 120 bits long, so nobody can guess one from its plain hash. Capital and
    small letters spell one and the same UUID, which is what an authorization's token is: both have one hash. Any other
    token is told by its letters.
    """
    spelt = token.lower() if _is_uuid(token) else token
    return hashlib.sha256(b"payrelay token\0" + spelt.encode()).hexdigest()
