"""What the gateway keeps: customers, payments, holds and subscriptions, as values that are replaced, never changed."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

import msgspec

Decline = Literal["insufficient_funds", "limit_exceeded", "do_not_honor", "network_error"]

HoldStatus = Literal["HELD", "CAPTURED", "REFUNDED", "RELEASED"]

SubscriptionStatus = Literal["ACTIVE", "COMPLETED", "FAILED", "CANCELLED"]

Unit = Literal["Day", "Week", "Month", "Year"]


class Merchant(msgspec.Struct, frozen=True, kw_only=True):
    """One account with its API key: the OAuth pair, and the id and secret that signatures are made with."""

    app_id: str
    app_secret: str
    merchant_id: str
    merchant_secret: str

    def __repr__(self) -> str:
        """Return the public half only, so that no log holds a secret."""
        return f"Merchant(app_id={self.app_id!r}, merchant_id={self.merchant_id!r})"


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Who pays."""

    first_name: str = "Saman"
    last_name: str = "Perera"
    email: str = "saman@example.com"
    phone: str = "+94771234567"
    address: str = "No. 1, Galle Road"
    city: str = "Colombo"
    country: str = "Sri Lanka"


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is paid with; only the last four digits exist. A wallet has a method alone."""

    method: Literal["VISA", "MASTER", "AMEX", "HELAPAY", "FRIMI", "QPLUS"] = "VISA"
    holder_name: str = "S Perera"
    last_digits: str = "1292"
    expiry: str = "0129"


class Customer(msgspec.Struct, frozen=True, kw_only=True):
    """A preapproved card. `decline` makes every charge to it fail; a cancelled one is unknown to charges."""

    customer_token: str
    merchant_id: str
    person: Person = Person()
    card: Card = Card()
    decline: Decline | None = None
    is_cancelled: bool = False


class Refund(msgspec.Struct, frozen=True, kw_only=True):
    """Money that goes back from a payment; of one that has failed the merchant has it again."""

    refund_id: int
    at: datetime
    amount_cents: int
    has_failed: bool = False


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """Money received. Nobody finds it before `visible_at`."""

    payment_id: int
    merchant_id: str
    order_id: str
    at: datetime
    description: str
    currency: str
    amount_cents: int
    # The number as the caller wrote it, for answers that repeat it so.
    amount_given: Decimal | int | None = None
    person: Person = Person()
    card: Card = Card()
    custom_1: str | None = None
    custom_2: str | None = None
    subscription_id: int | None = None
    startup_fee_cents: int = 0
    refunds: tuple[Refund, ...] = ()
    # What a bank has taken back, and hasn't been made to return.
    charged_back_cents: int = 0
    visible_at: datetime | None = None
    notify_url: str = ""

    def is_visible(self, now: datetime) -> bool:
        """Say whether it can be found by now."""
        return self.visible_at is None or self.visible_at <= now

    @property
    def is_charged_back(self) -> bool:
        """Whether a bank has taken it back, in whole or in part."""
        return self.charged_back_cents > 0

    @property
    def standing_refunds(self) -> tuple[Refund, ...]:
        """Its refunds without those that have failed."""
        return tuple(refund for refund in self.refunds if not refund.has_failed)

    @property
    def refunded_cents(self) -> int:
        """How much of it has been given back; more than its amount where the switches allow that."""
        return sum(refund.amount_cents for refund in self.standing_refunds)


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """An amount set aside on a card until it is captured, refunded or released by time."""

    authorization_token: str
    payment_id: int
    merchant_id: str
    order_id: str
    expires_at: datetime
    description: str
    currency: str
    amount_cents: int
    amount_given: Decimal | int | None = None
    captured_cents: int = 0
    status: HoldStatus = "HELD"
    person: Person = Person()
    card: Card = Card()
    custom_1: str | None = None
    custom_2: str | None = None
    notify_url: str = ""


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A length of time in the gateway's words, such as 2 Week."""

    count: Annotated[int, msgspec.Meta(ge=1, le=120)]
    unit: Unit


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A recurring charge. `cycle` counts the installments that have fallen due and were paid, the first included."""

    subscription_id: int
    merchant_id: str
    order_id: str
    customer_token: str
    started_at: datetime
    description: str
    currency: str
    amount_cents: int
    recurrence: Period
    # None: forever.
    duration: Period | None
    startup_fee_cents: int = 0
    cycle: int = 1
    failures: int = 0
    # Counts plans made; an older plan that comes due is ignored.
    plan: int = 0
    status: SubscriptionStatus = "ACTIVE"
    payment_ids: tuple[int, ...] = ()
    custom_1: str | None = None
    custom_2: str | None = None
    notify_url: str = ""
    # Tries after an installment's first failure, and whether the subscription ends when they are used up.
    retries_max: int = 7
    is_auto_cancelled: bool = True
