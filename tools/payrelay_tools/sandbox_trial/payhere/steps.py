"""The calls of the trial, each with what the protocol says of its reply. Data, and the few functions that it needs.

To be changed together: what is believed of PayHere's replies (``gateways.payhere.wire``) and this table.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from payrelay.gateways.payhere.wire.requests import WireRequest
from payrelay_tools.sandbox_trial.payhere.shapes import Shape

Kept = Mapping[str, str]
"""What earlier steps yielded, by name."""

DOCUMENTED: Final = "documented"
OBSERVED: Final = "observed"
GUESSED: Final = "guessed"
OPEN: Final = "open"
"""Nothing public says what comes; whatever it is, it is learnt."""

_ROOT: Final = "/merchant/v1"
NOWHERE: Final = "trial-none"
BAD_TOKEN: Final = "00000000000000000000000000000000"  # noqa: S105, it is meant to be refused
BAD_UUID: Final = "00000000-0000-4000-8000-000000000000"
NO_SUBSCRIPTION: Final = 420000000001

CUSTOMER: Final[Shape] = {
    "fist_name": "text",
    "last_name": "text",
    "email": "any-?",
    "phone": "any",
    "delivery_details": {"address": "any?", "city": "any?", "country": "any?"},
}
AMOUNTS: Final[Shape] = {
    "currency": "text",
    "gross": "number",
    "fee": "number",
    "net": "number",
    "exchange_rate": "number",
    "exchange_from": "text",
    "exchange_to": "text",
}
METHOD: Final[Shape] = {"method": "text", "card_customer_name": "text", "card_no": "card"}
ITEMS: Final[Shape] = [
    {"name": "text", "quantity": "whole", "currency": "text", "unit_price": "number", "total_price": "number"}
]
REQUEST: Final[Shape] = {"custom1": "any?", "custom2": "any?"}


_RECORD: Final[dict[str, Shape]] = {
    "order_id": "text",
    "date": "moment",
    "description": "text",
    "currency": "text",
    "amount": "number",
    "customer": CUSTOMER,
    "amount_detail": AMOUNTS,
    "payment_method": METHOD,
}


def payment_record(status: str, *, items: Shape = "any?") -> dict[str, Shape]:
    """Gives the shape of a payment's record in a status."""
    request = "any?-" if items != "any?" else REQUEST
    return {**_RECORD, "payment_id": "id", "status": f"={status}", "items": items, "request": request}


def subscription_record(status: str) -> dict[str, Shape]:
    """Gives the shape of a subscription's record in a status."""
    recurring = "=Charged every month for 1 year"
    return {**_RECORD, "subscription_id": "id", "recurring": recurring, "status": f"={status}", "items": ITEMS}


def refusal(msg: str, status: int = -1) -> dict[str, Shape]:
    """Gives the shape of an envelope that refuses."""
    return {"status": f"={status}", "msg": f"={msg}", "data": "null?"}


def success(msg: str, data: Shape) -> dict[str, Shape]:
    """Gives the shape of an envelope with data."""
    return {"status": "=1", "msg": f"~{msg}", "data": data}


_PAID: Final[dict[str, Shape]] = {
    "order_id": "text",
    "items": "text",
    "currency": "text",
    "amount": "number",
    "custom_1": "any?",
    "custom_2": "any?",
    "payment_id": "id",
    "status_code": "=2",
    "status_message": "text",
    "md5sig": "hex",
}
CHARGED: Final[Shape] = {**_PAID, "authorization_token": "uuid?"}
CAPTURED: Final[Shape] = {**_PAID, "captured_amount": "number"}


class CallStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the trial.

    Attributes:
        name, question: as in its finding.
        source: how the known reply is known; OPEN where none is known.
        build: makes the call from what earlier steps yielded; raises KeyError where something is missing.
        http_status: the known status; None where none is known.
        known: the known shape of the reply; None where none is known.
        keeps: members of ``data`` that later steps need, by the names under which they are kept.
        bearer: what is sent as the access token: ``own``, ``unknown`` or ``none``.
    """

    name: str
    question: str
    source: str = OPEN
    build: Callable[[Kept], WireRequest]
    http_status: int | None = 200
    known: Shape | None = None
    keeps: Mapping[str, str] = {}
    bearer: str = "own"


def get(path: str, *names: str) -> Callable[[Kept], WireRequest]:
    """Makes a GET; ``{}`` in the path stand for what is kept under the names."""
    return lambda kept: WireRequest(method="GET", path=f"{_ROOT}/{path.format(*(kept[name] for name in names))}")


def post(path: str, **members: object) -> Callable[[Kept], WireRequest]:
    """Makes a POST; a member that begins with ``$`` stands for what is kept under that name, ``#`` for its number."""

    def build(kept: Kept) -> WireRequest:
        body = {name: _filled(member, kept) for name, member in members.items()}
        return WireRequest(method="POST", path=f"{_ROOT}/{path}", body=json.dumps(body).encode())

    return build


def _filled(member: object, kept: Kept) -> object:
    if isinstance(member, str) and member.startswith("$"):
        return kept[member[1:]]
    return int(kept[member[1:]]) if isinstance(member, str) and member.startswith("#") else member


def _charge(order: str, token: str = "$customer_token", **other: object) -> Callable[[Kept], WireRequest]:  # noqa: S107, a name
    members = {"type": "PAYMENT", "order_id": order, "items": "Payrelay trial", "currency": "LKR", "amount": 123.45}
    return post("payment/charge", **{**members, "customer_token": token, **other})


BEFORE: Final = (
    CallStep(
        name="unknown access token",
        question="How is an access token refused that the gateway doesn't know?",
        source=GUESSED,
        build=get("subscription"),
        http_status=401,
        known={"error": "=invalid_token", "error_description": f"=Invalid access token: {BAD_UUID}"},
        bearer="unknown",
    ),
    CallStep(
        name="no access token",
        question="How is a call without an access token refused?",
        build=get("subscription"),
        bearer="none",
    ),
    CallStep(
        name="search of an unknown order",
        question="What does a search say of an order without payments?",
        source=DOCUMENTED,
        build=get(f"payment/search?order_id={NOWHERE}"),
        known=refusal("No payments found"),
    ),
    CallStep(
        name="search without an order",
        question="What does a search say that names no order?",
        build=get("payment/search"),
    ),
    CallStep(
        name="list of subscriptions",
        question="How are all subscriptions listed?",
        source=DOCUMENTED,
        build=get("subscription"),
        known=success(r"Found \d+ subscriptions", [{**subscription_record(""), "status": "text", "recurring": "text"}]),
    ),
    CallStep(
        name="unknown subscription",
        question="What does the gateway say of a subscription that isn't there?",
        build=get(f"subscription/{NO_SUBSCRIPTION}"),
    ),
    CallStep(
        name="payments of an unknown subscription",
        question="What does it say of the payments of a subscription that isn't there?",
        build=get(f"subscription/{NO_SUBSCRIPTION}/payments"),
    ),
    CallStep(
        name="retry of an unknown subscription",
        question="How is a retry of a subscription refused that isn't there?",
        build=post("subscription/retry", subscription_id=NO_SUBSCRIPTION),
    ),
    CallStep(
        name="cancellation of an unknown subscription",
        question="How is the cancellation of a subscription refused that isn't there?",
        build=post("subscription/cancel", subscription_id=NO_SUBSCRIPTION),
    ),
    CallStep(
        name="charge of an unknown customer",
        question="How is a customer's token refused that the gateway doesn't know?",
        source=DOCUMENTED,
        build=_charge(NOWHERE, token=BAD_TOKEN),
        known=refusal("Invalid token"),
    ),
    CallStep(
        name="capture of an unknown authorization",
        question="How is an authorization's token refused that the gateway doesn't know?",
        source=DOCUMENTED,
        build=post("payment/capture", authorization_token=BAD_UUID, amount=10.00, deduction_details="trial"),
        known=refusal("Invalid token"),
    ),
    CallStep(
        name="refund of an unknown payment",
        question="How is a refund of a payment refused that isn't there?",
        source=DOCUMENTED,
        build=post("payment/refund", payment_id="320000000001", description="trial"),
        known=refusal("Error processing refund"),
    ),
    CallStep(
        name="void of an unknown authorization",
        question="How is the void of an authorization refused that isn't there?",
        build=post("payment/refund", authorization_token=BAD_UUID, description="trial"),
    ),
    CallStep(
        name="body that is no JSON",
        question="How is a body refused that is no JSON?",
        build=lambda _: WireRequest(method="POST", path=f"{_ROOT}/payment/charge", body=b"{"),
    ),
)
"""What needs no payment."""

