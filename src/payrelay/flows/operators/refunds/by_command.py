"""Prepares a refund that somebody asks for by a command: with the figures, and with a look at the gateway to insist."""

from typing import NamedTuple

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.calls import Refund
from payrelay.core.money import money_text
from payrelay.core.orders.refunding import standing_of
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.operators.refunds.shown import (
    amount_shown,
    call_of,
    request_for,
    require_refundable,
    whole_in_words,
)
from payrelay.flows.payments.refund import refund
from payrelay.flows.refunds.insist import look_before_insisting
from payrelay.flows.refunds.limits import RefundByPerson
from payrelay.flows.refunds.refundable_money import all_of, read_money
from payrelay.flows.relay import Relay, Request

NO_OWNER_SENTENCE = "nobody here owns the payment; refund it in the console, for the client that you choose"


class AskedByCommand(NamedTuple):
    """What a command asks for: the amount in hundredths, None for all that is left, and who wants it and why."""

    amount_minor: int | None
    description: str | None
    operator: str
    reason: str
    is_insisting: bool


class PreparedRefund(NamedTuple):
    """A refund that can be confirmed.

    Attributes:
        request, call: as they go out.
        figures: what is known of the payment's money, in words.
        record: what the gateway's record shows, in words; None where it wasn't asked.
        how_much: what is given back, in words.
        person: what the person has been shown, and what they insist against.
    """

    request: Request
    call: Refund
    figures: str
    record: str | None
    how_much: str
    person: RefundByPerson


async def prepare_refund(relay: Relay, target: ActTarget, asked: AskedByCommand) -> PreparedRefund:
    """Prepares the refund of a payment; nothing is done yet.

    Raises Refusal: conflict where more is asked for than is left, unless the person insists, and where nobody owns the
    payment; and as ``look_before_insisting``. Raises StoreError.
    """
    principal = target.principal or (target.clients[0] if len(target.clients) == 1 else "")
    if not principal:
        raise Refusal(Code.CONFLICT, NO_OWNER_SENTENCE)
    request = request_for(target.account, principal, asked.operator, relay.new_id("req", relay.clock.now_ms()))
    request = msgspec.structs.replace(request, reason=asked.reason)
    words = asked.description or f"Refund of order {target.order_id or target.payment_id}"
    call = msgspec.structs.replace(call_of(target, {"description": words}), amount_minor=asked.amount_minor)
    record, insists = None, None
    if asked.is_insisting:
        found = await look_before_insisting(relay, request, call, target.order_id)
        record, insists = found.record, None if found.refusal is None else found.evidence
    merchant = relay.account(target.account).merchant
    money = await read_money(relay, merchant, call.payment_id)
    target = msgspec.structs.replace(target, money=money)
    if insists is None:
        require_refundable(target, call, request)
    whole_minor, is_insisting = amount_shown(target, is_insisting=insists is not None), insists is not None
    currency = None if money.payment is None else money.payment.currency
    how_much = (
        whole_in_words(whole_minor, currency, is_insisting=is_insisting)
        if call.amount_minor is None
        else money_text(call.amount_minor, currency)
    )
    person = RefundByPerson(seen=standing_of(money.payment), insists=insists)
    return PreparedRefund(request, call, all_of(money), record, how_much, person)


async def carry_out_refund(relay: Relay, prepared: PreparedRefund) -> Answer:
    """Refunds what was confirmed, at most once; see ``refund``."""
    return await refund(relay, prepared.request, prepared.call, person=prepared.person)
