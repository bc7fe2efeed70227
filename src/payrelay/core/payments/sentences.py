"""What states and events mean, in sentences that support can read to a customer."""

from typing import Final

from payrelay.core.payments.operation import Event, State

STATE_SENTENCES: Final[dict[State, str]] = {
    State.ACCEPTED: "It waits for a place in the gateway's budget; nothing was sent yet.",
    State.SENDING: "It is being sent to the gateway now.",
    State.SUCCEEDED: "It was done, exactly as asked.",
    State.DECLINED: "The gateway or the bank declined it; no money was taken.",
    State.REFUSED: "The gateway would not do what was asked; nothing was changed.",
    State.NOT_SENT: "It took no effect; the same request can be made again.",
    State.PENDING: "The gateway has it and says that it is pending.",
    State.UNKNOWN: "It was, or may have been, sent, and what became of it is not known yet.",
    State.NEEDS_ATTENTION: "What became of it can't be told by itself; a person must look at it.",
    State.FAILED: "It is established that it did not happen.",
}

EVENT_SENTENCES: Final[dict[Event, str]] = {
    Event.GRANTED: "It got its place in the gateway's budget and was about to be sent.",
    Event.GAVE_UP: "No place in the gateway's budget came in time; it was not sent.",
    Event.SUCCEEDED: "The gateway answered that it was done.",
    Event.DECLINED: "The gateway answered that it was declined.",
    Event.REFUSED: "The gateway answered that it would not do this.",
    Event.PENDING: "The gateway answered that it is pending.",
    Event.UNKNOWN: "No answer came that can be relied on.",
    Event.DIFFERED: "The gateway answered that it was done, but for another order, amount or currency than was asked.",
    Event.NOT_EXECUTED: "The gateway turned it away before doing anything.",
    Event.NOT_SENT: "It never left: not a byte of it reached the gateway.",
    Event.LOST: "The process that was sending it ended before the answer was stored.",
    Event.RETRIED: "The gateway rejected it for an expired access token; it was about to be sent again with a new one.",
    Event.INQUIRED_ABOUT: "We asked the gateway what became of it; that did not settle it.",
    Event.RESENT_TO_RESOLVE: "It was about to be sent once more, which can't do it twice.",
    Event.PROVED: "What the gateway shows proves that it was done.",
    Event.DISPROVED: "What the gateway shows proves that it did not happen.",
    Event.UNCLEAR: "What the gateway shows can't settle it.",
    Event.REAPPEARED: "It showed itself at the gateway after it had been taken for not done.",
    Event.DECIDED_SUCCEEDED: "A person decided that it was done.",
    Event.DECIDED_FAILED: "A person decided that it did not happen.",
}

FIRST_ENTRY: Final = "It was stored, before anything was sent."
