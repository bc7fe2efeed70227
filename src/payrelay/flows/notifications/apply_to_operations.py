"""Applies a genuine notification to the operations of its order."""

from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.notifications.notification import ExpectedAmount, NotificationReason, ReportedStatus, differs
from payrelay.core.orders.paid_again import made_by
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import AWAITS_OPERATOR, INQUIRED, Event, Kind, Operation, State
from payrelay.core.payments.proof import TOLERANCE_MS, MatchResult
from payrelay.core.payments.resolved_answers import BY_PROOF, resolved_answer
from payrelay.core.secret import secret_hash
from payrelay.flows.notifications.context import NotificationContext
from payrelay.flows.notifications.signature import doubt_of_authorization
from payrelay.flows.resolution.resolve import open_case

_UNDER_WAY: Final = frozenset({State.ACCEPTED, State.SENDING})


async def apply_to_operations(context: NotificationContext, operations: list[Operation]) -> NotificationReason | None:
    """Resolves the order's operations; None where the notification can't be about any of them.

    Returns the most important reason. May be repeated. Raises StoreError, and Outdated where an operation has changed.
    """
    reasons = [reason for each in operations if (reason := await _to_operation(context, each)) is not None]
    for reason in (
        NotificationReason.OPERATION_PROVED,
        NotificationReason.OTHER_TOKEN,
        NotificationReason.OPERATION_UNDER_WAY,
        NotificationReason.OPERATION_INQUIRED,
        NotificationReason.SEARCH_WAITS,
        NotificationReason.OPERATION_OPEN,
        NotificationReason.OPERATION_RESOLVED,
    ):
        if reason in reasons:
            return reason
    return None


async def tell_second_payment(context: NotificationContext, operations: list[Operation], payment_id: str) -> None:
    """Tells that the order of some operations was paid by the notified payment, which is of none of them.

    Raises StoreError.
    """
    first = next((paid for each in operations if (paid := made_by(each)) is not None), None)
    if first is not None:
        ids = {"payment_id": payment_id, "operation_id": None, "hold": None}
        money = {"amount_minor": context.notification.amount_minor, "currency": context.notification.currency}
        second = msgspec.structs.replace(first, **ids, **money)
        await context.relay.money.paid_again.tell(second, at_ms=context.relay.clock.now_ms())


async def _to_operation(context: NotificationContext, operation: Operation) -> NotificationReason | None:
    content = context.content
    is_authorization = (
        operation.kind is Kind.AUTHORIZATION
        and content.authorization_token is not None
        and content.reported is ReportedStatus.AUTHORIZED
    )
    if is_authorization and operation.result_ref == secret_hash(content.authorization_token or ""):
        return NotificationReason.OPERATION_RESOLVED
    if None not in (operation.payment_id, content.payment_id) and operation.payment_id != content.payment_id:
        return None
    expected = ExpectedAmount(amount_minor=operation.amount_minor, currency=operation.currency or content.currency)
    if differs(content, expected):
        return None
    if operation.state in _UNDER_WAY:
        return NotificationReason.OPERATION_UNDER_WAY
    if operation.state in INQUIRED:
        if is_authorization:
            return await _prove_authorization(context, operation)
        is_made = await context.inquire_about(operation)
        return NotificationReason.OPERATION_INQUIRED if is_made else NotificationReason.SEARCH_WAITS
    if operation.state in AWAITS_OPERATOR:
        return NotificationReason.OPERATION_OPEN
    return (
        NotificationReason.OPERATION_RESOLVED if operation.state is State.SUCCEEDED and not is_authorization else None
    )


async def _prove_authorization(context: NotificationContext, operation: Operation) -> NotificationReason:
    """Resolves an authorization whose reply was lost: a notification with its token is the only proof.

    Where its signature may be of something else, the operation needs an operator.
    """
    relay, content, token = context.relay, context.content, context.content.authorization_token or ""
    result_ref = secret_hash(token)
    owner = await relay.journal.authorization_of(result_ref, operation.merchant)
    if owner is not None and owner.id != operation.id:
        return NotificationReason.OTHER_TOKEN
    case = await open_case(relay, context.account, operation, is_urgent=True, until_s=0)
    if context.notification.received_at_ms < case.span.began_ms - TOLERANCE_MS:
        return NotificationReason.OPERATION_UNDER_WAY  # it came before the operation was sent, so it is about another
    doubt = await doubt_of_authorization(context, operation)
    evidence = Evidence(
        seen=doubt or MatchResult.NOTIFIED,
        notification_id=context.notification.id,
        payment_ids=() if content.payment_id is None else (content.payment_id,),
    )
    if doubt is not None:
        await case.unclear(evidence)
        return NotificationReason.OPERATION_OPEN
    answer: Answer = resolved_answer(case.operation, case.call, payment=None, msg=BY_PROOF, authorization_token=token)
    facts = Facts(authorization_token=token)
    await case.apply(Report(event=Event.PROVED, evidence=evidence, answer=answer, facts=facts))
    return NotificationReason.OPERATION_PROVED
