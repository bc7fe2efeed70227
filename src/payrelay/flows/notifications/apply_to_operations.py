"""Does what follows from a genuine notification for the operations of its order."""

from typing import Final

from payrelay.core.answers import Answer
from payrelay.core.checkouts.checkout import CheckoutKind, fits
from payrelay.core.notifications.notification import ExpectedAmount, Why, differs
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import PROBED, Event, Kind, Operation, State
from payrelay.core.payments.proof import TOLERANCE_MS, Seen
from payrelay.core.payments.resolved_answers import BY_PROOF, settled_answer
from payrelay.core.secret import secret_hash
from payrelay.flows.notifications.context import Arrival
from payrelay.flows.resolution.open_case import open_case
from payrelay.flows.resolution.resolve import settle_one

_UNDER_WAY: Final = frozenset({State.ACCEPTED, State.SENDING})


async def apply_to_operations(arrival: Arrival, operations: list[Operation]) -> Why | None:
    """Has the order's operations settled; None where there are none that the news can be of."""
    reasons = [why for each in operations if (why := await _to_operation(arrival, each)) is not None]
    for why in (
        Why.OPERATION_PROVED,
        Why.OTHER_TOKEN,
        Why.OPERATION_UNDER_WAY,
        Why.OPERATION_LOOKED_FOR,
        Why.OPERATION_OPEN,
        Why.OPERATION_SETTLED,
    ):
        if why in reasons:
            return why
    return None


async def _to_operation(arrival: Arrival, operation: Operation) -> Why | None:
    news = arrival.news
    is_hold = news.authorization_token is not None and operation.kind is Kind.AUTHORIZATION
    if is_hold and operation.result_ref == secret_hash(news.authorization_token or ""):
        return Why.OPERATION_SETTLED
    if None not in (operation.payment_id, news.payment_id) and operation.payment_id != news.payment_id:
        return None
    expected = ExpectedAmount(amount_minor=operation.amount_minor, currency=operation.currency or news.currency)
    if differs(news, expected):
        return None
    if operation.state in _UNDER_WAY:
        return Why.OPERATION_UNDER_WAY
    if operation.state in PROBED:
        if is_hold:
            return await _prove_hold(arrival, operation)
        await settle_one(arrival.relay, operation, is_nudged=True)
        return Why.OPERATION_LOOKED_FOR
    if operation.state is State.NEEDS_ATTENTION:
        return Why.OPERATION_OPEN
    return Why.OPERATION_SETTLED if operation.state is State.SUCCEEDED and not is_hold else None


async def _prove_hold(arrival: Arrival, operation: Operation) -> Why:
    """Settles a hold whose answer was lost: that the gateway notifies of it with its token is the only proof."""
    relay, news, token = arrival.relay, arrival.news, arrival.news.authorization_token or ""
    result_ref = secret_hash(token)
    owner = await relay.journal.authorization_of(result_ref, operation.merchant)
    if owner is not None and owner.id != operation.id:
        return Why.OTHER_TOKEN
    if _may_be_of_a_page(arrival):
        return Why.OPERATION_UNDER_WAY
    case = await open_case(relay, arrival.account, operation, is_nudged=True, until_s=0)
    if arrival.notification.received_at_ms < case.span.began_ms - TOLERANCE_MS:
        return Why.OPERATION_UNDER_WAY  # it came before this was sent, so that it is of something else
    evidence = Evidence(
        seen=Seen.NOTIFIED,
        notification_id=arrival.notification.id,
        payment_ids=() if news.payment_id is None else (news.payment_id,),
    )
    answer: Answer = settled_answer(case.operation, case.call, payment=None, msg=BY_PROOF, authorization_token=token)
    facts = Facts(authorization_token=token)
    await case.apply(Report(event=Event.PROVED, evidence=evidence, answer=answer, facts=facts))
    return Why.OPERATION_PROVED


def _may_be_of_a_page(arrival: Arrival) -> bool:
    """Tells whether the hold may have been made on a page, for a checkout of the same order and amount."""
    return any(
        each.kind is CheckoutKind.AUTHORIZATION and fits(each, arrival.settled.amount_minor, arrival.news.currency)
        for each in arrival.checkouts
    )
