"""Reads subscriptions and their payments from the gateway, or from the read cache."""

from typing import TypeAlias

import msgspec

from payrelay.core.answers import Answer, Trace, lacking, with_member
from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfSubscription
from payrelay.core.outcomes import Reading
from payrelay.core.payments.payment import TakenPayment, missing_ids
from payrelay.errors import Code
from payrelay.flows.access.lost_owners import is_reserved, lost_since_ms, require_unreserved
from payrelay.flows.access.ownership import (
    answer_as_unknown,
    foreign_among,
    is_foreign_order,
    is_foreign_plan,
    plan_owners,
)
from payrelay.flows.access.shown_payments import missing_from, with_missing
from payrelay.flows.relay import Relay, Request

_OfOne: TypeAlias = OneSubscription | PaymentsOfSubscription


async def list_subscriptions(relay: Relay, request: Request, call: AllSubscriptions) -> Answer:
    """Answers with the gateway's records of the merchant's subscriptions, in its order, without foreign ones."""
    cached = await relay.read(request, call)
    if cached.reading.code is None:
        cached = msgspec.structs.replace(cached, reading=await _without_foreign(relay, request, cached.reading))
    return cached.answer(Trace(request_id=request.request_id), data_when_missing=b"[]")


async def list_subscription_payments(relay: Relay, request: Request, call: PaymentsOfSubscription) -> Answer:
    """Answers with the gateway's records of a subscription's payments; 404 with an empty list where there are none.

    A foreign subscription is answered as an unknown one. The answer names the payments that took money and that the
    records lack, as ``with_missing`` does.
    """
    if await is_foreign_plan(relay, request, call.subscription_id):
        return await answer_as_unknown(relay, request, call, data_when_missing=b"[]")
    cached = await relay.read(request, call)
    if await _shows_foreign(relay, request, call, cached.reading):
        return await answer_as_unknown(relay, request, call, data_when_missing=b"[]")
    if cached.reading.code not in {None, Code.NOT_FOUND}:
        return cached.answer(Trace(request_id=request.request_id))
    return await with_missing(relay, request, cached, await _taken(relay, request, call.subscription_id))


async def retrieve_subscription(
    relay: Relay, request: Request, call: OneSubscription, *, with_payments: bool
) -> Answer:
    """Answers with one subscription; ``with_payments`` adds a member ``payments``, empty where there are none.

    That takes two calls to the gateway. Where either fails, its failure is the answer. A foreign subscription is
    answered as an unknown one. Payments that took money and that ``payments`` lacks are named in a header.
    """
    if await is_foreign_plan(relay, request, call.subscription_id):
        return await answer_as_unknown(relay, request, call)
    trace = Trace(request_id=request.request_id)
    subscription = await relay.read(request, call)
    if await _shows_foreign(relay, request, call, subscription.reading):
        return await answer_as_unknown(relay, request, call)
    if not with_payments or subscription.reading.code is not None:
        return subscription.answer(trace)
    payments = await relay.read(request, PaymentsOfSubscription(subscription_id=call.subscription_id))
    if payments.reading.code not in {None, Code.NOT_FOUND}:
        return payments.answer(trace)
    raw_payments = (payments.reading.raw_data if payments.reading.code is None else None) or b"[]"
    raw_data = with_member(subscription.reading.raw_data or b"{}", "payments", raw_payments)
    both = msgspec.structs.replace(subscription.reading, raw_data=raw_data)
    taken = await _taken(relay, request, call.subscription_id)
    missing = await missing_from(relay, request, raw_payments, taken)
    return lacking(subscription.beside(payments, both).answer(trace), missing_ids(missing))


async def _taken(relay: Relay, request: Request, subscription_id: int) -> tuple[TakenPayment, ...]:
    return await relay.money.known_payments.taken_of_plan(relay.account(request.account).merchant, str(subscription_id))


async def _shows_foreign(relay: Relay, request: Request, call: _OfOne, reading: Reading) -> bool:
    """Tells whether what the gateway shows is foreign after all: by its order, or because it became known meanwhile.

    Raises Refusal (unavailable) where its owner may be lost, as ``flows.access.lost_owners`` says.
    """
    if reading.code is not None:
        return False
    if await is_foreign_plan(relay, request, call.subscription_id):
        return True
    account, raw_data = relay.account(request.account), reading.raw_data or b""
    if isinstance(call, OneSubscription):
        orders = {fact.order_id for fact in account.subscriptions_in(raw_data, seen_at_ms=relay.clock.now_ms())}
    else:
        orders = {payment.order_id for payment in account.payments_in(raw_data) or ()}
    if await plan_owners(relay, request, str(call.subscription_id)):
        return False  # it has an owner that isn't foreign, whoever owns the order
    named = [order_id for order_id in orders if order_id is not None]
    if any([await is_foreign_order(relay, request, order_id) for order_id in named]):
        return True
    since_ms = await lost_since_ms(relay)
    if not any(
        [(await relay.access.owners.of_order(account.merchant, each, before_ms=since_ms)).all for each in named]
    ):
        await require_unreserved(relay, request, "subscription")
    return False


async def _without_foreign(relay: Relay, request: Request, reading: Reading) -> Reading:
    """Returns a reading of all subscriptions without the foreign ones."""
    account, raw_data = relay.account(request.account), reading.raw_data or b"[]"
    orders = {
        fact.subscription_id: fact.order_id
        for fact in account.subscriptions_in(raw_data, seen_at_ms=relay.clock.now_ms())
    }
    owners = await relay.access.owners.of_plans(account.merchant, orders, before_ms=await lost_since_ms(relay))
    foreign = await foreign_among(relay, request, owners)
    ownerless = frozenset(each for each in orders if not owners.get(each))
    if ownerless and await is_reserved(relay, request):
        foreign |= ownerless
    if not foreign:
        return reading
    # The gateway's own sentence may say how many there are.
    return msgspec.structs.replace(
        reading, msg="Found subscriptions", raw_msg=None, raw_data=account.without_plans(raw_data, foreign)
    )
