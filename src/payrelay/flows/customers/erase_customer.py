"""Removes a stored customer, or erases a customer's personal data on request; the journal keeps the payments.

Erased are the caller's names, the name on the card, its mask and expiry, and the token. ``FORGETTERS`` has a function
for each other noun with personal data: cached readings, sealed bodies of notifications with the accepted token, the
form data of checkouts, and client tokens.

All that is sealed of it has data keys, which are destroyed with it, and the files of the database are cleared of those
keys (``store.data_keys.keys``). So what was erased can't be opened in copies that remain of it either.

Kept are the row with its id and times, so that operations, events and the audit still refer to something; operations
with their amounts, currencies and ids; and their sealed calls and answers. Those are the proof of what was requested
and answered, and name a person only where the merchant put one into ``items``, ``custom_1`` or ``custom_2``. Published
events are deleted when their own retention ends.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from payrelay.core.access.revocations import Revocation, RevocationKind
from payrelay.core.answers import Answer
from payrelay.core.customers.customer import Customer, CustomerEvent, erased, removed
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.operation import OperationFilter
from payrelay.flows.checkouts.finish_checkout import expire
from payrelay.flows.customers.change_customer import changed_by
from payrelay.flows.customers.show_customer import answer_of, answer_of_erasure, erasable_customer, visible_customer
from payrelay.flows.relay import Relay, Request
from payrelay.store.checkouts import CheckoutsOfCustomer

ORDERS_AT_ONCE: Final = 100
"""Orders of one batch; a customer may have any number of orders."""


class CustomerOrders(msgspec.Struct, frozen=True, kw_only=True):
    """A customer whose personal data is erased, and one batch of the customer's orders.

    Attributes:
        customer: in any state.
        order_ids: at most ORDERS_AT_ONCE; there may be more batches.
    """

    customer: Customer
    order_ids: tuple[str, ...]


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an erasure.

    Attributes:
        customer: what is left of it.
        files_cleared: whether the database's files are cleared of every data key that was destroyed until now. Where
            something is in the way, the worker goes on trying.
    """

    customer: Customer
    files_cleared: bool


Forgetter = Callable[[Relay, CustomerOrders], Awaitable[None]]
"""Erases the personal data that one noun has of a customer; may be repeated. Raises StoreError."""


async def _forget_cached_readings(relay: Relay, batch: CustomerOrders) -> None:
    """Deletes cached readings: the gateway's records have names, addresses and telephone numbers."""
    merchant = batch.customer.merchant
    checkouts = [
        checkout for order_id in batch.order_ids for checkout in await relay.checkouts.of_order(merchant, order_id)
    ]
    subscription_ids = {int(each.subscription_id) for each in checkouts if each.subscription_id is not None}
    await relay.read_cache.forget_orders(merchant, batch.order_ids, sorted(subscription_ids))


async def _forget_notifications(relay: Relay, batch: CustomerOrders) -> None:
    """Deletes the bodies of notifications, with card holder, card mask and token, and the accepted tokens.

    Bodies of another principal's notifications stay: it may have an order of an equal id, with a customer of its own.
    """
    for order_id in batch.order_ids:
        await relay.inbox.forget_bodies_of_order(batch.customer.merchant, order_id, batch.customer.principal)
        await relay.inbox.destroy_token(batch.customer.merchant, order_id, NotificationKind.PREAPPROVAL)


async def _forget_checkouts(relay: Relay, batch: CustomerOrders) -> None:
    """Deletes the name, e-mail, telephone and address of checkouts; expires the customer's open ones."""
    merchant, principal = batch.customer.merchant, batch.customer.principal
    for order_id in batch.order_ids:
        for checkout in await relay.checkouts.of_order(merchant, order_id):
            if checkout.is_open and checkout.principal == principal:
                await expire(relay, checkout)
        await relay.checkouts.forget_order(merchant, principal, order_id)


async def _revoke_client_tokens(relay: Relay, batch: CustomerOrders) -> None:
    """Revokes the customer's client tokens."""
    customer = batch.customer
    await relay.access.client_tokens.revoke_of_customer(customer.id, customer.principal, relay.clock.now_ms())


FORGETTERS: Final[tuple[Forgetter, ...]] = (
    _forget_cached_readings,
    _forget_notifications,
    _forget_checkouts,
    _revoke_client_tokens,
)
"""One for each noun with personal data; whoever adds such a noun adds its function here."""


