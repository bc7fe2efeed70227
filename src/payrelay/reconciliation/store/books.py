"""Reads our books for a reconciliation: operations, checkouts, installments and chargebacks as entries.

Rules:

1. A row whose digest is wrong counts as not existing, and is reported, as everywhere.
2. An operation, a checkout, an installment and an import that have one payment are each an entry; whoever compares
   makes one of them.
3. An imported payment explains what a statement has of it. It is in no day of our books, so no statement lacks it.
4. Everything is read in pages, so that the memory that a day takes has a bound.
5. An approval that charges nothing explains the gateway's fee for it, which a statement may have. It is in no day of
   our books either.
6. A refund that failed later is a failed one, and is told when that became known.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.orders.chargeback import Chargeback
from payrelay.core.payments.imported import ImportedPayment
from payrelay.core.payments.operation import OPEN_STATES, Kind, Operation, State
from payrelay.reconciliation.rules.entries import TOLERANCE_MS, BooksEntry, EntryStanding, Movement
from payrelay.reconciliation.store.statements import books as statements
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Value, all_rows
from payrelay.store.engine.queries import Query
from payrelay.store.payments.operation_rows import failed_among
from payrelay.store.statements.payment_owners import LEARNT_SINCE, installment_subject
from payrelay.store.statements.payments.packed_rows import (
    CHARGEBACKS,
    CHECKOUTS,
    IMPORTED_PAYMENTS,
    INSTALLMENTS,
    OPERATIONS,
    SUBSCRIPTIONS,
)

PAGE: Final = 500
"""Entries of one page."""
AROUND_MS: Final = 2 * TOLERANCE_MS
"""An operation is sent soon after it was made; the gateway's clock may be ahead of ours."""
CHECKOUT_LIFE_MS: Final = 3 * 86_400_000
"""A checkout is paid within this time of its creation: its page lasts a day at most, and a notification may be late."""
INSTALLMENTS_BACK_MS: Final = 35 * 86_400_000
"""How far back installments are read beyond a day. They are read by their numbers, which grow with time, but for days.
"""
_ID_BYTES: Final = 6
_FIRST_PAYMENT: Final = "9" * 20
_INSTALLMENT: Final = installment_subject("", "")[:-1]
_PLAN_BEGINS: Final = len(INSTALLMENTS.columns) + 1
_ORDER: Final = SUBSCRIPTIONS.columns.index("order_id")
_CURRENCY: Final = SUBSCRIPTIONS.columns.index("currency")


