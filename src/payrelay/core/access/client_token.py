"""Client tokens: the credential of an app, its claims, and how it narrows the key that issued it.

Rules:

1. A token never may do more than its parent, the key that issued it: not at its issue, and not later.
2. A token is for one account, and for one customer, one order or both.
3. Claims are read as strictly as they are written. A token with a claim that is missing, unknown or of another type is
   not Payrelay's.
"""

import re
from typing import Final

import msgspec

from payrelay.core.access.credential import Bound, Credential, Rate, Scope

PREFIX: Final = "prt_"
"""The text before the JWT of a token; it distinguishes a token from a key and from an identity provider's JWT."""
TEXT_LENGTH_MAX: Final = 4096
"""Of a whole token; the longest token that the service issues has some 2,400 characters."""
LIFE_MIN_S: Final = 60
"""The shortest life that may be requested; a token whose parent ends sooner ends with its parent."""
LIFE_MAX_S: Final = 3600
LIFE_USUAL_S: Final = 900
LEEWAY_MS: Final = 5_000
"""How far the clocks of two processes on one store may differ: a token may begin so much later than now."""
RATE: Final = Rate(count=120, window_s=60)
"""The most requests of one token: more than an app needs, and too few to do harm with a stolen token."""

CLIENT_SCOPES: Final = frozenset(
    {
        Scope.PAYMENTS_READ,
        Scope.PAYMENTS_CHARGE,
        Scope.SUBSCRIPTIONS_READ,
        Scope.SUBSCRIPTIONS_CANCEL,
        Scope.OPERATIONS_READ,
        Scope.CHECKOUTS_CREATE,
        Scope.CHECKOUTS_READ,
        Scope.CUSTOMERS_READ,
        Scope.EVENTS_READ,
    }
)
"""The scopes that a client token may have."""
USUAL_SCOPES: Final = frozenset(
    {Scope.PAYMENTS_READ, Scope.OPERATIONS_READ, Scope.CHECKOUTS_READ, Scope.CUSTOMERS_READ, Scope.EVENTS_READ}
)
"""The scopes of a token whose request names none: it can read, and not pay."""

PAYING: Final = frozenset({Scope.PAYMENTS_CHARGE, Scope.CHECKOUTS_CREATE})
"""Scopes that need a token for one order. With any order, a token could find out which orders exist, and block them."""

_ISSUER: Final = "payrelay"
_id_match: Final = re.compile(r"ct_[0-9a-f]{32}").fullmatch
_customer_match: Final = re.compile(r"cus_[0-9a-f]{32}").fullmatch
_currency_match: Final = re.compile(r"[A-Z]{3}").fullmatch


class ClaimsError(ValueError):
    """The claims are not those of a client token."""


