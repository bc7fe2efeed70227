"""What becomes of a payment that was made before Payrelay, where somebody imports it."""

from enum import StrEnum
from typing import Final

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
