"""How what the gateway shows fits a request whose first try may be lost."""

import msgspec

from payrelay.core.calls import Charge, Refund
from payrelay.core.database.incarnations import LostWindow
from payrelay.core.lost_commits.lost_effects import (
    match_for_lost_charge,
    match_for_lost_retry,
    may_have_charged,
    sendings_of,
)
from payrelay.core.payments.operation import Operation, sending_ms
from payrelay.core.payments.payment import PaymentsSeen, plain_number
from payrelay.core.payments.proof import Match, MatchResult, SendingWindow, match_for_refund
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.flows.resolution.forms_given_out import doubted_by_forms_given_out


class LostTry(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose first try may be lost.

    Attributes:
        request: the request, and ``intent`` what it wants done.
        operation: its operation, as it would be stored.
        lost: the time whose commits may be lost.
    """

    request: Request
    intent: Intent
    operation: Operation
    lost: LostWindow


async def match_for_lost_try(relay: Relay, tried: LostTry, seen: PaymentsSeen) -> Match:
    """Judges the payments of the order, or of the subscription for a retry. Raises StoreError."""
    call = tried.intent.call
    if isinstance(call, Charge):
        return await _charge(relay, tried, call, seen)
    if isinstance(call, Refund):
        return await _refund(relay, tried, call, seen)
    return await _retry(relay, tried, seen)


async def _charge(relay: Relay, tried: LostTry, call: Charge, seen: PaymentsSeen) -> Match:
    operation, payments = tried.operation, seen.payments
    ids = tuple(payment.payment_id for payment in payments)
    # Competing operations first: one that is resolved in between is then found as an owner, or was counted here.
    may_be_anothers = bool(payments) and (
        await relay.resolution.has_competing(operation, failed_since_ms=tried.lost.since_ms)
        or await _may_be_another_principals(relay, tried, call)
    )
    before = await relay.money.imported_payments.of_before(operation.merchant, payments)
    match = match_for_lost_charge(
        call,
        operation,
        _window(tried),
        payments,
        attributed=before | await relay.resolution.owned_before(operation, ids, tried.lost.since_ms),
        owned=before | await relay.resolution.owned_by_others(operation, ids),
        may_be_anothers=may_be_anothers,
    )
    return await doubted_by_forms_given_out(relay, operation.merchant, match)


async def _may_be_another_principals(relay: Relay, tried: LostTry, call: Charge) -> bool:
    """Tells whether a foreign principal may have charged the order in the lost window.

    Where the restored rows say that the order is the caller's, nobody else could charge it.
    """
    merchant, principal = tried.operation.merchant, tried.operation.principal
    acts_for = await relay.access.principals.acts_for(principal) | {principal}
    known = await relay.access.owners.of_order(merchant, call.order_id, before_ms=tried.lost.since_ms)
    if not acts_for.isdisjoint(known.all):
        return False
    accounts = frozenset(name for name, each in relay.accounts.items() if each.merchant == merchant)
    return bool(may_have_charged(await relay.access.credentials.list(), accounts, tried.lost) - acts_for)


async def _refund(relay: Relay, tried: LostTry, call: Refund, seen: PaymentsSeen) -> Match:
    operation, payment_id = tried.operation, plain_number(call.payment_id)
    was_received = tried.intent.evidence.seen == MatchResult.STILL_RECEIVED
    has_other = await relay.resolution.has_other_refund(operation.merchant, payment_id, operation.id)
    return match_for_refund(payment_id, seen.payments, is_refund_ours=was_received and not has_other)


async def _retry(relay: Relay, tried: LostTry, seen: PaymentsSeen) -> Match:
    operation = tried.operation
    ids = tuple(payment.payment_id for payment in seen.payments)
    before = await relay.money.imported_payments.of_before(operation.merchant, seen.payments)
    attributed = before | await relay.resolution.owned_before(operation, ids, tried.lost.since_ms)
    owned = before | await relay.resolution.owned_by_others(operation, ids)
    return match_for_lost_retry(_window(tried), seen.payments, attributed=attributed, owned=owned)


def _window(tried: LostTry) -> SendingWindow:
    return sendings_of(tried.lost, sending_ms(tried.request.gateway.timeout_s))
