"""What the pages say about each act that is confirmed: its name, and what it does; ``docs/console.md`` has the same."""

from typing import Final, NamedTuple

from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.core.operators.roles import Act
from payrelay.core.payments.operation import State


class ActText(NamedTuple):
    """The name of an act on buttons and titles, and what it does, in sentences."""

    name: str
    does: str


ACT_TEXTS: Final[dict[Act, ActText]] = {
    Act.DECIDE: ActText(
        "Decide",
        "The decision becomes the outcome of the operation, and its client gets it as the answer. Payrelay"
        " sends something to the gateway only where you decide to send a held operation now.",
    ),
    Act.REFUND: ActText("Refund", "The gateway gives the money back to the customer. It can't be taken back."),
    Act.CAPTURE: ActText(
        "Capture",
        "The gateway charges the customer's card for what was authorized. It does so once: what is left of the"
        " authorization is released.",
    ),
    Act.VOID: ActText(
        "Void", "The gateway releases the authorization; the customer isn't charged. It can't be taken back."
    ),
    Act.CANCEL_SUBSCRIPTION: ActText(
        "Cancel the subscription", "The gateway charges no further installment. It can't be taken back."
    ),
    Act.RETRY_SUBSCRIPTION: ActText(
        "Retry the subscription", "The gateway charges the customer's card for the installment that failed."
    ),
    Act.CLOSE_CHECKOUT: ActText(
        "Close the page",
        "The page leads nobody to the gateway any more, and the order is free for another one. A form that is out can't"
        " be taken back: the customer may still pay by it.",
    ),
    Act.PAUSE_ACCOUNT: ActText(
        "Pause the account",
        "No new operation or checkout begins on the account. What has begun goes on, and reads are answered.",
    ),
    Act.RESUME_ACCOUNT: ActText("Resume the account", "New operations and checkouts begin on the account again."),
    Act.REPLAY_NOTIFICATION: ActText(
        "Replay the notification",
        "It is worked on again as if it had just come. What it changed before isn't changed twice.",
    ),
    Act.REPLAY_EVENT: ActText(
        "Send events again", "The endpoint gets these events once more, whether it had taken them or not."
    ),
    Act.SEND_TEST_EVENT: ActText(
        "Send a test event", "The endpoint gets an event that says nothing but that it is a test."
    ),
    Act.ERASE_CUSTOMER: ActText(
        "Erase the customer",
        "Name, card and token are destroyed, also in copies of the database. The card can't be charged any more. The"
        " payments stay, without the person. It can't be taken back.",
    ),
    Act.REVOKE_KEY: ActText(
        "Revoke the key", "Whoever calls with the key is refused from now on. It can't be taken back."
    ),
    Act.CLOSE_DIFFERENCE: ActText(
        "Close the difference",
        "Your reason explains it. Nothing is changed in the books or at the gateway. It is open again only where a"
        " comparison finds that it says something else.",
    ),
    Act.CLOSE_DAY: ActText(
        "Close the day",
        "Its figures stay as they are here. It can't be opened again: what becomes known later is a correction in a"
        " later day. Differences that are open stay open.",
    ),
}
"""By act; of every act in ``TO_CONFIRM``."""

_OF_MONTH: Final = ActText(
    "Close the month",
    "Each of its days is compared once more, and closed, one after the other. Their figures stay as they are here. None"
    " can be opened again: what becomes known later is a correction in a later day. Differences that are open stay"
    " open. Where a day comes to something else than is shown here, it and those behind it stay open.",
)


def text_of(act: Act, noun: str) -> ActText:
    """Gives the text of an act on a thing: days are closed one by one, or as a month."""
    return _OF_MONTH if act is Act.CLOSE_DAY and noun == "month" else ACT_TEXTS[act]


TITLES_OF_DECISIONS: Final[dict[str, str]] = {
    State.SUCCEEDED: "It was done",
    State.FAILED: "It did not happen",
    HeldDecision.DONE: "An earlier try was carried out",
    HeldDecision.SEND: "Send it now",
    HeldDecision.REFUSE: "Don't send it",
}
"""What can be decided about an operation, by the value in a form."""
