"""Subscriptions: looking them up, retrying a failed installment and cancelling."""

import msgspec

from payrelay_simulator.errors import RefusalError
from payrelay_simulator.fields import Fields, identifier_of
from payrelay_simulator.installments import collect, refusal
from payrelay_simulator.ledger import LedgerLine
from payrelay_simulator.records import Subscription
from payrelay_simulator.rendering import installment_record, subscription_record
from payrelay_simulator.reply import Reply, failure, marked_failure, success
from payrelay_simulator.turn import Turn

# States that end a subscription, in the words of the refusal to cancel it.
ENDED = {"CANCELLED": "Subscription is already cancelled.", "COMPLETED": "Subscription is already completed."}


def list_subscriptions(turn: Turn) -> Reply:
    """Return all of the merchant's subscriptions, newest first."""
    merchant_id = turn.merchant.merchant_id
    own = [each for each in turn.state.subscriptions.values() if each.merchant_id == merchant_id]
    if not own and turn.switches.empty_subscription_list == "no_records":
        return marked_failure("no subscriptions found")
    own.sort(key=lambda each: each.subscription_id, reverse=True)
    records = [subscription_record(each, turn.state, turn.switches) for each in own]
    return success(f"Found {len(records)} subscriptions", records)


def read(turn: Turn, subscription_id: str) -> Reply:
    """Return one subscription."""
    subscription = _own(turn, identifier_of(subscription_id, "subscription_id"))
    return success("Found subscription", subscription_record(subscription, turn.state, turn.switches))


def list_payments(turn: Turn, subscription_id: str) -> Reply:
    """Return a subscription's payments, oldest first."""
    subscription = _own(turn, identifier_of(subscription_id, "subscription_id"))
    payments = [turn.state.payments[payment_id] for payment_id in subscription.payment_ids]
    found = [each for each in payments if each.is_visible(turn.now)]
    records = [installment_record(each, now=turn.now, switches=turn.switches) for each in found]
    return success(f"Found {len(records)} payments", records)


def retry(turn: Turn, fields: Fields) -> Reply:
    """Charge an installment that failed once more, at once."""
    subscription = _own(turn, fields.identifier("subscription_id"))
    if subscription.failures == 0 or subscription.status not in {"ACTIVE", "FAILED"}:
        return failure("Subscription is not eligible for retrying")
    reason = refusal(turn.state.customers[subscription.customer_token], turn.fault)
    if reason is not None:
        return marked_failure(f"the retry was declined: {reason}")
    collect(turn, subscription, "retry")
    return success("Recurring payment charged successfully", None)


def cancel(turn: Turn, fields: Fields) -> Reply:
    """End a subscription for good."""
    subscription = _own(turn, fields.identifier("subscription_id"))
    if subscription.status in ENDED:
        return failure(ENDED[subscription.status])
    plan = subscription.plan + 1
    cancelled = msgspec.structs.replace(subscription, status="CANCELLED", plan=plan)
    turn.state.subscriptions[subscription.subscription_id] = cancelled
    turn.enter(
        LedgerLine(
            kind="cancel",
            merchant_id=subscription.merchant_id,
            order_id=subscription.order_id,
            amount_cents=0,
            currency=subscription.currency,
            subscription_id=subscription.subscription_id,
        )
    )
    return success("Successfully cancelled the subscription", None)


def _own(turn: Turn, subscription_id: int) -> Subscription:
    subscription = turn.state.subscriptions.get(subscription_id)
    if subscription is not None and subscription.merchant_id == turn.merchant.merchant_id:
        return subscription
    reply = marked_failure("unknown subscription")
    if turn.switches.unknown_subscription == "http_404":
        reply = msgspec.structs.replace(reply, http_status=404, is_business_error=False)
    raise RefusalError(reply)
