"""Imported payments: what was paid before Payrelay, and whose it is.

Rules:

1. A payment is stored once, whatever files have it, and keeps its principal. A later file may only say that it was
   given back since.
2. A payment that an operation or a checkout of Payrelay's may have made is never imported. Otherwise a file could take
   away the proof of an operation whose answer was lost.
3. An imported payment is no proof for anything that happened later; see ``of_before``.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.core.payments.imported import IMPORTED_STATUSES, ImportedPayment, ImportVerdict
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.errors import Outdated
from payrelay.store.digests.rows import RowDigests, RowKey
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.statements.imports import payments as statements
from payrelay.store.statements.imports.payments import IMPORTED_PAYMENTS

BATCH: Final = 100
"""Payments of one unit of work: it holds the embedded database for some milliseconds."""
OF_ORDER_MAX: Final = 100
"""Imported payments of one order that are compared."""
_ATTEMPTS_MAX: Final = 5
CONTRADICTS: Final = "an earlier import has it with another order, amount, currency or subscription"
OTHERS: Final = "an earlier import has it for another principal"
MAY_BE_OURS: Final = "Payrelay has an operation or a checkout that may have made it"
FORGED: Final = "its stored row was changed by something other than Payrelay"


class ImportedPayments:
    """Stores imported payments in a database; ``rows`` checks the digests of the rows."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def take(self, payments: Sequence[ImportedPayment], *, is_dry: bool) -> list[tuple[ImportVerdict, str]]:
        """Stores payments that are not here yet, and what is new of others; tells of each what became of it, and why.

        May be repeated. With ``is_dry`` nothing is stored, and what would become of them is told. Raises StoreError.
        """
        if is_dry:
            return await self._database.read(_taken(payments, self._rows.key, is_dry=True))
        for _ in range(_ATTEMPTS_MAX - 1):
            try:
                return await self._database.write(_taken(payments, self._rows.key))
            except Outdated:
                continue  # another import was quicker with one of them
        return await self._database.write(_taken(payments, self._rows.key))

    async def get(self, merchant: str, payment_id: str) -> ImportedPayment | None:
        """Reads an imported payment. Raises StoreError."""
        found = await self._trusted(Statement(statements.GET_IMPORTED, (merchant, payment_id)))
        return found[0] if found else None

    async def of_order(self, merchant: str, order_id: str) -> list[ImportedPayment]:
        """Reads the imported payments of an order. Raises StoreError."""
        return await self._trusted(Statement(statements.IMPORTED_OF_ORDER, (order_id, merchant, OF_ORDER_MAX)))

    async def of_before(self, merchant: str, payments: Sequence[Payment]) -> frozenset[str]:
        """Gives the numbers of those payments that were imported, and that the gateway dates before their import.

        They prove nothing of what was asked for here. One that the gateway dates after its import was in no honest
        file: its row says nothing then. Raises StoreError.
        """
        found = set()
        for payment in payments:
            known = await self.get(merchant, payment.payment_id)
            at_ms = 0 if payment.at_ms is None else payment.at_ms
            if known is not None and at_ms <= known.imported_at_ms + TOLERANCE_MS:
                found.add(payment.payment_id)
        return frozenset(found)

    async def paid_order(self, merchant: str, *, other_than: str) -> str | None:
        """Finds another order that was paid before, for a control query. Raises StoreError."""
        found = await self._trusted(Statement(statements.RECEIVED_ORDER, (merchant, other_than)))
        return found[0].order_id if found else None

    async def _trusted(self, statement: Statement) -> list[ImportedPayment]:
        return await self._rows.values(IMPORTED_PAYMENTS, await self._database.read(all_rows(statement)))


def _taken(
    payments: Sequence[ImportedPayment], key: RowKey, *, is_dry: bool = False
) -> Unit[list[tuple[ImportVerdict, str]]]:
    verdicts: dict[int, tuple[ImportVerdict, str]] = {}
    # Always in one order: otherwise two imports of equal payments at once would wait for each other.
    for number, payment in sorted(enumerate(payments), key=lambda each: each[1].payment_id):
        verdicts[number] = yield from _take_one(payment, key, is_dry=is_dry)
    return [verdicts[number] for number in range(len(payments))]


def _take_one(payment: ImportedPayment, key: RowKey, *, is_dry: bool) -> Unit[tuple[ImportVerdict, str]]:
    rows = yield Statement(statements.GET_IMPORTED, (payment.merchant, payment.payment_id))
    if rows:
        return (yield from _take_again(payment, rows[0], key, is_dry=is_dry))
    subject = (payment.order_id, payment.merchant, payment.subscription_id)
    if (yield Statement(statements.MAY_BE_OURS, subject)):
        return ImportVerdict.REFUSED, MAY_BE_OURS
    added = Statement(statements.ADD_IMPORTED, key.digested(IMPORTED_PAYMENTS, IMPORTED_PAYMENTS.row(payment)))
    if not is_dry and not (yield added):
        raise Outdated(f"the payment {payment.payment_id!r} was imported by another process")
    return ImportVerdict.NEW, ""


def _take_again(payment: ImportedPayment, row: Row, key: RowKey, *, is_dry: bool) -> Unit[tuple[ImportVerdict, str]]:
    if not key.fits(IMPORTED_PAYMENTS, row):
        return ImportVerdict.REFUSED, FORGED
    *values, digest = row
    known = IMPORTED_PAYMENTS.value(values)
    if known.principal != payment.principal:
        return ImportVerdict.REFUSED, OTHERS
    if _facts(known) != _facts(payment):
        return ImportVerdict.REFUSED, CONTRADICTS
    if IMPORTED_STATUSES.index(payment.status) <= IMPORTED_STATUSES.index(known.status):
        return ImportVerdict.KNOWN, ""
    if not is_dry:
        new = IMPORTED_PAYMENTS.row(msgspec.structs.replace(known, status=payment.status))
        key_of_row = (known.merchant, known.payment_id)
        changed = (*key_of_row, payment.status, key.of(IMPORTED_PAYMENTS, new), str(digest))
        if not (yield Statement(statements.CHANGE_IMPORTED, changed)):
            raise Outdated(f"the payment {payment.payment_id!r} was changed by another import")
    return ImportVerdict.CHANGED, ""


def is_imported(merchant: str, payment_id: str) -> Unit[bool]:
    """Tells within another unit of work whether a payment was imported, and so is no news to its owner."""
    return bool((yield Statement(statements.GET_IMPORTED, (merchant, payment_id))))


def _facts(payment: ImportedPayment) -> tuple[str, str, int, str | None]:
    return payment.order_id, payment.currency, payment.amount_minor, payment.subscription_id
