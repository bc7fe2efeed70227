"""What else is stored with a change of an operation, in the same unit of work.

An operation that comes to need attention, or begins as held, alerts an operator. A successful capture completes the
checkout whose authorization it proves, and the void of a whole hold ends the checkout that was notified of it. A charge
or capture of an order that was paid is told (``paid_again``).
"""

from payrelay.core.events.event import of_operation
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, State
from payrelay.core.payments.schedules import HOUR_MS
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.events import outbox
from payrelay.store.payments.held_checkouts import complete_checkout, end_hold
from payrelay.store.payments.paid_again import made_by, tell_if_paid_again
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
        if operation.state is State.NEEDS_ATTENTION or _is_done(operation, Kind.CAPTURE, Kind.VOID):
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
        if _is_done(operation, Kind.CAPTURE):
            yield from complete_checkout(operation, entry, self._rows)
        elif _is_done(operation, Kind.VOID):
            yield from end_hold(operation, entry, self._rows)
        payment = made_by(operation)
        if payment is not None and may_be_paid_again:
            yield from tell_if_paid_again(payment, at_ms=entry.at_ms, key=self._rows)


def _is_done(operation: Operation, *kinds: Kind) -> bool:
    """Tells whether an operation of an order succeeded, and is of one of these kinds."""
    return operation.kind in kinds and operation.state is State.SUCCEEDED and operation.order_id is not None
