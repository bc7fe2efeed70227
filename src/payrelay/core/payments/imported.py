"""What becomes of a payment that was made before Payrelay, where somebody imports it."""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.payments.payment import PaymentStatus

IMPORTED_STATUSES: Final = (PaymentStatus.RECEIVED, PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK)
"""What a file can say of a payment, from the least to what ends it. A later file may only say more."""


class ImportVerdict(StrEnum):
    """What becomes of an item."""

    NEW = "new"
    """It is imported."""
    CHANGED = "changed"
    """It was imported before, and the file knows more of it."""
    KNOWN = "known"
    """It is here already, and nothing of it changes."""
    PASSED_OVER = "passed over"
    """It is nothing to be imported."""
    REFUSED = "refused"
    """It can't be imported; the reason says why."""


class ImportedPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment from before Payrelay.

    Attributes:
        merchant, payment_id: the payment.
        principal: whose it is.
        account: the account under which it was imported.
        order_id, currency, amount_minor, status, subscription_id, paid_at_ms: as the file said; None where it didn't.
        imported_at_ms, imported_by: when it was imported, and by whom.
        place: the file, and the line in it.
    """

    merchant: str
    payment_id: str
    principal: str
    account: str
    order_id: str
    currency: str
    amount_minor: int
    status: PaymentStatus
    subscription_id: str | None
    paid_at_ms: int | None
    imported_at_ms: int
    imported_by: str
    place: str

    @property
    def latest_ms(self) -> int:
        """When it was paid; where nobody said, when it was imported, which is later."""
        return self.imported_at_ms if self.paid_at_ms is None else self.paid_at_ms
