"""Chargebacks: payments that a bank took back, as the gateway notified. Each is stored once, with its event."""

from typing import Final

from payrelay.core.events.event import OutgoingEvent
from payrelay.core.orders.chargeback import Chargeback
from payrelay.store.digests.rows import RowDigests, RowKey
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.events.outbox import put as put_event
from payrelay.store.statements import chargebacks as statements
from payrelay.store.statements.chargebacks import CHARGEBACKS

CHARGEBACKS_MAX: Final = 100
"""Of one operation, which has one payment."""


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
        return await self._rows.values(CHARGEBACKS, await self._database.read(all_rows(statement)))


def _keep(chargeback: Chargeback, event: OutgoingEvent, key: RowKey, won: Chargeback | None) -> Unit[bool]:
    added = key.digested(CHARGEBACKS, CHARGEBACKS.row(chargeback))
    if not (yield Statement(statements.ADD_CHARGEBACK, added)):
        of_payment = yield Statement(statements.CHARGEBACK_OF_PAYMENT, (chargeback.merchant, chargeback.payment_id))
        ended = None if won is None else key.of(CHARGEBACKS, CHARGEBACKS.row(won))
        replaced = [row[-1] for row in of_payment if row[-1] == ended or not key.fits(CHARGEBACKS, row)]
        if not replaced or not (yield Statement(statements.REPLACE_CHARGEBACK, (*added, replaced[0]))):
            return False
    yield from put_event(event, key)
    return True
