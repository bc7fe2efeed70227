"""Reads the successful payments of an order."""

import msgspec

from payrelay.core.answers import Answer, Trace
from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.outcomes import Reading
from payrelay.errors import Code
from payrelay.flows.access.lost_owners import require_owned
from payrelay.flows.access.ownership import (
    answer_as_unknown,
    is_foreign_by_its_owners,
    is_foreign_order,
)
from payrelay.flows.access.shown_payments import hidden_payments, taken_beside, with_missing
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import Gateway


async def retrieve_payments(relay: Relay, request: Request, call: PaymentsOfOrder) -> Answer:
    """Answers with the gateway's records; 404 with an empty list where the order has no payment.

    A foreign order is answered as an unknown one. Payments that are known to be foreign are left out. A credential for
    one customer isn't shown payments that are known to be another customer's either: two customers may have tried to
    pay one order. The answer names the payments that took money and that the records lack, as ``with_missing`` does.
    Raises Refusal (not_found) for an unknown account, and unavailable as ``flows.access.lost_owners`` does; StoreError.
    """
    if await is_foreign_order(relay, request, call.order_id):
        return await answer_as_unknown(relay, request, call, data_when_missing=b"[]")
    cached = await relay.read(request, call)
    if cached.reading.code is Code.NOT_FOUND:
        taken = await relay.money.known_payments.taken_of_order(relay.account(request.account).merchant, call.order_id)
        hidden = await hidden_payments(relay, request, call.order_id, {}, taken) if taken else frozenset()
        return await with_missing(relay, request, cached, taken, hidden=hidden)
    if cached.reading.code is not None:
        return cached.answer(Trace(request_id=request.request_id))
    # A payment that the gateway shows has an owner by now: its operation was stored before it was sent.
    account, raw_data = relay.account(request.account), cached.reading.raw_data or b"[]"
    owners, owned = await relay.access.owners.of_order_and_payments(account.merchant, call.order_id)
    if await is_foreign_by_its_owners(relay, request, call.order_id, owners):
        return await answer_as_unknown(relay, request, call, data_when_missing=b"[]")
    await require_owned(relay, request, call.order_id, lambda: account.payments_in(raw_data) or ())
    taken = await taken_beside(relay, request, call.order_id, owned, account.payment_ids_in(raw_data))
    hidden = await hidden_payments(relay, request, call.order_id, owned, taken)
    own = msgspec.structs.replace(cached, reading=_without(account, cached.reading, hidden))
    return await with_missing(relay, request, own, taken, hidden=hidden)


def _without(account: Gateway, reading: Reading, payment_ids: frozenset[str]) -> Reading:
    """Returns a reading without some payments; with none left it is the reading of an order without payments."""
    if not payment_ids:
        return reading
    raw_data = account.without(reading.raw_data or b"[]", payment_ids)
    if raw_data is not None:
        # The gateway's own sentence may say how many there are.
        return msgspec.structs.replace(reading, msg="Found payments", raw_msg=None, raw_data=raw_data)
    return Reading(code=Code.NOT_FOUND, msg="No payments found", evidence=reading.evidence)
