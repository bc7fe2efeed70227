"""The owners of payments, authorizations, plans and orders of one merchant, by indexed lookups.

Nothing here is stored a second time: an owner is found in the row of what made the thing. The rules are those of
``core.access.ownership``.

Rows that came after commits were lost may give to one principal what is another's, whose rows are lost. So whoever asks
in a recovery says ``before_ms``, the beginning of the lost window. Then an order is owned by what was made before that,
and holds it for good. An open checkout may have ended in the lost window, and an open operation may have failed.

A row without its digest makes nobody an owner. Where nothing else does, what it names is nobody's, and not open to all:
so nobody opens a thing to others by changing its owner's row.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from payrelay.core.access.ownership import NOBODY, OrderOwners
from payrelay.store.digests.rows import RowDigests, RowKey
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value
from payrelay.store.engine.queries import Query
from payrelay.store.statements.access import owners as statements
from payrelay.store.statements.payments.packed_rows import unpacked

T = TypeVar("T")

_NO_OWNERS: Final = OrderOwners()
_BY_OPEN: Final = 1
"""What a row of an order's owners has first where an open operation holds the order."""
NOT_TOLD: Final = ""
"""In the place of an owner whom a row with a wrong digest names: no principal has this name."""


class Owners:
    """Finds owners in a database; ``rows`` checks the digests of the rows."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def of_payment(self, merchant: str, payment_id: str, *, before_ms: int | None = None) -> frozenset[str]:
        """Finds who made a payment, or else the owners of the order for which the gateway showed it.

        Raises StoreUnavailable, as all functions here do.
        """
        return await self._read(_of_payment(merchant, payment_id, before_ms))

    async def of_authorization(self, merchant: str, token_hash: str) -> frozenset[str]:
        """Finds who requested an authorization, by the hash of its token."""
        return await self._read(_of_authorization(merchant, token_hash))

    async def of_plan(self, merchant: str, subscription_id: str, *, before_ms: int | None = None) -> frozenset[str]:
        """Finds who began a subscription, or else the owners of its order."""
        return await self._read(_of_plan(merchant, subscription_id, before_ms))

    async def of_order(
        self, merchant: str, order_id: str, *, before_ms: int | None = None, but_for: str = ""
    ) -> OrderOwners:
        """Finds the owners of an order; ``but_for`` is an operation that is left out."""
        return await self._read(_of_order(merchant, order_id, before_ms, but_for))

    async def of_order_and_payments(
        self, merchant: str, order_id: str
    ) -> tuple[OrderOwners, dict[str, frozenset[str]]]:
        """Finds the owners of an order, without what they own it by, and its known payments with theirs, at once."""
        return await self._read(_of_order_and_payments(merchant, order_id))

    async def payments_of_order(self, merchant: str, order_id: str) -> dict[str, frozenset[str]]:
        """Finds the known payments of an order, each with its owners."""
        return await self._read(_payments_of_order(merchant, order_id))

    async def of_plans(
        self, merchant: str, orders: Mapping[str, str | None], *, before_ms: int | None = None
    ) -> dict[str, frozenset[str]]:
        """Finds who began each of some subscriptions, or else the owners of its order.

        ``orders`` has the order of each subscription as the gateway shows it; None where the gateway shows none.
        """
        return await self._read(_of_plans(merchant, orders, before_ms))

    async def _read(self, unit: Unit[T]) -> T:
        wrong: list[str] = []
        found = await self._database.read(_with_owners(unit, self._rows.key, wrong))
        for name in wrong:
            await self._rows.report(name)
        return found


def owners_of_order(merchant: str, order_id: str, key: RowKey) -> Unit[frozenset[str]]:
    """Finds the owners of an order within a unit of work that stores something; wrong rows aren't reported."""
    owners = yield from _with_owners(_of_order(merchant, order_id, None), key, [])
    return owners.all - {NOT_TOLD}


def _with_owners(unit: Unit[T], key: RowKey, wrong: list[str]) -> Unit[T]:
    """Carries a unit out that gets rows with owners in the place of packed rows; adds the names of wrong rows."""
    try:
        statement = next(unit)
        while True:
            statement = unit.send(_owned(key, (yield statement), wrong))
    except StopIteration as end:
        found: T = end.value
        return found


def _owned(key: RowKey, rows: Iterable[Row], wrong: list[str]) -> list[Row]:
    """Gives the rows that count, each with its owner in the last column: NOT_TOLD where a row has a wrong digest."""
    owned: list[Row] = []
    for *plain, counts, maker, link in rows:
        packed = [unpacked(each) for each in (maker, link) if each is not None]
        forged = [each.name for each in packed if not key.fits(*each)]
        wrong += forged
        if forged:
            owned.append((*plain, NOT_TOLD))
        elif counts:
            owned.append((*plain, packed[0].value("principal")))
    return owned


