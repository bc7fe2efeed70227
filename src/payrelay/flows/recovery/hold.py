"""Holds a request of which no record shows whether an earlier try was carried out."""

from typing import Final

from payrelay.core.answers import Answer
from payrelay.core.outcomes import Evidence
from payrelay.errors import Code, Refusal
from payrelay.flows.operations.intent import Intent
from payrelay.flows.relay import Relay, Request

HELD_SENTENCE: Final = (
    "the database lost its newest operations, and nothing shows whether an earlier try of this request was carried out;"
    " this request was not sent"
)
RETRY_AFTER_S: Final = 3_600
"""A person has to decide."""


async def hold(
    relay: Relay,
    request: Request,
    intent: Intent,
    fingerprint: str,
    claim: str | None,
    *,
    evidence: Evidence | None = None,
) -> Answer:
    """Refuses the request (unavailable)."""
    del relay, request, intent, fingerprint, claim, evidence
    raise Refusal(Code.UNAVAILABLE, HELD_SENTENCE, retry_after_s=RETRY_AFTER_S)
