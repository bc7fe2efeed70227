"""Client tokens: the credential of an app, its claims, and how it narrows the key that issued it.

Rules:

1. A token never may do more than its parent, the key that issued it: not at its issue, and not later.
2. A token is for one account, and for one customer, one order or both.
3. A token that may pay names what: kind, amount, currency, and the number of payments (``core.access.allowance``).
4. Claims are read as strictly as they are written. A token with a claim that is missing, unknown or of another type is
   not Payrelay's.
"""

import re
from typing import Any, Final, Literal

import msgspec

from payrelay.core.access.allowance import Allowance, PaymentKind, PlanTerms
from payrelay.core.access.credential import Bound, Credential, Rate, Scope, SharedRate

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
TOKENS_TOGETHER: Final = 100
"""All tokens of one key together may make so many times the requests of one of them. The key's own quota is beside
that, so that no number of apps uses it up; and one app alone uses up a hundredth of what the apps share."""
FIRST_PART: Final = 10
"""One part in so many of an app's own rate, and one request at least, is let through although the apps have used up
what they share. A payment takes a few requests, and then one each five seconds."""
FIRST_TOGETHER: Final = 100
"""All first requests together may come to so many times the requests of one app, beyond what the apps share. Only a
thousand apps can make as many, if each has its tenth, and nobody can tell them from customers."""

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
_OPEN: Final = "open"
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
        allowance: what it may pay; None where it has none of the scopes PAYING.
        scopes: what it may do, of CLIENT_SCOPES.
        issued_at_ms, expires_at_ms: whole seconds, in milliseconds since 1970, UTC.
    """

    id: str
    principal: str
    credential_id: str
    account: str
    customer_id: str | None
    order_id: str | None
    allowance: Allowance | None
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
    type: PaymentKind | None = None
    amount: int | Literal["open"] | None = None
    amount_max: int | None = None
    currency: str | None = None
    payments: int | None = None
    plan: PlanTerms | None = None
    scope: str
    iat: int
    exp: int


def claims_of(token: ClientToken) -> dict[str, object]:
    """Gives the claims of a token."""
    allowance = token.allowance
    paying = {} if allowance is None else _paying_claims(allowance)
    claims = _Claims(
        iss=_ISSUER,
        jti=token.id,
        sub=token.principal,
        azp=token.credential_id,
        account=token.account,
        customer=token.customer_id,
        order=token.order_id,
        scope=" ".join(sorted(token.scopes)),
        iat=token.issued_at_ms // 1000,
        exp=token.expires_at_ms // 1000,
        **paying,
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
        allowance=_allowance(read) if scopes & PAYING else None,
        scopes=scopes,
        issued_at_ms=read.iat * 1000,
        expires_at_ms=read.exp * 1000,
    )
    _require_sense(token, read)
    return token


def _paying_claims(allowance: Allowance) -> dict[str, Any]:
    return {
        "type": allowance.kind,
        "amount": _OPEN if allowance.is_open else allowance.amount_minor,
        "amount_max": allowance.amount_max_minor,
        "currency": allowance.currency,
        "payments": allowance.payments_max,
        "plan": allowance.plan,
    }


def _allowance(read: _Claims) -> Allowance:
    """Reads what a token may pay; raises ClaimsError where a part of it is missing."""
    if read.type is None or read.payments is None or read.currency is None:
        raise ClaimsError("type, payments and currency are not valid in a client token")
    is_open = read.amount == _OPEN
    return Allowance(
        kind=read.type,
        amount_minor=read.amount if isinstance(read.amount, int) else None,
        is_open=is_open,
        amount_max_minor=read.amount_max,
        currency=read.currency,
        payments_max=read.payments,
        plan=read.plan,
    )


def _names_payments(read: _Claims) -> bool:
    given = (read.type, read.amount, read.amount_max, read.currency, read.payments, read.plan)
    return any(each is not None for each in given)


def _require_sense(token: ClientToken, read: _Claims) -> None:
    """Raises ClaimsError for claims that contradict each other or are out of range, whoever signed them."""
    allowance = token.allowance
    life_s = (token.expires_at_ms - token.issued_at_ms) / 1000
    rules = (
        ("iss", read.iss == _ISSUER),
        ("jti", _id_match(token.id) is not None),
        ("customer", token.customer_id is None or _customer_match(token.customer_id) is not None),
        ("order", token.order_id is None or token.order_id != ""),
        ("customer and order", token.customer_id is not None or token.order_id is not None),
        ("amount_max", read.amount_max is None or read.amount_max > 0),
        ("currency", read.currency is None or _currency_match(read.currency) is not None),
        ("what it pays, without a scope to pay", allowance is not None or not _names_payments(read)),
        ("what it pays", allowance is None or allowance.is_consistent),
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
    own, allowance, rate = frozenset({token.account}), token.allowance, _slower(RATE, parent.rate)
    return Credential(
        id=token.id,
        principal=parent.principal,
        key_hash=b"",
        scopes=token.scopes & parent.scopes & CLIENT_SCOPES,
        accounts=own if parent.accounts is None else own & parent.accounts,
        amount_max_minor=_least(allowance.amount_max_minor if allowance else None, parent.amount_max_minor),
        rate=rate,
        created_at_ms=token.issued_at_ms,
        expires_at_ms=_least(token.expires_at_ms, parent.expires_at_ms),
        revoked_at_ms=parent.revoked_at_ms,
        payments_max=_least(allowance.payments_max if allowance else None, parent.payments_max),
        bound=Bound(customer_id=token.customer_id, order_id=token.order_id, allowance=allowance),
        shared_rate=shared_among_tokens(parent.id, rate),
    )


def shared_among_tokens(issuer: str, rate: Rate) -> SharedRate:
    """Gives the rate that all tokens of an issuer share, each of which has ``rate`` to itself."""
    count = rate.count * TOKENS_TOGETHER
    return SharedRate(
        name=f"tokens/{issuer}",
        rate=Rate(count=count, window_s=rate.window_s),
        first_count=max(1, rate.count // FIRST_PART),
        whole_count=count + rate.count * FIRST_TOGETHER,
    )


def _least(one: int | None, other: int | None) -> int | None:
    """Gives the smaller limit, where None is no limit."""
    given = [limit for limit in (one, other) if limit is not None]
    return min(given, default=None)


def _slower(rate: Rate, other: Rate | None) -> Rate:
    return rate if other is None or rate.count * other.window_s <= other.count * rate.window_s else other
