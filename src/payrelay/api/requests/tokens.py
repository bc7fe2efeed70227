"""The gateway's token of an authorization in a body.

Who owns an authorization, and whether it was captured, is told by its token, so a token has one spelling. A gateway may
trim blanks, or read a UUID more liberally than it writes one. It must not be sent a second spelling that nobody owns.
"""

import re
from typing import Final

from payrelay.api.requests.body import TEXT_LENGTH_MAX, CheckedValue, text_check

_BEARER: Final = "^[A-Za-z0-9._~+/=-]+$"
"""The characters of bearer tokens (RFC 6750); those of a handle are among them."""
_is_bearer: Final = re.compile(_BEARER).fullmatch
_is_uuid: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}").fullmatch
# Parsers take zeros left out or put in, a plus before a group, and hyphens anywhere or nowhere.
_is_like_a_uuid: Final = re.compile(r"\+?[0-9A-Fa-f]+(?:-\+?[0-9A-Fa-f]+){4}|(?:-*[0-9A-Fa-f]){32}-*").fullmatch


def _has_one_spelling(text: str) -> bool:
    return _is_bearer(text) is not None and (_is_uuid(text) is not None or _is_like_a_uuid(text) is None)


class AuthorizationToken(
    CheckedValue,
    str,
    check=text_check(_has_one_spelling, "must be written as the gateway gave the token, without spaces"),
    schema={"type": "string", "minLength": 1, "maxLength": TEXT_LENGTH_MAX, "pattern": _BEARER},
):
    """The gateway's token of an authorization, or the id of the checkout that yielded it."""

    __slots__ = ()