class Books:
    """Reads the entries of one database; ``rows`` are the digests, which all stores of a process share.

    ``page`` is how many entries are read at a time.
    """

    def __init__(self, database: Database, rows: RowDigests, *, page: int = PAGE) -> None:
        self._database = database
        self._rows = rows
        self._size = page

    async def between(self, merchant: str, from_ms: int, until_ms: int) -> AsyncIterator[list[BooksEntry]]:
        """Gives, in pages, all entries of a merchant that may have happened between two moments, and some around.

        Each entry is given once. Pages that nobody paid, as far as is known here, are left out. Raises StoreError.
        """
        async for page in self._operations(merchant, from_ms - AROUND_MS, until_ms + AROUND_MS):
            yield page
        async for page in self._checkouts(merchant, from_ms - CHECKOUT_LIFE_MS - AROUND_MS, until_ms + AROUND_MS):
            yield page
        latest_ms = until_ms + CHECKOUT_LIFE_MS + AROUND_MS
        async for page in self._installments(merchant, from_ms - AROUND_MS, latest_ms):
            yield page
        async for page in self._chargebacks(merchant, from_ms, until_ms):
            yield page

    async def changed(self, merchant: str, made_before_ms: int, since_ms: int) -> AsyncIterator[list[BooksEntry]]:
        """Gives, in pages, what was made before one moment and became known, or last changed, after another one.

        These are operations, and what ``is_followed`` of paid pages and installments. Each is given once. Raises
        StoreError.
        """
        place, made_before = (since_ms + 1, ""), _id_at("op", made_before_ms)
        while rows := await self._page(statements.OPERATIONS_CHANGED, (merchant, *place, made_before, self._size)):
            place = max((int(str(row[-2])), str(row[-1])) for row in rows)
            yield await self._of_operations([row[:-2] for row in rows if row[0] is not None])
        learnt = (since_ms + 1, "")
        while rows := await self._page(LEARNT_SINCE, (merchant, *learnt, self._size)):
            learnt = (int(str(rows[-1][1])), str(rows[-1][0]))
            page = await self._named(merchant, {str(row[0]) for row in rows})
            yield [each for each in page if each.from_ms < made_before_ms]
        failed = (since_ms + 1, "")
        while rows := await self._page(statements.FAILED_SINCE, (merchant, *failed, self._size)):
            failed = (int(str(rows[-1][1])), str(rows[-1][0]))
            named = _json(str(row[0]) for row in rows)
            page = await self._of_operations(await self._page(statements.OPERATIONS_NAMED, (merchant, named)))
            yield [each for each in page if each.from_ms < made_before_ms]

    async def of(self, merchant: str, payments: Iterable[str], orders: Iterable[str]) -> list[BooksEntry]:
        """Gives all entries of some payments and some orders. Raises StoreError."""
        payment_ids, order_ids = _json(payments), _json(orders)
        both = (merchant, payment_ids, order_ids)
        entries = await self._of_operations(await self._page(statements.OPERATIONS_OF, both))
        entries += await self._of_checkouts(await self._page(statements.CHECKOUTS_OF, both))
        entries += await self._of_installments(await self._page(statements.INSTALLMENTS_OF, both))
        entries += await self._of_imported(await self._page(statements.IMPORTED_OF, (merchant, payment_ids)))
        entries += await self._of_chargebacks(await self._page(statements.CHARGEBACKS_OF, (merchant, payment_ids)))
        return entries

    async def _operations(self, merchant: str, from_ms: int, until_ms: int) -> AsyncIterator[list[BooksEntry]]:
        last, end = _id_at("op", from_ms), _id_at("op", until_ms)
        while rows := await self._page(statements.OPERATIONS_BETWEEN, (merchant, last, end, self._size)):
            last = str(rows[-1][0])
            yield await self._of_operations(rows)

    async def _checkouts(self, merchant: str, from_ms: int, until_ms: int) -> AsyncIterator[list[BooksEntry]]:
        last, end = _id_at("chk", from_ms), _id_at("chk", until_ms)
        while rows := await self._page(statements.CHECKOUTS_BETWEEN, (merchant, last, end, self._size)):
            last = str(rows[-1][1])
            yield await self._of_checkouts(rows)

    async def _installments(self, merchant: str, from_ms: int, until_ms: int) -> AsyncIterator[list[BooksEntry]]:
        last = _FIRST_PAYMENT
        while rows := await self._page(statements.INSTALLMENTS_BEFORE, (merchant, last, self._size)):
            last = str(rows[-1][2])
            page = await self._of_installments(rows)
            yield [each for each in page if from_ms <= each.until_ms < until_ms]
            if page and max(each.until_ms for each in page) < from_ms - INSTALLMENTS_BACK_MS:
                return

    async def _chargebacks(self, merchant: str, from_ms: int, until_ms: int) -> AsyncIterator[list[BooksEntry]]:
        last = ""
        while rows := await self._page(statements.CHARGEBACKS_AFTER, (merchant, last, self._size)):
            last = str(rows[-1][1])
            yield [each for each in await self._of_chargebacks(rows) if from_ms <= each.until_ms < until_ms]

    async def _named(self, merchant: str, subjects: set[str]) -> list[BooksEntry]:
        """Gives the paid pages and installments that are called so."""
        pages = _json(each for each in subjects if not each.startswith(_INSTALLMENT))
        payments = _json(each.rpartition("/")[2] for each in subjects if each.startswith(_INSTALLMENT))
        entries = await self._of_checkouts(await self._page(statements.CHECKOUTS_NAMED, (merchant, pages)))
        entries += await self._of_installments(await self._page(statements.INSTALLMENTS_NAMED, (merchant, payments)))
        return [each for each in entries if each.id in subjects]

    async def _page(self, query: Query, parameters: tuple[str | int, ...]) -> list[Row]:
        return await self._database.read_page(all_rows(Statement(query, parameters)))

    async def _of_operations(self, rows: Sequence[Row]) -> list[BooksEntry]:
        found = await self._rows.values(OPERATIONS, rows)
        refunds: dict[str, list[str]] = defaultdict(list)
        for each in found:
            if each.kind is Kind.REFUND:
                refunds[each.merchant].append(each.id)
        failed: dict[str, int] = {}
        for merchant, ids in refunds.items():
            failed |= await self._rows.verified(partial(failed_among, merchant, ids), is_page=True)
        return [_of_operation(each, failed.get(each.id)) for each in found]

    async def _of_checkouts(self, rows: Sequence[Row]) -> list[BooksEntry]:
        return [
            _of_checkout(CHECKOUTS.value(row[1:-1]), None if row[0] is None else int(row[0]))
            for row in rows
            if await self._rows.is_right(CHECKOUTS, row[1:])
        ]

    async def _of_installments(self, rows: Sequence[Row]) -> list[BooksEntry]:
        found = []
        for row in rows:
            installment, plan, learnt_at_ms = row[:_PLAN_BEGINS], row[_PLAN_BEGINS:-1], row[-1]
            if not await self._rows.is_right(INSTALLMENTS, installment):
                continue
            # Nothing is taken of a plan that is unknown, or that somebody has changed.
            is_known = plan[0] is not None and await self._rows.is_right(SUBSCRIPTIONS, plan)
            of_plan = (plan[_ORDER], plan[_CURRENCY]) if is_known else (None, None)
            found.append(_of_installment((*installment[:-1], *of_plan, learnt_at_ms)))
        return found

    async def _of_chargebacks(self, rows: Sequence[Row]) -> list[BooksEntry]:
        return list(map(_of_chargeback, await self._rows.values(CHARGEBACKS, rows)))

    async def _of_imported(self, rows: Sequence[Row]) -> list[BooksEntry]:
        return list(map(_of_imported, await self._rows.values(IMPORTED_PAYMENTS, rows)))


