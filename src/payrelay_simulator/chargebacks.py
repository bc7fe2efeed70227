"""Chargebacks: a payer's bank takes a payment back, whatever the merchant thinks of it."""

import msgspec

from payrelay_simulator.errors import ControlError
from payrelay_simulator.ledger_lines import payment_line
from payrelay_simulator.messages import CHARGED_BACK, payment_message
from payrelay_simulator.notification_faults import Flow
from payrelay_simulator.world import World


def charge_back(world: World, payment_id: int, notify_url: str = "") -> tuple[int, ...]:
    """Charge a payment back, once, and return the numbers of the notifications.

    They go to the payment's own notify_url, or to the one given where it has none. A ControlError refuses a payment
    that is not known, was charged back before or was given back.
    """
    world.elapse()
    payment = world.state.payments.get(payment_id)
    if payment is None:
        raise ControlError("payment_id", "is no payment")
    left_cents = payment.amount_cents - payment.refunded_cents
    if payment.is_charged_back or left_cents == 0:
        raise ControlError("payment_id", "has been charged back or given back already")
    merchant = next(each for each in world.merchants if each.merchant_id == payment.merchant_id)
    turn = world.turn_of(merchant, None)
    charged_back = msgspec.structs.replace(payment, is_charged_back=True, notify_url=payment.notify_url or notify_url)
    turn.state.put_payment(charged_back)
    turn.enter(payment_line(payment, "chargeback", left_cents))
    flow: Flow = "payment" if payment.subscription_id is None else "recurring"
    return turn.tell(payment_message(flow, charged_back, CHARGED_BACK))
