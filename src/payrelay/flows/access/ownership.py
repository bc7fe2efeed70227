"""Asks for the owner of what a request names, and answers for a foreign thing as for one that doesn't exist.

Rules:

1. A repeat is answered before its owner is asked for.
2. Nothing is sent to change a foreign thing.
3. A foreign thing is read at the gateway under a number that nobody has. So the caller gets the very answer that it
   would get for an unknown one: in the gateway's words, after a call, from the same budget, and never from a cache.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NoReturn

from payrelay.core.access.ownership import OrderOwners, acts_for_any, may_act
from payrelay.core.answers import Answer, Trace
from payrelay.core.calls import OneSubscription, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.outcomes import Reading
from payrelay.errors import Code, Refusal
from payrelay.flows.access.lost_owners import lost_since_ms, require_certain_owner, require_unreserved
from payrelay.flows.relay import OneThing, Relay, Request
from payrelay.runtime.read_cache import CachedReading

TAKEN_SENTENCE: Final = "this order id is taken; use another one"
_NUMBERS_FROM: Final = 10**18
"""Subscription numbers that no gateway has given: they have 19 digits, and the gateway's have 12."""


async def is_foreign(relay: Relay, request: Request, owners: frozenset[str]) -> bool:
    """Tells whether a thing with these owners is foreign to the caller. Raises StoreError."""
    if may_act(request.credential, owners):
        return False
    acts_for = await relay.access.principals.acts_for(request.principal)
    return not may_act(request.credential, owners, acts_for)


