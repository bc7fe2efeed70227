"""Judges the payments of a report beside what the database knows: by the rules of a look at the gateway."""

from collections.abc import Sequence

import msgspec

from payrelay.core.calls import Charge
from payrelay.core.database.incarnations import LostWindow
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Kind, Operation
from payrelay.core.payments.payment import Payment, PaymentsSeen
from payrelay.core.payments.proof import MatchResult
from payrelay.flows.operations.intent import Intent
from payrelay.flows.operators.held.intent_of_held import request_of_held
from payrelay.flows.relay import Relay
from payrelay.recovery.flows.lost_matches import LostTry, match_for_lost_try
from payrelay.recovery.rules.gateway_reports import ReportedPayment, ReportVerdict


async def fitting_payment(
    relay: Relay, held: Operation, lost: LostWindow, reported: Sequence[ReportedPayment]
) -> str | None:
    """Gives the payment of a held charge's order that is its answer; None where none is, or it may be another's.

    All payments that the report has of the order are needed. What the report doesn't describe is not compared by its
    description. Raises StoreError.
    """
    call = await relay.journal.call_of(held.id)
    if not isinstance(call, Charge) or call.authorize:
        return None
    payments = tuple(
        each.payment if each.has_description else msgspec.structs.replace(each.payment, description=call.items)
        for each in reported
    )
    intent = Intent(kind=held.kind, call=call, subject=held.subject, order_id=held.order_id)
    tried = LostTry(request=request_of_held(held), intent=intent, operation=held, lost=lost)
    match = await match_for_lost_try(relay, tried, PaymentsSeen(payments=payments, evidence=Evidence()))
    if match.seen is not MatchResult.ONE_FITS or match.payment is None:
        return None
    return match.payment.payment_id


async def known_verdict(relay: Relay, merchant: str, payment: Payment) -> ReportVerdict | None:
    """Compares a payment with what it is of here; None where it is of nothing here. Raises StoreError."""
    owner_id = await relay.inbox.owner_of_payment(merchant, payment.payment_id)
    owner = None if owner_id is None else await relay.journal.get(owner_id)
    if owner is not None:
        is_equal = owner.order_id in {None, payment.order_id}
        if owner.kind is Kind.CHARGE:
            is_equal = is_equal and (owner.amount_minor, owner.currency) == (payment.amount_minor, payment.currency)
        return ReportVerdict.KNOWN if is_equal else ReportVerdict.CONTRADICTS
    known = await relay.access.owners.payments_of_order(merchant, payment.order_id)
    return ReportVerdict.KNOWN if payment.payment_id in known else None
