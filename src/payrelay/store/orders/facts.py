"""Reads all that is stored of an order's money in one statement, and leaves out what somebody else has changed."""

# ruff: noqa: S608 - only tables, columns and kinds named here are put into the texts; values are always parameters

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
from payrelay.core.payments.operation import Kind, captured_guard
from payrelay.store.digests.rows import RowDigests, RowVerifier
from payrelay.store.engine.database import Row, Statement, Unit, Value
from payrelay.store.engine.queries import query
from payrelay.store.engine.rows import StructT
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
        return await self._rows.verified(lambda verifier: self._facts(merchant, order_id, None, verifier))

    async def facts_of_payment(self, merchant: str, payment_id: str) -> OrderFacts:
        """Reads all that is stored of one payment, as ``facts_of_order`` does, and nothing else of its order."""
        return await self._rows.verified(lambda verifier: self._facts(merchant, None, payment_id, verifier))

    def facts_within(self, merchant: str, payment_id: str) -> Unit[OrderFacts]:
        """Reads the facts of one payment within a unit of work that stores something; wrong rows aren't reported.

        What the unit stores is one row, which isn't counted where there may be too many.
        """
        return self._facts(merchant, None, payment_id, self._rows.verifier(), stored=1)

    def _facts(
        self, merchant: str, order_id: str | None, payment_id: str | None, verifier: RowVerifier, *, stored: int = 0
    ) -> Unit[OrderFacts]:
        wanted = OrderFacts(order_id=order_id, payment_id=payment_id)
        return (yield from facts_and_rows(merchant, wanted, verifier, rows_max=self._rows_max + stored))[0]


def facts_and_rows(
    merchant: str, wanted: OrderFacts, verifier: RowVerifier, *, rows_max: int = ROWS_MAX
) -> Unit[tuple[OrderFacts, Mapping[str, Sequence[Row]]]]:
    """Reads the facts of an order or of one payment, which ``wanted`` names, within a unit of work.

    Gives them with the right rows from which they follow, by their tables.
    """
    parameters = (merchant, wanted.order_id, wanted.payment_id, rows_max + 1)
    rows = yield Statement(FACTS, parameters)
    found = {packed.name: packed for packed in (unpacked(value) for (value,) in rows)}
    counts = Counter(each.table.name for each in found.values())
    right: dict[str, list[Row]] = defaultdict(list)
    for each in found.values():
        right[each.table.name] += verifier.right(each.table, [each.row])
    is_complete = max(counts.values(), default=0) <= rows_max
    read = msgspec.structs.replace(wanted, wrong=tuple(sorted(set(verifier.wrong))), is_complete=is_complete)
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


_PAID: Final = "installments.is_paid = 1"
_MOVES_MONEY: Final = f"kind <> '{Kind.CANCEL.stored}'"
_OF_PAYMENTS: Final = 'IN (SELECT payment_id COLLATE "default" FROM paid)'
"""Some tables have another collation than others: without the cast PostgreSQL uses no index of the others."""
_IS_HOLD: Final = f"payment_id {_OF_PAYMENTS} AND merchant = $1 AND result_ref IS NOT NULL"
_CAPTURING: Final = "'authorization/'"
_CAPTURED: Final = f"'{captured_guard('authorization/')}'"
"""What an open and a successful capture of a hold guard, or its void; the capture may have no payment's number."""
_OF_ORDERS: Final = 'order_id IN (SELECT order_id COLLATE "default" FROM orders)'
_TOLD: Final = "kind = 'chargeback' AND verdict = 'genuine' AND state IN ('received', 'waiting')"
"""Of a chargeback that the gateway notified, and that no record proves yet. One for each payment is enough: however
many a stranger posts again with other unsigned members, they don't fill what is added up."""
_OF_PLANS: Final = "IN (SELECT subscription_id FROM plans)"


def _first(rows: str) -> str:
    """Gives one row more than may be read of a kind, so that more of them are noticed."""
    return f"SELECT * FROM ({rows} LIMIT $4) AS found"


def _numbers(source: str) -> str:
    return f"UNION SELECT payment_id FROM (SELECT {source} LIMIT $4) AS named"


