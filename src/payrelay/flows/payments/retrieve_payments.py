"""Reads the successful payments of an order."""

from collections.abc import Mapping
from typing import Final

import msgspec

from payrelay.core.access.bounds import has_customer, is_personal
from payrelay.core.access.credential import Bound
from payrelay.core.answers import Answer, Trace
from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.checkouts.checkout import is_within
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import OperationFilter
from payrelay.errors import Code
from payrelay.flows.access.lost_owners import require_owned
from payrelay.flows.access.ownership import (
    answer_as_unknown,
    foreign_among,
    is_foreign_by_its_owners,
    is_foreign_order,
)
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import Gateway

ATTEMPTS_MAX: Final = 1_000
"""Operations on one order whose customers are compared; no order has so many attempts."""


async def retrieve_payments(relay: Relay, request: Request, call: PaymentsOfOrder) -> Answer:
    """Answers with the gateway's records; 404 with an empty list where the order has no payment.

    A foreign order is answered as an unknown one. Payments that are known to be foreign are left out. A credential for
    one customer isn't shown payments that are known to be another customer's either: two customers may have tried to
    pay one order. Raises Refusal (not_found) for an unknown account, and unavailable as ``flows.access.lost_owners``
    does; StoreError.
    """
    if await is_foreign_order(relay, request, call.order_id):
        return await answer_as_unknown(relay, request, call, data_when_missing=b"[]")
    cached = await relay.read(request, call)
    if cached.reading.code is None:
        # A payment that the gateway shows has an owner by now: its operation was stored before it was sent.
        account, raw_data = relay.account(request.account), cached.reading.raw_data or b"[]"
        owners, owned = await relay.owners.of_order_and_payments(account.merchant, call.order_id)
        if await is_foreign_by_its_owners(relay, request, call.order_id, owners):
            return await answer_as_unknown(relay, request, call, data_when_missing=b"[]")
        await require_owned(relay, request, call.order_id, lambda: account.payments_in(raw_data) or ())
        others = await _of_others(relay, request, call.order_id, owned)
        own = _without(account, cached.reading, others)
        cached = msgspec.structs.replace(cached, reading=own)
    return cached.answer(Trace(request_id=request.request_id), data_when_missing=b"[]")


def _without(account: Gateway, reading: Reading, payment_ids: frozenset[str]) -> Reading:
    """Returns a reading without some payments; with none left it is the reading of an order without payments."""
    if not payment_ids:
        return reading
    raw_data = account.without(reading.raw_data or b"[]", payment_ids)
    if raw_data is not None:
        # The gateway's own sentence may say how many there are.
        return msgspec.structs.replace(reading, msg="Found payments", raw_msg=None, raw_data=raw_data)
    return Reading(code=Code.NOT_FOUND, msg="No payments found", evidence=reading.evidence)


async def _of_others(
    relay: Relay, request: Request, order_id: str, owned: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Returns the payments of an order that are foreign to the caller, or another customer's; each has its owners."""
    bound = request.credential.bound
    foreign = await foreign_among(relay, request, owned)
    if bound is None or not is_personal(bound):
        return foreign
    return foreign | await _of_other_customers(relay, request, order_id, bound)


async def _of_other_customers(relay: Relay, request: Request, order_id: str, bound: Bound) -> frozenset[str]:
    """Returns the payments of an order that operations or checkouts of other customers have made."""
    on_order = OperationFilter(account=request.account, order_id=order_id)
    operations = await relay.journal.list(on_order, before=None, limit=ATTEMPTS_MAX)
    of_operations = {
        each.payment_id
        for each in operations
        if each.customer_id is not None and not has_customer(bound, each.customer_id)
    }
    checkouts = await relay.checkouts.of_order(relay.account(request.account).merchant, order_id)
    hash_of = relay.checkouts.reference_hash
    of_checkouts = {each.payment_id for each in checkouts if not is_within(each, bound, hash_of)}
    return frozenset(payment_id for payment_id in of_operations | of_checkouts if payment_id is not None)
