"""Refunds: giving a payment back, whole or in parts, or giving a hold back before it is captured."""

import msgspec

from payrelay_simulator.fields import Fields
from payrelay_simulator.holds import give_back, own_hold
from payrelay_simulator.ledger_lines import payment_line
from payrelay_simulator.money import cents_of
from payrelay_simulator.records import Payment, Refund
from payrelay_simulator.reply import Reply, failure, marked_failure, success
from payrelay_simulator.switches import Switches
from payrelay_simulator.turn import Turn

REFUSED = "Error processing refund"


def refund(turn: Turn, fields: Fields) -> Reply:
    """Give back the payment or the hold that is named, exactly one of them."""
    if ("payment_id" in fields) == ("authorization_token" in fields):
        return marked_failure("exactly one of payment_id and authorization_token must be given")
    fields.text("description")
    if "authorization_token" in fields:
        return _refund_hold(turn, fields)
    payment = turn.state.payments.get(fields.identifier("payment_id"))
    if payment is None or payment.merchant_id != turn.merchant.merchant_id:
        return failure(REFUSED)
    return _refund_payment(turn, fields, payment)


def _refund_hold(turn: Turn, fields: Fields) -> Reply:
    if "amount" in fields:
        return marked_failure("an authorization is refunded whole; amount must be left out")
    hold = own_hold(turn, fields.text("authorization_token"))
    if hold is None or hold.status == "RELEASED":
        return failure(REFUSED)
    if hold.status != "HELD":
        return failure(REFUSED, status=turn.switches.refused_refund_status)
    give_back(turn, hold)
    return success("Successfully processed the authorization refund", None)


def _refund_payment(turn: Turn, fields: Fields, payment: Payment) -> Reply:
    is_part = "amount" in fields
    if is_part and turn.switches.partial_refund == "refused":
        return marked_failure("partial refunds are not supported")
    amount_cents = cents_of(fields.raw("amount")) if is_part else payment.amount_cents
    if amount_cents is None:
        return marked_failure("amount must be a positive amount of whole cents")
    if not _is_taken(payment, amount_cents, turn.switches):
        return failure(REFUSED, status=turn.switches.refused_refund_status)
    return success("Successfully processed the refund", give_payment_back(turn, payment, amount_cents))


def _is_taken(payment: Payment, amount_cents: int, switches: Switches) -> bool:
    """Say whether a refund of so much is carried out; by switch also where the money is no longer there."""
    # A whole refund after a part has gone back asks for the whole again, which is more than is left.
    left_cents = payment.amount_cents - payment.refunded_cents
    if amount_cents > left_cents and switches.over_refund == "refused":
        return False
    is_of_the_rest = amount_cents <= left_cents - payment.charged_back_cents
    return is_of_the_rest or not payment.is_charged_back or switches.charged_back_refund == "accepted"


def give_payment_back(turn: Turn, payment: Payment, amount_cents: int) -> int:
    """Give so much of a payment back, whoever wants it, and enter it; return the number of the refund."""
    refund_id = turn.state.next_refund_id()
    done = Refund(refund_id=refund_id, at=turn.now, amount_cents=amount_cents)
    turn.state.put_payment(msgspec.structs.replace(payment, refunds=(*payment.refunds, done)))
    turn.enter(payment_line(payment, "refund", amount_cents, refund_id))
    return refund_id