def _of_payment(merchant: str, payment_id: str, before_ms: int | None) -> Unit[frozenset[str]]:
    makers = yield from _names(statements.MAKERS_OF_PAYMENT, payment_id, merchant)
    if makers:
        return makers
    rows = yield Statement(statements.REPORTED_MAKERS_OF_PAYMENT, (payment_id, merchant))
    if rows:
        imported = [name for told_by, name in rows if told_by == statements.BY_IMPORT]
        return _right(imported or [name for _, name in rows])
    rows = yield Statement(statements.ORDER_OF_PAYMENT, (payment_id, merchant))
    return (yield from _of_first_order(merchant, rows, before_ms))


def _of_authorization(merchant: str, token_hash: str) -> Unit[frozenset[str]]:
    makers = yield from _names(statements.MAKERS_OF_AUTHORIZATION, token_hash, merchant)
    if makers:
        return makers
    rows = yield Statement(statements.ACCEPTED_BY, (token_hash, merchant))
    names = [str(name) for (name,) in rows]
    right = [name for name in names if name != NOT_TOLD]
    return frozenset((right or names)[:1])


def _of_plan(merchant: str, subscription_id: str, before_ms: int | None) -> Unit[frozenset[str]]:
    makers = yield from _names(statements.MAKERS_OF_PLAN, subscription_id, merchant)
    if makers:
        return makers
    rows = yield Statement(statements.ORDER_OF_PLAN, (subscription_id, merchant))
    return (yield from _of_first_order(merchant, rows, before_ms))


def _of_order(merchant: str, order_id: str, before_ms: int | None, but_for: str = "") -> Unit[OrderOwners]:
    found = yield Statement(statements.OWNERS_OF_ORDER, (order_id, merchant, but_for))
    if not found:
        return _NO_OWNERS
    rows = [row for row in found if _may_own(row)]
    operations = frozenset(str(operation_id) for *_, operation_id, _, _ in rows if operation_id is not None)
    open_pages = tuple(str(page_id) for *_, page_id, _ in rows if page_id is not None)
    if before_ms is not None:
        rows = [row for row in rows if row[1] and isinstance(row[2], int) and row[2] < before_ms]
    owners = _order_owners(rows)
    return msgspec.structs.replace(owners, operations=operations, open_pages=open_pages, has_more=True)


def _may_own(row: Row) -> bool:
    """Tells whether a row may make somebody an owner; of one that was forged, nobody knows that it failed."""
    return row[0] != statements.OF_PLAN and (row[0] != statements.BY_FAILED or row[-1] == NOT_TOLD)


def _of_order_and_payments(merchant: str, order_id: str) -> Unit[tuple[OrderOwners, dict[str, frozenset[str]]]]:
    rows = yield Statement(statements.ORDER_AND_PAYMENTS, (order_id, merchant))
    of_order: list[Row] = []
    of_payments: list[Row] = []
    for payment_id, held_by, holds, makes, name in rows:
        if held_by != statements.OF_PLAN and (holds or name == NOT_TOLD):
            of_order.append((held_by, name))
        if payment_id is not None and (makes or name == NOT_TOLD):
            of_payments.append((payment_id, name))
    return _order_owners(of_order), _by_first(of_payments)


def _order_owners(rows: list[Row]) -> OrderOwners:
    """Gives the owners that rows name: how each of them holds the order, and its owner in the last column."""
    if not rows:
        return _NO_OWNERS
    return OrderOwners(
        settled=_right(row[-1] for row in rows if row[0] != _BY_OPEN),
        charging=_right(row[-1] for row in rows if row[0] == _BY_OPEN),
        is_imported=any(row[0] == statements.BY_IMPORT and row[-1] != NOT_TOLD for row in rows),
    )


def _of_first_order(merchant: str, rows: list[Row], before_ms: int | None) -> Unit[frozenset[str]]:
    if not rows:
        return NOBODY
    if rows[0][-1] == NOT_TOLD:
        return frozenset({NOT_TOLD})
    return (yield from _of_order(merchant, str(rows[0][0]), before_ms)).all


def _payments_of_order(merchant: str, order_id: str) -> Unit[dict[str, frozenset[str]]]:
    rows = yield Statement(statements.PAYMENTS_OF_ORDER, (order_id, merchant))
    return _by_first(rows)


def _of_plans(
    merchant: str, orders: Mapping[str, str | None], before_ms: int | None
) -> Unit[dict[str, frozenset[str]]]:
    owned = {}
    for subscription_id, order_id in orders.items():
        owners = yield from _of_plan(merchant, subscription_id, before_ms)
        if not owners and order_id is not None:
            owners = (yield from _of_order(merchant, order_id, before_ms)).all
        owned[subscription_id] = owners
    return owned


def _by_first(rows: "list[Row]") -> dict[str, frozenset[str]]:
    owners: dict[str, frozenset[str]] = {}
    for id_, name in rows:
        owners[str(id_)] = owners.get(str(id_), NOBODY) | {str(name)}
    return {id_: _right(names) for id_, names in owners.items()}


def _names(query: Query, id_: str, merchant: str) -> Unit[frozenset[str]]:
    rows = yield Statement(query, (id_, merchant))
    return _right(row[0] for row in rows)


def _right(names: Iterable[Value]) -> frozenset[str]:
    """Gives the owners that right rows name; NOT_TOLD alone where only wrong rows name any."""
    found = frozenset(map(str, names))
    return found - {NOT_TOLD} or found
