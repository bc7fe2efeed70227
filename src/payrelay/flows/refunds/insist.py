"""Lets a person insist on a refund that the figures refuse, after a look at what the gateway's record shows."""

from typing import Final, NamedTuple

from payrelay.core.calls import Refund
from payrelay.core.money import money_text
from payrelay.core.orders.refunding import plan_refund
from payrelay.core.payments.payment import Payment
from payrelay.errors import Code, Refusal
from payrelay.flows.gateway_record import read_record
from payrelay.flows.refunds.refundable_money import RefundableMoney, read_money, refusal_of
from payrelay.flows.relay import Relay, Request

NO_ORDER_SENTENCE: Final = (
    "nobody can insist on this refund: nothing here says of which order the payment is, and the gateway shows payments"
    " by their orders"
)
UNSEEN_SENTENCE: Final = (
    "nobody can insist on this refund before the gateway was asked for its record, and it could not be"
)


class Insistence(NamedTuple):
    """What a person insists against, and what they were shown.

    Attributes:
        money: what is known of the payment's money after the look.
        refusal: why the refund is refused to a key; None where nothing is in its way after the look.
        record: what the gateway's record shows of the payment.
    """

    money: RefundableMoney
    refusal: str | None
    record: str

    @property
    def evidence(self) -> str:
        """What the journal says of it."""
        return self.record if self.refusal is None else f"{self.refusal}; {self.record}"


async def look_before_insisting(relay: Relay, request: Request, call: Refund, order_id: str | None) -> Insistence:
    """Asks the gateway for the record of a payment, and tells what stands against its refund then.

    ``call`` names the payment without zeros in front. Raises Refusal: conflict where nothing says the payment's order,
    unavailable where the gateway doesn't answer now; StoreError.
    """
    if order_id is None:
        raise Refusal(Code.CONFLICT, NO_ORDER_SENTENCE)
    merchant = request.gateway.merchant
    record = await read_record(relay, request.account, order_id, request_id=request.request_id)
    if record.payments is None:
        raise Refusal(Code.UNAVAILABLE, f"{UNSEEN_SENTENCE}: {(record.failure or '').rstrip('.')}")
    money = await read_money(relay, merchant, call.payment_id)
    plan = plan_refund(money.payment, call.amount_minor)
    refusal = None if plan.obstacle is None else refusal_of(money, plan, request).msg
    shown = next((each for each in record.payments if each.payment_id == call.payment_id), None)
    return Insistence(money, refusal, _record_in_words(shown, order_id))


def _record_in_words(shown: Payment | None, order_id: str) -> str:
    if shown is None:
        return f"the gateway's record of order {order_id} doesn't show the payment"
    amount = money_text(shown.amount_minor, shown.currency) or "an amount that can't be read"
    return f"the gateway's record shows the payment as {shown.status}, {amount}"
