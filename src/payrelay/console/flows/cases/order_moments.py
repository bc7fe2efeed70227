"""What happened to one order: the moments of its rows, and those that other stores have of them."""

from payrelay.console.flows.cases import event_moments
from payrelay.console.flows.cases.order_rows import OrderRows
from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.rules.timeline import Moment, Tone, of_checkout, of_notification, of_operation
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.sentences import FORGED_SENTENCE
from payrelay.errors import OperationForged
from payrelay.flows.operators.parts import Actor
from payrelay.flows.operators.shown import entries_for
from payrelay.flows.orders.order_money import OrderMoney


async def moments_of(
    parts: CaseParts, actor: Actor, rows: OrderRows, merchants: frozenset[str], money: OrderMoney
) -> list[Moment]:
    """Gives what happened to an order, as far as the actor sees it, in no order. Raises StoreUnavailable.

    The installments that it reads are added to the rows.
    """
    moments: list[Moment] = []
    for checkout in rows.checkouts:
        moments += of_checkout(checkout)
    for operation in rows.operations.values():
        moments += await _of_operation(parts, actor, operation)
    for notification in rows.notifications.values():
        moments += of_notification(actor.without_words(notification, accepted_because=None))
    for summary in rows.subscriptions:
        subscription = summary.subscription
        tried = await parts.searches.installments(subscription.merchant, subscription.subscription_id)
        rows.installments += tried
        moments += event_moments.of_subscription(summary, tried)
    for merchant in sorted(merchants):
        for payment_id in rows.payments:
            chargeback = await parts.relay.money.chargebacks.of_payment(merchant, payment_id)
            is_won = payment_id in money.won
            moments += [] if chargeback is None else [event_moments.of_chargeback(chargeback, is_won=is_won)]
        told = await parts.sent.about(merchant, _subjects(rows))
        moments += event_moments.of_events(told.events, told.deliveries)
    return moments


async def _of_operation(parts: CaseParts, actor: Actor, operation: Operation) -> list[Moment]:
    try:
        return of_operation(operation, entries_for(actor, await parts.relay.journal.history(operation.id)))
    except OperationForged:
        return [
            Moment(
                at_ms=operation.created_at_ms,
                title=f"Operation {operation.id}",
                text=FORGED_SENTENCE,
                tone=Tone.DOUBT,
                link=operation.id,
            )
        ]


def _subjects(rows: OrderRows) -> list[str]:
    """Names the subjects of the events about an order."""
    return [
        *(f"operation:{each}" for each in rows.operations),
        *(f"checkout:{each.id}" for each in rows.checkouts),
        *(f"subscription:{each.subscription.subscription_id}" for each in rows.subscriptions),
        *(f"payment:{each}" for each in rows.payments),
    ]
