"""Reads the reply to a token request. Pure.

The effect or read that needs the token was not sent yet, so every failure here is a safe one.
"""

import re
from typing import Final

import msgspec

from payrelay.errors import Code
from payrelay.gateways.payhere.wire.reply_shapes import (
    BUSY,
    DOMAIN_DENIED,
    TOO_MANY_REQUESTS,
    Cause,
    Envelope,
    OauthError,
    RejectedCall,
    WrongShape,
    cause_of_status,
    members_of,
    read_shape,
    rejection_in,
    text_in,
    whole_in,
)

EXPIRES_IN_S: Final = 60
"""Assumed where the gateway doesn't say how long a token lives; its documents say 599."""
EXPIRES_IN_S_MAX: Final = 86_400

CREDENTIALS_REFUSED: Final = RejectedCall(
    code=Code.GATEWAY_REFUSED_US,
    cause=Cause.CREDENTIALS_REFUSED,
    msg="the gateway does not accept our App ID and secret; nothing was executed",
)

_HTTP_OK: Final = 200
_REFUSING: Final = frozenset({200, 400, 401, 403})
_DENYING: Final = frozenset({401, 403})
# Only characters that a header may have: until here a token is text from outside.
_TOKEN: Final = re.compile(r"[0-9A-Za-z_.~+/=-]{8,4096}")


class TokenGrant(msgspec.Struct, frozen=True, kw_only=True):
    """An access token and its life in seconds."""

    access_token: str
    expires_in_s: int

    def __repr__(self) -> str:
        return f"TokenGrant(expires_in_s={self.expires_in_s})"


def read_grant(http_status: int, body: bytes) -> TokenGrant | RejectedCall:
    """Reads the reply to a token request. Never raises."""
    if http_status == TOO_MANY_REQUESTS:
        return BUSY
    if http_status == _HTTP_OK:
        grant = _grant(body)
        if grant is not None:
            return grant
    if http_status not in _REFUSING:
        return _failing(cause_of_status(http_status))
    shape = read_shape(body)
    if isinstance(shape, OauthError):
        return CREDENTIALS_REFUSED
    if isinstance(shape, Envelope):
        denied = rejection_in(shape)
        return DOMAIN_DENIED if denied is DOMAIN_DENIED else CREDENTIALS_REFUSED
    return CREDENTIALS_REFUSED if http_status in _DENYING else _failing(shape.cause)


def _failing(cause: Cause) -> RejectedCall:
    return RejectedCall(
        code=Code.UNAVAILABLE, cause=cause, msg="the gateway gave no access token; nothing was executed"
    )


def _grant(body: bytes) -> TokenGrant | None:
    try:
        members = members_of(body)
        token = text_in(members, "access_token")
        token_type = text_in(members, "token_type")
        expires_in_s = whole_in(members, "expires_in")
    except WrongShape:
        return None
    if token is None or _TOKEN.fullmatch(token) is None or (token_type or "bearer").casefold() != "bearer":
        return None
    left_s = EXPIRES_IN_S if expires_in_s is None else min(max(expires_in_s, 0), EXPIRES_IN_S_MAX)
    return TokenGrant(access_token=token, expires_in_s=left_s)
