"""Refunds by a person: the payment's money that a page shows with its thing, and an operator who insists."""

from typing import Final

import msgspec

from payrelay.core.access.credential import credential_for
from payrelay.core.calls import Refund
from payrelay.core.money import money_text
from payrelay.core.operators.confirmations import Confirmation
from payrelay.core.operators.roles import Act
from payrelay.core.orders.refunding import plan_refund, standing_of
from payrelay.core.payments.payment import plain_number
from payrelay.flows.operators.acting import STANDING_MARK, ActTarget
from payrelay.flows.operators.parts import Actor, OperatorParts
from payrelay.flows.refunds.insist import look_before_insisting
from payrelay.flows.refunds.refundable_money import read_money, refusal_of
from payrelay.flows.relay import Relay, Request

INSISTS: Final = "insists"
"""The field of a confirmation with the refusal against which the operator insists."""
RECORD: Final = "record"
"""The field with what the gateway's record showed then."""


async def with_money(relay: Relay, target: ActTarget) -> ActTarget:
    """Adds the money of a target's payment where it can be refunded; a form names that as seen. Raises StoreError."""
    if target.payment_id is None or Act.REFUND not in target.acts:
        return target
    money = await read_money(relay, relay.account(target.account).merchant, plain_number(target.payment_id))
    currency = target.currency or (None if money.payment is None else money.payment.currency)
    seen = f"{target.seen}{STANDING_MARK}{standing_of(money.payment)}"
    return msgspec.structs.replace(target, money=money, seen=seen, currency=currency)


def require_refundable(target: ActTarget, call: Refund, request: Request) -> None:
    """Raises Refusal (conflict) where a refund is of more than is left, by the figures that were shown."""
    if target.money is not None:
        plan = plan_refund(target.money.payment, call.amount_minor)
        if plan.obstacle is not None:
            raise refusal_of(target.money, plan, request)


async def insisting(
    parts: OperatorParts, relay: Relay, actor: Actor, target: ActTarget, *, fields: dict[str, str], request: Request
) -> dict[str, str]:
    """Asks the gateway for the payment's record, and adds to the fields what the operator insists against.

    The history of what operators did has a line of the question. What the gateway shows is noted, so that the money is
    to be read anew. Raises Refusal: forbidden, and as ``look_before_insisting``; StoreError.
    """
    actor.require(Act.ASK_GATEWAY)
    if target.order_id is not None:
        did = actor.did(Act.ASK_GATEWAY, f"{target.account}/{target.order_id}", at_ms=parts.clock.now_ms())
        await parts.acts.written(lambda: parts.acts.appended(did))
    found = await look_before_insisting(relay, request, call_of(target, fields), target.order_id)
    return fields if found.refusal is None else {**fields, INSISTS: found.refusal, RECORD: found.record}


def request_for(relay: Relay, account: str, principal: str, operator: str, request_id: str) -> Request:
    """Makes a request as whoever owns the payment would make it, of an operator.

    Raises Refusal (not_found) where the account isn't configured any more.
    """
    credential = credential_for(principal, created_at_ms=0)
    return Request(gateway=relay.account(account), credential=credential, request_id=request_id, operator=operator)


def call_of(target: ActTarget, fields: dict[str, str]) -> Refund:
    """Makes the refund that an operator asks for."""
    amount = fields.get("amount_minor")
    return Refund(
        payment_id=plain_number(target.payment_id or ""),
        description=fields["description"],
        amount_minor=None if amount is None else int(amount),
    )


def amount_shown(target: ActTarget, *, is_insisting: bool) -> int | None:
    """Gives what a refund without an amount gives back, in hundredths; None where nothing says that."""
    payment = None if target.money is None else target.money.payment
    if payment is None:
        return None
    return payment.paid_minor if is_insisting else payment.left_minor


def whole_in_words(amount_minor: int | None, currency: str | None, *, is_insisting: bool) -> str:
    """Tells what a refund without an amount gives back, with its figure where one is known."""
    if amount_minor is None:
        return "the whole payment; nothing here says how much that is"
    amount = money_text(amount_minor, currency)
    return f"the whole payment once more: {amount}" if is_insisting else f"what is left: {amount}"


def amount_in_words(confirmation: Confirmation) -> str:
    """Tells what a confirmation is of, with a figure wherever one is known; empty where it has no amount."""
    amount_minor, currency, filled = confirmation.amount_minor, confirmation.currency, confirmation.filled
    if confirmation.act_name is not Act.REFUND or "amount_minor" in filled:
        return money_text(amount_minor, currency)
    return whole_in_words(amount_minor, currency, is_insisting=INSISTS in filled)
