"""Chargebacks: payments that a bank took back, as the gateway notified. Each is stored once, with its event."""

from typing import Final

import msgspec

from payrelay.core.events.event import OutgoingEvent
from payrelay.core.orders.facts import charged_back_minor
from payrelay.store.digests.rows import CHARGEBACKS, RowDigests, RowKey
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.rows import struct_of
from payrelay.store.events.outbox import put as put_event
from payrelay.store.statements import chargebacks as statements

CHARGEBACKS_MAX: Final = 100
"""Of one operation, which has one payment."""


class Chargeback(msgspec.Struct, frozen=True, kw_only=True):
    """A payment was charged back, as the gateway notified and its record of the payment shows.

    Attributes:
        merchant, payment_id: the payment.
        order_id: its order.
        account: the account under whose address the notification came.
        principal: the principal that gets the event: the owner of the operation or checkout that made the payment.
        operation_id: the operation that the payment belongs to; None where another way made the payment.
        amount_minor, currency: as notified and signed; at most what the gateway's record shows of the payment.
        notification_id: the notification.
        noted_at_ms: the time at which it was stored; the gateway's record showed it then.
        part_minor: how much was taken, where the notification says less in a field that isn't signed; else None.
    """

    merchant: str
    payment_id: str
    order_id: str
    account: str
    principal: str
    operation_id: str | None
    amount_minor: int | None
    currency: str
    notification_id: str
    noted_at_ms: int
    part_minor: int | None = None

    @property
    def charged_back_minor(self) -> int | None:
        """How much was taken; None where that isn't known."""
        return charged_back_minor(self.amount_minor, self.part_minor)


class Chargebacks:
    """Stores chargebacks in a database. A row whose digest is wrong counts as not existing."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def keep(self, chargeback: Chargeback, event: OutgoingEvent, *, won: Chargeback | None = None) -> bool:
        """Stores a chargeback with its event; False, and nothing is stored, where the payment has one already.

        It takes the place of ``won``, an earlier chargeback of the payment that the merchant has won since.
        """
        return await self._database.write(_keep(chargeback, event, self._rows.key, won))

    async def of_operation(self, operation_id: str) -> list[Chargeback]:
        """Reads the chargebacks of an operation's payments."""
        statement = Statement(statements.CHARGEBACKS_OF_OPERATION, (operation_id, CHARGEBACKS_MAX))
        return await self._many(statement)

    async def of_payment(self, merchant: str, payment_id: str) -> Chargeback | None:
        """Reads the chargeback of a payment."""
        found = await self._many(Statement(statements.CHARGEBACK_OF_PAYMENT, (merchant, payment_id)))
        return found[0] if found else None

    async def _many(self, statement: Statement) -> list[Chargeback]:
        rows = await self._database.read(all_rows(statement))
        return [struct_of(row, Chargeback) for row in await self._rows.trusted(CHARGEBACKS, rows)]


def _keep(chargeback: Chargeback, event: OutgoingEvent, key: RowKey, won: Chargeback | None) -> Unit[bool]:
    columns = msgspec.structs.astuple(chargeback)
    added = (*columns, key.of(CHARGEBACKS, columns))
    if not (yield Statement(statements.ADD_CHARGEBACK, added)):
        of_payment = yield Statement(statements.CHARGEBACK_OF_PAYMENT, (chargeback.merchant, chargeback.payment_id))
        ended = None if won is None else key.of(CHARGEBACKS, msgspec.structs.astuple(won))
        replaced = [row[-1] for row in of_payment if row[-1] == ended or not key.fits(CHARGEBACKS, row)]
        if not replaced or not (yield Statement(statements.REPLACE_CHARGEBACK, (*added, replaced[0]))):
            return False
    yield from put_event(event, key)
    return True
