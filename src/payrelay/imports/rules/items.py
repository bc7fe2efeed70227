"""What an import brings: cards, subscriptions and payments from before Payrelay, each with the place it came from.

Rules:

1. An item says what a file says, checked for its form alone. What of it counts, the flow decides beside our books.
2. What can't be read is refused with its place and the reason. It keeps no other item from being read.
3. What took no money is passed over: a declined payment is nothing that anybody could own.
"""

from typing import TypeAlias

import msgspec

from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.secret import MaskedRepr, Secret
from payrelay.core.subscriptions.subscription import SubscriptionState


class CardItem(MaskedRepr, frozen=True, kw_only=True):
    """A card that its holder approved, as the gateway's token for it.

    ``order_id`` and ``payment_id`` are of the approval, where the file says them. The merchant's ``reference`` and
    ``label`` become those of the customer.
    """

    place: str
    token: Secret
    reference: str | None = None
    label: str | None = None
    method: str | None = None
    card_no_masked: str | None = None
    card_expiry: str | None = None
    card_holder: str | None = None
    order_id: str | None = None
    payment_id: str | None = None

    @property
    def name(self) -> str:
        """Names the item without its token."""
        return f"card of order {self.order_id}" if self.order_id else f"card of {self.reference or 'nobody named'}"


class PlanItem(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription; None for what the file doesn't say.

    ``payment_id`` and ``payment_minor`` are of an installment that was paid, ``at_ms`` is when the file's line was
    written.
    """

    place: str
    subscription_id: str
    order_id: str
    state: SubscriptionState
    currency: str | None = None
    amount_minor: int | None = None
    paid: int | None = None
    next_on: str | None = None
    at_ms: int | None = None
    payment_id: str | None = None

    @property
    def name(self) -> str:
        """Names the item."""
        return f"subscription {self.subscription_id}"


class PaymentItem(msgspec.Struct, frozen=True, kw_only=True):
    """A payment that took money; ``paid_at_ms`` is None where the file doesn't say when."""

    place: str
    payment_id: str
    order_id: str
    currency: str
    amount_minor: int
    status: PaymentStatus = PaymentStatus.RECEIVED
    subscription_id: str | None = None
    paid_at_ms: int | None = None

    @property
    def name(self) -> str:
        """Names the item."""
        return f"payment {self.payment_id}"


class NoItem(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is refused, or passed over, with the reason."""

    place: str
    reason: str
    is_refused: bool = True

    @property
    def name(self) -> str:
        """Gives nothing: its place alone names it."""
        return ""


Item: TypeAlias = CardItem | PlanItem | PaymentItem | NoItem


class ItemRefusedError(ValueError):
    """A line can't be an item; the text says why."""


class ImportUnreadableError(ValueError):
    """Nothing can be read of a file or a database; the text says why."""


class SourceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a file or a table, with its texts by the names of its columns, and the place where it stands."""

    table: str
    place: str
    values: dict[str, str | None]
