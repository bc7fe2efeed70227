"""Samples that tests of several rooms begin with.

An operation, a notification, a checkout and an endpoint, each just begun; what a customer is asked for; and a payment
as the gateway shows it.
"""

from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.checkouts.hosted_payment import Buyer, HostedPayment, PostalAddress
from payrelay.core.events.delivery import Endpoint, EndpointState
from payrelay.core.notifications.notification import (
    WAITS_FOR_MS,
    Authenticity,
    Notification,
    NotificationKind,
    NotificationReason,
    NotificationState,
    ReportedStatus,
)
from payrelay.core.payments.imported import ImportedPayment
from payrelay.core.payments.operation import Kind, Operation, State
from payrelay.core.payments.payment import Payment, PaymentStatus

NOW_MS: Final = 1_700_000_000_000
OPERATION: Final = Operation(
    id="op_1",
    account="gateway",
    merchant="0123456789abcdef",
    principal="shop",
    kind=Kind.CHARGE,
    state=State.SENDING,
    version=1,
    subject="order/A-1",
    guard="order/A-1",
    claim="key/k-1",
    claim_ends_at_ms=None,
    idempotency_key="k-1",
    fingerprint="f" * 64,
    request_id="req_1",
    order_id="A-1",
    payment_id=None,
    subscription_id=None,
    amount_minor=100_000,
    currency="LKR",
    result_ref=None,
    created_at_ms=1_000,
    updated_at_ms=1_000,
    send_by_ms=11_000,
)
CANCEL: Final = msgspec.structs.replace(
    OPERATION,
    kind=Kind.CANCEL,
    subject="subscription/1",
    guard=None,
    claim=None,
    idempotency_key=None,
    order_id=None,
    amount_minor=None,
    currency=None,
    created_at_ms=1,
    updated_at_ms=1,
    send_by_ms=1,
)
"""The barest of operations: it names nothing, and holds neither claim nor guard."""
NOTIFICATION: Final = Notification(
    id="ntf_0001",
    account="gateway",
    merchant="0123456789abcdef",
    digest="d" * 64,
    authenticity=Authenticity.GENUINE,
    state=NotificationState.RECEIVED,
    reason=NotificationReason.NEW,
    version=1,
    kind=NotificationKind.PAYMENT,
    reported=ReportedStatus.SUCCEEDED,
    order_id="A-1",
    payment_id="320025000001",
    subscription_id=None,
    amount_minor=100_000,
    currency="LKR",
    message_type=None,
    received_at_ms=NOW_MS,
    last_at_ms=NOW_MS,
    repeats=0,
    attempts=0,
    next_at_ms=NOW_MS,
    gives_up_at_ms=NOW_MS + WAITS_FOR_MS,
    updated_at_ms=NOW_MS,
)
CHECKOUT: Final = Checkout(
    id="chk_00000000000000000000000001",
    account="gateway",
    merchant="0123456789abcdef",
    principal="shop",
    kind=CheckoutKind.PAYMENT,
    state=CheckoutState.OPEN,
    version=1,
    order_id="A-1",
    guard="A-1",
    amount_minor=100_000,
    first_minor=100_000,
    currency="LKR",
    secret_hash="0" * 64,
    key_hash=None,
    request_id="req_1",
    reference_hash=None,
    bound_customer_id=None,
    payment_id=None,
    subscription_id=None,
    customer_id=None,
    created_at_ms=1_000,
    updated_at_ms=1_000,
    expires_at_ms=61_000,
    opened_at_ms=None,
    ends_at_ms=61_000,
    inquire_at_ms=4_000,
)
ASKED: Final = HostedPayment(
    kind=CheckoutKind.PAYMENT,
    order_id="A-1",
    items="Tea",
    currency="LKR",
    amount_minor=100_000,
    person=Buyer(
        first_name="Saman",
        last_name="Perera",
        email="saman@example.com",
        phone="0771234567",
        home=PostalAddress(address="No. 1, Galle Road", city="Colombo", country="Sri Lanka"),
    ),
)
PAYMENT: Final = Payment(
    payment_id="320025000001",
    order_id="A-1",
    at_ms=2_000,
    description="Tea",
    status=PaymentStatus.RECEIVED,
    currency="LKR",
    amount_minor=100_000,
)

IMPORTED: Final = ImportedPayment(
    merchant=OPERATION.merchant,
    payment_id="320025000001",
    principal="shop",
    account="gateway",
    order_id="A-1",
    currency="LKR",
    amount_minor=100_000,
    status=PaymentStatus.RECEIVED,
    subscription_id=None,
    paid_at_ms=1_000,
    imported_at_ms=2_000,
    imported_by="ada",
    place="shop.csv, line 2",
)
ENDPOINT: Final = Endpoint(
    id="end_1",
    account="gateway",
    merchant="0123456789abcdef",
    principal="shop",
    url="https://shop.example/events",
    types=("*",),
    label=None,
    state=EndpointState.ACTIVE,
    reason=None,
    older_ends_at_ms=None,
    failing_since_ms=None,
    deferred_until_ms=0,
    created_at_ms=1,
    updated_at_ms=1,
)
