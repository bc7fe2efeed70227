"""Which payments of an order count against what a client token allows, and what one too many is told.

Rules:

1. A payment counts from its beginning: an operation or a checkout that is open may turn out to have been paid.
2. One that was declined, refused, not sent, failed, cancelled or expired counts no more. The order may be paid anew.
3. Who began it makes no difference: an order that the shop's server, or another principal, has charged is paid.
4. The count is made of the stored states, in the transaction that stores the next one. There is no counter.

To be changed together: ``counts_*`` here, and ``store.payments.counted_payments``, which says the same in
SQL; a test compares the two.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.payments.operation import WITHOUT_EFFECT, Kind, State

CHARGES: Final = frozenset({Kind.CHARGE, Kind.AUTHORIZATION})
"""The operations that are payments of an order. A capture takes what its authorization counted for."""
UNPAID_CHECKOUTS: Final = frozenset({CheckoutState.FAILED, CheckoutState.CANCELLED, CheckoutState.EXPIRED})
"""The states of checkouts that don't count; every other state does, so that a new state counts until it is named."""


class Noun(StrEnum):
    """What a counted payment is."""

    OPERATION = "operation"
    CHECKOUT = "checkout"


class CountedPayment(msgspec.Struct, frozen=True, kw_only=True):
    """One operation or checkout that counts; ``is_made`` where it was paid, False while it is open."""

    noun: Noun
    id: str
    is_made: bool


def counts_operation(kind: Kind, state: State) -> bool:
    """Tells whether an operation counts as a payment of its order."""
    return kind in CHARGES and state not in WITHOUT_EFFECT


def asks_for_money(kind: CheckoutKind, amount_minor: int | None) -> bool:
    """Tells whether a page is for money; an approval that charges nothing isn't."""
    return kind is not CheckoutKind.PREAPPROVAL or amount_minor is not None


def counts_checkout(kind: CheckoutKind, amount_minor: int | None, state: CheckoutState) -> bool:
    """Tells whether a checkout counts; an approval that charges nothing is no payment."""
    return asks_for_money(kind, amount_minor) and state not in UNPAID_CHECKOUTS


class PaymentLimit(msgspec.Struct, frozen=True, kw_only=True):
    """How many payments an order may have, counted over all of them; at least 1."""

    merchant: str
    order_id: str
    payments_max: int

    def standing_in_the_way(self, counted: list[CountedPayment]) -> CountedPayment | None:
        """Gives the payment to be named where the order may have none beside ``counted``; None where it may.

        Of several it is one that is still open, because the order may be paid again if that one isn't. Where all were
        made, it is the last of ``counted``.
        """
        if len(counted) < self.payments_max:
            return None
        return next((payment for payment in counted if not payment.is_made), counted[-1])
