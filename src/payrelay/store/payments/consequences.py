"""What else is stored with a change of an operation, in the same unit of work.

An operation that comes to need attention, or begins as held, alerts an operator. A successful capture completes the
checkout whose authorization it proves. A charge or capture of an order that was paid is told (``paid_again``).
"""

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutEvent, advance, event_of
from payrelay.core.checkouts.checkout_proof import is_authorized_by
from payrelay.core.events.event import of_operation
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, State
from payrelay.core.payments.schedules import HOUR_MS
from payrelay.store.digests.rows import CHECKOUTS, RowKey, unpacked
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.engine.rows import struct_of
from payrelay.store.events import outbox
from payrelay.store.payments.paid_again import made_by, tell_if_paid_again
from payrelay.store.statements import checkouts as statements
from payrelay.store.statements.alerts import ADD_HELD_ALERT, ADD_OPERATION_ALERT


class Consequences:
    """Stores what follows from a change; ``chain_key`` is the key of the digests of checkouts and events."""

    def __init__(self, chain_key: bytes) -> None:
        self._rows = RowKey(chain_key)

    def may_follow(self, operation: Operation, *, may_be_paid_again: bool) -> bool:
        """Tells whether more than the changed operation may have to be stored.

        ``may_be_paid_again`` is False where the order had nothing else that took money, or may have, since this
        operation holds its guard: so an ordinary charge needs one statement.
        """
        if operation.state is State.NEEDS_ATTENTION or _may_complete_checkout(operation):
            return True
        return may_be_paid_again and made_by(operation) is not None

    def of_new_operation(self, operation: Operation, entry: JournalEntry) -> Unit[None]:
        """Stores what follows from a new operation: the alert and the event of a held one.

        After a recovery there may be thousands of them: an alert is given for the first within an hour.
        """
        event = of_operation(operation, entry)
        if event is not None:
            since_ms = operation.created_at_ms - HOUR_MS
            yield Statement(ADD_HELD_ALERT, (operation.id, operation.version, operation.created_at_ms, since_ms))
            yield from outbox.put(event, self._rows)

    def store(self, operation: Operation, entry: JournalEntry, *, may_be_paid_again: bool) -> Unit[None]:
        """Stores what follows from the change of an operation; ``entry`` is its journal entry.

        ``may_be_paid_again`` is as for ``may_follow``.
        """
        if operation.state is State.NEEDS_ATTENTION:
            yield Statement(ADD_OPERATION_ALERT, (operation.id, operation.version, operation.updated_at_ms))
        if _may_complete_checkout(operation):
            yield from _complete_checkout(operation, entry, self._rows)
        payment = made_by(operation)
        if payment is not None and may_be_paid_again:
            yield from tell_if_paid_again(payment, at_ms=entry.at_ms, key=self._rows)


def _may_complete_checkout(operation: Operation) -> bool:
    return operation.kind is Kind.CAPTURE and operation.state is State.SUCCEEDED and operation.order_id is not None


def _complete_checkout(capture: Operation, entry: JournalEntry, key: RowKey) -> Unit[None]:
    """Completes the notified checkout whose authorization a capture proves, and writes the event of that."""
    token_hash = capture.subject.removeprefix("authorization/")
    # The notification is stored before its flow searches for a capture. With the lock, one of the two sees the other.
    yield Statement(statements.LOCK_ORDER, (capture.merchant, capture.order_id))
    rows = yield Statement(statements.OF_AUTHORIZATION, (capture.merchant, capture.order_id, token_hash))
    right = [row for *row, token in rows if key.fits(CHECKOUTS, row) and key.fits(*unpacked(token))]
    for checkout in (struct_of(row[:-1], Checkout) for row in right):
        completed = advance(checkout, CheckoutEvent.COMPLETED, at_ms=entry.at_ms)
        if completed is not None and is_authorized_by(checkout, capture, entry):
            digest = key.of(CHECKOUTS, msgspec.structs.astuple(completed))
            yield Statement(statements.CHANGE, statements.change_parameters(completed, digest))
            yield from outbox.put(event_of(completed), key)
