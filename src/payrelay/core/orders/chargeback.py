"""A chargeback: a payment that a bank took back."""

import msgspec

from payrelay.core.orders.facts import charged_back_minor


class Chargeback(msgspec.Struct, frozen=True, kw_only=True):
    """A payment was charged back, as the gateway notified and its record of the payment shows.

    Attributes:
        merchant, payment_id: the payment.
        order_id: its order.
        account: the account under whose address the notification came.
        principal: the principal that gets the event: the owner of the operation or checkout that made the payment.
        operation_id: the operation that the payment belongs to; None where another way made the payment.
        amount_minor, currency: as notified and signed; at most what the gateway's record shows of the payment.
        notification_id: the notification.
        noted_at_ms: the time at which it was stored; the gateway's record showed it then.
        part_minor: how much was taken, where the notification says less in a field that isn't signed; else None.
    """

    merchant: str
    payment_id: str
    order_id: str
    account: str
    principal: str
    operation_id: str | None
    amount_minor: int | None
    currency: str
    notification_id: str
    noted_at_ms: int
    part_minor: int | None = None

    @property
    def charged_back_minor(self) -> int | None:
        """How much was taken; None where that isn't known."""
        return charged_back_minor(self.amount_minor, self.part_minor)
