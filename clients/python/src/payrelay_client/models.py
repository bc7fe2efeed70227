"""What the service answers with, as typed values.

Times are texts of RFC 3339 in UTC, but for ``date``, which is in the gateway's time zone. Amounts are exact decimals.
Numbers of the gateway's, such as ``payment_id``, are texts. A member that is missing is None.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Self

from payrelay_client.decoding import Model


@dataclass(frozen=True, kw_only=True)
class Charge(Model):
    """A charge or an authorization, as the gateway reports it.

    ``status_code`` is 2 for a payment and 2 or 3 for an authorization. ``authorization_token`` is what a capture takes.
    """

    order_id: str | None = None
    items: str | None = None
    currency: str | None = None
    amount: Decimal | None = None
    custom_1: str | None = None
    custom_2: str | None = None
    payment_id: str | None = None
    status_code: int | None = None
    status_message: str | None = None
    md5sig: str | None = field(default=None, repr=False)
    authorization_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Capture(Model):
    """A capture, as the gateway reports it: ``amount`` was authorized, ``captured_amount`` was captured."""

    order_id: str | None = None
    items: str | None = None
    currency: str | None = None
    amount: Decimal | None = None
    captured_amount: Decimal | None = None
    custom_1: str | None = None
    custom_2: str | None = None
    payment_id: str | None = None
    status_code: int | None = None
    status_message: str | None = None
    md5sig: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Address(Model):
    """Where something is delivered."""

    address: str | None = None
    city: str | None = None
    country: str | None = None


@dataclass(frozen=True, kw_only=True)
class Payer(Model):
    """Who paid; ``fist_name`` is the interface's spelling."""

    fist_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    phone: str | None = None
    delivery_details: Address | None = None


@dataclass(frozen=True, kw_only=True)
class AmountDetail(Model):
    """The gateway's fee and the net amount."""

    currency: str | None = None
    gross: Decimal | None = None
    fee: Decimal | None = None
    net: Decimal | None = None
    exchange_rate: Decimal | None = None
    exchange_from: str | None = None
    exchange_to: str | None = None


@dataclass(frozen=True, kw_only=True)
class PaymentMethod(Model):
    """The card; all digits but the last four are asterisks."""

    method: str | None = None
    card_customer_name: str | None = None
    card_no: str | None = None


@dataclass(frozen=True, kw_only=True)
class LineItem(Model):
    """One item of a purchase."""

    name: str | None = None
    quantity: int | None = None
    currency: str | None = None
    unit_price: Decimal | None = None
    total_price: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class Payment(Model):
    """A payment as the gateway records it.

    ``status`` is ``RECEIVED``, ``REFUND REQUESTED``, ``REFUND PROCESSING``, ``REFUNDED`` or ``CHARGEBACKED``.
    """

    payment_id: str | None = None
    order_id: str | None = None
    date: str | None = None
    description: str | None = None
    status: str | None = None
    currency: str | None = None
    amount: Decimal | None = None
    customer: Payer | None = None
    amount_detail: AmountDetail | None = None
    payment_method: PaymentMethod | None = None
    items: tuple[LineItem, ...] = ()


class PaymentList(tuple[Payment, ...]):  # noqa: SLOT001 - a tuple can have no other slots
    """Payments as the gateway records them.

    Attributes:
        missing: the ids of payments that took money, and that the gateway's record doesn't show yet.
    """

    missing: tuple[str, ...]

    def __new__(cls, payments: Iterable[Payment] = (), missing: Iterable[str] = ()) -> Self:
        """Makes it of the payments that are shown, and the ids of those that aren't."""
        made = super().__new__(cls, payments)
        made.missing = tuple(missing)
        return made


@dataclass(frozen=True, kw_only=True)
class Subscription(Model):
    """A subscription as the gateway records it; ``payments`` only where they were asked for."""

    subscription_id: str | None = None
    order_id: str | None = None
    date: str | None = None
    description: str | None = None
    recurring: str | None = None
    status: str | None = None
    currency: str | None = None
    amount: Decimal | None = None
    customer: Payer | None = None
    amount_detail: AmountDetail | None = None
    payment_method: PaymentMethod | None = None
    items: tuple[LineItem, ...] = ()
    payments: PaymentList = field(default_factory=PaymentList)


@dataclass(frozen=True, kw_only=True)
class Installment(Model):
    """One installment of a subscription."""

    payment_id: str | None = None
    amount: Decimal | None = None
    at: str = ""


