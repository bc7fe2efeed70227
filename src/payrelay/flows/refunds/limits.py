"""Keeps a refund within what is left of its payment, as far as that is known here. Waits for no gateway.

Rules:

1. The figures are looked at twice: before anything is stored, and in the transaction that stores the intent. By then
   the guard of the payment keeps every other refund of it out, so that of two refunds of the rest one is refused.
2. Who refunds with a key is refused by the figures. A person may insist, against the figures that they were shown and
   against no others.
3. Where a later look at the gateway's record decides what is left, a refund with a key is refused until then, and has
   such a look made in the background.
4. While a recovery from lost commits lasts, a refund is refused only once the recovery has cleared it: what is given
   back may be the work of an earlier try of the same request.
"""

from typing import Final

import msgspec

from payrelay.core.calls import PaymentsOfOrder, Refund
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.figures import Figure
from payrelay.core.orders.refunding import (
    RefundPlan,
    plan_refund,
    standing_of,
)
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import State
from payrelay.errors import Code, Refusal
from payrelay.flows.operations.intent import Intent
from payrelay.flows.refunds.refundable_money import RefundableMoney, all_of, read_money, refusal_of
from payrelay.flows.relay import Relay, Request
from payrelay.store.engine.database import Unit

OTHER_REFUND_SENTENCE: Final = "another refund of this payment came between; this request was not sent"
OTHER_FIGURES_SENTENCE: Final = "the payment's money is no more as it was shown to you; nothing was sent"
AGAIN_AFTER_S: Final = 1


class RefundByPerson(msgspec.Struct, frozen=True, kw_only=True):
    """How a person refunds a payment.

    Attributes:
        seen: the payment's money as it was shown, by ``standing_of``.
        insists: the refusal against which the person insists, with what the gateway's record showed; None for no
            insisting.
    """

    seen: str
    insists: str | None = None


async def within_limits(
    relay: Relay, request: Request, intent: Intent, call: Refund, *, person: RefundByPerson | None = None
) -> Intent:
    """Returns the intent of a refund with what is sent, its currency, and what must hold when it is stored.

    Raises Refusal: conflict where more is asked for than is left, or where the person saw other figures; in_progress
    where a later look at the gateway's record decides what is left; StoreError.
    """
    merchant, payment_id = relay.account(request.account).merchant, intent.payment_id or ""
    insists = None if person is None else person.insists

    def planned(money: RefundableMoney) -> RefundPlan:
        if person is not None and person.seen != standing_of(money.payment):
            raise Refusal(Code.CONFLICT, f"{OTHER_FIGURES_SENTENCE}. Now {all_of(money)}")
        plan = plan_refund(money.payment, call.amount_minor)
        if plan.obstacle is not None and insists is None and not money.is_recovering:
            raise refusal_of(money, plan, request)
        return plan

    money = await read_money(relay, merchant, payment_id)
    if money.is_in_question and insists is None and intent.order_id is not None:
        relay.background.start(relay.read(request, PaymentsOfOrder(order_id=intent.order_id)))
    plan = planned(money)

    def is_left(operation_id: str) -> Unit[None]:
        facts = yield from relay.money.orders.facts_within(merchant, payment_id)
        if any(each.id == operation_id and each.state is not State.SENDING for each in facts.operations):
            return  # held for a person, or carried out before: nothing is sent
        facts = facts.without(operation_id)
        money_then = RefundableMoney(facts, balance_of(facts, now_ms=relay.clock.now_ms()))
        if planned(money_then).amount_minor != plan.amount_minor:
            raise Refusal(Code.IN_PROGRESS, OTHER_REFUND_SENTENCE, retry_after_s=AGAIN_AFTER_S)

    intent = with_amount(intent, call, plan)
    currencies = {each.currency for each in (() if money.payment is None else money.payment.of(Figure.PAID))} - {None}
    if currencies:
        # Of sources that differ another one may hold tomorrow. A refund without a currency is in that of its payment.
        intent = msgspec.structs.replace(intent, currency=currencies.pop() if len(currencies) == 1 else None)
    if insists is not None:
        # A copy that lags behind shows as received what was given back elsewhere. That proves no refund to be this one.
        seen = Evidence() if money.is_in_question else intent.evidence
        evidence = msgspec.structs.replace(seen, insisted=insists)
        intent = msgspec.structs.replace(intent, evidence=evidence)
    return msgspec.structs.replace(intent, condition=is_left)


async def held_within_limits(relay: Relay, request: Request, intent: Intent, call: Refund, held_id: str) -> Intent:
    """Returns the intent of a held refund that a person decided to send, with what is sent.

    Raises Refusal as ``within_limits`` does; StoreError.
    """
    merchant = relay.account(request.account).merchant
    money = await read_money(relay, merchant, intent.payment_id or "", but_for=held_id)
    plan = plan_refund(money.payment, call.amount_minor)
    if plan.obstacle is not None:
        raise refusal_of(money, plan, request)
    return with_amount(intent, call, plan)


def with_amount(intent: Intent, call: Refund, plan: RefundPlan) -> Intent:
    """Returns the intent with the amount that is sent, where the request names none and a part went back before."""
    if plan.amount_minor == call.amount_minor:
        return intent
    # Nothing at the gateway shows a part: what was seen of the payment before proves nothing about it later.
    sent = msgspec.structs.replace(call, amount_minor=plan.amount_minor)
    return msgspec.structs.replace(intent, amount_minor=plan.amount_minor, sent=sent, evidence=Evidence())