def _of_operation(operation: Operation, failed_at_ms: int | None) -> BooksEntry:
    is_done = operation.state is State.SUCCEEDED and failed_at_ms is None
    standing = (
        EntryStanding.DONE
        if is_done
        else EntryStanding.OPEN
        if operation.state in OPEN_STATES
        else EntryStanding.FAILED
    )
    return BooksEntry(
        id=operation.id,
        movement=Movement.REFUND if operation.kind is Kind.REFUND else Movement.PAYMENT,
        standing=standing,
        order_id=operation.order_id,
        payment_id=operation.payment_id,
        currency=operation.currency,
        amount_minor=operation.amount_minor,
        from_ms=operation.created_at_ms,
        until_ms=max(operation.created_at_ms, operation.send_by_ms),
        known_at_ms=operation.updated_at_ms if failed_at_ms is None else failed_at_ms,
        is_followed=True,
        # One that was held may be sent weeks later; it is found by when it was made.
        booked_ms=min(max(operation.created_at_ms, operation.send_by_ms), operation.created_at_ms + TOLERANCE_MS),
    )


_OFFERS: Final[Mapping[CheckoutState, EntryStanding]] = {
    CheckoutState.COMPLETED: EntryStanding.DONE,
    CheckoutState.OPEN: EntryStanding.OFFERED,
    CheckoutState.NOTIFIED: EntryStanding.OFFERED,
}
"""How a page stands; one that ended otherwise failed."""