@dataclass(frozen=True, kw_only=True)
class SubscriptionState(Model):
    """What Payrelay knows of a subscription: ``state`` is ``active``, ``stopped`` or ``completed``."""

    subscription_id: str = ""
    state: str = ""
    explanation: str = ""
    is_failing: bool = False
    order_id: str | None = None
    amount: Decimal | None = None
    currency: str | None = None
    installments_paid: int = 0
    next_on: str | None = None
    last_paid: Installment | None = None
    last_failure: Installment | None = None
    as_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Checkout(Model):
    """A checkout, as far as its outcome is known.

    ``state`` is ``open``, ``completed``, ``notified``, ``failed``, ``cancelled`` or ``expired``; only ``completed`` is
    final. ``reason`` is ``closed`` where it is cancelled because its page was closed, and else None.
    """

    id: str = ""
    kind: str = ""
    state: str = ""
    reason: str | None = None
    may_still_be_paid: bool = False
    explanation: str = ""
    account: str = ""
    order_id: str = ""
    amount: Decimal | None = None
    currency: str = ""
    customer_reference: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    customer_id: str | None = None
    created_at: str = ""
    updated_at: str = ""
    expires_at: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckoutForm(Model):
    """The signed form of a checkout, for those who post it from a page of their own."""

    action: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class OpenedCheckout(Checkout):
    """A checkout with the ``url`` to open; it and ``form`` are None once the checkout takes no customers any more."""

    url: str | None = field(default=None, repr=False)
    form: CheckoutForm | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Customer(Model):
    """A stored customer: ``state`` is ``active``, ``removed`` or ``erased``."""

    id: str = ""
    state: str = ""
    explanation: str = ""
    version: int = 0
    account: str = ""
    principal: str = ""
    reference: str | None = None
    label: str | None = None
    method: str | None = None
    card_no_masked: str | None = None
    card_expiry: str | None = None
    has_holder: bool = False
    order_id: str | None = None
    payment_id: str | None = None
    created_at: str = ""
    updated_at: str = ""


@dataclass(frozen=True, kw_only=True)
class ErasedCustomer(Customer):
    """What is left of an erased customer; while ``files_cleared`` is false, the service tries again every minute."""

    files_cleared: bool = False


@dataclass(frozen=True, kw_only=True)
class HistoryEntry(Model):
    """One step of an operation."""

    at: str = ""
    state: str = ""
    text: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Chargeback(Model):
    """A payment that the bank took back."""

    payment_id: str = ""
    amount: Decimal | None = None
    currency: str = ""
    at: str = ""
    notification_id: str = ""


@dataclass(frozen=True, kw_only=True)
class FinishedAnswer(Model):
    """The answer that a repeat of the request gets."""

    http_status: int = 0
    body: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Operation(Model):
    """Something that was asked of the gateway; ``is_final`` tells whether its ``state`` is its last one."""

    id: str = ""
    kind: str = ""
    state: str = ""
    explanation: str = ""
    is_final: bool = False
    account: str = ""
    principal: str = ""
    idempotency_key: str | None = None
    request_id: str = ""
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    customer_id: str | None = None
    amount: Decimal | None = None
    currency: str | None = None
    created_at: str = ""
    updated_at: str = ""
    send_by: str = ""


@dataclass(frozen=True, kw_only=True)
class OperationDetail(Operation):
    """An operation with all that is known of it; only its own principal is shown ``answer``."""

    history: tuple[HistoryEntry, ...] = ()
    chargebacks: tuple[Chargeback, ...] = ()
    answer: FinishedAnswer | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class BalanceDoubt(Model):
    """Something of a balance that isn't certain: the word for programs, and a sentence for people."""

    kind: str = ""
    explanation: str = ""
    id: str | None = None
    payment_id: str | None = None
    amount: Decimal | None = None
    currency: str | None = None


@dataclass(frozen=True, kw_only=True)
class BalanceFigure(Model):
    """Where a figure of a payment comes from: ``source`` is ``operation``, ``checkout``, ``record`` and so on."""

    figure: str = ""
    source: str = ""
    id: str | None = None
    amount: Decimal | None = None
    currency: str | None = None


