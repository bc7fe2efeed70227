"""The payments that are known here, and what each of them is known by. Reads only, and asks no gateway."""

from typing import Final, NamedTuple

import msgspec

from payrelay.core.payments.operation import State
from payrelay.core.payments.payment import PaymentStatus, TakenPayment, payment_number
from payrelay.store.digests.rows import RowDigests, RowVerifier
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.queries import Query
from payrelay.store.engine.rows import struct_of
from payrelay.store.statements.chargebacks import CHARGEBACK_OF_PAYMENT
from payrelay.store.statements.pagination import columns_of
from payrelay.store.statements.payments import known_payments as statements
from payrelay.store.statements.payments.packed_rows import CHARGEBACKS, unpacked

PAYMENTS_MAX: Final = 1_000
"""Payments that are listed."""
_NOTED_AT: Final = CHARGEBACKS.columns.index("noted_at_ms")


class KnownPayment(NamedTuple):
    """The order and currency of a payment, and its last known status; None where that was never read or answered."""

    order_id: str
    currency: str | None
    status: PaymentStatus | None


class PaymentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the payments to list: those that are equal in every field that is given."""

    merchant: str | None = None
    order_id: str | None = None
    status: PaymentStatus | None = None
    payment_id: str | None = None


class PaymentOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The operation, checkout, subscription or import that a payment belongs to, and the order that it says.

    ``state`` is None for a subscription and an import. The id of an import is the file, and the line in it.
    """

    kind: str
    id: str
    state: str | None
    account: str
    order_id: str | None


class PaymentRefund(msgspec.Struct, frozen=True, kw_only=True):
    """A refund that was asked for here, in its present state; without an amount it is of the whole payment."""

    id: str
    state: State
    amount_minor: int | None


class SeenPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment as the gateway showed it when it was last read."""

    order_id: str
    status: str
    seen_at_ms: int


class PaymentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a payment, but for its money, which its balance has.

    ``seen`` is None where no read has shown it; ``charged_back_at_ms`` is when a chargeback of it was stored.
    """

    merchant: str
    payment_id: str
    seen: SeenPayment | None
    owners: list[PaymentOwner]
    refunds: list[PaymentRefund]
    charged_back_at_ms: int | None

    @property
    def order_id(self) -> str | None:
        """Its order."""
        sources = [*([] if self.seen is None else [self.seen.order_id]), *(each.order_id for each in self.owners)]
        return next((each for each in sources if each is not None), None)


class KnownPayments:
    """Reads the payments that are known in a database; ``rows`` checks the digests of what one is known by."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def get(self, merchant: str, payment_id: str) -> KnownPayment | None:
        """Finds what is known of a payment: as it was last seen at the gateway, or as what it belongs to.

        A row without its digest tells nothing, and is reported.
        """
        rows = await self._database.read(all_rows(Statement(statements.KNOWN_PAYMENT, (payment_id, merchant))))
        for order_id, currency, status, maker, link in rows:
            packed = [unpacked(each) for each in (maker, link) if each is not None]
            if all([await self._rows.is_right(*each) for each in packed]):
                known = None if status is None else PaymentStatus(str(status))
                return KnownPayment(str(order_id), None if currency is None else str(currency), known)
        return None

    async def taken_of_order(self, merchant: str, order_id: str) -> tuple[TakenPayment, ...]:
        """Finds the payments of an order that took money; see ``get`` for rows without digests."""
        return await self._taken(statements.TAKEN_OF_ORDER, order_id, merchant)

    async def taken_of_plan(self, merchant: str, subscription_id: str) -> tuple[TakenPayment, ...]:
        """Finds the payments of a subscription that took money; see ``get`` for rows without digests."""
        return await self._taken(statements.TAKEN_OF_PLAN, subscription_id, merchant)

    async def _taken(self, query: Query, id_: str, merchant: str) -> tuple[TakenPayment, ...]:
        found = []
        for payment_id, made_by, known_at_ms, *rows in await self._database.read(
            all_rows(Statement(query, (id_, merchant)))
        ):
            packed = [unpacked(each) for each in rows if each is not None]
            if all([await self._rows.is_right(*each) for each in packed]):
                owner = packed[0].value("principal")
                found.append(
                    TakenPayment(
                        payment_id=None if payment_id is None else payment_number(str(payment_id)),
                        made_by=str(made_by),
                        owner=None if owner is None else str(owner),
                        known_at_ms=int(str(known_at_ms)),
                    )
                )
        return tuple(found)

    async def list(self, filters: PaymentFilter, *, limit: int) -> "list[PaymentSummary]":
        """Reads at most ``limit`` payments, newest first; for operators."""
        return await self._rows.verified(
            lambda verifier: _list(filters, min(limit, PAYMENTS_MAX), verifier), is_page=True
        )


def _list(filters: PaymentFilter, limit: int, verifier: RowVerifier) -> Unit[list[PaymentSummary]]:
    summaries = []
    for merchant, payment_id in (yield from _newest(filters, limit)):
        summaries.append((yield from _summary(merchant, payment_id, verifier)))
    return summaries


def _newest(filters: PaymentFilter, limit: int) -> Unit[list[tuple[str, str]]]:
    """Finds merchants and ids of payments, newest first; of equal ids those of the first merchant first."""
    equal = columns_of(filters)
    if equal.pop("merchant", None) is not None:
        merchants = [filters.merchant]
    else:
        merchants = [str(row[0]) for row in (yield Statement(statements.MERCHANTS_OF_PAYMENTS, ()))]
    columns = tuple(equal)
    found = set()
    for merchant in merchants:
        for source in statements.sources_for(columns):
            newest = statements.newest_of(source, columns)
            rows = yield Statement(newest, (merchant, *equal.values(), limit))
            found |= {(str(merchant), str(row[0])) for row in rows}
    by_id = sorted(sorted(found), key=lambda each: (len(each[1]), each[1]), reverse=True)
    return by_id[:limit]


def _summary(merchant: str, payment_id: str, verifier: RowVerifier) -> Unit[PaymentSummary]:
    key = (merchant, payment_id)
    seen = yield Statement(statements.PAYMENT_SEEN, key)
    owners = yield Statement(statements.OWNERS_OF, key)
    refunds = yield Statement(statements.REFUNDS_OF, key)
    chargebacks = verifier.right(CHARGEBACKS, (yield Statement(CHARGEBACK_OF_PAYMENT, key)))
    noted = [moment for row in chargebacks if isinstance(moment := row[_NOTED_AT], int)]
    return PaymentSummary(
        merchant=merchant,
        payment_id=payment_id,
        seen=struct_of(seen[0], SeenPayment) if seen else None,
        owners=[struct_of(row, PaymentOwner) for row in owners],
        refunds=[struct_of(row, PaymentRefund) for row in refunds],
        charged_back_at_ms=max(noted, default=None),
    )
