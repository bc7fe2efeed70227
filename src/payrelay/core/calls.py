"""What can be asked of a gateway, in words of our own: one frozen value a call.

The door makes them from a request, the operations pass them on, an adapter turns them into its provider's fields.
They are tagged, so that an effect can be stored sealed and read back when its outcome has to be settled.
Text fields keep what the client sent, character for character.

Rules for whoever changes a call, or a part of one (``docs/decisions/0013-what-a-stored-value-promises.md``):

1. A member that is added is optional, and None where it is absent. It doesn't go into ``first_members``: a fingerprint
   leaves it out where it is absent, so that a request that was made before it existed is still known as a repeat.
2. ``first_members`` never changes, nor the order in it, nor does the name or the tag of anything here. A repeat without
   a key would no longer find its claim, and charge a second time.
3. What a call is made of is text, number, truth, or a tuple of parts that follow these rules too, as ``Item`` does.
"""

from typing import ClassVar, Final

import msgspec

from payrelay.core.secret import MaskedRepr

SUBSCRIPTION_ID_DIGITS_MAX: Final = 19
"""What a 64-bit integer can hold; the gateway's ids have 12 digits today."""


class Call(MaskedRepr, frozen=True, kw_only=True, tag_field="call", omit_defaults=True, forbid_unknown_fields=True):
    """The base of all calls.

    Where it is stored, what is absent is left out, so that older versions can read it. One with a member that this
    version doesn't know, because a newer one runs beside it, can't be read: to send it once more without that member
    would be another call.

    ``first_members`` are those that a fingerprint covers even where they are absent, in the order in which it does:
    what the call had when fingerprints began. A call that came later has none.
    """

    first_members: ClassVar[tuple[str, ...]] = ()


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a charge's item list; money in hundredths of the charge's currency. Of its members as of a call's."""

    first_members: ClassVar[tuple[str, ...]] = ("name", "number", "quantity", "unit_amount_minor")

    name: str
    number: str
    quantity: int
    unit_amount_minor: int


class Charge(Call, frozen=True, kw_only=True, tag="charge"):
    """Takes money from a customer who has approved it, or holds it when ``authorize`` is true."""

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
    """Takes the whole or a part of what an authorization holds."""

    first_members: ClassVar[tuple[str, ...]] = ("authorization_token", "amount_minor", "description")

    authorization_token: str
    amount_minor: int
    description: str


class Refund(Call, frozen=True, kw_only=True, tag="refund"):
    """Gives a payment back: a part where an amount is named, else the whole."""

    first_members: ClassVar[tuple[str, ...]] = ("payment_id", "description", "amount_minor")

    payment_id: str
    description: str
    amount_minor: int | None = None


class Void(Call, frozen=True, kw_only=True, tag="release"):
    """Lets go of what an authorization holds (a refund by authorization token).

    What an amount means here is not documented by the gateway; it is passed on as asked.
    """

    first_members: ClassVar[tuple[str, ...]] = ("authorization_token", "description", "amount_minor")

    authorization_token: str
    description: str
    amount_minor: int | None = None


class RetrySubscription(Call, frozen=True, kw_only=True, tag="retry"):
    """Charges the installment of a subscription that failed."""

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
