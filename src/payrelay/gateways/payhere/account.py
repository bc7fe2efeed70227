"""One merchant account at PayHere, as it is configured, and what PayHere can do for it."""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

import msgspec

from payrelay.core.gateways.capabilities import Capabilities
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.payments.operation import Kind
from payrelay.core.secret import Secret
from payrelay.gateways.payhere.wire.checkout_forms import CURRENCIES, HashAmounts, Merchant

KIND: Final = "payhere"

BASE_URLS: Final[Mapping[str, str]] = MappingProxyType(
    {"sandbox": "https://sandbox.payhere.lk", "live": "https://www.payhere.lk"}
)
"""By environment. The live host needs its www."""

TIMEOUT_S: Final = 30.0
QUEUE_S: Final = 5.0
TIMEZONE: Final = "Asia/Colombo"
_MERCHANT_DIGITS: Final = 16

LIVE_ONLY: Final = frozenset({"auto_cancel", "max_retries", "starts_on", "is_recovery_due"})
"""Members of a plan that PayHere's sandbox does not know."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that are needed to call PayHere for one merchant.

    Attributes:
        name: the first segment of the account's paths.
        environment: ``sandbox`` or ``live``.
        base_url: the gateway's address; BASE_URLS has the real ones.
        app_id, app_secret: the OAuth pair.
        merchant_id, merchant_secret: for hashes and notifications; None where they aren't set.
        limit: calls in a window; None for no limit.
        timeout_s: the longest one call may take, with its connection.
        queue_s: the longest wait for a permit.
        timezone: the zone of the gateway's dates.
        hash_amounts: the amounts that are signed where nothing is charged at once.
        approval_amounts: further amounts that are notified for an approval that charges nothing, in hundredths.
        signs_elsewhere: whether others sign with the merchant's secret; None where nobody has said so.
        known_as: the merchant under which the store has known the account's app since its first use; None without a
            store.
    """

    name: str
    environment: str
    base_url: str
    app_id: str
    app_secret: Secret
    merchant_id: str | None = None
    merchant_secret: Secret | None = None
    limit: RateLimit | None = None
    timeout_s: float = TIMEOUT_S
    queue_s: float = QUEUE_S
    timezone: str = TIMEZONE
    hash_amounts: HashAmounts = HashAmounts()
    approval_amounts: frozenset[int] = frozenset()
    signs_elsewhere: bool | None = None
    known_as: str | None = None


def merchant_of(account: Account) -> str:
    """Gives 16 hex digits that are equal for one merchant under every configured name."""
    return account.known_as or _digits(_host_of(account), account.merchant_id or account.app_id)


def app_of(account: Account) -> str:
    """Gives 16 hex digits that are equal for one app, whatever else of its account is changed."""
    return _digits(_host_of(account), "app", account.app_id)


def signer_of(account: Account) -> Merchant | None:
    """Gives the merchant that signs forms; None where MERCHANT_ID or MERCHANT_SECRET isn't set."""
    if not account.merchant_id or not account.merchant_secret:
        return None
    return Merchant(
        base_url=account.base_url.rstrip("/"),
        merchant_id=account.merchant_id,
        merchant_secret=account.merchant_secret,
        amounts=account.hash_amounts,
    )


def token_name_of(account: Account) -> str:
    """Names the access token of an account: equal for one app of one merchant under every name."""
    app = hashlib.sha256(account.app_id.encode(errors="surrogateescape")).hexdigest()[:_MERCHANT_DIGITS]
    return f"{merchant_of(account)}/{app}"


def capabilities_of(*, is_live: bool, is_signing: bool, signs_elsewhere: bool | None) -> Capabilities:
    """Gives PayHere's capabilities. It keeps no idempotency keys, and shows no authorization before its capture."""
    return Capabilities(
        does_once=frozenset({Kind.CAPTURE, Kind.CANCEL}),
        finds_orders=True,
        shows_refunds=True,
        shows_installments=True,
        unknown_to_plans=frozenset() if is_live else LIVE_ONLY,
        page_currencies=CURRENCIES,
        unset_for_checkouts=() if is_signing else ("MERCHANT_ID", "MERCHANT_SECRET"),
        signs_elsewhere=signs_elsewhere,
    )


def _host_of(account: Account) -> str:
    return (urlsplit(account.base_url).hostname or "").lower()


def _digits(*parts: str) -> str:
    identity = "\0".join((KIND, *parts))
    return hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:_MERCHANT_DIGITS]
