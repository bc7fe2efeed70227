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

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from payrelay.core.access.bounds import has_operation
from payrelay.core.calls import PaymentsOfOrder, Refund
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import DoubtKind, Figure, OrderBalance, PaymentBalance
from payrelay.core.orders.refunding import (
    Obstacle,
    RefundPlan,
    figures_sentence,
    payment_in,
    plan_refund,
    refusal_sentence,
    standing_of,
)
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Operation, State
from payrelay.errors import Code, Refusal
from payrelay.flows.operations.intent import Intent
from payrelay.flows.order_balance import balance_now
from payrelay.flows.relay import Relay, Request
from payrelay.store.engine.database import Unit

OTHER_REFUND_SENTENCE: Final = "another refund of this payment came between; this request was not sent"
OTHER_FIGURES_SENTENCE: Final = "the payment's money is no more as it was shown to you; nothing was sent"
AGAIN_AFTER_S: Final = 1
AFTER_A_LOOK_S: Final = 600
"""Retry-After where a later look decides: the first ones are within minutes, and a second one counts after an hour."""


class RefundByPerson(msgspec.Struct, frozen=True, kw_only=True):
    """How a person refunds a payment.

    Attributes:
        seen: the payment's money as it was shown, by ``standing_of``.
        insists: the refusal against which the person insists, with what the gateway's record showed; None for no
            insisting.
    """

    seen: str
    insists: str | None = None


class RefundableMoney(NamedTuple):
    """What is known of one payment's money: all that is stored of it, and the balance that follows."""

    facts: OrderFacts
    balance: OrderBalance

    @property
    def payment(self) -> PaymentBalance | None:
        """What a refund is planned by; see ``payment_in``."""
        return payment_in(self.balance, self.facts.payment_id or "")

    @property
    def is_recovering(self) -> bool:
        """True while a recovery from lost commits lasts."""
        return any(each.kind is DoubtKind.LOST_COMMITS for each in self.balance.doubts)

    @property
    def is_in_question(self) -> bool:
        """True where the gateway's record showed that the payment went back, and then that it didn't."""
        return self.payment is not None and any(each.kind is DoubtKind.RECEIVED_AGAIN for each in self.payment.doubts)


async def read_money(relay: Relay, merchant: str, payment_id: str, *, but_for: str = "") -> RefundableMoney:
    """Reads what is known of a payment's money; ``but_for`` is an operation that is left out.

    ``payment_id`` has no zeros in front. Raises StoreError.
    """
    facts = (await relay.orders.facts_of_payment(merchant, payment_id)).without(but_for)
    return RefundableMoney(facts, await balance_now(relay, facts))


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
        facts = yield from relay.orders.facts_within(merchant, payment_id)
        if any(each.id == operation_id and each.state is not State.SENDING for each in facts.operations):
            return  # held for a person, or carried out before: nothing is sent
        facts = facts.without(operation_id)
        money_then = RefundableMoney(facts, balance_of(facts, now_ms=relay.clock.now_ms()))
        if planned(money_then).amount_minor != plan.amount_minor:
            raise Refusal(Code.IN_PROGRESS, OTHER_REFUND_SENTENCE, retry_after_s=AGAIN_AFTER_S)

    intent = with_amount(intent, call, plan)
    if money.payment is not None and money.payment.currency is not None:
        # Of sources that differ the same one holds as in the figures: in another currency the refund would be in none.
        intent = msgspec.structs.replace(intent, currency=money.payment.currency)
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


def refusal_of(money: RefundableMoney, plan: RefundPlan, request: Request) -> Refusal:
    """Makes the refusal of a refund: in_progress where a later look at the gateway's record decides, else conflict.

    It names the refunds that were made here where they are the caller's own.
    """
    assert money.payment is not None  # noqa: S101, nothing is in the way of what nobody knows
    assert plan.obstacle is not None  # noqa: S101, as the callers ask
    own = frozenset(_own(money.facts.operations, request))
    named = [each.id for each in money.payment.of(Figure.GIVEN_BACK) if each.id in own]
    sentence = refusal_sentence(money.payment, plan.obstacle, own)
    if plan.obstacle is Obstacle.NOT_SEEN_YET:
        return Refusal(Code.IN_PROGRESS, sentence, retry_after_s=AFTER_A_LOOK_S)
    return Refusal(Code.CONFLICT, sentence, operation_id=max(named, default=None))


def all_of(money: RefundableMoney) -> str:
    """Tells the figures of a payment to a person, who sees every refund of it."""
    return figures_sentence(money.payment, [each.id for each in money.facts.operations])


def _own(operations: Iterable[Operation], request: Request) -> Iterable[str]:
    """Gives the operations that the caller may see; an operator sees all."""
    for each in operations:
        is_own = each.principal == request.principal and has_operation(request.credential.bound, each)
        if is_own or request.operator is not None:
            yield each.id
