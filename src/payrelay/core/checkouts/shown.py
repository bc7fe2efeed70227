"""What a page of a checkout tells its customer, and what of it the page passes on to the app.

Rules:

1. Only ``completed`` is final. A refused card may be followed by another one, a cancelled or expired page may be paid
   after all, and the news of it may come late or never. A page says of these what is known, and waits.
2. An app's link names a state that is final, or ``notified``: a reported hold. In every other case it says ``open``,
   whatever was reported, because the customer may have paid.
3. What another checkout of the order has come to is told before what this one has not.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from payrelay.core.checkouts.checkout import INQUIRED_FOR_MS, Checkout, CheckoutState


class Shown(StrEnum):
    """What a page tells its customer."""

    FORM = "form"
    """The way to the gateway."""
    COMPLETED = "completed"
    """It is done."""
    NOTIFIED = "notified"
    """The gateway reported a hold."""
    WAITING = "waiting"
    """Nothing is known yet."""
    REFUSED = "refused"
    """The gateway reported an attempt that failed; no other one is known."""
    CANCELLED = "cancelled"
    """Somebody turned back; nothing more is known."""
    EXPIRED = "expired"
    """Its time is over, and nothing is known."""
    CLOSED = "closed"
    """The page leads to the gateway no more, by its time or because it was closed; who is there already may still pay.
    """
    PAUSED = "paused"
    """An operator has paused the account, or the database lacks commits."""
    ORDER_COMPLETED = "order_completed"
    """Another checkout of the order is done."""
    ORDER_NOTIFIED = "order_notified"
    """The gateway reported a hold for another checkout of the order."""


PASSED_ON: Final = {Shown.COMPLETED: CheckoutState.COMPLETED, Shown.NOTIFIED: CheckoutState.NOTIFIED}
"""What is passed on to the app as a state."""
_OF_ORDER: Final = {
    CheckoutState.COMPLETED: Shown.ORDER_COMPLETED,
    CheckoutState.NOTIFIED: Shown.ORDER_NOTIFIED,
}
_OF_STATE: Final = {
    CheckoutState.COMPLETED: Shown.COMPLETED,
    CheckoutState.NOTIFIED: Shown.NOTIFIED,
    CheckoutState.OPEN: Shown.WAITING,
    CheckoutState.FAILED: Shown.REFUSED,
    CheckoutState.CANCELLED: Shown.CANCELLED,
    CheckoutState.EXPIRED: Shown.EXPIRED,
}
_TURNED_BACK: Final = {Shown.REFUSED, Shown.CANCELLED, Shown.CLOSED}
_UNSETTLED: Final = {Shown.WAITING, Shown.REFUSED, Shown.CANCELLED, Shown.EXPIRED, Shown.CLOSED, Shown.PAUSED}


def shown_of(state: CheckoutState, others: Collection[CheckoutState], *, is_closed: bool = False) -> Shown:
    """Tells what to show of a checkout; ``others`` are the states of the other checkouts of its order.

    ``is_closed`` says that it is cancelled because its page was closed: the customer didn't turn back.
    """
    if _OF_STATE[state] not in PASSED_ON:
        for taken, shown in _OF_ORDER.items():
            if taken in others:
                return shown
    return Shown.CLOSED if is_closed else _OF_STATE[state]


def state_passed_on(shown: Shown) -> CheckoutState:
    """Gives the state that the app's link names."""
    return PASSED_ON.get(shown, CheckoutState.OPEN)


def leads_on(shown: Shown, *, is_cancelled: bool) -> bool:
    """Tells whether the page goes on to the app by itself.

    It does so with what it passes on, and for a customer who just turned back (``is_cancelled``) and so waits for
    nothing.
    """
    return shown in PASSED_ON or (is_cancelled and shown in _TURNED_BACK)


def is_awaited(shown: Shown, checkout: Checkout, now_ms: int) -> bool:
    """Tells whether the page waits: while the checkout is open, and else for INQUIRED_FOR_MS from its beginning."""
    return shown in _UNSETTLED and (checkout.is_open or now_ms < checkout.created_at_ms + INQUIRED_FOR_MS)
