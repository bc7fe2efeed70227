"""An identity provider's tokens: what their claims must be, and what a token allows its bearer.

Rules:

1. The identity provider names the user, and never the permissions: scopes, accounts and principal are settings.
2. The claims must match the settings strictly; a missing claim is as wrong as one that differs. Only the order and the
   amount may be missing: such a token reads, and pays nothing.
3. A token pays the exact amount of its claim, once for its order.
4. Only the id of a customer names keys, permits and lines of the log. In place of any other name of a person they have
   a keyed digest.
"""

import re
from typing import Final, Literal

import msgspec

from payrelay.core.access.allowance import Allowance
from payrelay.core.access.client_token import CLIENT_SCOPES, RATE, shared_among_tokens
from payrelay.core.access.credential import Bound, Credential, Scope
from payrelay.core.access.person_names import PersonNames
from payrelay.core.money import AmountError, typed_minor

LEEWAY_S: Final = 30
"""How far the identity provider's clock may be from the service's clock."""
NAME_LENGTH_MAX: Final = 255
"""Of the name of a user or an order in a claim, as everywhere."""
_currency_match: Final = re.compile(r"[A-Z]{3}").fullmatch
_customer_match: Final = re.compile(r"cus_[0-9a-f]{32}").fullmatch


class IdentityClaimsError(ValueError):
    """The token is the identity provider's, but not valid here; ``reason`` is one word for the metrics."""

    def __init__(self, reason: Literal["claims", "issuer", "audience", "early", "expired"]) -> None:
        super().__init__(reason)
        self.reason = reason


class IdentityProvider(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an identity provider, and what its tokens are valid for.

    Attributes:
        issuer: equal to ``iss``, character for character.
        audience: one of the audiences in ``aud``.
        customer_claim: the claim that names the user.
        claim_is: what that claim holds: the client's own ``reference`` of the customer, or the ``customer`` id.
        order_claim: the claim that names the only order of a token; None where no claim does.
        amount_claim, currency_claim: the claims that name the exact amount of that order and its currency; None where
            no claim does.
        principal: the principal that customers and operations belong to; that of the backend's key.
        scopes: what a bearer may do, of CLIENT_SCOPES.
        accounts: the accounts that the tokens are valid for; None for all.
    """

    issuer: str
    audience: str
    customer_claim: str
    claim_is: Literal["reference", "customer"]
    order_claim: str | None
    amount_claim: str | None = None
    currency_claim: str | None = None
    principal: str
    scopes: frozenset[Scope]
    accounts: frozenset[str] | None


def bearer_of(
    claims: dict[str, object], identity_provider: IdentityProvider, names: PersonNames, now_ms: int
) -> Credential:
    """Gives the credential of a token with these claims, whose signature is verified. Raises IdentityClaimsError."""
    if claims.get("iss") != identity_provider.issuer:
        raise IdentityClaimsError("issuer")
    audience = claims.get("aud")
    if identity_provider.audience not in (audience if isinstance(audience, list) else [audience]):
        raise IdentityClaimsError("audience")
    begins_at_ms, expires_at_ms = _span_ms(claims)
    if begins_at_ms > now_ms:
        raise IdentityClaimsError("early")
    if expires_at_ms <= now_ms:
        raise IdentityClaimsError("expired")
    person = _name(claims, identity_provider.customer_claim)
    is_reference = identity_provider.claim_is == "reference"
    return Credential(
        id=names.credential_id(identity_provider.issuer, person),
        principal=identity_provider.principal,
        key_hash=b"",
        scopes=identity_provider.scopes & CLIENT_SCOPES,
        accounts=identity_provider.accounts,
        amount_max_minor=None,
        rate=RATE,
        created_at_ms=max(0, begins_at_ms),
        expires_at_ms=expires_at_ms,
        revoked_at_ms=None,
        bound=Bound(
            customer_id=None if is_reference else person,
            reference=person if is_reference else None,
            order_id=_order(claims, identity_provider),
            allowance=_allowance(claims, identity_provider),
            keys_of=names.keys_of(person) if is_reference or _customer_match(person) is None else None,
        ),
        shared_rate=shared_among_tokens("identity-provider", RATE),
    )


def _order(claims: dict[str, object], identity_provider: IdentityProvider) -> str | None:
    """Gives the order of a token; None where it names none, and so may pay nothing."""
    claim = identity_provider.order_claim
    return None if claim is None or claims.get(claim) is None else _name(claims, claim)


def _allowance(claims: dict[str, object], identity_provider: IdentityProvider) -> Allowance | None:
    """Gives what a token may pay: the amount of its claim, once. None where it names no amount, or no currency."""
    amount_claim, currency_claim = identity_provider.amount_claim, identity_provider.currency_claim
    if amount_claim is None or currency_claim is None:
        return None
    amount, currency = claims.get(amount_claim), claims.get(currency_claim)
    if amount is None or currency is None:
        return None
    if not isinstance(currency, str) or _currency_match(currency) is None:
        raise IdentityClaimsError("claims")
    return Allowance(amount_minor=_amount_minor(amount), currency=currency)


def _amount_minor(amount: object) -> int:
    """Reads an amount, a number or its text; the shortest text of a number is what the provider wrote."""
    if type(amount) not in {int, float, str}:
        raise IdentityClaimsError("claims")
    try:
        return typed_minor(str(amount))
    except AmountError:
        raise IdentityClaimsError("claims") from None


def _span_ms(claims: dict[str, object]) -> tuple[int, int]:
    """Gives from when to when the claims are valid by the service's clock; the leeway is included."""
    begins_s = max(_moment_s(claims.get(name, 0)) for name in ("iat", "nbf"))
    return round((begins_s - LEEWAY_S) * 1000), round((_moment_s(claims.get("exp")) + LEEWAY_S) * 1000)


def _moment_s(value: object) -> float:
    # By type, because True is a number in Python. A number from 2**40 on can't be meant as seconds.
    if type(value) not in {int, float} or not isinstance(value, int | float) or not 0 <= value < 2**40:
        raise IdentityClaimsError("claims")
    return value


def _name(claims: dict[str, object], claim: str) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_LENGTH_MAX or not value.isprintable():
        raise IdentityClaimsError("claims")
    return value
