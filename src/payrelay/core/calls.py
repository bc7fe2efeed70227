"""The calls to a gateway, in Payrelay's own terms: one frozen value a call.

The API makes a call from a request, an operation passes it on, and an adapter turns it into the gateway's fields. Calls
are tagged, so that an effect can be stored sealed, and read back when its outcome has to be resolved. Text fields keep
what the client sent, character for character.

Rules for whoever changes a call, or a part of one (``docs/decisions/0013-what-a-stored-value-promises.md``):

1. A new member is optional, and None where it is absent. It doesn't go into ``first_members``. A fingerprint leaves out
   an absent one, so that a request from before the member existed is still recognised as a repeat.
2. ``first_members`` and their order never change, and neither does any name or tag here. Otherwise a repeat without a
   key would no longer find its claim, and charge a second time.
3. The members of a call are texts, numbers, booleans, or tuples of parts that follow these rules too, as ``Item`` does.
"""

from typing import ClassVar, Final

import msgspec

from payrelay.core.secret import MaskedRepr

SUBSCRIPTION_ID_DIGITS_MAX: Final = 19
"""The digits of a 64-bit integer; the gateway's ids have 12 digits today."""


class Call(MaskedRepr, frozen=True, kw_only=True, tag_field="call", omit_defaults=True, forbid_unknown_fields=True):
    """The base of all calls.

    A stored call leaves out absent members. A call with a member that this version doesn't know, because a newer
    version runs beside it, can't be read: without that member it would be another call.

    ``first_members`` are the members that a fingerprint covers even where they are absent, in the fingerprint's order.
    """

    first_members: ClassVar[tuple[str, ...]] = ()


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item of a charge's item list; amounts in hundredths of the charge's currency. The rules of calls apply."""

    first_members: ClassVar[tuple[str, ...]] = ("name", "number", "quantity", "unit_amount_minor")

    name: str
    number: str
    quantity: int
    unit_amount_minor: int


class Charge(Call, frozen=True, kw_only=True, tag="charge"):
    """Charges a customer who has approved it, or authorizes the amount when ``authorize`` is true."""

    first_members: ClassVar[tuple[str, ...]] = (
        *("authorize", "order_id", "items", "currency", "amount_minor", "customer_token"),
        *("custom_1", "custom_2", "notify_url", "item_list"),
    )

    authorize: bool
    order_id: str
    items: str
    currency: str
    amount_minor: int
    customer_token: str
    custom_1: str | None = None
    custom_2: str | None = None
    notify_url: str | None = None
    item_list: tuple[Item, ...] | None = None


class Capture(Call, frozen=True, kw_only=True, tag="capture"):
    """Captures an authorization, in whole or in part."""

    first_members: ClassVar[tuple[str, ...]] = ("authorization_token", "amount_minor", "description")

    authorization_token: str
    amount_minor: int
    description: str


class Refund(Call, frozen=True, kw_only=True, tag="refund"):
    """Refunds a payment: a part where an amount is named, else the whole."""

    first_members: ClassVar[tuple[str, ...]] = ("payment_id", "description", "amount_minor")

    payment_id: str
    description: str
    amount_minor: int | None = None


class Void(Call, frozen=True, kw_only=True, tag="release"):
    """Voids an authorization (a refund by authorization token).

    The gateway does not document what an amount means here; it is passed on as requested.
    """

    first_members: ClassVar[tuple[str, ...]] = ("authorization_token", "description", "amount_minor")

    authorization_token: str
    description: str
    amount_minor: int | None = None


class RetrySubscription(Call, frozen=True, kw_only=True, tag="retry"):
    """Charges the failed installment of a subscription."""

    first_members: ClassVar[tuple[str, ...]] = ("subscription_id",)

    subscription_id: int


class CancelSubscription(Call, frozen=True, kw_only=True, tag="cancel"):
    """Ends a subscription; it can't be taken back."""

    first_members: ClassVar[tuple[str, ...]] = ("subscription_id",)

    subscription_id: int


class PaymentsOfOrder(Call, frozen=True, kw_only=True, tag="payments_of_order"):
    """Reads the successful payments of one order."""

    order_id: str


class AllSubscriptions(Call, frozen=True, kw_only=True, tag="all_subscriptions"):
    """Reads every subscription of the merchant."""


class OneSubscription(Call, frozen=True, kw_only=True, tag="one_subscription"):
    """Reads one subscription."""

    subscription_id: int


class PaymentsOfSubscription(Call, frozen=True, kw_only=True, tag="payments_of_subscription"):
    """Reads the payments of one subscription."""

    subscription_id: int


Effect = Charge | Capture | Refund | Void | RetrySubscription | CancelSubscription
"""The calls that change something at the gateway; each becomes an operation."""

Read = PaymentsOfOrder | AllSubscriptions | OneSubscription | PaymentsOfSubscription
"""The calls that change nothing, and may be repeated."""


def subscription_number(text: str) -> int | None:
    """Gives the number of a subscription id as it stands in a path, or None where it can't be one (1 to 19 digits)."""
    is_number = text.isascii() and text.isdigit() and len(text) <= SUBSCRIPTION_ID_DIGITS_MAX
    return int(text) if is_number else None