class ClientToken(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a client token, without its signature.

    Attributes:
        id: ``ct_`` and 32 hex digits; a revocation names it.
        principal: the principal of its parent, to which everything done with the token belongs.
        credential_id: of its parent.
        account: the configured name of the only account that it is valid for.
        customer_id: the only customer that it is valid for; None where it is for an order alone.
        order_id: the only order that it is valid for; None for all of the customer's orders.
        amount_max_minor, currency: the largest amount of one charge, in hundredths; both or neither.
        scopes: what it may do, of CLIENT_SCOPES.
        issued_at_ms, expires_at_ms: whole seconds, in milliseconds since 1970, UTC.
    """

    id: str
    principal: str
    credential_id: str
    account: str
    customer_id: str | None
    order_id: str | None
    amount_max_minor: int | None
    currency: str | None
    scopes: frozenset[Scope]
    issued_at_ms: int
    expires_at_ms: int


class Parentage(msgspec.Struct, frozen=True, kw_only=True):
    """What decides whether a token is still valid: its revocation, and the key that issued it, usable or not."""

    revoked_at_ms: int | None
    parent: Credential


class _Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The payload of the JWT; the registered names are those of RFC 7519, ``azp`` is OpenID Connect's."""

    iss: str
    jti: str
    sub: str
    azp: str
    account: str
    customer: str | None = None
    order: str | None = None
    amount_max: int | None = None
    currency: str | None = None
    scope: str
    iat: int
    exp: int


def claims_of(token: ClientToken) -> dict[str, object]:
    """Gives the claims of a token."""
    claims = _Claims(
        iss=_ISSUER,
        jti=token.id,
        sub=token.principal,
        azp=token.credential_id,
        account=token.account,
        customer=token.customer_id,
        order=token.order_id,
        amount_max=token.amount_max_minor,
        currency=token.currency,
        scope=" ".join(sorted(token.scopes)),
        iat=token.issued_at_ms // 1000,
        exp=token.expires_at_ms // 1000,
    )
    written: dict[str, object] = msgspec.to_builtins(claims)
    return written


def token_of(claims: dict[str, object]) -> ClientToken:
    """Reads claims; raises ClaimsError for claims that no client token has."""
    try:
        read = msgspec.convert(claims, _Claims)
        scopes = frozenset(map(Scope, read.scope.split(" ")))
    except ValueError as error:
        raise ClaimsError("a claim is missing, unknown or of another type") from error
    token = ClientToken(
        id=read.jti,
        principal=read.sub,
        credential_id=read.azp,
        account=read.account,
        customer_id=read.customer,
        order_id=read.order,
        amount_max_minor=read.amount_max,
        currency=read.currency,
        scopes=scopes,
        issued_at_ms=read.iat * 1000,
        expires_at_ms=read.exp * 1000,
    )
    _require_sense(token, read.iss)
    return token


def _require_sense(token: ClientToken, issuer: str) -> None:
    """Raises ClaimsError for claims that contradict each other or are out of range, whoever signed them."""
    life_s = (token.expires_at_ms - token.issued_at_ms) / 1000
    rules = (
        ("iss", issuer == _ISSUER),
        ("jti", _id_match(token.id) is not None),
        ("customer", token.customer_id is None or _customer_match(token.customer_id) is not None),
        ("order", token.order_id is None or token.order_id != ""),
        ("customer and order", token.customer_id is not None or token.order_id is not None),
        ("amount_max", token.amount_max_minor is None or token.amount_max_minor > 0),
        ("currency", token.currency is None or _currency_match(token.currency) is not None),
        ("amount_max and currency", (token.amount_max_minor is None) == (token.currency is None)),
        ("scope", token.scopes <= CLIENT_SCOPES),
        ("iat and exp", token.issued_at_ms >= 0 and 0 < life_s <= LIFE_MAX_S),
    )
    for claim, is_right in rules:
        if not is_right:
            raise ClaimsError(f"{claim} is not valid in a client token")


def has_begun(token: ClientToken, now_ms: int) -> bool:
    """True unless the token was issued more than LEEWAY_MS after now."""
    return token.issued_at_ms <= now_ms + LEEWAY_MS


def narrowed(parent: Credential, token: ClientToken) -> Credential:
    """Gives the credential of a token, which may never do more than its parent may do now, whatever its claims are.

    It ends with its parent at the latest, and is revoked with its parent. Raises ClaimsError for another key's token.
    """
    if (parent.id, parent.principal) != (token.credential_id, token.principal) or parent.bound is not None:
        raise ClaimsError("the token is not this key's")
    own = frozenset({token.account})
    return Credential(
        id=token.id,
        principal=parent.principal,
        key_hash=b"",
        scopes=token.scopes & parent.scopes & CLIENT_SCOPES,
        accounts=own if parent.accounts is None else own & parent.accounts,
        amount_max_minor=_least(token.amount_max_minor, parent.amount_max_minor),
        rate=_slower(RATE, parent.rate),
        created_at_ms=token.issued_at_ms,
        expires_at_ms=_least(token.expires_at_ms, parent.expires_at_ms),
        revoked_at_ms=parent.revoked_at_ms,
        bound=Bound(customer_id=token.customer_id, order_id=token.order_id, currency=token.currency),
    )


def _least(one: int | None, other: int | None) -> int | None:
    """Gives the smaller limit, where None is no limit."""
    given = [limit for limit in (one, other) if limit is not None]
    return min(given, default=None)


def _slower(rate: Rate, other: Rate | None) -> Rate:
    return rate if other is None or rate.count * other.window_s <= other.count * rate.window_s else other
