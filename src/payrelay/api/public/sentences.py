"""What the customers' pages say, in English: each sentence is true whatever the customer has done meanwhile.

A page tells what the service knows. It never says that nothing was taken, because nothing proves that.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from payrelay.api.public.language import marked
from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.checkouts.shown import Shown


class Message(NamedTuple):
    """The heading of a page, and its sentences."""

    title: str
    sentences: tuple[str, ...]


WAIT_HERE: Final = marked("If you have completed it, please wait here. Do not start again yet.")
"""For each page that waits."""

FORMS: Final[Mapping[CheckoutKind, Message]] = {
    CheckoutKind.PAYMENT: Message(marked("Pay"), (marked("You pay on the payment provider's own page."),)),
    CheckoutKind.PREAPPROVAL: Message(
        marked("Approve a card"),
        (marked("You approve a card on the payment provider's own page. The shop can charge it later."),),
    ),
    CheckoutKind.RECURRING: Message(
        marked("Subscribe"),
        (marked("You subscribe on the payment provider's own page. Later payments are made automatically."),),
    ),
    CheckoutKind.AUTHORIZATION: Message(
        marked("Authorize an amount"),
        (marked("You allow the amount to be held on your card, on the payment provider's own page."),),
    ),
}
OPENED_BEFORE: Final = marked(
    "This page was opened before. If you have completed it already, please look at the outcome first."
    " Do not do it twice."
)
_COMPLETED: Final[Mapping[CheckoutKind, Message]] = {
    CheckoutKind.PAYMENT: Message(marked("Payment received"), (marked("Thank you. Your payment has been received."),)),
    CheckoutKind.PREAPPROVAL: Message(marked("Card approved"), (marked("Thank you. Your card has been approved."),)),
    CheckoutKind.RECURRING: Message(marked("Subscribed"), (marked("Thank you. Your subscription has been set up."),)),
    CheckoutKind.AUTHORIZATION: Message(
        marked("Amount authorized"), (marked("Thank you. You authorized the amount."),)
    ),
}
_HOLD: Final = marked("The payment provider has reported a hold on your card for this order. It is not confirmed yet.")
_DONE: Final = marked("You do not need to do anything more.")
_EXPIRED: Final = marked("This page has expired")
_SHOWN: Final[Mapping[Shown, Message]] = {
    Shown.WAITING: Message(
        marked("One moment"),
        (marked("We are waiting for the payment provider. The outcome is not known yet."),),
    ),
    Shown.NOTIFIED: Message(marked("Hold reported"), (_HOLD, _DONE)),
    Shown.REFUSED: Message(
        marked("An attempt did not succeed"),
        (
            marked(
                "The payment provider has reported an attempt that did not succeed. Nothing else is confirmed so far."
            ),
        ),
    ),
    Shown.CANCELLED: Message(
        marked("Cancelled, as far as we know"),
        (marked("You turned back before the end, as far as we know. Nothing else is confirmed so far."),),
    ),
    Shown.EXPIRED: Message(_EXPIRED, (marked("Its time is over. Nothing is confirmed so far."),)),
    Shown.CLOSED: Message(
        _EXPIRED, (marked("It no longer leads to the payment provider. The outcome is not known yet."),)
    ),
    Shown.PAUSED: Message(marked("Not at this moment"), (marked("The shop accepts no payments here at the moment."),)),
    Shown.ORDER_COMPLETED: Message(
        marked("Done already"), (marked("This order was completed already, from another page."), _DONE)
    ),
    Shown.ORDER_NOTIFIED: Message(marked("Hold reported"), (_HOLD, _DONE)),
}
NOT_FOUND: Final = Message(
    marked("There is nothing here"),
    (marked("The address is wrong or incomplete. Please open the link of the shop once more."),),
)
UNAVAILABLE: Final = Message(marked("Please wait a moment"), (marked("We cannot show anything at the moment."),))
UPDATES: Final = marked("This page updates by itself.")
MAY_CLOSE: Final = marked("You can close this page.")

CONTINUE: Final = marked("Continue to the payment provider")
SEE_OUTCOME: Final = marked("Look at the outcome")
GO_BACK: Final = marked("Go back to the shop")
GO_BACK_NOW: Final = marked("Go back without waiting")

ORDER: Final = marked("Order")
DESCRIPTION: Final = marked("Description")
AMOUNT: Final = marked("Amount")
EACH_PAYMENT: Final = marked("Each payment")
PAYMENTS_EVERY: Final = marked("Payments every")
DURATION: Final = marked("Duration")
UNTIL_ENDED: Final = marked("Until it is ended")
FIRST_DAY: Final = marked("First payment on")
FIRST_PAYMENT: Final = marked("First payment")


def message_of(shown: Shown, kind: CheckoutKind) -> Message:
    """Gives what a page of a checkout of this kind says."""
    if shown is Shown.FORM:
        return FORMS[kind]
    return _COMPLETED[kind] if shown is Shown.COMPLETED else _SHOWN[shown]