def _of_checkout(checkout: Checkout, learnt_at_ms: int | None) -> BooksEntry:
    """Makes an entry; an offer of a checkout that wasn't paid, or of an approval that charges nothing.

    Only a payment of its order makes something of an offer.
    """
    is_done, latest_ms = checkout.state is CheckoutState.COMPLETED, checkout.created_at_ms + CHECKOUT_LIFE_MS
    is_approval = checkout.kind is CheckoutKind.PREAPPROVAL and checkout.amount_minor is None
    known_at_ms = checkout.updated_at_ms if learnt_at_ms is None else learnt_at_ms
    return BooksEntry(
        id=checkout.id,
        movement=Movement.PAYMENT,
        standing=_OFFERS.get(checkout.state, EntryStanding.FAILED),
        order_id=checkout.order_id,
        payment_id=checkout.payment_id,
        currency=checkout.currency,
        amount_minor=checkout.first_minor if checkout.first_minor is not None else checkout.amount_minor,
        from_ms=checkout.created_at_ms,
        until_ms=min(known_at_ms, latest_ms) if is_done and not is_approval else latest_ms,
        known_at_ms=known_at_ms,
        is_offer=not is_done or is_approval,
        is_approval=is_approval,
        is_followed=learnt_at_ms is not None and not is_approval,
    )


def _of_installment(row: Row) -> BooksEntry:
    subscription_id, payment, amount_minor, at_ms, order_id, currency, learnt_at_ms = row[1], row[2], *row[4:]
    at = int(at_ms or 0)
    return BooksEntry(
        id=installment_subject(str(subscription_id), str(payment)),
        movement=Movement.PAYMENT,
        standing=EntryStanding.DONE,
        order_id=_text(order_id),
        payment_id=_text(payment),
        currency=_text(currency),
        amount_minor=None if amount_minor is None else int(amount_minor),
        from_ms=at - CHECKOUT_LIFE_MS,  # a notification may come late, and never early
        until_ms=at,
        known_at_ms=at if learnt_at_ms is None else int(learnt_at_ms),
        subscription_id=_text(subscription_id),
        is_followed=learnt_at_ms is not None,
    )


def _of_imported(payment: ImportedPayment) -> BooksEntry:
    """Makes an entry that any day can have: the shop said when it heard of the payment, if it said so at all."""
    return BooksEntry(
        id=f"import/{payment.payment_id}",
        movement=Movement.PAYMENT,
        standing=EntryStanding.DONE,
        order_id=payment.order_id,
        payment_id=payment.payment_id,
        currency=payment.currency,
        amount_minor=payment.amount_minor,
        from_ms=0,
        until_ms=payment.imported_at_ms,
        known_at_ms=payment.imported_at_ms,
        subscription_id=payment.subscription_id,
        is_imported=True,
    )


def _of_chargeback(chargeback: Chargeback) -> BooksEntry:
    return BooksEntry(
        id=f"chargeback/{chargeback.payment_id}",
        movement=Movement.CHARGEBACK,
        standing=EntryStanding.DONE,
        order_id=chargeback.order_id,
        payment_id=chargeback.payment_id,
        currency=chargeback.currency,
        amount_minor=chargeback.charged_back_minor,
        from_ms=chargeback.noted_at_ms,
        until_ms=chargeback.noted_at_ms,
        known_at_ms=chargeback.noted_at_ms,
    )


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) else None


def _id_at(prefix: str, at_ms: int) -> str:
    """Gives an id that sorts before all that were made at a moment or later."""
    return f"{prefix}_{max(0, at_ms).to_bytes(_ID_BYTES, 'big').hex()}"


def _json(members: Iterable[str]) -> str:
    return msgspec.json.encode(sorted(set(members))).decode()
