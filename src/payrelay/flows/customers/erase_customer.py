"""Erases what is kept of a person, on request; what the books must keep stays, without the person.

What goes: the caller's names, the name on the card, the mask and expiry, the token; and what other nouns hold of the
same person, by a function for each of them in ``FORGETTERS``: the gateway's answers to reads that are kept for when it
gives none, the sealed bodies of notifications with the token that was accepted, and what a checkout was filled in with.

What stays: the row with its id and times, so that operations, events and audit still refer to something; operations
with their amounts, currencies and ids; and their sealed calls and answers, which are the proof of what was asked and
answered, and name a person only where the merchant put one into ``items``, ``custom_1`` or ``custom_2``. Events that
were told are forgotten in their own time.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.customers.customer import Customer, CustomerEvent, erased, removed
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.operation import OperationFilter
from payrelay.flows.checkouts.finish_checkout import expire
from payrelay.flows.customers.change_customer import changed_by
from payrelay.flows.customers.show_customer import answer_of, visible_customer
from payrelay.flows.relay import Relay, Request
from payrelay.store.checkouts import CheckoutsOfCustomer

ORDERS_AT_ONCE: Final = 100
"""Orders whose traces are looked for together; a customer may have any number of them."""


class ErasedPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Whose traces are to go.

    Attributes:
        customer: who it is.
        order_ids: of some orders of that customer, ORDERS_AT_ONCE at most; there may be a next lot.
    """

    customer: Customer
    order_ids: tuple[str, ...]


Forgetter = Callable[[Relay, ErasedPerson], Awaitable[None]]
"""Forgets what one noun holds of a person; may be repeated. Raises StoreError."""


async def _forget_cached_readings(relay: Relay, person: ErasedPerson) -> None:
    """The gateway's answers have names, addresses and telephone numbers in them."""
    await relay.read_cache.forget_orders(person.customer.merchant, person.order_ids)


async def _forget_notifications(relay: Relay, person: ErasedPerson) -> None:
    """The bodies of notifications have the name on the card, its mask, and the token."""
    for order_id in person.order_ids:
        await relay.inbox.forget_bodies_of_order(person.customer.merchant, order_id)
        await relay.inbox.empty_token(person.customer.merchant, order_id, NotificationKind.PREAPPROVAL)


async def _forget_checkouts(relay: Relay, person: ErasedPerson) -> None:
    """A checkout was filled in with name, e-mail, telephone and address; one that is open ends with the person."""
    merchant, principal = person.customer.merchant, person.customer.principal
    for order_id in person.order_ids:
        for checkout in await relay.checkouts.of_order(merchant, order_id):
            if checkout.is_open and checkout.principal == principal:
                await expire(relay, checkout)
        await relay.checkouts.forget_order(merchant, principal, order_id)


async def _end_client_tokens(relay: Relay, person: ErasedPerson) -> None:
    """Who isn't there any more has no phone that may do something."""
    customer = person.customer
    await relay.client_tokens.revoke_of_customer(customer.id, customer.principal, relay.clock.now_ms())


FORGETTERS: Final[tuple[Forgetter, ...]] = (
    _forget_cached_readings,
    _forget_notifications,
    _forget_checkouts,
    _end_client_tokens,
)
"""One for each noun that holds something of a person; whoever adds such a noun adds its own here."""


async def erase_customer(relay: Relay, request: Request, customer_id: str) -> Answer:
    """Answers with what is left of the customer; may be repeated, and is to be where no answer came.

    Raises Refusal (not_found) for one that the caller may not see.
    """
    return answer_of(await erase(relay, await visible_customer(relay, request, customer_id)))


async def erase(relay: Relay, customer: Customer) -> Customer:
    """Erases a customer, whoever's it is, and gives what is left of it.

    The traces go first and the row last: one that says it is erased has none left, but for what came in while it was
    being erased, which a repeat takes too. Raises StoreError; it is to be repeated then.
    """
    async for order_ids in _orders(relay, customer):
        for forget in FORGETTERS:
            await forget(relay, ErasedPerson(customer=customer, order_ids=order_ids))
    changed = await changed_by(relay, customer, CustomerEvent.ERASED, partial(_erased, relay))
    await _end_client_tokens(relay, ErasedPerson(customer=changed, order_ids=()))  # one may have been issued meanwhile
    return changed


async def remove(relay: Relay, customer: Customer) -> Customer:
    """Removes a customer, whoever's it is: no charge is begun with it from then on. Gives what is left of it.

    Its token is destroyed, its phones' tokens end, and then the copies of its token go that the inbox holds. May be
    repeated, and is to be where this raises StoreError.
    """
    changed = await changed_by(relay, customer, CustomerEvent.REMOVED, partial(_removed, relay))
    await _end_client_tokens(relay, ErasedPerson(customer=changed, order_ids=()))
    async for order_ids in _orders_of_checkouts(relay, changed, None):
        await _forget_notifications(relay, ErasedPerson(customer=changed, order_ids=order_ids))
    return changed


async def _orders(relay: Relay, customer: Customer) -> AsyncIterator[tuple[str, ...]]:
    """Gives the orders of a person in lots: of approvals, of all other checkouts, and those that were charged."""
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
    """Gives the orders of all approvals, of what the customer's phones opened, and of what has the reference."""
    yield () if customer.order_id is None else (customer.order_id,)
    sought = CheckoutsOfCustomer(
        customer_id=customer.id, merchant=customer.merchant, principal=customer.principal, reference=reference
    )
    after = ""
    while checkouts := await relay.checkouts.of_customer(sought, after=after, limit=ORDERS_AT_ONCE):
        yield tuple(sorted({each.order_id for each in checkouts}))
        after = checkouts[-1].id


def _removed(relay: Relay, customer: Customer) -> Customer:
    return removed(customer, at_ms=relay.clock.now_ms())


def _erased(relay: Relay, customer: Customer) -> Customer:
    return erased(customer, at_ms=relay.clock.now_ms())
