"""What a customer is asked for on the gateway's own page, in words of our own: one frozen value for all four kinds.

The door makes it from a request, an adapter turns it into its provider's form. It holds a person's data: it prints none
of it, and is stored sealed.
"""

from datetime import date
from enum import StrEnum

import msgspec

from payrelay.core.calls import Item
from payrelay.core.secret import STARS


class CheckoutKind(StrEnum):
    """What a customer is asked for."""

    PAYMENT = "payment"
    """To pay now."""
    PREAPPROVAL = "preapproval"
    """To let a card be charged later, with or without a payment now."""
    RECURRING = "recurring"
    """To pay now and again, by a plan."""
    AUTHORIZATION = "authorization"
    """To let money be held, to be captured later."""


class Redacted(msgspec.Struct, frozen=True, kw_only=True):
    """The base of values that hold a person's data: nothing of it is printed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({STARS})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Gives the printed form, in rich's tracebacks too."""
        return [("", STARS)]


class PostalAddress(Redacted, frozen=True, kw_only=True):
    """Where somebody lives, or where something is sent; for a delivery each part may be left out."""

    address: str | None = None
    city: str | None = None
    country: str | None = None


class Buyer(Redacted, frozen=True, kw_only=True):
    """Who pays."""

    first_name: str
    last_name: str
    email: str
    phone: str
    home: PostalAddress


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How often, and for how long.

    Attributes:
        recurrence: ``1 Month``.
        duration: ``1 Year``, or ``Forever``.
        startup_fee_minor: added to the first payment; below 0 taken off it.
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
        kind: which of the four.
        order_id, items, currency: what it is for.
        amount_minor: in hundredths; None for a preapproval that takes nothing now.
        person: who pays.
        delivery: where it is sent; None where nothing is said of that.
        item_list: the lines of the bill.
        custom_1, custom_2: come back with the notification.
        platform: where the customer comes from.
        payment_method: skips the choice on the gateway's page.
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
        """What is taken first where that is today: the amount, and what a plan adds to it."""
        if self.amount_minor is None or self.plan is None:
            return self.amount_minor
        return self.amount_minor + (self.plan.startup_fee_minor or 0)
