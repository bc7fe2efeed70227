"""What a capture and a void do to the checkout whose authorization they act on, in their own unit of work."""

from payrelay.core.checkouts.checkout import Checkout, CheckoutEvent, advance, event_of
from payrelay.core.checkouts.checkout_proof import is_authorized_by
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.taken import page_let_go
from payrelay.core.payments.operation import JournalEntry, Operation
from payrelay.store.digests.rows import RowKey, RowVerifier
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.events import outbox
from payrelay.store.orders.facts import facts_and_rows
from payrelay.store.statements import checkouts as statements
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.payments.packed_rows import unpacked


def complete_checkout(capture: Operation, entry: JournalEntry, key: RowKey) -> Unit[None]:
    """Completes the notified checkout whose authorization a capture proves, and writes the event of that."""
    token_hash = capture.subject.removeprefix("authorization/")
    # The notification is stored before its flow searches for a capture. With the lock, one of the two sees the other.
    yield Statement(statements.LOCK_ORDER, (capture.merchant, capture.order_id))
    rows = yield Statement(statements.OF_AUTHORIZATION, (capture.merchant, capture.order_id, token_hash))
    right = [row for *row, token in rows if key.fits(CHECKOUTS, row) and key.fits(*unpacked(token))]
    for checkout in (CHECKOUTS.value(row[:-1]) for row in right):
        completed = advance(checkout, CheckoutEvent.COMPLETED, at_ms=entry.at_ms)
        if completed is not None and is_authorized_by(checkout, capture, entry):
            yield from _store(completed, key)


def end_hold(void: Operation, entry: JournalEntry, key: RowKey) -> Unit[None]:
    """Ends the notified checkout of a void's order where nothing is left of its hold, and writes the event of that."""
    yield Statement(statements.LOCK_ORDER, (void.merchant, void.order_id))
    facts, _ = yield from facts_and_rows(void.merchant, OrderFacts(order_id=void.order_id), RowVerifier(key))
    page = page_let_go(facts, now_ms=entry.at_ms)
    ended = None if page is None else advance(page, CheckoutEvent.HOLD_ENDED, at_ms=entry.at_ms)
    if ended is not None:
        yield from _store(ended, key)


def _store(checkout: Checkout, key: RowKey) -> Unit[None]:
    digest = key.of(CHECKOUTS, CHECKOUTS.row(checkout))
    yield Statement(statements.CHANGE, statements.change_parameters(checkout, digest))
    yield from outbox.put(event_of(checkout), key)
