"""What banks do to a payment later: they charge it back, lose that dispute, or refuse the money of a refund."""

import msgspec

from payrelay_simulator.errors import ControlError
from payrelay_simulator.ledger_lines import payment_line
from payrelay_simulator.messages import CHARGED_BACK, payment_message
from payrelay_simulator.notification_faults import Flow
from payrelay_simulator.records import Payment
from payrelay_simulator.turn import Turn
from payrelay_simulator.world import World


def charge_back(
    world: World, payment_id: int, notify_url: str = "", *, amount_cents: int | None = None
) -> tuple[int, ...]:
    """Charge a payment back, once, and return the numbers of the notifications.

    All that is left of it is taken, or the part that is given. The notifications go to the payment's own notify_url, or
    to the one given where it has none. A ControlError refuses a payment that is not known, was charged back before or
    was given back, and a part of more than is left.
    """
    world.elapse()
    payment = _known(world, payment_id)
    left_cents = payment.amount_cents - payment.refunded_cents
    if payment.is_charged_back or left_cents <= 0:
        raise ControlError("payment_id", "has been charged back or given back already")
    if amount_cents is not None and amount_cents > left_cents:
        raise ControlError("amount", "is more than is left of the payment")
    turn = _turn_of(world, payment)
    addressed = msgspec.structs.replace(payment, notify_url=payment.notify_url or notify_url)
    charged_back = take_back(turn, addressed, left_cents if amount_cents is None else amount_cents)
    flow: Flow = "payment" if payment.subscription_id is None else "recurring"
    return turn.tell(payment_message(flow, charged_back, CHARGED_BACK))


def take_back(turn: Turn, payment: Payment, amount_cents: int) -> Payment:
    """Keep that a bank took so much of a payment back, and enter it; return the payment as it is now."""
    charged_back = msgspec.structs.replace(payment, charged_back_cents=amount_cents)
    turn.state.put_payment(charged_back)
    turn.enter(payment_line(payment, "chargeback", amount_cents))
    return charged_back


def win_chargeback(world: World, payment_id: int) -> None:
    """Return to the merchant what a bank took back of a payment. Nobody is notified; the record shows it.

    A ControlError refuses a payment that is not known or is not charged back.
    """
    world.elapse()
    payment = _known(world, payment_id)
    if not payment.is_charged_back:
        raise ControlError("payment_id", "is not charged back")
    world.state.put_payment(msgspec.structs.replace(payment, charged_back_cents=0))
    _turn_of(world, payment).enter(payment_line(payment, "chargeback_reversal", payment.charged_back_cents))


def fail_refund(world: World, refund_id: int) -> None:
    """Let a refund that was accepted fail, so that the merchant has the money again. Nobody is notified of it.

    A ControlError refuses a number that no refund has, and a refund that has failed before.
    """
    world.elapse()
    for payment in world.state.payments.values():
        refund = next((each for each in payment.standing_refunds if each.refund_id == refund_id), None)
        if refund is not None:
            failed = msgspec.structs.replace(refund, has_failed=True)
            refunds = tuple(failed if each is refund else each for each in payment.refunds)
            world.state.put_payment(msgspec.structs.replace(payment, refunds=refunds))
            _turn_of(world, payment).enter(
                payment_line(payment, "refund_reversal", refund.amount_cents, refund.refund_id)
            )
            return
    raise ControlError("refund_id", "is no refund, or has failed already")


def _known(world: World, payment_id: int) -> Payment:
    payment = world.state.payments.get(payment_id)
    if payment is None:
        raise ControlError("payment_id", "is no payment")
    return payment


def _turn_of(world: World, payment: Payment) -> Turn:
    merchant = next(each for each in world.merchants if each.merchant_id == payment.merchant_id)
    return world.turn_of(merchant, None)
