"""One operation with its history, and the order that it belongs to."""

import msgspec

from payrelay.console.flows.cases.event_moments import of_chargeback
from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.rules.timeline import Moment, of_operation
from payrelay.core.operators.roles import Act, Field
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.sentences import FORGED_SENTENCE, STATE_SENTENCES
from payrelay.errors import Code, OperationForged, Refusal
from payrelay.flows.operators.parts import Actor
from payrelay.flows.operators.shown import entries_for
from payrelay.flows.orders.order_money import OrderMoney, read_payment_money


class OneOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as the console shows it.

    Attributes:
        operation: its row.
        sentence: what its state means, fit to be read out.
        moments: its journal entries and chargebacks, the oldest first.
        idempotency_key: as the client gave it; None also where the actor doesn't see it.
        money: what is known of its payment's money; None where it names no payment.
    """

    operation: Operation
    sentence: str
    moments: list[Moment]
    idempotency_key: str | None
    money: OrderMoney | None


async def show_operation(parts: CaseParts, actor: Actor, operation_id: str) -> OneOperation:
    """Shows an operation. Raises Refusal; StoreUnavailable.

    The refusal is forbidden; not_found, also for forged records; unavailable where it may be among lost commits.
    """
    actor.require(Act.LOOK)
    try:
        operation = await parts.relay.journal.get(operation_id)
        if operation is None:
            await parts.relay.database.lost_commits.require_known(operation_id, "operation")
            raise Refusal(Code.NOT_FOUND, "there is no such operation")
        history = await parts.relay.journal.history(operation.id)
    except OperationForged:
        raise Refusal(Code.NOT_FOUND, FORGED_SENTENCE.removesuffix(".")) from None
    chargebacks = await parts.relay.money.chargebacks.of_operation(operation.id)
    number = operation.payment_id
    money = None if number is None else await read_payment_money(parts.relay, operation.merchant, number)
    won = frozenset[str]() if money is None else money.won
    moments = of_operation(operation, entries_for(actor, history))
    moments += [of_chargeback(each, is_won=each.payment_id in won) for each in chargebacks]
    return OneOperation(
        operation=operation,
        sentence=STATE_SENTENCES[operation.state],
        moments=sorted(moments, key=lambda each: each.at_ms),
        idempotency_key=operation.idempotency_key if actor.sees(Field.IDEMPOTENCY_KEY) else None,
        money=money,
    )
