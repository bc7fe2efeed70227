"""Checkouts as the store keeps them: where each one stands in clear, and the customer's data sealed beside it.

Rules:

1. A change names the version that it was decided on, and is written with its event or not at all.
2. The unique indexes on order and key decide who was first; whatever is read before them is only a hint.
3. What is sealed is forgotten when a checkout has long had its outcome.
"""

from typing import Final, TypeAlias

import msgspec

from payrelay.core.checkouts.checkout import Checkout, Details, event_of
from payrelay.core.payments.payment import Payment
from payrelay.errors import Outdated
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows, count_rows, first_row
from payrelay.store.engine.rows import struct_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import outbox
from payrelay.store.statements import checkouts as statements

OF_ORDER_MAX: Final = 50
"""Checkouts of one order that are looked at: more attempts than anybody makes."""
OF_CUSTOMER_MAX: Final = 100
"""Checkouts of one page of a person's."""
FORGOTTEN_MAX: Final = 500
"""Of one round, so that it never holds the store for long."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Details).decode

_Checkouts: TypeAlias = list[Checkout]


class CheckoutsOfCustomer(msgspec.Struct, frozen=True, kw_only=True):
    """By what a person's checkouts are found: a stored customer, and its principal's own name for it.

    ``reference`` is None where there is none, or it shall not be looked for by it.
    """

    customer_id: str
    merchant: str
    principal: str
    reference: str | None

    def __repr__(self) -> str:
        return f"Sought(customer_id={self.customer_id!r})"


class Checkouts:
    """Keeps checkouts in a database."""

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal

    async def add(self, checkout: Checkout, details: Details) -> bool:
        """Stores a new checkout; False where its order is held, or its key taken, by another one."""
        sealed = self._seal.seal(_encode(details), context_of(checkout.id))
        statement = Statement(statements.ADD, (*msgspec.structs.astuple(checkout), sealed), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def get(self, checkout_id: str) -> Checkout | None:
        """Reads one checkout."""
        return await self._one(Statement(statements.GET, (checkout_id,)))

    async def details_of(self, checkout_id: str) -> Details | None:
        """Reads what is sealed of a checkout; None where it was forgotten. Raises StoreUnusable."""
        row = await self._database.read(first_row(Statement(statements.SEALED, (checkout_id,))))
        sealed = None if row is None else row[0]
        return _decode(self._seal.open(sealed, context_of(checkout_id))) if isinstance(sealed, bytes) else None

    async def of_key(self, principal: str, idempotency_key: str) -> Checkout | None:
        """Finds the checkout that a principal opened under an Idempotency-Key."""
        return await self._one(Statement(statements.OF_KEY, (principal, idempotency_key)))

    async def holder_of(self, merchant: str, order_id: str) -> Checkout | None:
        """Finds the checkout that holds an order."""
        return await self._one(Statement(statements.HOLDER, (merchant, order_id)))

    async def of_order(self, merchant: str, order_id: str) -> _Checkouts:
        """Finds the checkouts of an order: the one that holds it first, then the newest."""
        return await self._many(Statement(statements.OF_ORDER, (merchant, order_id, OF_ORDER_MAX)))

    async def change(self, checkout: Checkout, *, has_event: bool, is_paid: bool = False) -> None:
        """Stores a changed checkout, with the event of its new state where that is to be told.

        Raises Outdated, and writes nothing, unless the row has the version before; and, where ``is_paid`` says that its
        payment is new to it, where that belongs to something else by now. A checkout that would hold an order which
        another one holds by now holds none.
        """
        await self._database.write(_change(checkout, has_event=has_event, is_paid=is_paid))

    async def mark_opened(self, checkout_id: str, at_ms: int, *, left_open_ms: int) -> bool:
        """Notes that its page was shown, which leaves it open so much longer; False where it was shown before."""
        statement = Statement(statements.MARK_OPENED, (checkout_id, at_ms, left_open_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def lease_inquiry(self, checkout_id: str, now_ms: int, *, next_ms: int) -> bool:
        """Tells whether the caller is the one to look at the gateway now; nobody else is before ``next_ms``."""
        statement = Statement(statements.LEASE_INQUIRY, (checkout_id, now_ms, next_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def lease_ending(self, now_ms: int, *, leased_until_ms: int, limit: int) -> _Checkouts:
        """Takes at most ``limit`` open checkouts whose time has ended; until then nobody else is given them."""
        if not await self._database.read(all_rows(Statement(statements.ANY_ENDING, (now_ms,)))):
            return []
        statement = Statement(statements.LEASE_ENDING, (now_ms, leased_until_ms, limit), is_whole=True)
        return [_checkout(row) for row in await self._database.write(all_rows(statement))]

    async def lease_overdue(self, checkout_id: str, now_ms: int, *, leased_until_ms: int) -> bool:
        """Takes one open checkout whose time has ended; False where it isn't that, or somebody else has taken it."""
        statement = Statement(statements.LEASE_OVERDUE, (checkout_id, now_ms, leased_until_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def forget(self, before_ms: int) -> int:
        """Forgets what is sealed of checkouts that came to their state before a moment; gives how many."""
        statement = Statement(statements.FORGET, (before_ms, FORGOTTEN_MAX), is_whole=True)
        return await self._database.write(count_rows(statement))

    async def forget_order(self, merchant: str, principal: str, order_id: str) -> int:
        """Forgets who the customer of a principal's checkouts of an order was, of those that have their outcome.

        Gives how many there were.
        """
        statement = Statement(statements.FORGET_ORDER, (merchant, principal, order_id), is_whole=True)
        return await self._database.write(count_rows(statement))

    async def of_customer(self, person: CheckoutsOfCustomer, *, after: str, limit: int) -> _Checkouts:
        """Reads one page of a person's checkouts, by their ids above ``after``."""
        parameters = (*msgspec.structs.astuple(person), after, min(limit, OF_CUSTOMER_MAX))
        return await self._many(Statement(statements.OF_CUSTOMER, parameters))

    async def unowned(self, checkout: Checkout, payments: tuple[Payment, ...]) -> tuple[Payment, ...]:
        """Gives those of the payments that belong to no operation and no other checkout.

        Gives none where a charge of the same order, or another checkout that is open or asked for something else, may
        turn out to own one.
        """
        return await self._database.read(_unowned(checkout, payments))

    async def has_competing(self, checkout: Checkout) -> bool:
        """Tells whether a charge of the same order, or another checkout, may turn out to own what is found of it."""
        return bool(await self._database.read(all_rows(_competing_with(checkout))))

    async def _one(self, statement: Statement) -> Checkout | None:
        row = await self._database.read(first_row(statement))
        return None if row is None else _checkout(row)

    async def _many(self, statement: Statement) -> _Checkouts:
        return [_checkout(row) for row in await self._database.read(all_rows(statement))]


def context_of(checkout_id: str) -> bytes:
    """Says where a sealed value belongs."""
    return f"checkout/{checkout_id}".encode()


def _change(checkout: Checkout, *, has_event: bool, is_paid: bool) -> Unit[None]:
    if is_paid:
        # Two checkouts of an order may be about to take up the same payment: the second one finds it taken.
        yield Statement(statements.LOCK_ORDER, (checkout.merchant, checkout.order_id))
        if (yield Statement(statements.PAYMENT_IS_OWNED, (checkout.payment_id, checkout.merchant, checkout.id))):
            raise Outdated(f"the payment of the checkout {checkout.id!r} belongs to another by now")
    parameters = (
        checkout.id,
        checkout.version - 1,
        checkout.state,
        checkout.guard,
        checkout.payment_id,
        checkout.subscription_id,
        checkout.customer_id,
        checkout.updated_at_ms,
    )
    changed = yield Statement(statements.CHANGE, parameters)
    if not changed:
        raise Outdated(f"the checkout {checkout.id!r} was changed since it was read")
    if has_event:
        yield from outbox.put(event_of(checkout))


def _unowned(checkout: Checkout, payments: tuple[Payment, ...]) -> Unit[tuple[Payment, ...]]:
    if (yield _competing_with(checkout)):
        return ()
    unowned = []
    for payment in payments:
        parameters = (payment.payment_id, checkout.merchant, checkout.id)
        if not (yield Statement(statements.PAYMENT_IS_OWNED, parameters)):
            unowned.append(payment)
    return tuple(unowned)


def _competing_with(checkout: Checkout) -> Statement:
    return Statement(statements.ORDER_HAS_COMPETING, (checkout.order_id, checkout.merchant, checkout.id))


def _checkout(row: Row) -> Checkout:
    return struct_of(row, Checkout)