async def remove_customer(relay: Relay, request: Request, customer_id: str) -> Answer:
    """Answers with what is left of a removed customer; may be repeated.

    A charge that began before the removal goes on. Raises Refusal (not_found) for a customer that the caller may not
    see.
    """
    return answer_of(await remove(relay, await visible_customer(relay, request, customer_id)))


async def erase_customer(relay: Relay, request: Request, customer_id: str) -> Answer:
    """Answers with what is left of an erased customer; may be repeated, and must be where no answer came.

    A customer whose names can't be opened any more is erased too; checkouts that had its reference alone are not found
    then. Raises Refusal (not_found) for a customer that the caller may not see.
    """
    erasure = await erase(relay, await erasable_customer(relay, request, customer_id))
    return answer_of_erasure(erasure.customer, files_cleared=erasure.files_cleared)


async def erase(relay: Relay, customer: Customer) -> Erasure:
    """Erases a customer of any principal, destroys its keys, and clears the files of the database of them.

    The row comes last, so that an erased customer has no personal data left, except what came in during the erasure.
    A repeat deletes that too. Raises StoreError; the erasure must then be repeated.
    """
    async for order_ids in _orders(relay, customer):
        for forget in FORGETTERS:
            await forget(relay, CustomerOrders(customer=customer, order_ids=order_ids))
    changed = await changed_by(relay, customer, CustomerEvent.ERASED, partial(_erased, relay))
    await _list(relay, RevocationKind.CUSTOMER_ERASED, changed)
    # A client token may have been issued meanwhile.
    await _revoke_client_tokens(relay, CustomerOrders(customer=changed, order_ids=()))
    return Erasure(customer=changed, files_cleared=await relay.customers.clear_files())


async def clear_residues(relay: Relay) -> None:
    """Clears the database's files of keys that were destroyed by removals, and by erasures that could not do so."""
    await relay.customers.clear_files()


async def remove(relay: Relay, customer: Customer) -> Customer:
    """Removes a customer of any principal, and returns what is left of it. No charge begins with it from then on.

    Destroys the gateway's token, revokes the client tokens, and then deletes the inbox's copies of the gateway's token.
    The worker clears the database's files of the keys under which these were sealed. May be repeated, and must be where
    this raises StoreError.
    """
    changed = await changed_by(relay, customer, CustomerEvent.REMOVED, partial(_removed, relay))
    await _list(relay, RevocationKind.CUSTOMER_REMOVED, changed)
    await _revoke_client_tokens(relay, CustomerOrders(customer=changed, order_ids=()))
    async for order_ids in _orders_of_checkouts(relay, changed, None):
        await _forget_notifications(relay, CustomerOrders(customer=changed, order_ids=order_ids))
    return changed


async def _list(relay: Relay, kind: RevocationKind, customer: Customer) -> None:
    await relay.database.revocations.add(Revocation(kind=kind, at_ms=relay.clock.now_ms(), id=customer.id))


async def _orders(relay: Relay, customer: Customer) -> AsyncIterator[tuple[str, ...]]:
    """Gives the orders of a customer in batches: of approvals, of all other checkouts, and of charges."""
    async for order_ids in _orders_of_checkouts(relay, customer, customer.reference):
        yield order_ids
    before = None
    while operations := await relay.journal.list(
        OperationFilter(customer_id=customer.id), before=before, limit=ORDERS_AT_ONCE
    ):
        yield tuple(sorted({each.order_id for each in operations if each.order_id is not None}))
        before = operations[-1].id


async def _orders_of_checkouts(
    relay: Relay, customer: Customer, reference: str | None
) -> AsyncIterator[tuple[str, ...]]:
    """Gives the orders of all approvals, and of checkouts that the customer's apps opened or with the reference."""
    yield () if customer.order_id is None else (customer.order_id,)
    owned = CheckoutsOfCustomer(
        customer_id=customer.id, merchant=customer.merchant, principal=customer.principal, reference=reference
    )
    after = ""
    while checkouts := await relay.checkouts.of_customer(owned, after=after, limit=ORDERS_AT_ONCE):
        yield tuple(sorted({each.order_id for each in checkouts}))
        after = checkouts[-1].id


def _removed(relay: Relay, customer: Customer) -> Customer:
    return removed(customer, at_ms=relay.clock.now_ms())


def _erased(relay: Relay, customer: Customer) -> Customer:
    return erased(customer, at_ms=relay.clock.now_ms())