async def foreign_among(relay: Relay, request: Request, owned: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Returns those of some things that are foreign to the caller; each thing has its owners. Raises StoreError."""
    suspected = {id_: owners for id_, owners in owned.items() if not may_act(request.credential, owners)}
    if not suspected:
        return frozenset()
    acts_for = await relay.access.principals.acts_for(request.principal)
    return frozenset(id_ for id_, owners in suspected.items() if not may_act(request.credential, owners, acts_for))


async def visible_principals(relay: Relay, request: Request) -> frozenset[str] | None:
    """Returns the principals whose things the caller may see; None for a caller who may see everything.

    Raises StoreError.
    """
    if acts_for_any(request.credential):
        return None
    return await relay.access.principals.acts_for(request.principal) | {request.principal}


async def require_own(relay: Relay, request: Request, subject: str, *, but_for: str = "") -> OrderOwners:
    """Raises Refusal where the subject of an effect is foreign: conflict for an order, not_found for anything else.

    Returns the owners of an order, with what else it has; none for any other subject. An order that another principal
    is charging at this moment is left to its guard, which tells when to try again.
    ``subject`` is that of an operation. ``but_for`` is an operation of the caller that has the order's guard, and
    tells nothing more. Also raises Refusal (unavailable) where an order's owner isn't certain, or a thing without a
    known owner may be another's, as in ``flows.access.lost_owners``; StoreError.
    """
    noun, _, id_ = subject.partition("/")
    merchant, owners = request.gateway.merchant, relay.access.owners
    if noun == "order":
        of_order = await owners.of_order(merchant, id_, but_for=but_for)
        if await is_foreign(relay, request, of_order.settled):
            await refuse_taken(relay, merchant, id_)
        return of_order
    since_ms = await lost_since_ms(relay)
    match noun:
        case "payment":
            made_by = await owners.of_payment(merchant, id_, before_ms=since_ms)
        case "authorization":
            made_by = await owners.of_authorization(merchant, id_)
        case _:
            made_by = await owners.of_plan(merchant, id_, before_ms=since_ms)
    if not made_by:
        await require_unreserved(relay, request, noun)
    if await is_foreign(relay, request, made_by):
        raise Refusal(Code.NOT_FOUND, f"there is no such {noun}")
    return OrderOwners()


async def require_free_order(relay: Relay, request: Request, order_id: str) -> OrderOwners:
    """Raises Refusal (conflict) where a checkout can't be opened for an order because the order is foreign.

    Returns its owners. Where there are none, another principal may take it at the same moment. Also raises Refusal as
    ``require_own`` does; StoreError.
    """
    merchant = request.gateway.merchant
    owners = await relay.access.owners.of_order(merchant, order_id)
    if await is_foreign(relay, request, owners.all):
        await refuse_taken(relay, merchant, order_id)
    return owners


async def refuse_taken(relay: Relay, merchant: str, order_id: str) -> NoReturn:
    """Raises Refusal (conflict) for an order that is foreign to the caller, or a checkout of which is.

    It is unavailable where the order may be the caller's after all, as in ``flows.access.lost_owners``. Raises
    StoreError.
    """
    await require_certain_owner(relay, merchant, order_id)
    raise Refusal(Code.CONFLICT, TAKEN_SENTENCE)


async def contenders_of(relay: Relay, checkout: Checkout, others: Iterable[Checkout]) -> list[Checkout]:
    """Returns those of an order's other checkouts that are foreign to the principal of this one.

    What may be of such a one too is not given to this one: the gateway doesn't show on which page a customer paid.
    Raises StoreError.
    """
    strangers = [each for each in others if each.principal != checkout.principal]
    if not strangers:
        return []
    acts_for = await relay.access.principals.acts_for(checkout.principal)
    return [each for each in strangers if each.principal not in acts_for]


async def is_foreign_order(relay: Relay, request: Request, order_id: str) -> bool:
    """Tells whether an order is foreign to the caller. Raises Refusal as ``require_own`` does; StoreError."""
    merchant = request.gateway.merchant
    return await is_foreign_by_its_owners(
        relay, request, order_id, await relay.access.owners.of_order(merchant, order_id)
    )


async def is_foreign_by_its_owners(relay: Relay, request: Request, order_id: str, owners: OrderOwners) -> bool:
    """Tells whether an order with these owners is foreign to the caller. Raises as ``is_foreign_order``."""
    if not await is_foreign(relay, request, owners.all):
        return False
    await require_certain_owner(relay, request.gateway.merchant, order_id)
    return True


async def plan_owners(relay: Relay, request: Request, subscription_id: str) -> frozenset[str]:
    """Returns the owners of a subscription, as far as commits that are lost leave them certain. Raises StoreError."""
    merchant = request.gateway.merchant
    return await relay.access.owners.of_plan(merchant, subscription_id, before_ms=await lost_since_ms(relay))


async def is_foreign_plan(relay: Relay, request: Request, subscription_id: int) -> bool:
    """Tells whether a subscription is foreign to the caller. Raises StoreError."""
    return await is_foreign(relay, request, await plan_owners(relay, request, str(subscription_id)))


async def answer_as_unknown(
    relay: Relay, request: Request, call: OneThing, *, data_when_missing: bytes = b"null"
) -> Answer:
    """Answers a read of a foreign thing, after a call to the gateway about a thing that nobody has.

    Reads of the same thing at the same time share the call, as they do for an unknown one.
    """
    with _asked_instead(relay, request.gateway.merchant, call) as asked:
        cached = await relay.read(request, asked)
    if cached.reading.code is None:  # a gateway that has a record for every number
        missing = Reading(code=Code.NOT_FOUND, msg="nothing was found", evidence=cached.reading.evidence)
        cached = CachedReading(reading=missing)
    return cached.answer(Trace(request_id=request.request_id), data_when_missing=data_when_missing)


@contextmanager
def _asked_instead(relay: Relay, merchant: str, call: OneThing) -> Iterator[OneThing]:
    """Gives a call about a thing that nobody has: the same one to all that read a foreign thing at the same time."""
    key = merchant, call
    asked, readers = relay.under_way.foreign_reads.get(key) or (_of_nothing(relay, call), 0)
    relay.under_way.foreign_reads[key] = asked, readers + 1
    try:
        yield asked
    finally:
        asked, readers = relay.under_way.foreign_reads.pop(key)
        if readers > 1:
            relay.under_way.foreign_reads[key] = asked, readers - 1


def _of_nothing(relay: Relay, call: OneThing) -> OneThing:
    id_ = relay.new_id("none", relay.clock.now_ms())
    number = _NUMBERS_FROM + int.from_bytes(id_.encode()) % _NUMBERS_FROM
    match call:
        case PaymentsOfOrder():
            return PaymentsOfOrder(order_id=id_)
        case OneSubscription():
            return OneSubscription(subscription_id=number)
        case PaymentsOfSubscription():
            return PaymentsOfSubscription(subscription_id=number)
