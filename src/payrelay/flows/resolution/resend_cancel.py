"""Resolves a cancellation by sending it once more."""

from payrelay.core.outcomes import Outcome, OutcomeKind
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import Event, State
from payrelay.core.payments.operation_answers import BY_PROOF, resolved_answer
from payrelay.core.payments.proof import Match, MatchResult, evidence_of
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.resend import conclude, resend, resending_until_ms
from payrelay.flows.subscription_notes import note_cancelled
from payrelay.gateways.gateway import EffectCause
from payrelay.store.subscriptions import SubscriptionOwner


async def resolve_cancel(case: Case) -> None:
    """Cancels again and again until a reply is conclusive: a subscription that is cancelled already is a success."""
    if resending_until_ms(case) is not None or (case.is_urgent and case.has_entry(Event.RESENT_TO_RESOLVE)):
        return  # each resending is a journal entry: after the first they keep to the schedule
    await resend(case, _store_outcome)
    if case.operation.state is State.SUCCEEDED and case.operation.subscription_id is not None:
        owner = SubscriptionOwner(account=case.account.name, merchant=case.account.merchant)
        relay, subscription_id = case.relay, case.operation.subscription_id
        await note_cancelled(relay.subscriptions, owner, subscription_id, now_ms=case.now_ms, log=relay.log)


async def _store_outcome(case: Case, outcome: Outcome) -> None:
    if outcome.evidence.cause == EffectCause.ALREADY_CANCELLED:
        evidence = evidence_of(Match(seen=MatchResult.ALREADY_DONE), None, outcome.evidence)
        answer = resolved_answer(case.operation, case.call, payment=None, msg=BY_PROOF)
        await case.apply(Report(event=Event.PROVED, evidence=evidence, answer=answer, is_firsthand=True))
    elif outcome.kind in {OutcomeKind.SUCCEEDED, OutcomeKind.REFUSED}:
        await conclude(case, outcome)
    else:
        await case.no_observation()
