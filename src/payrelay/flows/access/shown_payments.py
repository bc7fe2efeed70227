"""What a caller is shown of payments: none of others, and by name those that the gateway's records lack."""

from collections.abc import Mapping
from typing import Final

import msgspec

from payrelay.core.access.bounds import has_customer, is_personal
from payrelay.core.access.credential import Bound
from payrelay.core.answers import Answer, Trace, lacking, not_shown_yet
from payrelay.core.checkouts.checkout import Checkout, is_within
from payrelay.core.payments.operation import Operation, OperationFilter
from payrelay.core.payments.payment import TakenPayment, look_again_s, missing_ids, missing_sentence
from payrelay.errors import Code
from payrelay.flows.access.lost_owners import is_reserved
from payrelay.flows.access.ownership import foreign_among
from payrelay.flows.relay import Relay, Request
from payrelay.runtime.read_cache import CachedReading

ATTEMPTS_MAX: Final = 1_000
"""Operations on one order whose customers are compared; no order has so many attempts."""


async def taken_beside(
    relay: Relay, request: Request, order_id: str, owned: Mapping[str, frozenset[str]], shown: frozenset[str] | None
) -> tuple[TakenPayment, ...]:
    """Returns the payments of an order that took money; none where the gateway shows all that are known.

    ``owned`` has the known payments, and ``shown`` those that the gateway shows; None where they can't be read. For a
    credential of one customer they are read in any case, because they tell of which customer an installment is. Raises
    StoreError.
    """
    bound = request.credential.bound
    is_needed = shown is not None and not owned.keys() <= shown
    if not is_needed and (bound is None or not is_personal(bound)):
        return ()
    return await relay.money.known_payments.taken_of_order(relay.account(request.account).merchant, order_id)


async def hidden_payments(
    relay: Relay,
    request: Request,
    order_id: str,
    owned: Mapping[str, frozenset[str]],
    taken: tuple[TakenPayment, ...],
) -> frozenset[str]:
    """Returns the keys of an order's payments that are foreign to the caller, or another customer's.

    ``owned`` has the owners of payments by their numbers. Raises StoreError.
    """
    owners = dict(owned)
    for each in taken:
        if each.key not in owned and each.owner is not None:
            owners[each.key] = owners.get(each.key, frozenset()) | {each.owner}
    hidden = await foreign_among(relay, request, owners)
    bound = request.credential.bound
    if bound is not None and is_personal(bound):
        hidden |= await _of_other_customers(relay, request, order_id, bound)
    return hidden | {each.key for each in taken if each.made_by in hidden}


async def _of_other_customers(relay: Relay, request: Request, order_id: str, bound: Bound) -> frozenset[str]:
    """Returns the payments of an order that operations or checkouts of other customers have made, and these makers."""
    on_order = OperationFilter(account=request.account, order_id=order_id)
    made: list[Operation | Checkout] = [*await relay.journal.list(on_order, before=None, limit=ATTEMPTS_MAX)]
    made += await relay.checkouts.of_order(relay.account(request.account).merchant, order_id)
    of_others = [each for each in made if is_of_other_customer(relay, each, bound)]
    payment_ids = {each.payment_id for each in of_others if each.payment_id is not None}
    return frozenset(payment_ids | {each.id for each in of_others})


def is_of_other_customer(relay: Relay, made: Operation | Checkout, bound: Bound) -> bool:
    """Tells whether an operation or a checkout is of another customer than a credential is for."""
    if isinstance(made, Checkout):
        return not is_within(made, bound, relay.checkouts.reference_hash)
    return made.customer_id is not None and not has_customer(bound, made.customer_id)


async def with_missing(
    relay: Relay,
    request: Request,
    cached: CachedReading,
    taken: tuple[TakenPayment, ...],
    *,
    hidden: frozenset[str] = frozenset(),
) -> Answer:
    """Answers a read of payments, and names in a header those that took money and that the records lack.

    Where the records have none at all, the answer is 404 that advises to ask again. ``hidden`` has the keys of payments
    that aren't named. Raises StoreError.
    """
    trace, reading = Trace(request_id=request.request_id), cached.reading
    answer = cached.answer(trace, data_when_missing=b"[]")
    if not taken:
        return answer
    raw_data = b"[]" if reading.code is Code.NOT_FOUND else reading.raw_data or b"[]"
    missing = await missing_from(relay, request, raw_data, taken, hidden=hidden)
    payment_ids = missing_ids(missing)
    is_nothing_shown = relay.account(request.account).payment_ids_in(raw_data) == frozenset()
    if missing and is_nothing_shown:
        retry_after_s = look_again_s(missing, relay.clock.now_ms())
        yet = not_shown_yet(missing_sentence(payment_ids), trace, retry_after_s=retry_after_s)
        answer = msgspec.structs.replace(yet, headers=answer.headers)
    return lacking(answer, payment_ids)


async def missing_from(
    relay: Relay,
    request: Request,
    raw_data: bytes,
    taken: tuple[TakenPayment, ...],
    *,
    hidden: frozenset[str] = frozenset(),
) -> list[TakenPayment]:
    """Returns the payments that a list of records lacks; none where a record can't be read, which may be of any.

    A payment of nobody's is left out where it may be another principal's whose rows are lost. Raises StoreError.
    """
    shown = relay.account(request.account).payment_ids_in(raw_data)
    if shown is None:
        return []
    missing = [each for each in taken if each.key not in hidden | shown]
    if any(each.owner is None for each in missing) and await is_reserved(relay, request):
        return [each for each in missing if each.owner is not None]
    return missing
