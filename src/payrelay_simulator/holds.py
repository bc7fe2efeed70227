"""Holds: capturing an amount that was set aside, giving it back, and letting it go when its time is over."""

import msgspec

from payrelay_simulator.fields import Fields
from payrelay_simulator.ledger_lines import hold_line
from payrelay_simulator.money import cents_of
from payrelay_simulator.payments import SUCCESS_CODE, given_number, signed
from payrelay_simulator.records import Hold, Payment
from payrelay_simulator.rendering import amount
from payrelay_simulator.reply import Reply, failure, marked_failure, success
from payrelay_simulator.turn import Turn

ABOVE_AUTHORIZED = "Capture amount must be less than or equal to the authorized amount"


def capture(turn: Turn, fields: Fields) -> Reply:
    """Take all or a part of a hold, once."""
    hold = own_hold(turn, fields.optional_text("authorization_token"))
    fields.optional_text("deduction_details")
    if hold is None:
        return failure("Invalid token")
    if hold.status != "HELD":
        return _capture_refused(turn, hold)
    if "amount" not in fields:
        return marked_failure("amount is missing")
    captured_cents = cents_of(fields.raw("amount"))
    if captured_cents is None:
        return marked_failure("amount must be a positive amount of whole cents")
    if captured_cents > hold.amount_cents:
        return failure(ABOVE_AUTHORIZED)
    return _captured(turn, hold, fields, captured_cents)


def _capture_refused(turn: Turn, hold: Hold) -> Reply:
    if hold.status != "RELEASED":
        return failure(f"Authorization is already {hold.status}", status=-2)
    if turn.switches.expired_hold == "invalid_token":
        return failure("Invalid token")
    return failure("Simulator: Authorization is EXPIRED", status=-2)


def _captured(turn: Turn, hold: Hold, fields: Fields, captured_cents: int) -> Reply:
    given = given_number(fields.raw("amount"))
    turn.state.put_hold(msgspec.structs.replace(hold, status="CAPTURED", captured_cents=captured_cents))
    # From now on it is a payment of its order, dated by the capture, under the id that the hold had.
    turn.state.put_payment(
        Payment(
            payment_id=hold.payment_id,
            merchant_id=hold.merchant_id,
            order_id=hold.order_id,
            at=turn.now,
            description=hold.description,
            currency=hold.currency,
            amount_cents=captured_cents,
            amount_given=given,
            person=hold.person,
            card=hold.card,
            custom_1=hold.custom_1,
            custom_2=hold.custom_2,
            visible_at=turn.visible_at(),
        )
    )
    turn.enter(hold_line(hold, "capture", captured_cents))
    data = {
        "status_code": SUCCESS_CODE,
        "status_message": f"Successfully received the {hold.card.method} payment",
        "payment_id": hold.payment_id,
        "currency": hold.currency,
        "amount": amount(hold.amount_cents, hold.amount_given, turn.switches),
        "captured_amount": amount(captured_cents, given, turn.switches),
        "items": hold.description,
        "order_id": hold.order_id,
        "md5sig": signed(turn, hold.order_id, hold.amount_cents, hold.currency, SUCCESS_CODE),
        "custom_1": hold.custom_1,
        "custom_2": hold.custom_2,
    }
    return success("Successfully captured payment", data)


def give_back(turn: Turn, hold: Hold) -> None:
    """Release the whole of a hold at the merchant's wish."""
    turn.state.put_hold(msgspec.structs.replace(hold, status="REFUNDED"))
    turn.enter(hold_line(hold, "release", hold.amount_cents))


def own_hold(turn: Turn, authorization_token: str | None) -> Hold | None:
    """Return the caller's hold of that token, None where there is none."""
    hold = turn.state.holds.get(authorization_token or "")
    return hold if hold is not None and hold.merchant_id == turn.merchant.merchant_id else None
