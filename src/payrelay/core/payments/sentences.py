"""What states and events mean, in sentences that support can read to a customer."""

from typing import Final

from payrelay.core.payments.operation import Event, State

STATE_SENTENCES: Final[dict[State, str]] = {
    State.ACCEPTED: "It waits for a permit in the gateway's budget; the service has sent nothing yet.",
    State.SENDING: "The service has begun to send it to the gateway, and has stored no answer yet.",
    State.SUCCEEDED: "It was done: the gateway answered or shows that it was, or an operator decided so.",
    State.DECLINED: "The gateway or the bank declined it; no money was charged.",
    State.REFUSED: "The gateway refused the request, and did nothing for it.",
    State.NOT_SENT: "It took no effect; the client can make the same request again.",
    State.PENDING: "The gateway has it, and says that it is pending.",
    State.UNKNOWN: "The service sent it, or may have sent it, and doesn't know the outcome yet.",
    State.NEEDS_ATTENTION: "The service can't establish the outcome; an operator must decide.",
    State.HELD: (
        "The service has not sent it; whether an earlier try of it was carried out before the database lost commits is"
        " not known, and an operator must decide."
    ),
    State.FAILED: "Evidence or an operator established that it did not happen.",
}

EVENT_SENTENCES: Final[dict[Event, str]] = {
    Event.GRANTED: "It got its permit in the gateway's budget; the service was about to send it.",
    Event.GAVE_UP: "The service gave it up while it waited for a permit; it was not sent.",
    Event.SUCCEEDED: "The gateway answered that it was done.",
    Event.DECLINED: "The gateway answered that it was declined.",
    Event.REFUSED: "The gateway answered that it would not do this.",
    Event.PENDING: "The gateway answered that it is pending.",
    Event.UNKNOWN: "No answer came that the service can rely on.",
    Event.DIFFERED: "The gateway answered that it was done, but for another order, amount or currency than requested.",
    Event.NOT_EXECUTED: "The gateway rejected it before doing anything.",
    Event.NOT_SENT: "The service did not send it; no byte of it left.",
    Event.LOST: "The process that was sending it ended, or ran out of time, before it stored an answer.",
    Event.RESENT: "The gateway rejected its expired access token; the service was about to resend it with a new one.",
    Event.INQUIRED_ABOUT: "The service inquired at the gateway, and that did not resolve it.",
    Event.RESENT_TO_RESOLVE: (
        "The service was about to resend it to learn the outcome; the gateway can't execute it twice."
    ),
    Event.PROVED: "What the gateway shows proves that it was done.",
    Event.DISPROVED: "What the gateway shows proves that it did not happen.",
    Event.UNCLEAR: "What the gateway shows can't resolve it.",
    Event.REAPPEARED: "After it had been called failed, evidence came that it may have been done.",
    Event.DECIDED_SUCCEEDED: "An operator decided that it was done.",
    Event.DECIDED_FAILED: "An operator decided that it did not happen.",
    Event.DECIDED_SEND: "An operator decided to send it; the service was about to send it.",
    Event.DECIDED_REFUSE: "An operator decided not to send it; no byte of it left.",
}

FIRST_ENTRY: Final = "The service stored it before it sent anything."

FORGED_SENTENCE: Final = (
    "Its stored record was changed by something other than the service, so the service can't say what became of it;"
    " a person must look at it. Don't send it again as something new."
)
"""What is known of an operation whose row or history doesn't fit its digest."""
