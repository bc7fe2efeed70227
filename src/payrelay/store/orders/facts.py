"""Reads all that is stored of an order's money in one statement, and leaves out what somebody else has changed."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from payrelay.core.orders.facts import (
    AcceptedHold,
    ChargebackFact,
    FailedRefund,
    ImportedFact,
    OrderFacts,
    PaidInstallment,
    ReceivedAgain,
    ReturnSeen,
    SeenFact,
    ToldChargeback,
)
from payrelay.store.digests.rows import RowDigests, RowSieve
from payrelay.store.engine.database import Row, Statement, Unit, Value
from payrelay.store.engine.rows import StructT
from payrelay.store.statements.orders import facts as statements
from payrelay.store.statements.payments.packed_rows import (
    ACCEPTED_TOKENS,
    CHARGEBACKS,
    CHECKOUTS,
    FAILED_REFUNDS,
    IMPORTED_PAYMENTS,
    INSTALLMENTS,
    NOTIFICATIONS,
    OPERATIONS,
    PAYMENTS_SEEN,
    RETURNS_SEEN,
    SUBSCRIPTIONS,
    unpacked,
)

AGAIN: Final = "RECEIVED AGAIN"
"""In ``returns_seen``: the time at which a record first showed a payment as received again. The value never changes."""
ROWS_MAX: Final = 500
"""Rows of one kind that are added up: some milliseconds of work. A daily plan has as many after a year and a half."""


class Orders:
    """Reads the facts of orders and payments in a database; ``rows`` are the digests, which all stores share."""

    def __init__(self, rows: RowDigests, *, rows_max: int = ROWS_MAX) -> None:
        self._rows = rows
        self._rows_max = rows_max

    async def facts_of_order(self, merchant: str, order_id: str) -> OrderFacts:
        """Reads all that is stored of an order's money, as of one moment. Reports wrong rows. Raises StoreError."""
        return await self._rows.sifted(lambda sieve: self._facts(merchant, order_id, None, sieve))

    async def facts_of_payment(self, merchant: str, payment_id: str) -> OrderFacts:
        """Reads all that is stored of one payment, as ``facts_of_order`` does, and nothing else of its order."""
        return await self._rows.sifted(lambda sieve: self._facts(merchant, None, payment_id, sieve))

    def facts_within(self, merchant: str, payment_id: str) -> Unit[OrderFacts]:
        """Reads the facts of one payment within a unit of work that stores something; wrong rows aren't reported.

        What the unit stores is one row, which isn't counted where there may be too many.
        """
        return self._facts(merchant, None, payment_id, self._rows.sieve(), stored=1)

    def _facts(
        self, merchant: str, order_id: str | None, payment_id: str | None, sieve: RowSieve, *, stored: int = 0
    ) -> Unit[OrderFacts]:
        wanted = OrderFacts(order_id=order_id, payment_id=payment_id)
        return (yield from facts_and_rows(merchant, wanted, sieve, rows_max=self._rows_max + stored))[0]


def facts_and_rows(
    merchant: str, wanted: OrderFacts, sieve: RowSieve, *, rows_max: int = ROWS_MAX
) -> Unit[tuple[OrderFacts, Mapping[str, Sequence[Row]]]]:
    """Reads the facts of an order or of one payment, which ``wanted`` names, within a unit of work.

    Gives them with the right rows from which they follow, by their tables.
    """
    parameters = (merchant, wanted.order_id, wanted.payment_id, rows_max + 1)
    rows = yield Statement(statements.FACTS, parameters)
    found = {packed.name: packed for packed in (unpacked(value) for (value,) in rows)}
    counts = Counter(each.table.name for each in found.values())
    right: dict[str, list[Row]] = defaultdict(list)
    for each in found.values():
        right[each.table.name] += sieve.right(each.table, [each.row])
    is_complete = max(counts.values(), default=0) <= rows_max
    read = msgspec.structs.replace(wanted, wrong=tuple(sorted(set(sieve.wrong))), is_complete=is_complete)
    return _facts_in(right, read), right


def _facts_in(right: Mapping[str, Sequence[Row]], facts: OrderFacts) -> OrderFacts:
    checkouts = list(map(CHECKOUTS.value, right[CHECKOUTS.name]))
    plans = [SUBSCRIPTIONS.members(row) for row in right[SUBSCRIPTIONS.name]]
    currencies = {each["subscription_id"]: each["currency"] for each in plans}
    of_order = {str(each["subscription_id"]) for each in plans if each["order_id"] == facts.order_id is not None}
    of_order |= {each.subscription_id for each in checkouts if each.subscription_id and each.order_id == facts.order_id}
    installments = [INSTALLMENTS.members(row) for row in right[INSTALLMENTS.name]]
    returns = [RETURNS_SEEN.members(row) for row in right[RETURNS_SEEN.name]]
    holds = [ACCEPTED_TOKENS.members(row) for row in right[ACCEPTED_TOKENS.name]]
    return msgspec.structs.replace(
        facts,
        operations=tuple(map(OPERATIONS.value, right[OPERATIONS.name])),
        checkouts=tuple(checkouts),
        subscriptions=frozenset(of_order),
        installments=tuple(
            _fact(PaidInstallment, {**each, "currency": currencies.get(each["subscription_id"])})
            for each in installments
        ),
        imported=tuple(_fact(ImportedFact, IMPORTED_PAYMENTS.members(row)) for row in right[IMPORTED_PAYMENTS.name]),
        seen=tuple(_fact(SeenFact, PAYMENTS_SEEN.members(row)) for row in right[PAYMENTS_SEEN.name]),
        returned=tuple(_fact(ReturnSeen, each) for each in returns if each["status"] != AGAIN),
        again=tuple(_fact(ReceivedAgain, each) for each in returns if each["status"] == AGAIN),
        failed=tuple(_fact(FailedRefund, FAILED_REFUNDS.members(row)) for row in right[FAILED_REFUNDS.name]),
        chargebacks=tuple(_fact(ChargebackFact, CHARGEBACKS.members(row)) for row in right[CHARGEBACKS.name]),
        told=tuple(_fact(ToldChargeback, NOTIFICATIONS.members(row)) for row in right[NOTIFICATIONS.name]),
        hold=next((_fact(AcceptedHold, each) for each in holds), None),
    )


def _fact(kind: type[StructT], members: Mapping[str, Value]) -> StructT:
    """Makes a fact of those columns that it has."""
    return msgspec.convert({name: members[name] for name in kind.__struct_fields__}, kind)
