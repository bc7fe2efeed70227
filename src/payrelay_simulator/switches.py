"""Where the gateway's behaviour is not documented: one switch per open question, with the likeliest default."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

# More than a day of calls in one window makes no sense; the limit keeps the window's memory bounded.
RATE_LIMIT_CALLS_MAX = 100_000


class Switches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every choice that the simulator makes where the protocol is silent, contradicts itself or was seen to vary."""

    invalid_token_http: Literal[401, 200] = 401
    business_error_http: Literal[200, 400, 422] = 200
    domain_denied_http: Literal[401, 403] = 401
    # Zero calls: no limit is held.
    rate_limit_calls: Annotated[int, msgspec.Meta(ge=0, le=RATE_LIMIT_CALLS_MAX)] = 20
    rate_limit_window_s: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 10.0
    rate_limit_answer: Literal["429", "403", "drop"] = "429"
    bad_client: Literal["invalid_client", "unauthorized", "envelope"] = "invalid_client"
    access_tokens: Literal["reused", "new"] = "reused"
    charge_decline: Literal["data", "envelope"] = "data"
    charge_custom: Literal["echoed", "null"] = "echoed"
    payment_authorization_tokens: Literal["null", "present"] = "null"
    authorize: Literal["works", "refused"] = "works"
    authorize_status_code: Literal[3, 2] = 3
    refused_refund_status: Literal[-1, 0] = -1
    # Accepted, the money goes back a second time.
    over_refund: Literal["refused", "accepted"] = "refused"
    charged_back_refund: Literal["refused", "accepted"] = "refused"
    partial_refund: Literal["works", "refused"] = "works"
    partial_refund_record: Literal["RECEIVED", "REFUND REQUESTED"] = "RECEIVED"
    chargeback_record: Literal["CHARGEBACKED", "RECEIVED"] = "CHARGEBACKED"
    refund_progress: Literal["instant", "staged"] = "instant"
    expired_hold: Literal["invalid_token", "expired"] = "invalid_token"
    unknown_subscription: Literal["envelope", "http_404"] = "envelope"
    empty_subscription_list: Literal["found_none", "no_records"] = "found_none"
    cancelled_subscription: Literal["CANCELLED", "CANCELED"] = "CANCELLED"
    retrieval_order: Literal["newest_first", "oldest_first"] = "newest_first"
    installments: Literal["accelerated", "calendar"] = "accelerated"
    accelerated_interval_s: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 60.0
    rest_md5sig: Literal["correct", "wrong"] = "correct"
    amounts: Literal["doubles", "as_given"] = "doubles"
    # Hosts (no scheme, no port) whose pages may post a form; none named: any.
    allowed_domains: tuple[str, ...] = ()
    form_currencies: tuple[str, ...] = ("LKR", "USD", "GBP", "EUR", "AUD")
    preapproval_hash_amount: Literal["0.51", "1.01"] = "0.51"
    startup_fee_hash: Literal["sum", "amount"] = "sum"
    recurring_options: Literal["works", "refused"] = "works"
    page_error_http: Literal[400, 200] = 400
    authorize_payment_id: Literal["absent", "present"] = "absent"
    # Of January 2029, say: 0129, or 01/29.
    card_expiry: Literal["MMYY", "MM/YY"] = "MMYY"
    refusal_notification: Literal["sent", "none"] = "sent"
    cancel_notification: Literal["none", "sent"] = "none"
    # Tries after the first one that was not answered with 2xx; the gateway documents none.
    notification_retries: Annotated[int, msgspec.Meta(ge=0, le=20)] = 0
    notification_retry_interval_s: Annotated[float, msgspec.Meta(ge=0.1, le=86_400)] = 60.0
    notification_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=300)] = 10.0


# Switches that belong together. `docs` is what the gateway's documents say or leave open, and the default. `observed`
# is what was seen in other people's notifications and in the gateway's own clients, where that differs.
PROFILES: Mapping[str, Mapping[str, object]] = {
    "docs": {"card_expiry": "MMYY", "authorize_payment_id": "absent"},
    "observed": {"card_expiry": "MM/YY", "authorize_payment_id": "present"},
}


def in_profile(switches: Switches, name: str) -> Switches:
    """Return the switches with those of a profile, which must be one of PROFILES."""
    return msgspec.structs.replace(switches, **PROFILES[name])
