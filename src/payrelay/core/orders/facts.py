"""What the store knows of an order's money, row by row, before anything is concluded from it.

Only rows that are right are facts. ``OrderFacts.wrong`` names the others.
"""

from typing import Self

import msgspec

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.payment import PaymentStatus


class PaidInstallment(msgspec.Struct, frozen=True, kw_only=True):
    """A paid installment. ``payment`` is its payment's number, or another text where it was told without one.

    The currency is the subscription's; None where nothing right is known of that.
    """

    subscription_id: str
    payment: str
    amount_minor: int | None
    currency: str | None


class ImportedFact(msgspec.Struct, frozen=True, kw_only=True):
    """A payment from before Payrelay, as a file said; ``place`` is the file and the line in it."""

    payment_id: str
    order_id: str
    currency: str
    amount_minor: int
    status: PaymentStatus
    imported_at_ms: int
    place: str


class SeenFact(msgspec.Struct, frozen=True, kw_only=True):
    """A payment's record at the gateway, as it was read last; ``seen_at_ms`` is when the gateway was asked."""

    payment_id: str
    order_id: str
    status: PaymentStatus
    currency: str
    amount_minor: int
    seen_at_ms: int


class ReturnSeen(msgspec.Struct, frozen=True, kw_only=True):
    """By when the gateway's record first showed a payment as given back, or charged back, since it showed it received.

    That is when the answer came: what was done while the gateway was asked may be in it. With the status RECEIVED it is
    when the gateway was asked that last showed the payment so before it showed it as given back or charged back.
    """

    payment_id: str
    status: PaymentStatus
    seen_at_ms: int


class ReceivedAgain(msgspec.Struct, frozen=True, kw_only=True):
    """When the gateway was first asked that showed a payment as received, since something said that it went back.

    Nothing has shown the payment otherwise since then.
    """

    payment_id: str
    seen_at_ms: int


class FailedRefund(msgspec.Struct, frozen=True, kw_only=True):
    """A refund that succeeded, as the gateway answered, and that failed later, as its record shows."""

    operation_id: str
    payment_id: str
    known_at_ms: int


class ToldChargeback(msgspec.Struct, frozen=True, kw_only=True):
    """A chargeback that the gateway notified, and that its record doesn't prove yet; ``id`` is the notification.

    The payment isn't signed; None where none is named. The amount is the signed one; None where it can't be read.
    """

    id: str
    payment_id: str | None
    amount_minor: int | None
    currency: str


class ChargebackFact(msgspec.Struct, frozen=True, kw_only=True):
    """A chargeback that the gateway notified, and that its record showed at ``noted_at_ms``.

    ``amount_minor`` is signed; None where it isn't known. ``part_minor`` is less, and stands in a field that nobody
    signs; None where nothing was said of a part.
    """

    payment_id: str
    amount_minor: int | None
    part_minor: int | None
    currency: str
    notification_id: str
    noted_at_ms: int


def charged_back_minor(amount_minor: int | None, part_minor: int | None) -> int | None:
    """Gives how much a chargeback took: the part if there is one; None where that isn't known."""
    return amount_minor if part_minor is None else part_minor


class AcceptedHold(msgspec.Struct, frozen=True, kw_only=True):
    """The authorization that was reported for a page of the order: the hash of its token, and when it was accepted."""

    token_hash: str
    accepted_at_ms: int


class OrderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All that the store knows of an order's money, or of one payment.

    Attributes:
        order_id: the order; None where the facts are of one payment alone.
        payment_id: that payment; None where the facts are of an order.
        operations: that move money: of the order, of its payments and of its subscriptions.
        checkouts: of the order, or of the payment.
        subscriptions: the ids of the order's plans.
        installments: those that are paid, of these plans and of the payment.
        imported, seen, returned, again, failed, chargebacks: of the order's payments.
        told: chargebacks of the order's payments that no record proves yet.
        hold: the authorization that was reported for a page of the order; None where none was.
        wrong: names of rows that somebody else than Payrelay has changed. Nothing of them is believed.
        is_complete: False where there are more rows than were read.
        may_lack_more: whether the database lost commits, so that more may have happened.
    """

    order_id: str | None
    payment_id: str | None = None
    operations: tuple[Operation, ...] = ()
    checkouts: tuple[Checkout, ...] = ()
    subscriptions: frozenset[str] = frozenset()
    installments: tuple[PaidInstallment, ...] = ()
    imported: tuple[ImportedFact, ...] = ()
    seen: tuple[SeenFact, ...] = ()
    returned: tuple[ReturnSeen, ...] = ()
    again: tuple[ReceivedAgain, ...] = ()
    failed: tuple[FailedRefund, ...] = ()
    chargebacks: tuple[ChargebackFact, ...] = ()
    told: tuple[ToldChargeback, ...] = ()
    hold: AcceptedHold | None = None
    wrong: tuple[str, ...] = ()
    is_complete: bool = True
    may_lack_more: bool = False

    @property
    def is_known(self) -> bool:
        """True where anything is stored of the order; a row that somebody else wrote is nothing."""
        operations_and_pages = self.operations or self.checkouts
        payments = self.subscriptions or self.installments or self.imported or self.seen or self.chargebacks
        return bool(operations_and_pages or payments) or not self.is_complete

    def without(self, operation_id: str) -> Self:
        """Gives the facts without one operation."""
        others = tuple(each for each in self.operations if each.id != operation_id)
        return msgspec.structs.replace(self, operations=others)
