"""What follows where a payment's record shows it as received, and showed before that it went back.

Either the refund has failed, or the chargeback was won; or the gateway answered from a copy that lags behind, which
looks the same. So nothing follows from one look.
"""

from collections.abc import Iterator
from typing import Final

from payrelay.core.events.event import REFUND_FAILED, OutgoingEvent, event_id
from payrelay.core.money import decimal_text
from payrelay.core.orders.facts import FailedRefund
from payrelay.core.orders.joining import PaymentFacts
from payrelay.core.orders.taken import Taken, record_of, taken_of
from payrelay.core.payments.operation import Kind, Operation, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import REFUND_STATUSES
from payrelay.core.payments.schedules import HOUR_MS

SECOND_LOOK_MS: Final = HOUR_MS
"""How long after the first look that shows a payment as received again a second one counts.

Copies of a database lag by seconds, and by minutes where they are overloaded. One that lags by an hour would show each
new payment an hour late. A refund can wait so long: it takes days anyway.
"""
RETURNED: Final = REFUND_STATUSES | {PaymentStatus.CHARGED_BACK}
"""A record with one of these says that the payment went back, or is about to."""


def received_ms(facts: PaymentFacts) -> int:
    """Gives when a record last showed the payment as received, as far as that holds; less than every time for never."""
    record, before_ms = record_of(facts), _received_before_ms(facts)
    if record is None or record.status is not PaymentStatus.RECEIVED or is_in_question(facts):
        return before_ms
    return max(record.seen_at_ms, before_ms)


def is_in_question(facts: PaymentFacts) -> bool:
    """Tells whether a record shows a payment as received that went back, and no second look has confirmed it."""
    record = record_of(facts)
    if record is None or record.status is not PaymentStatus.RECEIVED:
        return False
    before_ms = _received_before_ms(facts)
    if not any(before_ms < each <= record.seen_at_ms for each in _went_back_ms(facts)):
        return False
    first_ms = max((each.seen_at_ms for each in facts.again), default=record.seen_at_ms)
    return record.seen_at_ms < first_ms + SECOND_LOOK_MS


def failures_in(facts: PaymentFacts) -> Iterator[tuple[FailedRefund, OutgoingEvent]]:
    """Gives the refunds of the whole that the record showed after they were asked for, and shows no more, confirmed.

    Each comes with its event. Those that are stored as failed are left out. Beside a refund of a part nobody can tell
    which of the two has failed: there is none, and all stay refunds that the record doesn't show.
    """
    record, number = record_of(facts), facts.seen[0].payment_id if facts.seen else ""
    if record is None or not facts.again or is_in_question(facts):
        return
    taken, before_ms = taken_of(facts, number), _received_before_ms(facts)
    shown_ms = [each.seen_at_ms for each in facts.returned if each.status in REFUND_STATUSES]
    shown_ms = [each for each in shown_ms if before_ms < each < record.seen_at_ms]
    refunds = standing_refunds(facts, taken)
    if not all(is_whole(each, taken) for each in refunds):
        return
    for refund in refunds:
        if any(asked_ms(refund) <= each for each in shown_ms):
            failed = FailedRefund(operation_id=refund.id, payment_id=number, known_at_ms=record.seen_at_ms)
            yield failed, _event_of(refund, failed, taken)


def standing_refunds(facts: PaymentFacts, taken: Taken) -> list[Operation]:
    """Gives the refunds in the currency of their payment that succeeded, and that aren't stored as failed."""
    made = refunds_made(facts)
    return [each for each in made if None in {each.currency, taken.currency} or each.currency == taken.currency]


def refunds_made(facts: PaymentFacts) -> list[Operation]:
    """Gives the refunds that succeeded, and that aren't stored as failed, in whatever currency."""
    failed = {each.operation_id for each in facts.failed}
    refunds = [each for each in facts.operations if each.kind is Kind.REFUND and each.state is State.SUCCEEDED]
    return [each for each in refunds if each.id not in failed]


def is_whole(refund: Operation, taken: Taken) -> bool:
    """Tells whether a refund is of all that was paid."""
    return refund.amount_minor is None or refund.amount_minor == taken.minor


def asked_ms(refund: Operation) -> int:
    """Gives when a refund was asked for at the earliest.

    One that was never to be sent was done by an earlier try, and nobody knows when.
    """
    return refund.created_at_ms if refund.send_by_ms > refund.created_at_ms else -1


def _received_before_ms(facts: PaymentFacts) -> int:
    """Gives when the record last showed the payment as received, before what is known of its going back."""
    return max((each.seen_at_ms for each in facts.returned if each.status is PaymentStatus.RECEIVED), default=-1)


def _went_back_ms(facts: PaymentFacts) -> Iterator[int]:
    yield from (each.seen_at_ms for each in facts.returned if each.status in RETURNED)
    yield from (each.noted_at_ms for each in facts.chargebacks)
    yield from (each.imported_at_ms for each in facts.imported if each.status in RETURNED)


def _event_of(refund: Operation, failed: FailedRefund, taken: Taken) -> OutgoingEvent:
    amount_minor = taken.minor if refund.amount_minor is None else refund.amount_minor
    return OutgoingEvent(
        id=event_id(failed.known_at_ms, f"{refund.id}/failed"),
        type=REFUND_FAILED,
        account=refund.account,
        merchant=refund.merchant,
        principal=refund.principal,
        subject=f"payment:{failed.payment_id}",
        at_ms=failed.known_at_ms,
        data={
            "payment_id": failed.payment_id,
            "order_id": refund.order_id,
            "operation_id": refund.id,
            "amount": None if amount_minor is None else decimal_text(amount_minor),
            "currency": refund.currency or taken.currency,
        },
    )