@dataclass(frozen=True, kw_only=True)
class CurrencyBalance(Model):
    """Sums of one currency: ``paid`` is ``given_back``, ``charged_back`` and ``left`` together."""

    currency: str = ""
    paid: Decimal | None = None
    held: Decimal | None = None
    given_back: Decimal | None = None
    charged_back: Decimal | None = None
    left: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class PaymentBalance(Model):
    """One payment of an order. ``paid`` and ``left`` are None where money was taken, and nothing says how much."""

    payment_id: str | None = None
    currency: str | None = None
    paid: Decimal | None = None
    held: Decimal | None = None
    held_until: str | None = None
    given_back: Decimal | None = None
    charged_back: Decimal | None = None
    left: Decimal | None = None
    is_certain: bool = False
    figures: tuple[BalanceFigure, ...] = ()
    doubts: tuple[BalanceDoubt, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OrderCheckout(Model):
    """A page of an order, in short."""

    id: str = ""
    kind: str = ""
    state: str = ""
    explanation: str = ""
    amount: Decimal | None = None
    currency: str = ""
    payment_id: str | None = None
    subscription_id: str | None = None
    created_at: str = ""
    updated_at: str = ""


@dataclass(frozen=True, kw_only=True)
class Order(Model):
    """The money of an order. Where ``is_complete`` is false it has too much to be added up, and there are no sums.

    ``…_left_out`` says how many more payments, operations and pages there are than are shown.
    """

    order_id: str = ""
    account: str = ""
    is_certain: bool = False
    is_complete: bool = False
    balances: tuple[CurrencyBalance, ...] = ()
    payments: tuple[PaymentBalance, ...] = ()
    payments_left_out: int = 0
    doubts: tuple[BalanceDoubt, ...] = ()
    operations: tuple[Operation, ...] = ()
    operations_left_out: int = 0
    checkouts: tuple[OrderCheckout, ...] = ()
    checkouts_left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class Recovery(Model):
    """Whether the service lost commits of its database; ``lost_since`` is None where it lost none."""

    incarnation: int = 0
    is_recovering: bool = False
    lost_since: str | None = None
    lost_until: str | None = None
    acknowledged_at: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClientToken(Model):
    """A client token without its text; what it may pay is None where it may pay nothing."""

    id: str = ""
    customer_id: str | None = None
    order_id: str | None = None
    type: str | None = None
    amount: Decimal | None = None
    amount_max: Decimal | None = None
    currency: str | None = None
    payments: int | None = None
    recurrence: str | None = None
    duration: str | None = None
    startup_fee: Decimal | None = None
    scopes: tuple[str, ...] = ()
    credential_id: str = ""
    issued_at: str = ""
    expires_at: str = ""
    revoked_at: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the app chooses the amount, up to ``amount_max``."""
        return self.raw.get("amount") == "open"


@dataclass(frozen=True, kw_only=True)
class IssuedClientToken(ClientToken):
    """A new client token with its ``token``, which is shown this once."""

    token: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class Event(Model):
    """Something that happened; ``position`` is its place in the feed, None in a webhook."""

    position: int | None = None
    id: str = ""
    type: str = ""
    timestamp: str = ""
    account: str = ""
    subject: str = ""
    data: Mapping[str, object] = field(default_factory=dict)
    traceparent: str | None = None


@dataclass(frozen=True, kw_only=True)
class EventPage(Model):
    """Some events in their order; ``next`` is the ``after`` of the events after them."""

    events: tuple[Event, ...] = ()
    next: int = 0


@dataclass(frozen=True, kw_only=True)
class Endpoint(Model):
    """An address to which events are sent: ``state`` is ``active``, ``paused`` or ``stopped``."""

    id: str = ""
    url: str = ""
    types: tuple[str, ...] = ()
    label: str | None = None
    state: str = ""
    reason: str | None = None
    account: str = ""
    principal: str = ""
    failing_since: str | None = None
    older_secret_ends_at: str | None = None
    created_at: str = ""
    updated_at: str = ""


@dataclass(frozen=True, kw_only=True)
class IssuedEndpoint(Endpoint):
    """A new endpoint, or one with a new secret: ``secret`` is shown this once."""

    secret: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class Delivery(Model):
    """The delivery of an event to an endpoint: ``state`` is ``waiting``, ``delivered`` or ``given_up``."""

    position: int = 0
    event_id: str = ""
    type: str = ""
    subject: str = ""
    state: str = ""
    attempts: int = 0
    queued_at: str = ""
    last_try_at: str | None = None
    next_try_at: str | None = None
    last_status: int | None = None
    last_failure: str | None = None


@dataclass(frozen=True, kw_only=True)
class Replayed(Model):
    """How many events are sent again; where ``after`` is a number, there are more: ask again with it."""

    events: int = 0
    after: int | None = None
