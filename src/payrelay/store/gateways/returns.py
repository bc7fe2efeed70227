"""Notes when the gateway's record showed payments as given back or charged back, and as received again since then.

Rules:

1. ``payments_seen`` has only how a payment's record was read last. What it forgets, and what follows from two looks, is
   noted here, in the unit that notes the look or right after it. Nothing follows from one look
   (``core.orders.received_again``).
2. A refund that failed is stored once, with its event; then it gives the claim of a request without a key back.
   Whatever counts refunds reads it from there.
3. Two units that note looks at one payment take its row in ``payments_seen`` first, so that each sees the other's look.
   A unit takes the rows of several payments in one order.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.joining import PaymentFacts, facts_of_one
from payrelay.core.orders.received_again import RETURNED, failures_in, is_in_question, received_ms
from payrelay.core.orders.taken import record_of
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.store.digests.rows import RowKey, RowVerifier
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.events.outbox import put as put_event
from payrelay.store.orders.facts import AGAIN, facts_and_rows
from payrelay.store.statements.gateways import readings as statements
from payrelay.store.statements.gateways.readings import RETURNS_SEEN
from payrelay.store.statements.payments.operations import ADD_FAILED, END_UNKEYED_CLAIM, FAILED_REFUNDS

_RECEIVED: Final = PaymentStatus.RECEIVED


def note_returns(key: RowKey, merchant: str, shown: Sequence[Payment], by_ms: int) -> Unit[None]:
    """Notes those payments of an answer that it shows as given back or charged back, by when it came; few do.

    Before ``payments_seen`` forgets that a payment showed as received, that is noted, too, as far as it holds.
    """
    returned = [each for each in shown if each.status in RETURNED]
    if returned:
        yield _lock(merchant, [each.payment_id for each in shown])
    for each in returned:
        asked = (merchant, each.payment_id, _RECEIVED, by_ms)
        for (seen_ms,) in (yield Statement(statements.RECEIVED_AT, asked)):
            facts = yield from _facts(merchant, each.payment_id, key)
            yield from _note_failed(merchant, facts, key)
            if received_ms(facts) == seen_ms:
                row = (merchant, each.payment_id, _RECEIVED, seen_ms)
                yield Statement(statements.NOTE_RECEIVED, key.digested(RETURNS_SEEN, row))
            yield Statement(statements.FORGET_RETURN, (merchant, each.payment_id, AGAIN))
        row = (merchant, each.payment_id, each.status, by_ms)
        yield Statement(statements.NOTE_RETURN, (*key.digested(RETURNS_SEEN, row), _RECEIVED))


def note_received_again(key: RowKey, merchant: str, payment_id: str) -> Unit[None]:
    """Notes what follows where the record of a payment that went back was just noted as received. May be repeated."""
    yield _lock(merchant, [payment_id])
    facts = yield from _facts(merchant, payment_id, key)
    record = record_of(facts)
    if record is not None and not facts.again and is_in_question(facts):
        row = (merchant, payment_id, AGAIN, record.seen_at_ms)
        yield Statement(statements.NOTE_RECEIVED, key.digested(RETURNS_SEEN, row))
    yield from _note_failed(merchant, facts, key)


def _lock(merchant: str, payment_ids: Sequence[str]) -> Statement:
    return Statement(statements.LOCK_SEEN, (merchant, msgspec.json.encode(payment_ids).decode()))


def _facts(merchant: str, payment_id: str, key: RowKey) -> Unit[PaymentFacts]:
    wanted = OrderFacts(order_id=None, payment_id=payment_id)
    facts, _ = yield from facts_and_rows(merchant, wanted, RowVerifier(key))
    return facts_of_one(facts)


def _note_failed(merchant: str, facts: PaymentFacts, key: RowKey) -> Unit[None]:
    """Stores the refunds of a payment that have failed, as its record shows, each with its event."""
    for failed, event in failures_in(facts):
        row = (failed.operation_id, merchant, failed.payment_id, failed.known_at_ms)
        if (yield Statement(ADD_FAILED, key.digested(FAILED_REFUNDS, row))):
            yield Statement(END_UNKEYED_CLAIM, (failed.operation_id,))
            yield from put_event(event, key)