OF_PAYMENT: Final = (
    CallStep(
        name="search of the payment",
        question="What does the record of a payment on the page show?",
        source=OBSERVED,
        build=get("payment/search?order_id={}", "order of payment"),
        known=success(r"Payments with order_id:.*", [payment_record("RECEIVED")]),
        keeps={"payment_id": "payment"},
    ),
    CallStep(
        name="refund of a part",
        question="Does the gateway give back a part of a payment?",
        source=DOCUMENTED,
        build=post("payment/refund", payment_id="$payment", description="trial", amount="1.00"),
        known=success("Successfully processed the refund", "id"),
    ),
    CallStep(
        name="search after the refund of a part",
        question="What does the record show once a part was given back?",
        build=get("payment/search?order_id={}", "order of payment"),
    ),
)
"""What needs the payment of the page."""

OF_CUSTOMER: Final = (
    CallStep(
        name="charge with another currency",
        question="How is a currency refused?",
        source=DOCUMENTED,
        build=_charge("$order of charge", currency="XXX"),
        known=refusal("Invalid currency"),
    ),
    CallStep(
        name="charge of nothing",
        question="How is an amount refused?",
        source=DOCUMENTED,
        build=_charge("$order of charge", amount=0),
        known=refusal("Invalid amount"),
    ),
    CallStep(
        name="charge",
        question="How does the gateway answer a charge?",
        source=DOCUMENTED,
        build=_charge("$order of charge", custom_1="trial", notify_url="$notify"),
        known=success("Automatic payment charged successfully", CHARGED),
        keeps={"payment_id": "charged", "md5sig": "signature of charge"},
    ),
    CallStep(
        name="charge of the same order again",
        question="Does the gateway charge an order twice that is charged twice?",
        source=GUESSED,
        build=_charge("$order of charge"),
        known=success("Automatic payment charged successfully", CHARGED),
    ),
    CallStep(
        name="search of the charges",
        question="Are both charges of the order shown, each with its record?",
        source=OBSERVED,
        build=get("payment/search?order_id={}", "order of charge"),
        known=success(r"Payments with order_id:.*", [payment_record("RECEIVED")]),
    ),
    CallStep(
        name="authorization by the API",
        question="How does the sandbox refuse an authorization by the API, which it is documented not to know?",
        build=_charge("$order of authorization", type="AUTHORIZE"),
    ),
    CallStep(
        name="refund of the charge",
        question="How does the gateway answer a refund of the whole?",
        source=DOCUMENTED,
        build=post("payment/refund", payment_id="$charged", description="trial"),
        known=success("Successfully processed the refund", "id"),
    ),
    CallStep(
        name="refund of the charge again",
        question="How is a second refund refused?",
        build=post("payment/refund", payment_id="$charged", description="trial"),
    ),
    CallStep(
        name="search after the refund",
        question="What does the record show once the whole was given back?",
        build=get("payment/search?order_id={}", "order of charge"),
    ),
)
"""What needs an approved card."""

