"""The owners of payments, authorizations, plans and orders of one merchant, by indexed lookups.

Nothing here is stored a second time: an owner is found in the row of what made the thing. The rules are those of
``core.access.ownership``.
"""

from collections.abc import Mapping

from payrelay.core.access.ownership import NOBODY, OrderOwners
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import Query
from payrelay.store.statements.access import owners as statements


class Owners:
    """Finds owners in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_payment(self, merchant: str, payment_id: str) -> frozenset[str]:
        """Finds who made a payment, or else the owners of the order for which the gateway showed it.

        Raises StoreUnavailable, as all functions here do.
        """
        return await self._database.read(_of_payment(merchant, payment_id))

    async def of_authorization(self, merchant: str, token_hash: str) -> frozenset[str]:
        """Finds who requested an authorization, by the hash of its token."""
        return await self._database.read(_of_authorization(merchant, token_hash))

    async def of_plan(self, merchant: str, subscription_id: str) -> frozenset[str]:
        """Finds who began a subscription, or else the owners of its order."""
        return await self._database.read(_of_plan(merchant, subscription_id))

    async def of_order(self, merchant: str, order_id: str) -> OrderOwners:
        """Finds the owners of an order."""
        return await self._database.read(_of_order(merchant, order_id))

    async def payments_of_order(self, merchant: str, order_id: str) -> dict[str, frozenset[str]]:
        """Finds the known payments of an order, each with its owners."""
        return await self._database.read(_payments_of_order(merchant, order_id))

    async def of_plans(self, merchant: str, orders: Mapping[str, str | None]) -> dict[str, frozenset[str]]:
        """Finds who began each of some subscriptions, or else the owners of its order.

        ``orders`` has the order of each subscription as the gateway shows it; None where the gateway shows none.
        """
        return await self._database.read(_of_plans(merchant, orders))


def _of_payment(merchant: str, payment_id: str) -> Unit[frozenset[str]]:
    for query in (statements.MAKERS_OF_PAYMENT, statements.REPORTED_MAKERS_OF_PAYMENT):
        makers = yield from _names(query, payment_id, merchant)
        if makers:
            return makers
    rows = yield Statement(statements.ORDER_OF_PAYMENT, (payment_id, merchant))
    return (yield from _of_first_order(merchant, rows))


def _of_authorization(merchant: str, token_hash: str) -> Unit[frozenset[str]]:
    makers = yield from _names(statements.MAKERS_OF_AUTHORIZATION, token_hash, merchant)
    return makers or (yield from _names(statements.ACCEPTED_BY, token_hash, merchant))


def _of_plan(merchant: str, subscription_id: str) -> Unit[frozenset[str]]:
    makers = yield from _names(statements.MAKERS_OF_PLAN, subscription_id, merchant)
    if makers:
        return makers
    rows = yield Statement(statements.ORDER_OF_PLAN, (subscription_id, merchant))
    return (yield from _of_first_order(merchant, rows))


def _of_order(merchant: str, order_id: str) -> Unit[OrderOwners]:
    rows = yield Statement(statements.OWNERS_OF_ORDER, (order_id, merchant))
    settled = frozenset(str(name) for name, is_open in rows if not is_open)
    return OrderOwners(settled=settled, charging=frozenset(str(name) for name, is_open in rows if is_open))


def _of_first_order(merchant: str, rows: list[Row]) -> Unit[frozenset[str]]:
    if not rows:
        return NOBODY
    return (yield from _of_order(merchant, str(rows[0][0]))).all


def _payments_of_order(merchant: str, order_id: str) -> Unit[dict[str, frozenset[str]]]:
    rows = yield Statement(statements.PAYMENTS_OF_ORDER, (order_id, merchant))
    return _by_first(rows)


def _of_plans(merchant: str, orders: Mapping[str, str | None]) -> Unit[dict[str, frozenset[str]]]:
    owned = {}
    for subscription_id, order_id in orders.items():
        owners = yield from _of_plan(merchant, subscription_id)
        if not owners and order_id is not None:
            owners = (yield from _of_order(merchant, order_id)).all
        owned[subscription_id] = owners
    return owned


def _by_first(rows: "list[Row]") -> dict[str, frozenset[str]]:
    owners: dict[str, frozenset[str]] = {}
    for id_, name in rows:
        owners[str(id_)] = owners.get(str(id_), NOBODY) | {str(name)}
    return owners


def _names(query: Query, id_: str, merchant: str) -> Unit[frozenset[str]]:
    rows = yield Statement(query, (id_, merchant))
    return frozenset(str(row[0]) for row in rows)
