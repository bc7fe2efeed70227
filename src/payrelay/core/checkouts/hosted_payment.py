"""What a customer is asked for on the gateway's page, in Payrelay's own terms: one frozen value for all four kinds.

The API makes the value from a request, and an adapter turns it into the gateway's form. The value has personal data: it
prints none of it, and is stored sealed.
"""

from datetime import date
from enum import StrEnum

import msgspec

from payrelay.core.calls import Item
from payrelay.core.secret import STARS

__all__ = ["Buyer", "CheckoutKind", "HostedPayment", "Item", "Plan", "PostalAddress"]


class CheckoutKind(StrEnum):
    """What a customer is asked for."""

    PAYMENT = "payment"
    """To pay now."""
    PREAPPROVAL = "preapproval"
    """To let a card be charged later, with or without a payment now."""
    RECURRING = "recurring"
    """To pay now and again, by a plan."""
    AUTHORIZATION = "authorization"
    """To authorize an amount, to be captured later."""


class Redacted(msgspec.Struct, frozen=True, kw_only=True):
    """The base of values with personal data, of which nothing is printed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({STARS})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Gives the printed form, in rich's tracebacks too."""
        return [("", STARS)]


class PostalAddress(Redacted, frozen=True, kw_only=True):
    """The address of a buyer or of a delivery; for a delivery each part may be left out."""

    address: str | None = None
    city: str | None = None
    country: str | None = None


class Buyer(Redacted, frozen=True, kw_only=True):
    """The customer who pays."""

    first_name: str
    last_name: str
    email: str
    phone: str
    home: PostalAddress


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How often a recurring payment is charged, and for how long.

    Attributes:
        recurrence: such as ``1 Month``.
        duration: such as ``1 Year``, or ``Forever``.
        startup_fee_minor: added to the first payment; below 0 it is subtracted.
        auto_cancel, max_retries, is_recovery_due: what happens when an installment fails; None for the gateway's way.
        starts_on: the day of the first payment; None for now.
    """

    recurrence: str
    duration: str
    startup_fee_minor: int | None = None
    auto_cancel: bool | None = None
    max_retries: int | None = None
    is_recovery_due: bool | None = None
    starts_on: date | None = None


class HostedPayment(Redacted, frozen=True, kw_only=True):
    """What a customer is asked for.

    Attributes:
        kind: one of the four kinds.
        order_id, items, currency: what the request is for.
        amount_minor: in hundredths; None for a preapproval that charges nothing now.
        person: the customer who pays.
        delivery: the address of the delivery; None where none is given.
        item_list: the items of the bill.
        custom_1, custom_2: the gateway sends them back with the notification.
        platform: the platform that the customer comes from.
        payment_method: preselected, so that the gateway's page offers no choice.
        plan: of a recurring payment, None for the others.
    """

    kind: CheckoutKind
    order_id: str
    items: str
    currency: str
    amount_minor: int | None
    person: Buyer
    delivery: PostalAddress | None = None
    item_list: tuple[Item, ...] = ()
    custom_1: str | None = None
    custom_2: str | None = None
    platform: str | None = None
    payment_method: str | None = None
    plan: Plan | None = None

    @property
    def first_minor(self) -> int | None:
        """The first charge where it is made today: the amount, and the startup fee of a plan."""
        if self.amount_minor is None or self.plan is None:
            return self.amount_minor
        return self.amount_minor + (self.plan.startup_fee_minor or 0)


class NewCheckout(msgspec.Struct, frozen=True, kw_only=True):
    """A request to open a checkout; the links are the app's own."""

    payment: HostedPayment
    expires_in_s: int
    customer_reference: str | None = None
    return_to: str | None = None
    cancel_to: str | None = None

    def __repr__(self) -> str:
        return "NewCheckout(********)"
