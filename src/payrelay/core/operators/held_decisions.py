"""What an operator can decide about a held operation."""

from enum import StrEnum
from typing import Final


class HeldDecision(StrEnum):
    """What an operator can decide about a held operation."""

    DONE = "done"
    """An earlier try of it was carried out."""
    SEND = "send"
    """No earlier try of it was carried out: it is sent now."""
    REFUSE = "refuse"
    """It is not sent."""


MEANINGS_OF_DECISIONS: Final = {
    HeldDecision.DONE: (
        "Done: the client gets a success, as if the gateway had answered with it. Payrelay sends nothing. An"
        " authorization without its token can't be captured."
    ),
    HeldDecision.SEND: (
        "Send: it goes to the gateway now. Where an earlier try was carried out, that makes it twice: see first that it"
        " was not."
    ),
    HeldDecision.REFUSE: (
        "Refuse: Payrelay doesn't send it, and the Idempotency-Key is free again. The client reads that this operation"
        " took no effect; where an earlier try was carried out, decide done instead."
    ),
}
"""What each decision does, for the operator who is about to make it."""
