"""Credentials: the form of a key, its principal, and what it may do.

A key is ``prk_<environment>_<id>_<secret><checksum>``. By the checksum the service refuses a mistyped or cut key
without reading the store, and secret scanners recognise a key. The store has only a hash of the whole key. The secret
is random and 256 bits long, so nobody can guess it from a plain SHA-256.
"""

import hashlib
import re
import zlib
from enum import StrEnum
from typing import Final
from urllib.parse import quote

import msgspec

from payrelay.core.access.allowance import Allowance
from payrelay.core.gateways.fair_shares import Requester
from payrelay.core.moments import SpanError, span_s
from payrelay.core.money import decimal_text
from payrelay.errors import Code, Refusal

ID_LENGTH: Final = 12
SECRET_LENGTH: Final = 43
"""43 characters of an alphabet of 62 have 256 bits."""
RATE_COUNT_MAX: Final = 1_000_000
"""The largest count of a rate; a credential that needs more should have no rate."""
CHECKSUM_LENGTH: Final = 6
ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_KEY: Final = re.compile(
    rf"prk_(sandbox|live)_([0-9A-Za-z]{{{ID_LENGTH}}})_([0-9A-Za-z]{{{SECRET_LENGTH}}})([0-9A-Za-z]{{{CHECKSUM_LENGTH}}})"
)
_RATE: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9}[smhd])")


class Scope(StrEnum):
    """What a credential may be allowed to do."""

    PAYMENTS_READ = "payments:read"
    PAYMENTS_CHARGE = "payments:charge"
    PAYMENTS_CAPTURE = "payments:capture"
    PAYMENTS_REFUND = "payments:refund"
    SUBSCRIPTIONS_READ = "subscriptions:read"
    SUBSCRIPTIONS_RETRY = "subscriptions:retry"
    SUBSCRIPTIONS_CANCEL = "subscriptions:cancel"
    OPERATIONS_READ = "operations:read"
    OPERATIONS_READ_ALL = "operations:read-all"
    """Every principal's operations; never among the default scopes."""
    CUSTOMERS_READ = "customers:read"
    CUSTOMERS_WRITE = "customers:write"
    CHECKOUTS_CREATE = "checkouts:create"
    CHECKOUTS_READ = "checkouts:read"
    CLIENT_TOKENS_CREATE = "client-tokens:create"
    EVENTS_READ = "events:read"
    ENDPOINTS_WRITE = "endpoints:write"
    ANY_PRINCIPAL = "any-principal"
    """Every principal's payments, authorizations, orders and plans; never among the default scopes, never a token's."""


DEFAULT_SCOPES: Final = frozenset(Scope) - {Scope.OPERATIONS_READ_ALL, Scope.ANY_PRINCIPAL}


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """At most ``count`` requests in any ``window_s`` seconds."""

    count: int
    window_s: int

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """Reads ``20/10s``: at most 20 in any 10 seconds. Raises SpanError."""
        match = _RATE.fullmatch(text)
        if match is None:
            raise SpanError("must be a rate such as 20/10s")
        count, window_s = int(match[1]), span_s(match[2])
        if not 1 <= count <= RATE_COUNT_MAX or window_s < 1:
            raise SpanError(f"must be a rate of 1 to {RATE_COUNT_MAX} in at least 1s")
        return cls(count=count, window_s=window_s)


class SharedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate that several credentials share, each beside its own; those of one ``name`` count together.

    Attributes:
        name: the name of what is shared.
        rate: what they may make together, as long as each makes what it likes.
        first_count: the first requests of each one in a window, which are let through although the rate is used up.
        whole_count: what all of them may make in a window at the most, with such first requests.
    """

    name: str
    rate: Rate
    first_count: int
    whole_count: int


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The customer and the order of a bound credential; at least one of the first three is given, and None is no limit.

    Attributes:
        customer_id: the only customer that it may act for.
        order_id: the only order that it may act on.
        reference: the client's own name for the customer, which may be an e-mail address; the authenticator adds the
            customer's id. Only a checkout stores it, until an erasure.
        allowance: what it may pay; None for nothing.
        keys_of: the prefix of its Idempotency-Keys, where it isn't made of the members above. By it a credential with a
            reference keeps its keys when its customer gets a card, or another card. Where there is only a reference it
            must be given (``core.access.person_names``).
    """

    customer_id: str | None = None
    order_id: str | None = None
    reference: str | None = None
    allowance: Allowance | None = None
    keys_of: str | None = None

    def __post_init__(self) -> None:
        if self.customer_id is None and self.order_id is None and self.reference is None:
            raise ValueError("a bound credential is bound to a customer or to an order")
        if self.reference is not None and self.customer_id is None and self.keys_of is None:
            raise ValueError("a person needs a name under which the keys are kept (keys_of)")

    @property
    def subject(self) -> str:
        """The name of its customer or order, equal for all tokens of one; those of different ones can't be equal."""
        if self.keys_of is not None:
            return self.keys_of
        if self.customer_id is not None:
            return self.customer_id
        # Quoted, because a name with a slash could read as a shorter name with a longer key.
        return f"order/{quote(str(self.order_id), safe='')}"


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """A credential as the store has it, without its secret.

    Attributes:
        id: the part of the key that may be shown.
        principal: the name that it acts under; several credentials may share one while keys are rotated.
        key_hash: ``hash_of`` of the whole key.
        scopes: what it may do.
        accounts: the gateway accounts that it may use; None for all.
        amount_max_minor: the largest amount of one operation, in hundredths of whatever currency; None for no limit.
        rate: its own quota; None for no limit.
        created_at_ms, expires_at_ms, revoked_at_ms: milliseconds since 1970, UTC; None where it never happens.
        payments_max: how many payments an order may have for the credential to begin another one, whoever made them;
            None for no limit.
        bound: the customer or order of an app's credential; None for a key.
        shared_rate: what it shares with the other tokens of its issuer, beside ``rate``; None for a key.
    """

    id: str
    principal: str
    key_hash: bytes
    scopes: frozenset[Scope]
    accounts: frozenset[str] | None
    amount_max_minor: int | None
    rate: Rate | None
    created_at_ms: int
    expires_at_ms: int | None
    revoked_at_ms: int | None
    payments_max: int | None = None
    bound: Bound | None = None
    shared_rate: SharedRate | None = None

    @property
    def counted_as(self) -> str:
        """The name under which its requests count: itself, or the customer or order that its issuer made it for.

        All tokens of one customer count together, because an app gets as many as it asks for.
        """
        if self.bound is None or self.shared_rate is None:
            return self.id
        return f"{self.shared_rate.name}/{self.bound.subject}"

    @property
    def requester(self) -> Requester:
        """Who its calls to the gateway are for."""
        return Requester(self.principal) if self.bound is None else Requester.of_app(self.principal, self.bound.subject)


def credential_for(
    principal: str, *, created_at_ms: int, credential_id: str = "", scopes: frozenset[Scope] = frozenset()
) -> Credential:
    """Makes the credential of a request that the service itself makes for a principal.

    No key opens it and it is stored nowhere; what the request needs is examined by whoever makes it. ``created_at_ms``
    is in milliseconds since 1970, UTC.
    """
    return Credential(
        id=credential_id,
        principal=principal,
        key_hash=b"",
        scopes=scopes,
        accounts=None,
        amount_max_minor=None,
        rate=None,
        created_at_ms=created_at_ms,
        expires_at_ms=None,
        revoked_at_ms=None,
    )


def compose_key(environment: str, credential_id: str, secret: str) -> str:
    """Writes a key from its random parts (ID_LENGTH and SECRET_LENGTH characters of ALPHABET)."""
    stem = f"prk_{environment}_{credential_id}_{secret}"
    return stem + _checksum(stem)


def id_of_key(key: str) -> str | None:
    """Gives the id inside a key, or None where it isn't a well-formed key with a right checksum."""
    match = _KEY.fullmatch(key)
    if match is None or _checksum(key[:-CHECKSUM_LENGTH]) != match[4]:
        return None
    return match[2]


def hash_of(key: str) -> bytes:
    """Gives the 32 bytes that the store keeps in place of a key."""
    return hashlib.sha256(key.encode()).digest()


def _checksum(stem: str) -> str:
    number = zlib.crc32(stem.encode())
    digits = []
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def is_usable(credential: Credential, now_ms: int) -> bool:
    """True while it is neither revoked nor expired.

    A key with any time of revocation is revoked. A revoked row has no digest, so a time in the future would let in a
    key that nobody issued.
    """
    if credential.revoked_at_ms is not None:
        return False
    return credential.expires_at_ms is None or now_ms < credential.expires_at_ms


def require(credential: Credential, scope: Scope, account: str) -> None:
    """Raises Refusal (forbidden), naming what is missing, unless the credential has the scope on this account."""
    if scope not in credential.scopes and not (
        scope is Scope.OPERATIONS_READ and Scope.OPERATIONS_READ_ALL in credential.scopes
    ):
        raise Refusal(Code.FORBIDDEN, f"the credential lacks the scope {scope}")
    if credential.accounts is not None and account not in credential.accounts:
        raise Refusal(Code.FORBIDDEN, f"the credential may not use the account {account}")


def require_amount(credential: Credential, amount_minor: int | None) -> None:
    """Raises Refusal (forbidden) where an operation moves more than the credential may.

    A refund of the whole and a retry name no amount. A credential with a limit is refused them, or the limit would have
    no effect.
    """
    if credential.amount_max_minor is None:
        return
    limit = decimal_text(credential.amount_max_minor)
    if amount_minor is None:
        raise Refusal(Code.FORBIDDEN, f"the credential may move at most {limit} at once, and this names no amount")
    if amount_minor > credential.amount_max_minor:
        raise Refusal(Code.FORBIDDEN, f"the credential may move at most {limit} at once")