OF_AUTHORIZATION: Final = (
    CallStep(
        name="search of the authorization",
        question="Does a search show an authorization that isn't captured?",
        build=get("payment/search?order_id={}", "order of hold"),
    ),
    CallStep(
        name="capture of too much",
        question="How is a capture refused of more than was authorized?",
        source=DOCUMENTED,
        build=post("payment/capture", authorization_token="$hold", amount=900.00, deduction_details="trial"),  # noqa: S106
        known=refusal("Capture amount must be less than or equal to the authorized amount"),
    ),
    CallStep(
        name="capture of a part",
        question="How does the gateway answer a capture?",
        source=DOCUMENTED,
        build=post("payment/capture", authorization_token="$hold", amount=80.00, deduction_details="trial"),  # noqa: S106
        known=success("Successfully captured payment", CAPTURED),
        keeps={"payment_id": "captured"},
    ),
    CallStep(
        name="capture again",
        question="How is a second capture refused?",
        source=DOCUMENTED,
        build=post("payment/capture", authorization_token="$hold", amount=80.00, deduction_details="trial"),  # noqa: S106
        known=refusal("Authorization is already CAPTURED", -2),
    ),
    CallStep(
        name="void of what was captured",
        question="What does a void do to an authorization that was captured?",
        build=post("payment/refund", authorization_token="$hold", description="trial"),  # noqa: S106
    ),
    CallStep(
        name="search of the capture",
        question="What does the record of a capture show?",
        source=GUESSED,
        build=get("payment/search?order_id={}", "order of hold"),
        known=success(r"Payments with order_id:.*", [payment_record("RECEIVED")]),
    ),
)
"""What needs an authorization."""

OF_VOID: Final = (
    CallStep(
        name="void",
        question="How does the gateway answer a void?",
        source=DOCUMENTED,
        build=post("payment/refund", authorization_token="$second hold", description="trial"),  # noqa: S106
        known=success("Successfully processed the authorization refund", "null?"),
    ),
    CallStep(
        name="capture of what was voided",
        question="How is a capture refused of an authorization that was voided?",
        source=DOCUMENTED,
        build=post("payment/capture", authorization_token="$second hold", amount=10.00, deduction_details="trial"),  # noqa: S106
        known=refusal("Authorization is already REFUNDED", -2),
    ),
)
"""What needs a second authorization."""

OF_SUBSCRIPTION: Final = (
    CallStep(
        name="one subscription",
        question="What does the record of a subscription show?",
        source=DOCUMENTED,
        build=get("subscription/{}", "subscription"),
        known=success("Found subscription", subscription_record("ACTIVE")),
    ),
    CallStep(
        name="payments of a subscription",
        question="What do the records of installments show?",
        source=DOCUMENTED,
        build=get("subscription/{}/payments", "subscription"),
        known=success(r"Found \d+ payments", [payment_record("RECEIVED", items=ITEMS)]),
    ),
    CallStep(
        name="retry of a subscription that goes on",
        question="How is a retry refused of a subscription whose installments are paid?",
        source=DOCUMENTED,
        build=post("subscription/retry", subscription_id="#subscription"),
        known=refusal("Subscription is not eligible for retrying"),
    ),
    CallStep(
        name="cancellation",
        question="How does the gateway answer a cancellation?",
        source=DOCUMENTED,
        build=post("subscription/cancel", subscription_id="#subscription"),
        known=success("Successfully cancelled the subscription", "null?"),
    ),
    CallStep(
        name="cancellation again",
        question="How is a second cancellation refused?",
        source=DOCUMENTED,
        build=post("subscription/cancel", subscription_id="#subscription"),
        known=refusal("Subscription is already cancelled."),
    ),
    CallStep(
        name="subscription that was cancelled",
        question="In which status is a subscription that was cancelled?",
        source=GUESSED,
        build=get("subscription/{}", "subscription"),
        known=success("Found subscription", subscription_record("CANCELLED")),
    ),
)
"""What needs a subscription."""
