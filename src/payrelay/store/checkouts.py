"""Checkouts in the store: their states in clear, and the customer's data sealed beside them.

Rules:

1. A change names the version on which it was decided, and is written with its event or not at all.
2. The unique indexes on order and key decide which checkout was first. A read before them is only a hint.
3. The sealed data is forgotten when a checkout has had its outcome for a long time, and with it goes the data key
   under which it is sealed.
4. A row whose digest is wrong counts as not existing, so that nobody who lacks the key tells an outcome.
5. The customer's reference has a data key of its own, because it stays when the details are forgotten by their age. An
   erasure destroys both keys. No personal text is in a plain column: pages and indexes keep copies of what was deleted.
6. A reference and an Idempotency-Key are found by keyed hashes (``store.digests.lookups``). Nobody needs the key again.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutFilter, CheckoutState, Details, event_of
from payrelay.core.payments.payment import Payment
from payrelay.errors import Outdated, StoreUnusable
from payrelay.store.data_keys.keys import DataKeys, OwnKey, destroyed_on_request, forgotten
from payrelay.store.digests.rows import RowDigests, RowKey, without
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, first_row
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import outbox
from payrelay.store.payments.paid_again import paid_on, tell_if_paid_again
from payrelay.store.statements import checkouts as statements
from payrelay.store.statements.alerts import ADD_CHECKOUT_ALERT, ADD_PAYMENT_ALERT
from payrelay.store.statements.payments.packed_rows import CHECKOUTS, unpacked

OF_ORDER_MAX: Final = 50
"""Checkouts of one order that are read: more attempts than any customer makes."""
OF_CUSTOMER_MAX: Final = 100
"""Checkouts on one page of a customer's."""
FORGOTTEN_MAX: Final = 500
"""Of one round, so that it never blocks the store for long."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Details).decode

_Checkouts: TypeAlias = list[Checkout]
_Rows: TypeAlias = list[Row]
_Condition: TypeAlias = Callable[[str], Unit[None]]


class CheckoutsOfCustomer(msgspec.Struct, frozen=True, kw_only=True):
    """The values by which a customer's checkouts are found: the stored customer, and its principal's own name for it.

    ``reference`` is None where there is none, or where it is not to be searched for.
    """

    customer_id: str
    merchant: str
    principal: str
    reference: str | None

    def __repr__(self) -> str:
        return f"CheckoutsOfCustomer(customer_id={self.customer_id!r})"


class Checkouts:
    """Stores checkouts in a database. ``rows`` are the digests, which all stores of a process share.

    ``acknowledged`` is called with each version of a checkout, once the database has acknowledged its commit.
    """

    def __init__(
        self,
        database: Database,
        seal: Seal,
        rows: RowDigests,
        *,
        acknowledged: Callable[[Checkout], None] = lambda _: None,
    ) -> None:
        self._database = database
        self.rows = rows
        self._data_keys = DataKeys(seal)
        self._acknowledged = acknowledged

    def reference_hash(self, reference: str) -> str:
        """Gives the hash by which a client's own name for a customer is stored and found."""
        return self.rows.lookups.reference(reference)

    def key_hash(self, idempotency_key: str) -> str:
        """Gives the hash by which an Idempotency-Key is stored and found."""
        return self.rows.lookups.key(idempotency_key)

    async def add(
        self, checkout: Checkout, details: Details, condition: _Condition | None = None, *, reference: str | None = None
    ) -> bool:
        """Stores a new checkout; False where another one holds its order or has its idempotency key.

        ``reference`` is the text that ``checkout.reference_hash`` is of. What ``condition`` raises comes out here, and
        nothing is stored.
        """
        own = self._data_keys.new(checkout.id)
        sealed = own.key.seal(_encode(details), statements.context_of(checkout.id))
        named = None if reference is None else sealed_reference(self._data_keys, checkout.id, reference)
        members = CHECKOUTS.row(checkout)
        parameters: tuple[Value, ...] = (
            *(*members, sealed, None if named is None else named.value, self.rows.of(CHECKOUTS, members), own.sealed),
            *(() if named is None else (named.own.owner, named.own.sealed)),
        )
        adding = statements.ADD if named is None else statements.ADD_NAMED
        statement = Statement(adding, parameters, is_whole=condition is None, begins_effect=True)
        is_added = await self._database.write(_add(statement, checkout.id, condition))
        if is_added:
            self._acknowledged(checkout)
        return is_added

    async def get(self, checkout_id: str) -> Checkout | None:
        """Reads one checkout."""
        return await self._one(Statement(statements.GET, (checkout_id,)))

    async def details_of(self, checkout_id: str) -> Details | None:
        """Reads the sealed details of a checkout; None where they were forgotten. Raises StoreUnusable."""
        row = await self._database.read(first_row(Statement(statements.SEALED, (checkout_id,))))
        sealed, sealed_key = row or (None, None)
        plain = self._data_keys.open(sealed, statements.context_of(checkout_id), checkout_id, sealed_key)
        return None if plain is None else _decode(plain)

    async def reference_of(self, checkout: Checkout) -> str | None:
        """Reads the client's own name for the customer of a checkout; None where it has none, or was erased meanwhile.

        None also where it is missing or can't be opened, because its data key was lost: the checkout is an alert then,
        and can be read and erased all the same. Raises StoreUnavailable.
        """
        if checkout.reference_hash is None:
            return None
        owner = statements.reference_owner(checkout.id)
        row = await self._database.read(first_row(Statement(statements.SEALED_REFERENCE, (checkout.id, owner))))
        if row is None:
            return None
        plain = None
        with suppress(StoreUnusable):
            plain = self._data_keys.open(row[0], statements.reference_context(checkout.id), owner, row[1])
        if plain is None:
            await self.rows.report(f"{CHECKOUTS.name}/{checkout.id}")
            return None
        return plain.decode()

    async def of_key(self, principal: str, idempotency_key: str) -> Checkout | None:
        """Finds the checkout that a principal opened under an Idempotency-Key."""
        return await self._one(Statement(statements.OF_KEY, (principal, self.key_hash(idempotency_key))))

    async def holder_of(self, merchant: str, order_id: str) -> Checkout | None:
        """Finds the checkout that holds an order."""
        return await self._one(Statement(statements.HOLDER, (merchant, order_id)))

    async def of_order(self, merchant: str, order_id: str) -> _Checkouts:
        """Finds the checkouts of an order: the one that holds it first, then the newest."""
        return await self._many(Statement(statements.OF_ORDER, (merchant, order_id, OF_ORDER_MAX)))

    async def list(self, filters: CheckoutFilter, *, before: str | None, limit: int) -> _Checkouts:
        """Reads one page, newest first: at most ``limit`` checkouts with ids below ``before``."""
        return await self._trusted(await statements.list_page(self._database, filters, before=before, limit=limit))

    async def of_authorization(self, merchant: str, order_id: str, token_hash: str) -> _Checkouts:
        """Finds the checkouts of an order whose authorization has the token with this hash."""
        found = await self._database.read(
            all_rows(Statement(statements.OF_AUTHORIZATION, (merchant, order_id, token_hash)))
        )
        return await self._trusted([row for *row, token in found if await self.rows.is_right(*unpacked(token))])

    async def change(self, checkout: Checkout, *, has_event: bool, is_paid: bool = False) -> None:
        """Stores a changed checkout; with ``has_event``, also the event of its new state.

        Raises Outdated, and writes nothing, unless the row has the version before. ``is_paid`` says that the checkout's
        payment is new to it: then it also raises Outdated where another checkout or an operation owns that payment by
        now. A checkout whose order another one holds by now is stored without a guard. Where its payment is a further
        one of the order, that is told in the same unit of work.
        """
        digest = self.rows.of(CHECKOUTS, CHECKOUTS.row(checkout))
        await self._database.write(_change(checkout, digest, self.rows.key, has_event=has_event, is_paid=is_paid))
        self._acknowledged(checkout)

    async def withdraw(self, checkout: Checkout) -> None:
        """Stores a checkout that has ended before anybody was told of it, and frees its key; it has no event.

        Raises Outdated, and writes nothing, unless the row has the version before, and where a repeat got its form.
        """
        digest = self.rows.of(CHECKOUTS, CHECKOUTS.row(checkout))
        await self._database.write(_withdraw(checkout, digest, self.rows.key))
        self._acknowledged(checkout)

    async def mark_opened(self, checkout_id: str, at_ms: int, *, left_open_ms: int) -> bool:
        """Stores that the checkout's page was shown; False where it was shown before.

        A checkout whose page was shown stays open for ``left_open_ms`` longer.
        """
        statement = Statement(statements.MARK_OPENED, (checkout_id, at_ms, left_open_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def lease_inquiry(self, checkout_id: str, now_ms: int, *, next_ms: int) -> bool:
        """Leases the status inquiry about a checkout until ``next_ms``; False where it isn't due or is leased."""
        statement = Statement(statements.LEASE_INQUIRY, (checkout_id, now_ms, next_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def lease_ending(self, now_ms: int, *, leased_until_ms: int, limit: int) -> _Checkouts:
        """Leases at most ``limit`` open checkouts whose time has ended; no other process gets them meanwhile."""
        if not await self._database.read(all_rows(Statement(statements.ANY_ENDING, (now_ms,)))):
            return []
        statement = Statement(statements.LEASE_ENDING, (now_ms, leased_until_ms, limit), is_whole=True)
        return await self._trusted(await self._database.write(all_rows(statement)))

    async def lease_overdue(self, checkout_id: str, now_ms: int, *, leased_until_ms: int) -> bool:
        """Leases one open checkout whose time has ended; False where it is no such one, or another process has it."""
        statement = Statement(statements.LEASE_OVERDUE, (checkout_id, now_ms, leased_until_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def forget(self, before_ms: int) -> int:
        """Forgets the sealed data of finished checkouts last changed before a time; gives their number."""
        return await self._database.write(forgotten(Statement(statements.FORGET, (before_ms, FORGOTTEN_MAX))))

    async def forget_order(self, merchant: str, principal: str, order_id: str) -> int:
        """Forgets the customer in a principal's finished checkouts of an order.

        Gives the number of these checkouts.
        """
        return await self._database.write(_forget_order((merchant, principal, order_id), self.rows.key))

    async def of_customer(self, customer: CheckoutsOfCustomer, *, after: str, limit: int) -> _Checkouts:
        """Reads one page of a customer's checkouts, by their ids above ``after``."""
        reference_hash = None if customer.reference is None else self.reference_hash(customer.reference)
        named = (customer.customer_id, customer.merchant, customer.principal, reference_hash)
        return await self._many(Statement(statements.OF_CUSTOMER, (*named, after, min(limit, OF_CUSTOMER_MAX))))

    async def unowned(self, checkout: Checkout, payments: tuple[Payment, ...]) -> tuple[Payment, ...]:
        """Gives the payments that belong to no operation and no other checkout.

        Gives none where a competing charge or checkout of the order may turn out to own one. That is a charge that is
        open or failed, or a checkout that is open or asked for something else.
        """
        return await self._database.read(_unowned(checkout, payments))

    async def has_competing(self, checkout: Checkout) -> bool:
        """Tells whether a charge of the order, or another checkout, may turn out to own a payment of the order."""
        return bool(await self._database.read(all_rows(_competing_with(checkout))))

    async def doubt(self, checkout: Checkout, subscription_id: str, *, at_ms: int) -> bool:
        """Stores the alert that a subscription contradicts what a checkout asked for.

        May be repeated. False where there is one, or a notification of the subscription needs attention already.
        """
        of_subscription = (checkout.merchant, checkout.order_id, subscription_id)
        parameters = (checkout.id, int(subscription_id), at_ms, *of_subscription)
        statement = Statement(ADD_CHECKOUT_ALERT, parameters, is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def doubt_payment(self, checkout: Checkout, payment_id: str, *, at_ms: int) -> bool:
        """Stores the alert that nothing here explains a payment of a checkout's order.

        May be repeated. False where there is one, or a notification of the payment needs attention already.
        """
        of_payment = (checkout.merchant, checkout.order_id, payment_id)
        parameters = (checkout.id, -int(payment_id), at_ms, *of_payment)
        statement = Statement(ADD_PAYMENT_ALERT, parameters, is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def _one(self, statement: Statement) -> Checkout | None:
        found = await self._many(statement)
        return found[0] if found else None

    async def _many(self, statement: Statement) -> _Checkouts:
        return await self._trusted(await self._database.read(all_rows(statement)))

    async def _trusted(self, rows: _Rows) -> _Checkouts:
        return await self.rows.values(CHECKOUTS, rows)


class SealedReference(NamedTuple):
    """A reference that was sealed with a data key of its own."""

    value: bytes
    own: OwnKey


def sealed_reference(data_keys: DataKeys, checkout_id: str, reference: str) -> SealedReference:
    """Seals the reference of a checkout with a new data key, which is to be stored with it."""
    own = data_keys.new(statements.reference_owner(checkout_id))
    return SealedReference(own.key.seal(reference.encode(), statements.reference_context(checkout_id)), own)


def _add(statement: Statement, checkout_id: str, condition: _Condition | None) -> Unit[bool]:
    is_added = bool((yield statement))
    if is_added and condition is not None:
        yield from condition(checkout_id)
    return is_added


def _change(checkout: Checkout, digest: str, key: RowKey, *, has_event: bool, is_paid: bool) -> Unit[None]:
    if is_paid:
        # Two checkouts of an order may be about to claim one payment: the second one finds it owned.
        yield Statement(statements.LOCK_ORDER, (checkout.merchant, checkout.order_id))
        if (yield Statement(statements.PAYMENT_IS_OWNED, (checkout.payment_id, checkout.merchant, checkout.id))):
            raise Outdated(f"the payment of the checkout {checkout.id!r} belongs to another by now")
    changed = yield Statement(statements.CHANGE, statements.change_parameters(checkout, digest))
    if not changed:
        raise Outdated(f"the checkout {checkout.id!r} was changed since it was read")
    if checkout.state is CheckoutState.COMPLETED:
        yield Statement(statements.LEARN, (checkout.merchant, checkout.id, checkout.updated_at_ms))
    if has_event:
        yield from outbox.put(event_of(checkout), key)
    payment = paid_on(checkout)
    # The state may be new, or the first payment of a plan that was completed without one.
    if payment is not None and (has_event if payment.plan is None else is_paid):
        yield from tell_if_paid_again(payment, at_ms=checkout.updated_at_ms, key=key)


def _withdraw(checkout: Checkout, digest: str, key: RowKey) -> Unit[None]:
    yield Statement(statements.LOCK_ONE, (checkout.id,))
    if (yield Statement(statements.FORM_OF, (checkout.id,))):
        raise Outdated(f"a form of the checkout {checkout.id!r} was given to a repeat of its request")
    yield from _change(checkout, digest, key, has_event=False, is_paid=False)
    yield Statement(statements.FREE_KEY, (checkout.id,))


def _forget_order(order: tuple[str, str, str], key: RowKey) -> Unit[int]:
    rows = yield Statement(statements.FINISHED_OF_ORDER, order)
    for row in rows:
        # A forged row stays one: it gets no digest, and its customer is forgotten all the same.
        is_right = key.fits(CHECKOUTS, row)
        digest = key.of(CHECKOUTS, without(CHECKOUTS, row, "reference_hash")) if is_right else ""
        yield Statement(statements.FORGET_CUSTOMER, (row[0], digest))
    ids = [str(row[0]) for row in rows]
    yield from destroyed_on_request([*ids, *map(statements.reference_owner, ids)])
    return len(rows)


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
