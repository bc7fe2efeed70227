"""Outcomes of a first sending that aren't known, although the adapter didn't say so."""

from typing import Final

import msgspec

from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.core.payments.proof import MatchResult
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.errors import Code
from payrelay.gateways.gateway import EffectCause

DONE_CAUSES: Final = frozenset({EffectCause.ALREADY_CAPTURED, EffectCause.ALREADY_CANCELLED})
"""What the gateway says to a capture or a cancellation that it carried out before."""


def _unknown(evidence: Evidence) -> Outcome:
    return Outcome(
        kind=OutcomeKind.UNKNOWN, code=Code.OUTCOME_UNKNOWN, msg=STATE_SENTENCES[State.UNKNOWN], evidence=evidence
    )


UNKNOWN_BY_OUR_FAULT: Final = _unknown(Evidence(cause="internal_error"))
"""The adapter failed in a way that its contract excludes."""


def as_in_recovery(outcome: Outcome, recovery: int | None) -> Outcome:
    """Returns an outcome as it counts for a request that was cleared in a recovery.

    ``recovery`` is the number of that recovery's incarnation; None outside of one, where an outcome counts as it is. An
    earlier try of this very request may have done what the gateway says is done, and its operation be lost. So the
    outcome isn't known yet: the resolution compares what is there with what was asked.
    """
    if recovery is None or outcome.kind is not OutcomeKind.REFUSED or outcome.evidence.cause not in DONE_CAUSES:
        return outcome
    return _unknown(msgspec.structs.replace(outcome.evidence, seen=MatchResult.ALREADY_DONE))