FACTS: Final = query(
    f"""
    WITH plans AS (
      SELECT subscription_id FROM subscriptions WHERE order_id = $2::text AND merchant = $1
      UNION
      SELECT subscription_id FROM checkouts
      WHERE merchant = $1 AND order_id = $2::text AND subscription_id IS NOT NULL
    ),
    paid AS (
      SELECT $3::text AS payment_id
      {_numbers("payment_id FROM operations WHERE order_id = $2::text AND merchant = $1 AND payment_id IS NOT NULL")}
      {_numbers("payment_id FROM checkouts WHERE merchant = $1 AND order_id = $2::text AND payment_id IS NOT NULL")}
      {
        _numbers(f'''payment AS payment_id FROM plans JOIN installments
          ON installments.merchant = $1 AND installments.subscription_id = plans.subscription_id WHERE {_PAID}''')
    }
      {_numbers("payment_id FROM imported_payments WHERE order_id = $2::text AND merchant = $1")}
      {_numbers("payment_id FROM payments_seen WHERE merchant = $1 AND order_id = $2::text")}
    ),
    orders AS (
      SELECT order_id FROM (
        SELECT $2::text AS order_id
        UNION SELECT order_id FROM operations WHERE payment_id {_OF_PAYMENTS} AND merchant = $1
        UNION SELECT order_id FROM checkouts WHERE payment_id {_OF_PAYMENTS} AND merchant = $1
        UNION SELECT order_id FROM payments_seen WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}
        UNION SELECT order_id FROM imported_payments WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}
      ) AS named WHERE order_id IS NOT NULL
    ),
    takers AS (
      SELECT {_CAPTURED} || result_ref AS guard FROM operations WHERE {_IS_HOLD}
      UNION ALL
      SELECT {_CAPTURING} || result_ref AS guard FROM operations WHERE {_IS_HOLD}
    )
    {
        _first(f'''
      SELECT {OPERATIONS.packed} AS row_and_digest FROM operations WHERE id IN (
        SELECT id FROM operations WHERE order_id = $2::text AND merchant = $1
        UNION SELECT id FROM operations WHERE payment_id {_OF_PAYMENTS} AND merchant = $1
        UNION SELECT id FROM operations WHERE subscription_id {_OF_PLANS} AND merchant = $1
        UNION SELECT id FROM operations WHERE merchant = $1 AND guard IN (SELECT guard FROM takers)
      ) AND {_MOVES_MONEY}''')
    }
    UNION ALL
    {
        _first(f'''
      SELECT {CHECKOUTS.packed} FROM checkouts WHERE id IN (
        SELECT id FROM checkouts WHERE merchant = $1 AND order_id = $2::text
        UNION SELECT id FROM checkouts WHERE payment_id {_OF_PAYMENTS} AND merchant = $1
      )''')
    }
    UNION ALL
    {
        _first(f'''
      SELECT {SUBSCRIPTIONS.packed} FROM subscriptions WHERE merchant = $1 AND subscription_id IN (
        SELECT subscription_id FROM plans
        UNION SELECT subscription_id FROM installments WHERE payment {_OF_PAYMENTS} AND merchant = $1
      )''')
    }
    UNION ALL
    {
        _first(f'''
      SELECT {INSTALLMENTS.packed} FROM plans JOIN installments
        ON installments.merchant = $1 AND installments.subscription_id = plans.subscription_id WHERE {_PAID}''')
    }
    UNION ALL
    {
        _first(f'''
      SELECT {INSTALLMENTS.packed} FROM installments WHERE payment {_OF_PAYMENTS} AND merchant = $1 AND {_PAID}''')
    }
    UNION ALL
    {
        _first(
            f"SELECT {IMPORTED_PAYMENTS.packed} FROM imported_payments"
            f" WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}"
        )
    }
    UNION ALL
    {_first(f"SELECT {PAYMENTS_SEEN.packed} FROM payments_seen WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    {_first(f"SELECT {RETURNS_SEEN.packed} FROM returns_seen WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    {_first(f"SELECT {FAILED_REFUNDS.packed} FROM failed_refunds WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    {
        _first(f'''
      SELECT {NOTIFICATIONS.packed} FROM notifications WHERE id IN (
        SELECT min(id) FROM notifications
        WHERE merchant = $1 AND {_TOLD} AND (payment_id IS NULL OR payment_id {_OF_PAYMENTS})
          AND ({_OF_ORDERS} OR NOT EXISTS (SELECT 1 FROM orders))
        GROUP BY payment_id
      )''')
    }
    UNION ALL
    {_first(f"SELECT {CHARGEBACKS.packed} FROM chargebacks WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    SELECT {ACCEPTED_TOKENS.packed} FROM accepted_tokens
    WHERE merchant = $1 AND order_id = $2::text AND kind = 'authorization'""",
)
"""Reads all rows about the money of merchant $1's order $2, or of payment $3 alone, each with its table and its digest.

At most $4 rows of each kind. A row that follows from another is read whatever that row's digest is: whoever sorts them
believes none that follows from a wrong one alone.
"""
